//! What a method asks of the sites, as the state machine of every run sees it.

use super::DESCRIBE;
use super::forest::ForestWork;
use super::unpsl::UnpslWork;
use crate::message::Request;
use crate::progress::Progress;

/// What the next exchange asks.
#[derive(Debug, Clone)]
pub(super) enum Work {
    /// All sites prove that they mean the same cohort.
    Agreeing,
    /// Distributed UnPSL.
    Unpsl(Box<UnpslWork>),
    /// Forests.
    Forest(Box<ForestWork>),
}

impl Work {
    pub(super) fn phase(&self) -> &'static str {
        match self {
            Self::Agreeing => "agreeing on the cohort",
            Self::Unpsl(work) => work.phase(),
            Self::Forest(work) => work.phase(),
        }
    }

    pub(super) fn request(&self, site: usize) -> Request {
        match self {
            Self::Agreeing => Request::Describe,
            Self::Unpsl(work) => work.request(site),
            Self::Forest(work) => work.request(site),
        }
    }

    /// What a site that came back must hear again before the open exchange, each with its number.
    pub(super) fn context(&self, site: usize) -> Vec<(u32, Request)> {
        let own = match self {
            Self::Agreeing => return Vec::new(),
            Self::Unpsl(work) => work.context(),
            Self::Forest(work) => work.context(site),
        };
        [(DESCRIBE, Request::Describe)]
            .into_iter()
            .chain(own)
            .collect()
    }

    /// Whether the open exchange is a round.
    pub(super) fn in_rounds(&self) -> bool {
        matches!(self, Self::Unpsl(work) if work.in_rounds())
    }

    /// Whether the model is there and the sites judge it.
    pub(super) fn finishing(&self) -> bool {
        match self {
            Self::Agreeing => false,
            Self::Unpsl(work) => work.finishing(),
            Self::Forest(work) => work.finishing(),
        }
    }

    /// The run's progress as far as the method tells it.
    pub(super) fn describe(&self, progress: &mut Progress) {
        if let Self::Unpsl(work) = self {
            work.describe(progress);
        }
    }
}
