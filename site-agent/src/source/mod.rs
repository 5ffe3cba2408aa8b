//! From the site's own table to the cohort of a job.
//!
//! A source is read once, as a stream; only the columns that the job needs are kept. Nothing is
//! returned of a source that does not fit: all its problems come at once.
//!
//! [`read_cohort`] goes by the job's own declarations, for who keeps the results at the site.
//! [`read_for_release`] goes by the site's: see [`Misfit`] for what the coordinator may hear of it.

mod asked;
mod check;
mod checked;
mod coding;
mod column;
mod csv;
mod dictionary;
mod enrolled;
mod field;
mod found;
mod frozen;
mod intake;
mod judged;
mod layout;
mod level;
mod misfit;
mod missing;
mod outcome;
mod parquet;
mod patients;
mod postgres;
mod problem;
mod proposal;
mod reading;
mod summary;
mod survey;
mod terms;
mod value;

pub use check::{DataCheck, check};
pub use checked::Checked;
pub use dictionary::Dictionary;
use enrolled::gridded as gridded_of_study;
pub(crate) use enrolled::{Block, KnownOutcome};
pub use enrolled::{Enrolled, read_enrolled};
pub use frozen::{Damaged, Freezing, FrozenPatients, FrozenRows, FrozenTable, Identify, Room};
pub use judged::Judged;
pub use misfit::{JobColumn, Misfit, Structure};
pub use parquet::snapshot::{self, Snapshot};
pub use patients::Patients;
pub(crate) use patients::digest;
pub use problem::{CohortProblem, CohortProblems, Rows};
pub use proposal::{
    Answer, Asked, Draft, DraftError, Proposal, TableError, of_declared, of_table, propose,
};
pub use summary::{ColumnSummary, Content};
pub use value::undeclared_units;

use crate::config::{SourceConfig, SourceKind};
use intake::Intake;
use protocol::job::Job;
use reading::Reading;
use similarity::cohort::{Cohort, Column};
use similarity::learn::unpsl::JudgedPairs;
use std::collections::HashSet;
use std::fmt;
use survey::Survey;
use terms::Terms;

/// One site's patients, ready for a job.
#[derive(Clone)]
#[non_exhaustive]
pub struct SiteCohort {
    /// The patients, without their identifiers.
    pub cohort: Cohort,
    /// Their identifiers, for local results only.
    pub patients: Patients,
    /// Patients of the source who are not in the cohort, because they have no outcome, or no value that the job insists on.
    pub left_out: u64,
    /// Where the site's word differs from the job's and counts, for the people at the site.
    pub remarks: Vec<CohortProblem>,
    /// Why its outcome cannot be learned from, which is said once a policy has judged the cohort.
    degenerate: Option<CohortProblem>,
    /// All patients of the job's study, where its method wants them.
    enrolled: Option<Enrolled>,
    /// Pairs of its patients that physicians have judged, where its method wants them.
    judged: Option<JudgedPairs>,
    /// Its digest, once its columns are let go.
    digest: Option<String>,
}

impl SiteCohort {
    /// The same, with all patients of the job's study.
    #[must_use]
    pub fn with_enrolled(mut self, enrolled: Enrolled) -> Self {
        let known = &self.remarks;
        let new = enrolled.remarks.iter().filter(|one| !known.contains(one));
        let new: Vec<CohortProblem> = new.cloned().collect();
        self.remarks.extend(new);
        self.enrolled = Some(enrolled);
        self
    }

    /// A digest of the cohort and its identifiers.
    pub(crate) fn digest(&self) -> String {
        let of_all = || digest(&self.cohort, &self.patients);
        self.digest.clone().unwrap_or_else(of_all)
    }

    /// Lets go of the columns: the outcome and the identifiers stay.
    pub(crate) fn let_columns_go(&mut self) {
        self.digest = Some(self.digest());
        self.cohort.forget_columns();
        crate::kernels::give_back();
    }

    /// Whether they are gone.
    pub(crate) fn is_without_columns(&self) -> bool {
        self.digest.is_some()
    }

    /// All patients of the job's study, where they were read.
    pub(crate) fn take_enrolled(&mut self) -> Option<Enrolled> {
        self.enrolled.take()
    }

    /// The same, with the pairs of its patients that physicians have judged.
    ///
    /// # Errors
    /// As [`Judged::place`].
    pub fn with_judged(mut self, judged: &Judged) -> Result<Self, CohortProblems> {
        let identifiers = (0..self.patients.len()).map(|patient| self.patients.bytes(patient));
        let placed = judged.place(identifiers)?;
        self.remarks.extend(placed.remark);
        self.judged = Some(placed.pairs);
        Ok(self)
    }

    /// Pairs of its patients that physicians have judged, where they were read.
    pub(crate) fn judged(&self) -> Option<&JudgedPairs> {
        self.judged.as_ref()
    }

    /// Patients in its judged pairs, or these pairs where they are fewer.
    pub(crate) fn patients_in_pairs(&self) -> Option<u64> {
        let judged = self.judged.as_ref()?;
        Some(judged.members().len().min(judged.pairs().len()) as u64)
    }

    /// Logs where the site's word differs from the job's.
    pub fn log_remarks(&self) {
        for remark in &self.remarks {
            tracing::warn!("{remark}");
        }
    }

    /// The cohort, if its outcome can be learned from; asked once a policy has admitted its size.
    ///
    /// # Errors
    /// The one problem of a cohort of one class, or without an event.
    pub fn learnable(mut self) -> Result<Self, CohortProblems> {
        match self.degenerate.take() {
            Some(problem) => Err(CohortProblems::new(vec![problem])),
            None => Ok(self),
        }
    }
}

impl fmt::Debug for SiteCohort {
    /// Counts only.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SiteCohort")
            .field("cohort", &self.cohort)
            .field("patients", &self.patients)
            .field("left_out", &self.left_out)
            .finish()
    }
}

/// Patients without an outcome, with which others are compared.
#[derive(Clone)]
pub struct Queries {
    /// Their features, by the job's declarations.
    pub columns: Vec<Column>,
    /// Their identifiers, where the source has the site's column of identifiers.
    pub patients: Patients,
}

impl fmt::Debug for Queries {
    /// Counts only.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Queries")
            .field("patients", &self.patients)
            .finish_non_exhaustive()
    }
}

/// Reads what `job` needs, by the job's own declarations: for results that stay. Blocks until all is read:
/// call it where blocking is allowed, never inside an asynchronous task.
///
/// # Errors
/// [`CohortProblems`]: everything that does not fit, none of it with a patient's value.
pub fn read_cohort(source: &SourceConfig, job: &Job) -> Result<SiteCohort, CohortProblems> {
    read(source, job, Terms::Job, None).into_cohort()
}

/// As [`read_cohort`], by the site's declarations: for what leaves. No range, level or missing code of the
/// job changes the cohort for fewer than `cell_min` patients. What its outcome lacks says [`SiteCohort::learnable`].
///
/// # Errors
/// [`CohortProblems`], of which the coordinator may hear the [`Misfit`]s.
pub fn read_for_release(
    source: &SourceConfig,
    job: &Job,
    cell_min: u64,
) -> Result<SiteCohort, CohortProblems> {
    read(source, job, Terms::Site { cell_min }, None).unless_degenerate()
}

/// Reads the features that `job` names, by its own declarations, of patients without an outcome. An identifier is read
/// where the source has the site's column for it.
///
/// # Errors
/// [`CohortProblems`]: everything that does not fit, none of it with a patient's value.
pub fn read_queries(source: &SourceConfig, job: &Job) -> Result<Queries, CohortProblems> {
    read_by(source, job, Terms::Job, Wanted::Queries).into_queries()
}

fn read(source: &SourceConfig, job: &Job, terms: Terms, survey: Option<Survey>) -> Reading {
    read_by(source, job, terms, Wanted::Cohort(survey))
}

/// Which patients are read.
enum Wanted {
    /// Those of a cohort, with their outcome.
    Cohort(Option<Survey>),
    /// Those whose outcome nobody knows yet.
    Queries,
}

fn read_by(source: &SourceConfig, job: &Job, terms: Terms, wanted: Wanted) -> Reading {
    let cohort = (&*job.cohort, &gridded(job));
    let intake = Intake::new(source, cohort, terms, called(source));
    let mut intake = match wanted {
        Wanted::Cohort(survey) => intake.with_survey(survey),
        Wanted::Queries => intake.of_queries(),
    };
    read_source(source, &mut intake);
    intake.finish()
}

/// Reads all rows of a source.
fn read_source(source: &SourceConfig, intake: &mut Intake) {
    match &source.kind {
        SourceKind::Csv(csv) => self::csv::read(csv, intake),
        SourceKind::Parquet(parquet) => self::parquet::read(parquet, intake),
        SourceKind::Postgres(postgres) => self::postgres::read(postgres, intake),
    }
}

/// What the problems call a source and one of its rows.
fn called(source: &SourceConfig) -> (String, &'static str) {
    match &source.kind {
        SourceKind::Csv(csv) => (csv.path.display().to_string(), "line"),
        SourceKind::Parquet(parquet) => (parquet.path.display().to_string(), "row"),
        SourceKind::Postgres(postgres) => (postgres.server.to_string(), "row"),
    }
}

/// The places of the features that a job's sites count on grids.
fn gridded(job: &Job) -> HashSet<usize> {
    job.grids().columns.iter().map(|one| one.column).collect()
}
