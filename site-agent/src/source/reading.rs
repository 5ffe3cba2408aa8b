//! What reading a source leaves.

use super::outcome::retain;
use super::problem::{CohortProblem, CohortProblems};
use super::summary::ColumnSummary;
use super::survey::Survey;
use super::{Queries, SiteCohort};
use similarity::cohort::{Column, Values};

/// What a source held.
pub(super) struct Reading {
    pub(super) rows: u64,
    pub(super) left_out: u64,
    pub(super) summaries: Vec<ColumnSummary>,
    pub(super) cohort: Option<SiteCohort>,
    /// The patients of a source that was read without an outcome.
    pub(super) queries: Option<Queries>,
    pub(super) remarks: Vec<CohortProblem>,
    pub(super) survey: Option<Survey>,
    pub(super) problems: CohortProblems,
    /// Why the outcome cannot be learned from, where nothing else is wrong.
    pub(super) degenerate: Option<CohortProblem>,
}

impl Reading {
    /// The patients of a source that was read without an outcome, or everything that was wrong.
    pub(super) fn into_queries(self) -> Result<Queries, CohortProblems> {
        match self.queries {
            Some(queries) if self.problems.problems().is_empty() => Ok(queries),
            _ => Err(self.problems),
        }
    }

    /// The cohort, or everything that was wrong.
    pub(super) fn into_cohort(mut self) -> Result<SiteCohort, CohortProblems> {
        match self.degenerate.take() {
            Some(problem) => Err(CohortProblems::new(vec![problem])),
            None => self.unless_degenerate(),
        }
    }

    /// The same of a cohort that a policy is still to judge: a policy's no comes before what the outcome lacks.
    pub(super) fn unless_degenerate(self) -> Result<SiteCohort, CohortProblems> {
        let degenerate = self.degenerate;
        match self.cohort {
            Some(cohort) if self.problems.problems().is_empty() => Ok(SiteCohort {
                degenerate,
                ..cohort
            }),
            _ => Err(self.problems),
        }
    }
}

/// One mark per patient, false for those who are excluded.
pub(super) fn marks(patients: usize, left_out: &[usize]) -> Vec<bool> {
    let mut keep = vec![true; patients];
    for patient in left_out {
        keep[*patient] = false;
    }
    keep
}

/// The marked patients of a column.
pub(super) fn kept(column: Column, keep: &[bool]) -> Column {
    let values = match column.values {
        Values::Numeric(numbers) => {
            let mut numbers = numbers.to_vec();
            retain(&mut numbers, keep);
            Values::Numeric(numbers.into())
        }
        Values::Categorical { codes, levels } => {
            let mut codes = codes.to_vec();
            retain(&mut codes, keep);
            let codes = codes.into();
            Values::Categorical { codes, levels }
        }
    };
    Column {
        name: column.name,
        values,
    }
}
