//! What was wrong with a source, reported once all is read.

use super::rows::ROWS_MAX;
use super::{Intake, RAGGED_MAX};
use crate::source::misfit::{Cause, Structure};
use crate::source::problem::{CohortProblem, Fault, Faults, Rows};

impl Intake {
    /// Notes a problem of the source as a whole.
    pub(in crate::source) fn problem(&mut self, problem: CohortProblem) {
        self.problems.push(problem);
    }

    /// Excludes every column that is read from `source_column`, with the reason.
    pub(in crate::source) fn refuse(&mut self, source_column: &str, found: &str, wanted: &str) {
        let mut problems = Vec::new();
        let mut refuse = |name: &str| {
            let column = Some(source_column);
            let source = &self.source;
            let cause = Cause::Structure(Structure::Type);
            problems.push(CohortProblem::of_column(
                source, name, column, cause, found, wanted,
            ));
        };
        if self
            .patient_column
            .take_if(|name| name == source_column)
            .is_some()
        {
            refuse("");
        }
        if let Some(outcome) = self.outcome.take_if(|one| one.reads(source_column)) {
            refuse(outcome.name());
        }
        self.columns.retain(|column| {
            let refused = column.source_column() == source_column;
            if refused {
                refuse(column.name());
            }
            !refused
        });
        self.problems.extend(problems);
    }

    pub(super) fn collect_problems(&mut self) {
        let source = self.source.clone();
        let problem = |found: &str, wanted: &str| {
            CohortProblem::of_source(&source, Cause::Values, found, wanted)
        };
        let wanted = format!("{}, as the header has", self.fields_wanted);
        for (fault, rows) in self.ragged.rows(self.word) {
            self.problems
                .push(problem("", &wanted).in_rows(fault, rows));
        }
        if self.is_too_long() {
            let wanted = format!(
                "at most {ROWS_MAX} rows, and {RAGGED_MAX} with another number of fields than the header"
            );
            self.problems.push(problem("more", &wanted));
        }
        for (_, rows) in self.without_patient.rows(self.word) {
            let problem = problem("", "an identifier of every patient");
            self.problems.push(problem.in_rows(Fault::Missing, rows));
        }
        self.repeated_patients();
        if let Some(outcome) = &self.outcome {
            self.problems.extend(outcome.problems(&source, self.word));
        }
        for column in &self.columns {
            self.problems.extend(column.problems(&source, self.word));
        }
        // Where nothing could be read, the cause is already reported.
        if self.problems.is_empty() && self.rows == 0 {
            self.problems.push(problem("no patient", "at least one"));
        }
    }

    /// Why the outcome cannot be learned from, where nothing else is wrong.
    pub(super) fn degenerate(&self) -> Option<CohortProblem> {
        let outcome = self.outcome.as_ref().filter(|_| self.problems.is_empty())?;
        let owned = |(found, wanted): (&str, &str)| (found.to_owned(), wanted.to_owned());
        let (found, wanted) = if self.patients.is_empty() {
            owned(("no patient with an outcome", "at least one"))
        } else {
            outcome.degenerate().map(owned)?
        };
        Some(CohortProblem::of_column(
            &self.source,
            outcome.name(),
            Some(outcome.source_column()),
            Cause::Values,
            &found,
            &wanted,
        ))
    }

    /// What differs from the job's word and changes nothing.
    pub(super) fn remarks(&self) -> Vec<CohortProblem> {
        let outcome = self.outcome.iter();
        let outcome = outcome.flat_map(|outcome| outcome.remarks(&self.source, self.word));
        let columns = self.columns.iter();
        let columns = columns.flat_map(|column| column.remarks(&self.source, self.word));
        outcome.chain(columns).collect()
    }

    fn repeated_patients(&mut self) {
        if self.patient_column.is_none() {
            return;
        }
        let mut faults = Faults::default();
        for place in self.patients.repeated() {
            faults.add(Fault::Repeated, self.rows_of_patients[place]);
        }
        let problems = repeated(&self.source, faults.rows(self.word));
        self.problems.extend(problems);
    }
}

/// What is wrong with patients who are there again.
pub(in crate::source) fn repeated(
    source: &str,
    faults: impl Iterator<Item = (Fault, Rows)>,
) -> impl Iterator<Item = CohortProblem> {
    faults.map(move |(fault, rows)| {
        let problem = CohortProblem::of_source(source, Cause::Values, "", "each patient once");
        problem.in_rows(fault, rows)
    })
}
