//! From the site's own table to the cohort of a job.
//!
//! A source is read once, as a stream; only the columns that the job needs are kept. Nothing is
//! returned of a source that does not fit: all its problems come at once.

mod check;
mod column;
mod csv;
mod field;
mod intake;
mod level;
mod outcome;
mod parquet;
mod patients;
mod postgres;
mod problem;
mod summary;

pub use check::{DataCheck, check};
pub use patients::Patients;
pub use problem::{CohortProblem, CohortProblems, Rows};
pub use summary::{ColumnSummary, Content};

use crate::config::{SourceConfig, SourceKind};
use intake::{Intake, Reading};
use protocol::job::Job;
use similarity::cohort::{Cohort, Outcome, Values};

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

impl SiteCohort {
    /// What tells one patient from another, to recognise a cohort that was seen before: the
    /// source's identifier or, where the site names none, the values that the job reads. Without
    /// identifiers, two jobs of different columns look like two cohorts. It stays at the site.
    pub fn identifiers(&self) -> impl Iterator<Item = Vec<u8>> + '_ {
        (0..self.cohort.patients()).map(|patient| {
            if self.patients.are_named() {
                self.patients.bytes(patient).to_vec()
            } else {
                self.values(patient)
            }
        })
    }

    fn values(&self, patient: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 * (self.cohort.columns().len() + 2));
        for column in self.cohort.columns() {
            match &column.values {
                Values::Numeric(numbers) => bytes.extend(numbers[patient].to_bits().to_le_bytes()),
                Values::Categorical { codes, .. } => bytes.extend(codes[patient].to_le_bytes()),
            }
        }
        match self.cohort.outcome() {
            Outcome::Classes { codes, .. } => bytes.extend(codes[patient].to_le_bytes()),
            Outcome::Numeric(numbers) => bytes.extend(numbers[patient].to_bits().to_le_bytes()),
            Outcome::Survival { time, event } => {
                bytes.extend(time[patient].to_bits().to_le_bytes());
                bytes.push(u8::from(event[patient]));
            }
        }
        bytes
    }
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
        SourceKind::Parquet(parquet) => {
            let name = parquet.path.display().to_string();
            let mut intake = Intake::new(source, job, name, "row", progress);
            self::parquet::read(parquet, &mut intake);
            intake.finish()
        }
        SourceKind::Postgres(postgres) => {
            let name = postgres.name();
            let mut intake = Intake::new(source, job, name, "row", progress);
            self::postgres::read(postgres, &mut intake);
            intake.finish()
        }
    }
}
