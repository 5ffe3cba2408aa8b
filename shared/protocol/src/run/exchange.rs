//! The open exchange of a run.

use crate::message::Answer;
use crate::time::Timestamp;

/// What has come of the open exchange.
#[derive(Debug, Clone)]
pub(super) struct Exchange {
    pub(super) number: u32,
    /// When it was opened, or last taken up.
    pub(super) since: Timestamp,
    pub(super) answers: Vec<Option<Answer>>,
    pub(super) signatures: Vec<Vec<u8>>,
    /// What is summed; none where nothing is.
    pub(super) summed: Option<Summed>,
}

/// What the covered words of an answer must be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Summed {
    pub(super) kind: &'static str,
    pub(super) words: usize,
    /// Whether all answers are too many for every site to hear: they have tags then, and the sites hear their sum.
    pub(super) tagged: bool,
}

impl Exchange {
    /// An exchange that nobody has answered.
    pub(super) fn open(number: u32, since: Timestamp, sites: usize) -> Self {
        Self {
            number,
            since,
            answers: vec![None; sites],
            signatures: vec![Vec::new(); sites],
            summed: None,
        }
    }

    /// Whether the site has answered.
    pub(super) fn has_heard(&self, site: usize) -> bool {
        self.answers[site].is_some()
    }
}
