//! What an operator sees of a run, while it goes and when it has ended.

pub use crate::exchange::Course;
use crate::failure::Failure;
use crate::name::RunId;

/// Where a run stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The run.
    pub run: RunId,
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
    /// Seconds until the present wait ends by its deadline.
    pub deadline_seconds: f64,
    /// Set once the run has ended.
    pub ending: Option<Ending>,
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
}
