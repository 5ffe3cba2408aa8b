//! `job check`: a job and its study, looked at without a coordinator.

use super::{OperatorError, job_of};
use protocol::job::Job;
use serde::Serialize;
use std::fmt;
use std::path::Path;

/// A job that can be submitted.
#[derive(Debug, Serialize)]
pub struct Checked {
    job: String,
    method: &'static str,
    seed: u64,
    outcome: String,
    /// None where the job has everything in itself.
    study: Option<CheckedStudy>,
    sites: Vec<String>,
    features: Vec<String>,
}

#[derive(Debug, Serialize)]
struct CheckedStudy {
    name: String,
    digest: String,
    until: String,
}

/// Reads a job with its study.
///
/// # Errors
/// [`OperatorError`], all problems of the job at once.
pub fn check(path: &Path) -> Result<Checked, OperatorError> {
    let (_, job) = job_of(path)?;
    Ok(Checked::of(&job))
}

impl Checked {
    /// What a job says.
    #[must_use]
    pub fn of(job: &Job) -> Self {
        let features = job.cohort.features.iter();
        Self {
            job: job.name.clone(),
            method: job.method.name(),
            seed: job.seed,
            outcome: job.cohort.outcome.column.clone(),
            study: job.study.as_ref().map(|study| CheckedStudy {
                name: study.name.to_string(),
                digest: study.digest(),
                until: study.until.to_string(),
            }),
            sites: job.sites.iter().map(ToString::to_string).collect(),
            features: features.map(|feature| feature.name.clone()).collect(),
        }
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            job,
            method,
            seed,
            outcome,
            study,
            sites,
            features,
        } = self;
        writeln!(formatter, "{job}: {method}, seed {seed}")?;
        match study {
            Some(CheckedStudy {
                name,
                digest,
                until,
            }) => writeln!(
                formatter,
                "study {name} until {until}, digest sha256:{digest}"
            )?,
            None => writeln!(formatter, "of no study: for simulate and local alone")?,
        }
        writeln!(formatter, "sites: {}", sites.join(", "))?;
        write!(
            formatter,
            "outcome {outcome}, {} features: {}",
            features.len(),
            features.join(", ")
        )
    }
}
