//! Gathers the columns of a job, row by row, from whatever source.

mod problems;
mod rows;

pub(super) use problems::repeated;
pub(super) use rows::{Batch, Numbers, Single, strip};

use super::column::ColumnReader;
use super::frozen::{FrozenRows, Recorder};
use super::layout::{Layout, NeededColumns, places, position};
use super::misfit::{Cause, Structure};
use super::outcome::{OutcomeReader, retain};
use super::patients::Patients;
use super::problem::{CohortProblem, CohortProblems, Faults};
use super::reading::{Reading, kept, marks};
use super::summary;
use super::survey::Survey;
use super::terms::Terms;
use super::value::Mismatch;
use super::{Queries, SiteCohort};
use crate::config::SourceConfig;
use protocol::cohort::CohortSpecification;
use protocol::document::nearest;
use rayon::prelude::*;
use similarity::cohort::{Cohort, Column, Outcome};
use std::collections::HashSet;

/// Rows with another number of fields than the header, after which a file counts as no table.
const RAGGED_MAX: u64 = 10_000;
/// Absent columns that are reported with the nearest name that there is: finding it takes a look at every name.
const NEAREST_MAX: usize = 20;

/// How patients are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// Once, and all are kept: what few of them hold is taken back at the end.
    Only,
    /// A block at a time, to find out what few of them hold.
    First,
    /// Again, a block at a time, by what the first pass has found.
    Second,
}

/// What was read of a block of patients.
pub(super) struct Taken {
    /// The places, among the rows of the block, of the patients who have the outcome.
    pub(super) rows: Vec<usize>,
    pub(super) outcome: Option<Outcome>,
    pub(super) columns: Vec<Column>,
}

/// A cohort while it is being read.
#[derive(Clone)]
pub(super) struct Intake {
    /// What the problems call the file or database.
    source: String,
    /// What the problems call one row.
    word: &'static str,
    patient_column: Option<String>,
    patients: Patients,
    /// Numbers of the rows that became patients, so that a problem can name them.
    rows_of_patients: Vec<u64>,
    /// Places of these rows among all.
    places_of_patients: Vec<usize>,
    /// Patients who are excluded whatever they have.
    excluded: Vec<usize>,
    without_patient: Faults,
    /// Where rows are kept as they are, and nothing else is read.
    recorder: Option<Recorder>,
    /// Where a dictionary is to be written.
    survey: Option<Survey>,
    outcome: Option<OutcomeReader>,
    /// Whether patients are wanted without an outcome, who need no identifier.
    queries: bool,
    columns: Vec<ColumnReader>,
    ragged: Faults,
    ragged_rows: u64,
    fields_wanted: usize,
    rows: u64,
    pass: Pass,
    /// Rows before the block that is being read.
    before_block: u64,
    left_out: u64,
    problems: Vec<CohortProblem>,
}

impl Intake {
    /// Prepares to read what `cohort` needs from `config`, of which the features at the places `gridded` are counted on grids. What the site declares otherwise than the
    /// job becomes a problem, and reading goes on without that column.
    pub(super) fn new(
        config: &SourceConfig,
        (cohort, gridded): (&CohortSpecification, &HashSet<usize>),
        terms: Terms,
        (source, word): (String, &'static str),
    ) -> Self {
        let mut problems = Vec::new();
        let mut problem = |column: &str, mismatch: Mismatch| {
            let cause = Cause::Structure(mismatch.structure);
            let Mismatch { found, wanted, .. } = mismatch;
            problems.push(CohortProblem::of_column(
                &source, column, None, cause, &found, &wanted,
            ));
        };
        let outcome = OutcomeReader::new(&cohort.outcome, config, terms)
            .map_err(|(column, mismatch)| problem(&column, mismatch))
            .ok();
        let mut columns = Vec::with_capacity(cohort.features.len());
        for (index, feature) in cohort.features.iter().enumerate() {
            match ColumnReader::new(feature, config, terms, gridded.contains(&index)) {
                Ok(column) => columns.push(column),
                Err(mismatches) => {
                    for mismatch in mismatches {
                        problem(&feature.name, mismatch);
                    }
                }
            }
        }
        Self {
            source,
            word,
            patient_column: config.patient.clone(),
            patients: Patients::new(config.patient.is_some()),
            rows_of_patients: Vec::new(),
            places_of_patients: Vec::new(),
            excluded: Vec::new(),
            without_patient: Faults::default(),
            recorder: None,
            survey: None,
            outcome,
            queries: false,
            columns,
            ragged: Faults::default(),
            ragged_rows: 0,
            fields_wanted: 0,
            rows: 0,
            pass: Pass::Only,
            before_block: 0,
            left_out: 0,
            problems,
        }
    }

    /// Looks also at what the columns hold, where a survey is wanted.
    pub(super) fn with_survey(self, survey: Option<Survey>) -> Self {
        Self { survey, ..self }
    }

    /// Excludes the patients of the marked rows once all is read.
    pub(super) fn leaving_out(mut self, rows: &[bool]) -> Self {
        let is_marked = |place: &usize| rows.get(*place).copied().unwrap_or_default();
        let patients = self.places_of_patients.iter().enumerate();
        let marked = patients.filter(|(_, place)| is_marked(place));
        self.excluded = marked.map(|(patient, _)| patient).collect();
        self
    }

    /// Keeps rows as they are, instead of reading them.
    pub(super) fn record(&mut self, recorder: Recorder) {
        self.recorder = Some(recorder);
    }

    /// The rows that were kept, or what was wrong with the source.
    pub(super) fn into_rows(mut self) -> Result<FrozenRows, CohortProblems> {
        self.collect_problems();
        let rows = self.recorder.take().map(Recorder::finish);
        match rows {
            Some(Ok(rows)) if self.problems.is_empty() => return Ok(rows),
            Some(Err(failed)) => {
                let wanted = "room for its rows in the site's folder";
                let problem =
                    CohortProblem::of_source(&self.source, Cause::Source, &failed, wanted);
                self.problems.push(problem);
            }
            Some(Ok(_)) | None => {}
        }
        Err(CohortProblems::new(self.problems))
    }

    /// What is wrong before a row is read.
    pub(super) fn declared(self) -> Vec<CohortProblem> {
        self.problems
    }

    /// Reads features alone, of patients whose outcome nobody knows yet.
    pub(super) fn of_queries(self) -> Self {
        Self {
            outcome: None,
            queries: true,
            ..self
        }
    }

    /// Reads all patients from the first one on, in a pass.
    pub(super) fn begin(&mut self, pass: Pass) {
        self.pass = pass;
        (self.rows, self.before_block) = (0, 0);
        self.outcome.iter_mut().for_each(|one| one.begin(pass));
        self.columns.iter_mut().for_each(|one| one.begin(pass));
    }

    /// What was read since the last block.
    pub(super) fn take(&mut self) -> Taken {
        self.before_block = self.rows;
        Taken {
            rows: std::mem::take(&mut self.places_of_patients),
            outcome: self.outcome.as_mut().map(OutcomeReader::take),
            columns: self.columns.iter_mut().map(ColumnReader::take).collect(),
        }
    }

    /// Rows that were read since the last block.
    pub(super) fn rows_of_block(&self) -> usize {
        usize::try_from(self.rows - self.before_block).unwrap_or_default()
    }

    /// What kept it from being read, where anything did.
    pub(super) fn unbroken(&mut self) -> Result<(), CohortProblems> {
        match self.problems.is_empty() {
            true => Ok(()),
            false => Err(CohortProblems::new(std::mem::take(&mut self.problems))),
        }
    }

    /// How many features it reads.
    pub(super) fn features(&self) -> usize {
        self.columns.len()
    }

    /// The same with the marked features alone.
    pub(super) fn choosing(&self, wanted: &[bool]) -> Self {
        let mut chosen = self.clone();
        retain(&mut chosen.columns, wanted);
        chosen
    }

    /// What was wrong in a first pass, else what differs from the job's word and changes nothing.
    pub(super) fn judge(&mut self) -> Result<Vec<CohortProblem>, CohortProblems> {
        self.settle();
        self.collect_problems();
        self.unbroken().map(|()| self.remarks())
    }

    /// What the problems call the file or database.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Which of the source's columns are needed.
    pub(super) fn needed(&self) -> NeededColumns {
        if let Some(recorder) = &self.recorder {
            return recorder.needed();
        }
        let outcome = self.outcome.iter();
        let outcome = outcome.flat_map(|outcome| {
            std::iter::once(outcome.source_column()).chain(outcome.event_column())
        });
        let names = self
            .patient_column
            .iter()
            .map(String::as_str)
            .chain(outcome)
            .chain(self.columns.iter().map(ColumnReader::source_column));
        NeededColumns::Named(names.map(str::to_owned).collect())
    }

    /// True where the job reads `source_column`.
    pub(super) fn reads(&self, source_column: &str) -> bool {
        let outcome = self.outcome.as_ref();
        outcome.is_some_and(|one| one.reads(source_column))
            || self
                .columns
                .iter()
                .any(|one| one.source_column() == source_column)
    }

    /// Finds the job's columns among the source's `names`. One that is absent becomes a problem,
    /// and reading goes on without it.
    pub(super) fn layout(&mut self, names: &[String]) -> Layout {
        self.fields_wanted = names.len();
        match &mut self.recorder {
            Some(recorder) => Layout::of_columns(recorder.places(names)),
            None => self.layout_of_readers(names),
        }
    }

    /// Where the fields are that the outcome's and the features' readers want.
    fn layout_of_readers(&mut self, names: &[String]) -> Layout {
        let mut problems = std::mem::take(&mut self.problems);
        let places = places(names);
        let near: Vec<&str> = names.iter().map(String::as_str).collect();
        // A file without header has a patient where its names should be.
        let is_header = !names.iter().any(|name| name.parse::<f64>().is_ok());
        let mut absent = 0;
        let mut find = |column: &str, source_column: &str| {
            let found = position(&places, source_column);
            if let Err(Mismatch {
                structure,
                found,
                wanted,
            }) = &found
            {
                let mut problem = CohortProblem::of_column(
                    &self.source,
                    column,
                    Some(source_column),
                    Cause::Structure(*structure),
                    found,
                    wanted,
                );
                absent += 1;
                let hint = is_header && *structure == Structure::Absent && absent <= NEAREST_MAX;
                let near = hint.then(|| nearest(source_column, &near)).flatten();
                if let Some(near) = near {
                    problem = problem.with_detail(&format!("the nearest is {near:?}"));
                }
                problems.push(problem);
            }
            found.ok()
        };
        if self.queries {
            self.patient_column
                .take_if(|name| position(&places, name).is_err());
            self.patients = Patients::new(self.patient_column.is_some());
        }
        let patient = self
            .patient_column
            .as_deref()
            .and_then(|name| find("", name));
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
        let surveyed = self.survey.iter().flat_map(Survey::source_columns);
        Layout {
            surveyed: surveyed.map(|name| position(&places, name).ok()).collect(),
            patient,
            outcome: outcome.unwrap_or_default(),
            event: event.unwrap_or_default(),
            columns,
        }
    }

    /// Forgets the features whose column `is_known` to hold nothing to note.
    pub(super) fn pass_over(
        &mut self,
        layout: &Layout,
        is_known: impl Fn(usize, &ColumnReader) -> bool + Sync,
    ) {
        let columns = self.columns.par_iter().zip(&layout.columns);
        let is_wanted = columns.map(|(column, place)| !is_known(*place, column));
        let is_wanted: Vec<bool> = is_wanted.collect();
        retain(&mut self.columns, &is_wanted);
    }

    /// True where reading on is of no use, or no longer allowed.
    pub(super) fn is_over(&self) -> bool {
        let failed = self.recorder.as_ref().and_then(Recorder::failed);
        failed.is_some() || self.is_too_long()
    }

    fn is_too_long(&self) -> bool {
        self.ragged_rows > RAGGED_MAX || self.rows > rows::ROWS_MAX
    }

    /// The cohort, where nothing was wrong.
    pub(super) fn finish(mut self) -> Reading {
        let left_out = self.settle();
        self.collect_problems();
        let remarks = self.remarks();
        self.leave_out(&left_out);
        let degenerate = self.degenerate();
        let mut columns: Vec<Column> = self.columns.iter_mut().map(ColumnReader::take).collect();
        if !left_out.is_empty() {
            let keep = marks(self.patients.len() + left_out.len(), &left_out);
            columns = columns.into_iter().map(|one| kept(one, &keep)).collect();
        }
        let outcome = self.outcome.as_mut().map(OutcomeReader::take);
        let (cohort, queries) = match (outcome, self.queries) {
            (Some(outcome), _) => (Cohort::new(columns, outcome).ok(), None),
            (None, true) => {
                let patients = self.patients.clone();
                (None, Some(Queries { columns, patients }))
            }
            (None, false) => (None, None),
        };
        let summaries = cohort.as_ref().map(summary::summaries).unwrap_or_default();
        let left_out = self.left_out + left_out.len() as u64;
        Reading {
            rows: self.rows,
            left_out,
            summaries,
            cohort: cohort.map(|cohort| SiteCohort {
                cohort,
                patients: self.patients,
                left_out,
                remarks: remarks.clone(),
                degenerate: None,
                enrolled: None,
                judged: None,
                digest: None,
            }),
            queries,
            remarks,
            survey: self.survey,
            problems: CohortProblems::new(self.problems),
            degenerate,
        }
    }

    /// What can only be decided once all is read; gives the places of patients who are excluded.
    fn settle(&mut self) -> Vec<usize> {
        for column in &mut self.columns {
            column.settle();
        }
        // A patient with which others are compared stays in, whatever is missing.
        let Some(outcome) = &mut self.outcome else {
            return Vec::new();
        };
        let mut left_out = outcome.settle();
        left_out.append(&mut self.excluded);
        left_out.sort_unstable();
        left_out.dedup();
        left_out
    }

    /// Excludes these patients everywhere but in the features.
    fn leave_out(&mut self, left_out: &[usize]) {
        if left_out.is_empty() {
            return;
        }
        let keep = marks(self.patients.len(), left_out);
        self.patients = self.patients.kept(&keep);
        if let Some(outcome) = &mut self.outcome {
            outcome.keep(&keep);
        }
    }
}
