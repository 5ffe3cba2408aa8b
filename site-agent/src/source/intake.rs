//! Gathers the columns of a job, row by row, from whatever source.

use super::column::{ColumnReader, Mismatch};
use super::field::Field;
use super::outcome::OutcomeReader;
use super::patients::Patients;
use super::problem::{CohortProblem, CohortProblems, Fault, Faults, Rows};
use super::summary::{self, ColumnSummary};
use super::{ReadProgress, SiteCohort};
use crate::config::{ColumnMapping, SourceConfig};
use protocol::document::nearest;
use protocol::job::Job;
use similarity::cohort::Cohort;

/// Rows between two reports of progress.
const ROWS_BETWEEN_REPORTS: u64 = 1 << 15;

/// A cohort while it is being read.
pub(super) struct Intake<'p> {
    /// What the problems call the file or database.
    source: String,
    /// What the problems call one row.
    word: &'static str,
    patient_column: Option<String>,
    patients: Patients,
    /// Numbers of the rows that became patients, so that a problem can name them.
    rows_of_patients: Vec<u64>,
    without_patient: Faults,
    outcome: Option<OutcomeReader>,
    columns: Vec<ColumnReader>,
    ragged: Faults,
    fields_wanted: usize,
    rows: u64,
    left_out: u64,
    problems: Vec<CohortProblem>,
    progress: &'p mut dyn FnMut(ReadProgress),
}

/// Positions of the job's columns among the source's.
pub(super) struct Layout {
    patient: Option<usize>,
    outcome: usize,
    event: usize,
    columns: Vec<usize>,
}

impl<'p> Intake<'p> {
    /// Prepares to read what `job` needs from `config`. What the site declares otherwise than the
    /// job becomes a problem, and reading goes on without that column.
    pub(super) fn new(
        config: &SourceConfig,
        job: &Job,
        source: String,
        word: &'static str,
        progress: &'p mut dyn FnMut(ReadProgress),
    ) -> Self {
        let mut problems = Vec::new();
        let mut problem = |column: &str, mismatch: Mismatch| {
            let Mismatch { found, wanted } = mismatch;
            problems.push(CohortProblem::of_column(
                &source, column, None, &found, &wanted,
            ));
        };
        let outcome = OutcomeReader::new(&job.outcome, config)
            .map_err(|(column, mismatch)| problem(&column, mismatch))
            .ok();
        let plain = ColumnMapping::default();
        let mut columns = Vec::with_capacity(job.features.len());
        for feature in &job.features {
            let mapping = config.columns.get(&feature.name).unwrap_or(&plain);
            match ColumnReader::new(feature, config, mapping) {
                Ok(column) => columns.push(column),
                Err(mismatch) => problem(&feature.name, mismatch),
            }
        }
        Self {
            source,
            word,
            patient_column: config.patient.clone(),
            patients: Patients::new(config.patient.is_some()),
            rows_of_patients: Vec::new(),
            without_patient: Faults::default(),
            outcome,
            columns,
            ragged: Faults::default(),
            fields_wanted: 0,
            rows: 0,
            left_out: 0,
            problems,
            progress,
        }
    }

    /// Notes a problem of the source as a whole.
    pub(super) fn problem(&mut self, problem: CohortProblem) {
        self.problems.push(problem);
    }

    /// Leaves out every column that is read from `source_column`, with the reason.
    pub(super) fn refuse(&mut self, source_column: &str, found: &str, wanted: &str) {
        let mut problems = Vec::new();
        let mut refuse = |name: &str| {
            let column = Some(source_column);
            let source = &self.source;
            problems.push(CohortProblem::of_column(
                source, name, column, found, wanted,
            ));
        };
        if self
            .patient_column
            .take_if(|name| name == source_column)
            .is_some()
        {
            refuse("");
        }
        let of_outcome = |outcome: &OutcomeReader| {
            outcome.source_column() == source_column
                || outcome.event_column() == Some(source_column)
        };
        if let Some(outcome) = self.outcome.take_if(|outcome| of_outcome(outcome)) {
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

    /// What the problems call the file or database.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// The source's columns that are needed.
    pub(super) fn source_columns(&self) -> Vec<String> {
        let outcome = self.outcome.iter();
        let outcome = outcome.flat_map(|outcome| {
            std::iter::once(outcome.source_column()).chain(outcome.event_column())
        });
        let mut names: Vec<String> = self
            .patient_column
            .iter()
            .map(String::as_str)
            .chain(outcome)
            .chain(self.columns.iter().map(ColumnReader::source_column))
            .map(str::to_owned)
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Finds the job's columns among the source's `names`. One that is absent becomes a problem,
    /// and reading goes on without it.
    pub(super) fn layout(&mut self, names: &[String]) -> Layout {
        self.fields_wanted = names.len();
        let mut problems = std::mem::take(&mut self.problems);
        let mut find = |column: &str, source_column: &str| {
            let found = position(names, source_column);
            if let Err(Mismatch { found, wanted }) = &found {
                let near: Vec<&str> = names.iter().map(String::as_str).collect();
                let mut problem = CohortProblem::of_column(
                    &self.source,
                    column,
                    Some(source_column),
                    found,
                    wanted,
                );
                // A file without header has a patient where its names should be.
                let is_header = !names.iter().any(|name| name.parse::<f64>().is_ok());
                let near = nearest(source_column, &near).filter(|_| is_header && found == ABSENT);
                if let Some(near) = near {
                    problem = problem.with_detail(&format!("the nearest is {near:?}"));
                }
                problems.push(problem);
            }
            found.ok()
        };
        let patient = self.patient_column.as_deref();
        let patient = patient.and_then(|name| find("", name));
        let (mut outcome, mut event) = (None, None);
        if let Some(reader) = &self.outcome {
            outcome = find(reader.name(), reader.source_column());
            event = match (reader.event_name(), reader.event_column()) {
                (Some(name), Some(source_column)) => find(name, source_column),
                _ => outcome,
            };
        }
        let mut columns = Vec::with_capacity(self.columns.len());
        self.columns.retain(|column| {
            let position = find(column.name(), column.source_column());
            columns.extend(position);
            position.is_some()
        });
        self.problems = problems;
        if outcome.is_none() || event.is_none() {
            self.outcome = None;
        }
        Layout {
            patient,
            outcome: outcome.unwrap_or_default(),
            event: event.unwrap_or_default(),
            columns,
        }
    }

    /// Reads one row: who it is, the outcome, and, where the patient stays in, every feature.
    pub(super) fn row<'f>(
        &mut self,
        row: u64,
        layout: &Layout,
        field: impl Fn(usize) -> Field<'f>,
    ) {
        if self.patient(row, layout, &field) {
            for (column, position) in self.columns.iter_mut().zip(&layout.columns) {
                column.read(row, field(*position));
            }
        }
    }

    /// Reads `count` rows from `first` on, column by column, which suits columnar sources.
    pub(super) fn batch<'f>(
        &mut self,
        first: u64,
        count: usize,
        layout: &Layout,
        field: impl Fn(usize, usize) -> Field<'f>,
    ) {
        let mut kept = Vec::with_capacity(count);
        for (index, row) in (0..count).zip(first..) {
            if self.patient(row, layout, &|position| field(position, index)) {
                kept.push((index, row));
            }
        }
        for (column, position) in self.columns.iter_mut().zip(&layout.columns) {
            for (index, row) in &kept {
                column.read(*row, field(*position, *index));
            }
        }
    }

    /// Notes a row with another number of fields than the header, and passes over it.
    pub(super) fn ragged(&mut self, row: u64, fields: usize) {
        self.ragged.add(Fault::Ragged { fields }, row);
    }

    /// Reports progress now and then; `fraction` of the source that is read, where it is known.
    pub(super) fn report(&mut self, fraction: impl FnOnce() -> Option<f64>) {
        if self.rows.is_multiple_of(ROWS_BETWEEN_REPORTS) {
            (self.progress)(ReadProgress {
                rows: self.rows,
                fraction: fraction(),
            });
        }
    }

    /// The cohort, where nothing was wrong.
    pub(super) fn finish(mut self) -> Reading {
        (self.progress)(ReadProgress {
            rows: self.rows,
            fraction: Some(1.0),
        });
        self.collect_problems();
        let columns = self.columns.into_iter().map(ColumnReader::finish).collect();
        let rows = self.rows;
        let cohort = self
            .outcome
            .and_then(|outcome| Cohort::new(columns, outcome.finish()).ok());
        let summaries = cohort.as_ref().map(summary::summaries).unwrap_or_default();
        Reading {
            rows,
            left_out: self.left_out,
            summaries,
            cohort: cohort.map(|cohort| (cohort, self.patients)),
            problems: CohortProblems::new(self.problems),
        }
    }

    /// The identifier and the outcome of one row; false where the patient is left out.
    fn patient<'f>(
        &mut self,
        row: u64,
        layout: &Layout,
        field: &impl Fn(usize) -> Field<'f>,
    ) -> bool {
        self.rows += 1;
        if let Some(outcome) = &mut self.outcome
            && !outcome.read(row, field(layout.outcome), field(layout.event))
        {
            self.left_out += 1;
            return false;
        }
        let id = match layout.patient {
            Some(position) => field(position),
            None => Field::Integer(i64::try_from(row).unwrap_or(i64::MAX)),
        };
        if id.is_empty() {
            self.without_patient.add(Fault::Missing, row);
        }
        self.patients.push(id);
        self.rows_of_patients.push(row);
        true
    }

    fn collect_problems(&mut self) {
        let source = self.source.clone();
        let problem = |found: &str, wanted: &str| CohortProblem::of_source(&source, found, wanted);
        let wanted = format!("{}, as the header has", self.fields_wanted);
        for (fault, rows) in self.ragged.rows(self.word) {
            self.problems
                .push(problem("", &wanted).in_rows(fault, rows));
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
        // Where nothing could be read, the cause is already told.
        if !self.problems.is_empty() {
            return;
        }
        if self.rows == 0 {
            self.problems.push(problem("no patient", "at least one"));
        } else if let Some(outcome) = &self.outcome {
            let name = outcome.name();
            let told = |found: &str, wanted: &str| {
                let column = Some(outcome.source_column());
                CohortProblem::of_column(&source, name, column, found, wanted)
            };
            if outcome.patients() == 0 {
                self.problems
                    .push(told("no patient with an outcome", "at least one"));
            } else if let Some(Mismatch { found, wanted }) = outcome.degenerate() {
                self.problems.push(told(&found, &wanted));
            }
        }
    }

    fn repeated_patients(&mut self) {
        const ROWS_NAMED_MAX: usize = 5;
        if self.patient_column.is_none() {
            return;
        }
        let repeated = self.patients.repeated();
        if repeated.is_empty() {
            return;
        }
        let named = repeated.iter().take(ROWS_NAMED_MAX);
        let rows = Rows {
            word: self.word,
            count: repeated.len() as u64,
            first: named.map(|index| self.rows_of_patients[*index]).collect(),
        };
        let wanted = "each patient once";
        let problem = CohortProblem::of_source(&self.source, "", wanted);
        self.problems.push(problem.in_rows(Fault::Repeated, rows));
    }
}

/// What a source held.
pub(super) struct Reading {
    pub(super) rows: u64,
    pub(super) left_out: u64,
    pub(super) summaries: Vec<ColumnSummary>,
    pub(super) cohort: Option<(Cohort, Patients)>,
    pub(super) problems: CohortProblems,
}

impl Reading {
    /// The cohort, or everything that was wrong.
    pub(super) fn into_cohort(self) -> Result<SiteCohort, CohortProblems> {
        match self.cohort {
            Some((cohort, patients)) if self.problems.problems().is_empty() => Ok(SiteCohort {
                cohort,
                patients,
                left_out: self.left_out,
            }),
            _ => Err(self.problems),
        }
    }
}

const ABSENT: &str = "no such column";

fn position(names: &[String], wanted: &str) -> Result<usize, Mismatch> {
    let mut found = (0..names.len()).filter(|index| names[*index] == wanted);
    match (found.next(), found.next()) {
        (Some(position), None) => Ok(position),
        (Some(_), Some(_)) => Err(Mismatch::new("two such columns", "one")),
        _ => Err(Mismatch::new(ABSENT, "a column of this name")),
    }
}
