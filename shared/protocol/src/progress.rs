//! What an operator sees of a run, while it goes and when it has ended.

pub use crate::exchange::Course;
use crate::failure::Failure;
use crate::name::{OperatorName, RunId};
use crate::time::Timestamp;

/// Where a run stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The run.
    pub run: RunId,
    /// The job's name; empty where it is not known.
    pub job: String,
    /// The job's method, by its name in a job; empty where it is not known.
    pub method: String,
    /// Who submitted it, where that is known.
    pub operator: Option<OperatorName>,
    /// When it was submitted, began and ended.
    pub times: Times,
    /// Of a run in the queue: how many come before it.
    pub ahead: Option<u32>,
    /// What is going on, in the glossary's words.
    pub phase: String,
    /// How far its rounds have come, where it has any.
    pub course: Course,
    /// Sites connected now.
    pub sites_connected: u32,
    /// Sites of the job.
    pub sites: u32,
    /// The names of the sites that are waited for.
    pub waiting_for: Vec<String>,
    /// Of these, who is not connected.
    pub away: Vec<String>,
    /// Since when they are waited for; none where it is not known.
    pub waiting_since: Option<Timestamp>,
    /// Remarks so far: what the run could not use, and what its operator should know.
    pub notes: u32,
    /// Set once the run has ended.
    pub ending: Option<Ending>,
}

/// When a run was submitted, began and ended, where that has happened and is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// When its operator submitted it.
    pub submitted: Option<Timestamp>,
    /// When its sites were first waited for.
    pub began: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
}

/// How a run ended. Stopping is a status; failing is an error with a reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// Both residuals fell below their tolerances.
    Converged,
    /// All that the job asks for is done, by a method that has no rounds to converge in.
    Completed,
    /// The round limit was reached first.
    RoundLimit,
    /// An operator cancelled.
    Cancelled,
    /// It could not go on.
    Failed(Failure),
}

impl Ending {
    /// The word of result.json.
    #[must_use]
    pub fn status(&self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::Completed => "completed",
            Self::RoundLimit => "round_limit",
            Self::Cancelled => "cancelled",
            Self::Failed(_) => "failed",
        }
    }

    /// What the programs say of it on their last lines.
    #[must_use]
    pub fn sentence(&self) -> &'static str {
        match self {
            Self::RoundLimit => "stopped at the round limit",
            Self::Converged | Self::Completed | Self::Cancelled | Self::Failed(_) => self.status(),
        }
    }
}
