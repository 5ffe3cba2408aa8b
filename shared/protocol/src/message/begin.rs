//! What a run is, and who asks for it.

use crate::name::RunId;

/// What a run is, as every party receives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begin {
    /// The run.
    pub run: RunId,
    /// The job as its author wrote it: every party parses the same text.
    pub job: String,
    /// Seed of every named random stream of the run.
    pub seed: u64,
    /// The word of the operator who submitted the job.
    pub warrant: Warrant,
    /// The run by which the job's study opened; none of that run itself.
    pub opening: Option<RunId>,
}

/// An operator's signed word for a job, which the coordinator passes on and cannot make. Empty where nobody
/// signed, as where everything is in one process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Warrant {
    /// Chosen by the operator; the run's identity follows from their name and it.
    pub token: String,
    /// The operator's certificate, and those between it and the authority, DER.
    pub chain: Vec<Vec<u8>>,
    /// How the signature was made, as TLS numbers it.
    pub scheme: u16,
    /// The signature over the job's text, its seed and the token.
    pub signature: Vec<u8>,
}
