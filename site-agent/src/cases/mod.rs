//! Similar cases, matches, groups and predictions among the site's own patients, by what a run left at the site. Everything stays here: what
//! these commands print and write is for the people at the site.
//!
//! A run leaves its record (`comparison.json`); the patients themselves are read again from the source by the run's job, so that they are
//! those of today, and a remark says where they are not those of the run.

mod anchored;
pub(crate) mod bedside;
mod clusters;
pub(crate) mod elsewhere;
pub(crate) mod left;
pub(crate) mod matches;
mod personal;
mod predict;
pub(crate) mod record;
mod setting;
mod shown;
pub(crate) mod similar;
mod spreads;
mod survival;
mod weights;

pub use clusters::clusters;
pub use matches::matches;
pub use personal::personal;
pub use predict::predict;
pub use similar::similar;

use crate::cli::Output;
use crate::config::ConfigError;
use crate::source::CohortProblems;
use report::CsvTable;
use serde::Serialize;
use similarity::cohort::BelowZero;
use similarity::cohort::moments::MomentsError;
use similarity::cohort::standardise::StandardiseError;
use similarity::compare::CompareError;
use similarity::learn::regression::RegressionError;
use similarity::learn::unpsl::selection::SelectionError;
use similarity::uses::clusters::ClusterError;
use similarity::uses::prediction::PredictionError;
use std::io;
use std::path::{Path, PathBuf};

/// Cases that cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum CasesError {
    /// The site's configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No such run.
    #[error(
        "run {run} has left nothing to compare by in {}{}",
        listed(looked.iter().map(|path| path.display().to_string())),
        match known.as_slice() {
            [] => String::new(),
            known => format!("; runs of this site are {}", known.join(", ")),
        }
    )]
    NoRun {
        /// What was asked for.
        run: String,
        /// Where it was looked for.
        looked: Vec<PathBuf>,
        /// Runs that there are.
        known: Vec<String>,
    },
    /// A file of the run that cannot be used.
    #[error("{} cannot be used: {why}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The patients do not fit the run's job.
    #[error("the data does not fit the run's job:\n{0}")]
    Data(CohortProblems),
    /// A value has no logarithm.
    #[error(transparent)]
    BelowZero(#[from] BelowZero),
    /// The columns have no moments.
    #[error(transparent)]
    Moments(#[from] MomentsError),
    /// Patients cannot be compared so.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// No regression weighs.
    #[error("no regression can weigh the features: {0}")]
    Regression(#[from] RegressionError),
    /// Nothing that a personal metric could start from.
    #[error("a personal metric starts from that of a run of UnPSL, and this run {0}")]
    NoMetric(&'static str),
    /// No personal metric yet.
    #[error("this run has no personal metric here yet: `kindred-site-agent personal` makes it")]
    NoPersonal,
    /// Patients have no place in the metric.
    #[error(transparent)]
    Standardise(#[from] StandardiseError),
    /// No metric of the site's own can be judged.
    #[error("no personal metric can be judged: {}", report::with_causes(.0))]
    Personal(#[from] SelectionError),
    /// An identifier that nobody has.
    #[error(
        "no patient of the cohort has this identifier; it has {patients} patients, {}",
        match named {
            true => "named by the source's column of identifiers",
            false => "numbered from 1 for want of a column of identifiers",
        }
    )]
    NoPatient {
        /// Patients of the cohort.
        patients: usize,
        /// Whether they have identifiers of the source.
        named: bool,
    },
    /// More cases than there are others.
    #[error("found k = {found}, wanted 1 to {most}, for so many others are in the cohort")]
    TooMany {
        /// What was asked for.
        found: usize,
        /// What there is.
        most: usize,
    },
    /// More pairs than fit.
    #[error(
        "{queries} queries and {candidates} candidates are more than the {most} pairs that are held"
    )]
    TooLarge {
        /// Queries.
        queries: usize,
        /// Candidates.
        candidates: usize,
        /// Most pairs.
        most: usize,
    },
    /// A file of identifiers that cannot be read, or that names nobody.
    #[error("{} {why}", path.display())]
    Identifiers {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Groups that cannot be looked for.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// Nothing can be predicted.
    #[error("nothing can be predicted: {0}")]
    Predict(#[from] PredictionError),
    /// A learner of other outcomes.
    #[error("--learner {learner} predicts {wanted}, and the outcome {outcome} is of another kind")]
    Learner {
        /// What was asked for.
        learner: &'static str,
        /// What it predicts.
        wanted: &'static str,
        /// The outcome's column.
        outcome: String,
    },
    /// A time by which no chance can be given.
    #[error(
        "found --at {found}, wanted a time from {first} to {last}: else there are too few events before it, or patients after it"
    )]
    NoChance {
        /// What was asked for.
        found: String,
        /// The first time with enough events.
        first: String,
        /// The last with enough patients.
        last: String,
    },
    /// Times that this outcome does not have.
    #[error("--at is a time of a survival outcome, which {0} is not")]
    NoTime(String),
    /// A forest's kernel without a forest.
    #[error("--kernel is of a forest, and what compares is the {0}")]
    NoForest(&'static str),
    /// More parts than patients.
    #[error(
        "found {found} patients, wanted at least {wanted}, two for each part that they are divided into"
    )]
    FewPatients {
        /// Patients.
        found: usize,
        /// Patients wanted.
        wanted: usize,
    },
    /// A figure that cannot be drawn.
    #[error(transparent)]
    Figure(#[from] report::FigureError),
    /// A file that could not be written.
    #[error("{} could not be written", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

fn listed(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join(", ")
}

/// Writes the table that is asked for, and gives what is to be printed.
fn printed(
    output: &Output,
    answer: &impl Serialize,
    csv: impl FnOnce() -> io::Result<CsvTable>,
    text: impl FnOnce() -> String,
) -> Result<String, CasesError> {
    if let Some(path) = &output.csv {
        let fault = |source| CasesError::Write {
            path: path.clone(),
            source,
        };
        for (path, bytes) in csv()
            .and_then(|table| table.parts_at(path))
            .map_err(fault)?
        {
            write(&path, &bytes)?;
        }
    }
    if output.json {
        return serde_json::to_string_pretty(answer).map_err(|error| CasesError::Write {
            path: "JSON".into(),
            source: io::Error::other(error),
        });
    }
    Ok(text())
}

/// Writes the files of a folder that somebody names.
fn keep(folder: &Path, files: Vec<(&'static str, String)>) -> Result<(), CasesError> {
    wire::private::named_folder(folder).map_err(|source| CasesError::Write {
        path: folder.to_owned(),
        source,
    })?;
    let mut files = files.iter();
    files.try_for_each(|(name, text)| write(&folder.join(name), text.as_bytes()))
}

/// Writes a whole file that its owner alone may read, or none.
fn write(path: &Path, bytes: &[u8]) -> Result<(), CasesError> {
    wire::private::replace(path, bytes).map_err(|source| CasesError::Write {
        path: path.to_owned(),
        source,
    })
}
