//! From the site's own table to the cohort of a job.
//!
//! A source is read once, as a stream; only the columns that the job needs are kept. Nothing is
//! returned of a source that does not fit: all its problems come at once.

mod column;
mod csv;
mod field;
mod intake;
mod level;
mod outcome;
mod patients;
mod problem;
mod summary;

pub use patients::Patients;
pub use problem::{CohortProblem, CohortProblems, Rows};
pub use summary::{ColumnSummary, Content};

use crate::config::{SourceConfig, SourceKind};
use intake::{Intake, Reading};
use protocol::job::Job;
use similarity::cohort::Cohort;

/// One site's patients, ready for a job.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SiteCohort {
    /// The patients, without their identifiers.
    pub cohort: Cohort,
    /// Their identifiers, for local results only.
    pub patients: Patients,
    /// Patients of the source who are not in the cohort, because they have no outcome.
    pub left_out: u64,
}

/// How far reading has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReadProgress {
    /// Rows read.
    pub rows: u64,
    /// How much of the source is read, 0 to 1, where its length is known.
    pub fraction: Option<f64>,
}

/// Reads what `job` needs. Blocks until all is read: call it where blocking is allowed, never
/// inside an asynchronous task.
///
/// # Errors
/// [`CohortProblems`]: everything that does not fit, none of it with a patient's value.
pub fn read_cohort(
    source: &SourceConfig,
    job: &Job,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<SiteCohort, CohortProblems> {
    read(source, job, progress).into_cohort()
}

fn read(source: &SourceConfig, job: &Job, progress: &mut dyn FnMut(ReadProgress)) -> Reading {
    match &source.kind {
        SourceKind::Csv(csv) => {
            let name = csv.path.display().to_string();
            let mut intake = Intake::new(source, job, name, "line", progress);
            self::csv::read(csv, &mut intake);
            intake.finish()
        }
        SourceKind::Parquet(_) | SourceKind::Postgres(_) => unimplemented!(),
    }
}
