//! What is kept of a run that has ended.

use protocol::failure::{Code, Failure};
use protocol::method::Model;
use protocol::name::RunId;
use protocol::progress::{Ending, Progress};
use protocol::result::RunResult;

/// The phase of a run that the store holds and that cannot be read.
pub const UNREADABLE: &str = "unreadable";

/// A run that failed before it could leave anything.
#[must_use]
pub fn failed_result(run: RunId, job: String, seed: u64, failure: Failure) -> RunResult {
    RunResult {
        run,
        job,
        seed,
        version: crate::driver::VERSION.to_owned(),
        ending: Ending::Failed(failure),
        seconds: 0.0,
        sites: Vec::new(),
        model: None,
        notes: Vec::new(),
    }
}

/// A run whose end cannot be read.
#[must_use]
pub fn unreadable(run: RunId) -> Progress {
    let text = "the coordinator's store holds of this run what this version cannot read";
    let failure = Failure::new(Code::Store, text);
    let result = failed_result(run, String::new(), 0, failure);
    Progress {
        phase: UNREADABLE.to_owned(),
        ..ended_progress(&result)
    }
}

/// Where a run that has ended stands.
#[must_use]
pub fn ended_progress(result: &RunResult) -> Progress {
    Progress {
        run: result.run.clone(),
        phase: "ended".to_owned(),
        course: result.model.as_ref().map(Model::course).unwrap_or_default(),
        sites_connected: 0,
        sites: u32::try_from(result.sites.len()).unwrap_or(u32::MAX),
        waiting_for: Vec::new(),
        deadline_seconds: 0.0,
        ending: Some(result.ending.clone()),
    }
}

/// The result with its record, read back once; a failure in its place where that cannot be done.
pub(super) fn readable(result: RunResult) -> (RunResult, Vec<u8>) {
    let bytes = wire::encode_result(&result);
    let Err(error) = wire::decode_result(&bytes) else {
        return (result, bytes);
    };
    tracing::error!(run = %result.run, %error, "a result cannot be stored");
    let text = format!("the result cannot be stored: {error}");
    let failure = Failure::new(Code::Result, text);
    let failed = failed_result(result.run, result.job, result.seed, failure);
    let bytes = wire::encode_result(&failed);
    (failed, bytes)
}
