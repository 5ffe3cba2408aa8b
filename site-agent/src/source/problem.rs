//! What was wrong with a cohort, for the people at the site: file, row and column, and never a patient's
//! value: what a field held is described by its shape, such as `text of 5 characters`. What the coordinator may
//! hear of it is a [`Misfit`], which has no place for a row, a count or a value.

use super::field::Shape;
use super::misfit::{Cause, Misfit};
use protocol::failure::Problem;
use protocol::job::Job;
use protocol::limits::PROBLEMS_MAX;
use std::fmt;

/// Rows that a problem names.
pub(super) const ROWS_NAMED_MAX: usize = 5;

/// Something that does not fit, for the people at the site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CohortProblem {
    /// The file or database.
    pub source: String,
    /// The job's name of the column; empty where the problem is the source's.
    pub column: String,
    /// The source's name of the column, where it differs.
    pub source_column: Option<String>,
    /// Where it was found; none where it is no matter of rows.
    pub rows: Option<Rows>,
    /// What was found.
    pub found: String,
    /// What was wanted.
    pub wanted: String,
    /// What the coordinator may hear of it.
    cause: Cause,
}

/// Rows with the same problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    /// `line` of a text file, counted with its header, or `row` of a table; both from 1.
    pub word: &'static str,
    /// How many.
    pub count: u64,
    /// The first of them.
    pub first: Vec<u64>,
}

/// All problems of a cohort.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CohortProblems(Vec<CohortProblem>);

/// What can be wrong with the field of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    NotNumber(Shape),
    NotDate(Shape),
    UnlistedLevel(Shape),
    Implausible,
    Negative,
    Missing,
    Repeated,
    Ragged {
        fields: usize,
    },
    /// Beyond the job's range only, where the site declares none.
    BeyondJob,
    /// A missing code of the job that few patients hold.
    RareCode,
    /// A level that few patients hold, where the site declares none.
    RareLevel,
    /// An outcome that few patients have, where the site declares no levels.
    RareOutcome,
}

/// The faults of one column, each kind with its rows.
#[derive(Debug, Clone, Default)]
pub(super) struct Faults(Vec<(Fault, u64, Vec<u64>)>);

impl Faults {
    /// Notes a fault of `row`.
    pub(super) fn add(&mut self, fault: Fault, row: u64) {
        match self.0.iter_mut().find(|(known, ..)| known.is_like(fault)) {
            Some((_, count, first)) => {
                *count += 1;
                keep_first(first, row);
            }
            None => self.0.push((fault, 1, vec![row])),
        }
    }

    /// Notes all that others have.
    pub(super) fn extend(&mut self, others: Self) {
        for (fault, count, rows) in others.0 {
            match self.0.iter_mut().find(|(known, ..)| known.is_like(fault)) {
                Some((_, known, first)) => {
                    *known += count;
                    rows.into_iter().for_each(|row| keep_first(first, row));
                }
                None => self.0.push((fault, count, rows)),
            }
        }
    }

    /// Each kind of fault with its rows.
    pub(super) fn rows(&self, word: &'static str) -> impl Iterator<Item = (Fault, Rows)> {
        self.0.iter().map(move |(fault, count, first)| {
            let rows = Rows {
                word,
                count: *count,
                first: first.clone(),
            };
            (*fault, rows)
        })
    }
}

/// Keeps a row among the first ones, whenever it is noted.
fn keep_first(first: &mut Vec<u64>, row: u64) {
    if first.len() < ROWS_NAMED_MAX || first.last().is_some_and(|last| row < *last) {
        let place = first.partition_point(|known| *known <= row);
        first.insert(place, row);
        first.truncate(ROWS_NAMED_MAX);
    }
}

impl Fault {
    /// Texts of different lengths are one kind of fault.
    fn is_like(self, other: Self) -> bool {
        let kind = |shape: Shape| shape.kind();
        match (self, other) {
            (Self::NotNumber(a), Self::NotNumber(b))
            | (Self::NotDate(a), Self::NotDate(b))
            | (Self::UnlistedLevel(a), Self::UnlistedLevel(b)) => kind(a) == kind(b),
            (Self::Ragged { .. }, Self::Ragged { .. }) => true,
            (a, b) => a == b,
        }
    }

    /// For the people at the site.
    pub(super) fn found(self) -> String {
        match self {
            Self::NotNumber(shape) | Self::NotDate(shape) => shape.describe(),
            Self::UnlistedLevel(shape) => format!("{}, not in the list", shape.describe()),
            Self::Implausible => "a number outside of the range".to_owned(),
            Self::Negative => "a number below 0".to_owned(),
            Self::Missing => "a missing value".to_owned(),
            Self::Repeated => "a patient of an earlier row".to_owned(),
            Self::Ragged { fields } => format!("{fields} fields"),
            Self::BeyondJob => "a number outside of the job's range".to_owned(),
            Self::RareCode => "a missing code of the job that few patients hold".to_owned(),
            Self::RareLevel => "a level that few patients hold".to_owned(),
            Self::RareOutcome => "an outcome that few patients have".to_owned(),
        }
    }
}

impl CohortProblem {
    /// A problem of the source as a whole; `found` must hold nothing of a patient.
    pub(super) fn of_source(source: &str, cause: Cause, found: &str, wanted: &str) -> Self {
        Self::of_column(source, "", None, cause, found, wanted)
    }

    /// A problem of a column as a whole; of `found` the same holds.
    pub(super) fn of_column(
        source: &str,
        column: &str,
        source_column: Option<&str>,
        cause: Cause,
        found: &str,
        wanted: &str,
    ) -> Self {
        Self {
            source: source.to_owned(),
            column: column.to_owned(),
            source_column: source_column
                .filter(|name| *name != column)
                .map(str::to_owned),
            rows: None,
            found: found.to_owned(),
            wanted: wanted.to_owned(),
            cause,
        }
    }

    /// The same problem, which is one of these rows.
    pub(super) fn at(self, rows: Rows) -> Self {
        let rows = Some(rows);
        Self { rows, ..self }
    }

    /// The same problem found in `rows`.
    pub(super) fn in_rows(self, fault: Fault, rows: Rows) -> Self {
        Self {
            found: fault.found(),
            rows: Some(rows),
            ..self
        }
    }

    /// More detail.
    pub(super) fn with_detail(mut self, detail: &str) -> Self {
        self.found = format!("{} ({detail})", self.found);
        self
    }
}

impl CohortProblems {
    pub(super) fn new(problems: Vec<CohortProblem>) -> Self {
        Self(problems)
    }

    /// All of them.
    #[must_use]
    pub fn problems(&self) -> &[CohortProblem] {
        &self.0
    }

    /// What the coordinator may hear: structure where there is any, else one constant sentence.
    #[must_use]
    pub fn misfits(&self, job: &Job) -> Vec<Misfit> {
        let misfits = self.0.iter();
        let misfits = misfits.map(|problem| Misfit::new(problem.cause, job, &problem.column));
        let mut told = Misfit::for_coordinator(misfits.collect());
        told.truncate(PROBLEMS_MAX);
        told
    }

    /// The same in words.
    #[must_use]
    pub fn for_coordinator(&self, job: &Job) -> Vec<Problem> {
        let misfits = self.misfits(job);
        misfits.iter().map(|misfit| misfit.problem(job)).collect()
    }
}

impl fmt::Display for Rows {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.count == 1 { "" } else { "s" };
        write!(formatter, "{}{plural} ", self.word)?;
        for (index, row) in self.first.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(formatter, "{separator}{row}")?;
        }
        let more = self.count - self.first.len() as u64;
        if more > 0 {
            write!(formatter, " and {more} more")?;
        }
        Ok(())
    }
}

impl fmt::Display for CohortProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.source)?;
        if !self.column.is_empty() {
            write!(formatter, ", column {:?}", self.column)?;
        }
        if let Some(name) = &self.source_column {
            write!(formatter, " (here {name:?})")?;
        }
        if let Some(rows) = &self.rows {
            write!(formatter, ", {rows}")?;
        }
        write!(formatter, ": found {}, wanted {}", self.found, self.wanted)
    }
}

impl fmt::Display for CohortProblems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().take(PROBLEMS_MAX).enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(formatter, "{separator}{problem}")?;
        }
        match self.0.len().checked_sub(PROBLEMS_MAX) {
            None | Some(0) => Ok(()),
            Some(more) => write!(formatter, "\nand {more} problems more"),
        }
    }
}

impl std::error::Error for CohortProblems {}
