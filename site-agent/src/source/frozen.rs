//! Rows of a source as they were when they were read: what a study freezes, and what its runs read.

use super::field::Field;
use super::intake::Intake;
use super::terms::Terms;
use super::{CohortProblems, ReadProgress, SiteCohort, read_source, reading::Reading};
use crate::config::SourceConfig;
use protocol::cohort::CohortSpecification;
use protocol::job::Job;
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashSet};
use std::fmt;
use time::Date;

/// Rows of a source, with the names of its columns. It stays at the site.
#[derive(Clone, PartialEq)]
pub struct FrozenTable {
    pub(super) names: Vec<String>,
    /// The rows' numbers in the source.
    pub(super) rows: Vec<u64>,
    /// One list per column, one cell per row.
    pub(super) columns: Vec<Vec<Cell>>,
}

/// One field, as the source gave it.
#[derive(Clone, PartialEq)]
pub(super) enum Cell {
    Null,
    Text(Vec<u8>),
    Number(f64),
    Integer(i64),
    Boolean(bool),
    Date(Date),
}

/// Which columns an intake keeps as they are, and what it has kept.
pub(super) struct Recorder {
    /// None: all of them.
    wanted: Option<HashSet<String>>,
    pub(super) table: FrozenTable,
}

/// What a study wants of a source.
pub struct Freezing<'s> {
    /// Where the patients are, and how their columns read.
    pub source: &'s SourceConfig,
    /// The patients of each outcome, with all features of the study.
    pub cohorts: Vec<CohortSpecification>,
    /// A count below this is withheld.
    pub cell_min: u64,
}

impl Freezing<'_> {
    /// Reads the source once, and keeps the rows of patients who have at least one outcome.
    ///
    /// # Errors
    /// [`CohortProblems`]: everything that does not fit any of the cohorts, none of it with a patient's value.
    pub fn read(
        &self,
        progress: &mut dyn FnMut(ReadProgress),
    ) -> Result<FrozenTable, CohortProblems> {
        let Some(first) = self.cohorts.first() else {
            return Err(CohortProblems::new(Vec::new()));
        };
        let mut intake = self.intake(self.source, first, progress);
        let wanted = self.cohorts.iter().map(|cohort| {
            let mut unheard = |_| ();
            self.intake(self.source, cohort, &mut unheard).needed()
        });
        let wanted = wanted.map(super::layout::NeededColumns::into_names);
        let wanted: Option<Vec<HashSet<String>>> = wanted.collect();
        let wanted = wanted.map(|sets| sets.into_iter().flatten().collect());
        intake.record(Recorder::new(wanted));
        read_source(self.source, &mut intake);
        let mut table = intake.into_table()?;
        let mut with_outcome = BTreeSet::new();
        for cohort in &self.cohorts {
            let alone = CohortSpecification {
                outcome: cohort.outcome.clone(),
                features: Vec::new(),
            };
            let mut unheard = |_| ();
            let mut intake = self.intake(self.source, &alone, &mut unheard);
            table.feed(&mut intake);
            with_outcome.extend(intake.rows_with_outcome());
        }
        table.keep(&with_outcome);
        self.judge(&table).map(|()| table)
    }

    /// Whether the rows fit every cohort.
    fn judge(&self, table: &FrozenTable) -> Result<(), CohortProblems> {
        let mut problems = Vec::new();
        for cohort in &self.cohorts {
            let mut unheard = |_| ();
            let mut intake = self.intake(self.source, cohort, &mut unheard);
            table.feed(&mut intake);
            for problem in intake.finish().problems.problems() {
                if !problems.contains(problem) {
                    problems.push(problem.clone());
                }
            }
        }
        match problems.is_empty() {
            true => Ok(()),
            false => Err(CohortProblems::new(problems)),
        }
    }

    fn intake<'p>(
        &self,
        source: &SourceConfig,
        cohort: &CohortSpecification,
        progress: &'p mut dyn FnMut(ReadProgress),
    ) -> Intake<'p> {
        let cell_min = self.cell_min;
        // Whether a feature is counted on a grid is a matter of a job's method.
        let gridded = HashSet::new();
        let terms = Terms::Site { cell_min };
        Intake::new(
            source,
            (cohort, &gridded),
            terms,
            super::called(source),
            progress,
        )
    }
}

impl FrozenTable {
    /// Rows, which are patients.
    #[must_use]
    pub fn patients(&self) -> u64 {
        self.rows.len() as u64
    }

    /// As [`super::read_for_release`], of these rows.
    ///
    /// # Errors
    /// [`CohortProblems`], of which the coordinator may hear the misfits.
    pub fn cohort(
        &self,
        source: &SourceConfig,
        job: &Job,
        cell_min: u64,
    ) -> Result<SiteCohort, CohortProblems> {
        self.reading(source, &job.cohort, &super::gridded(job), cell_min)
            .unless_degenerate()
    }

    /// What tells each of these patients from others: see [`SiteCohort::identifiers`].
    #[must_use]
    pub fn identifiers(&self, source: &SourceConfig) -> Vec<Vec<u8>> {
        let place = source.patient.as_ref();
        let place = place.and_then(|name| self.names.iter().position(|own| own == name));
        let identifier = |row: usize| match place {
            Some(place) => self.columns[place][row].field().to_text(),
            None => {
                let mut digest = Sha256::new();
                self.write_row(row, &mut |bytes| digest.update(bytes));
                digest.finalize().to_vec()
            }
        };
        (0..self.rows.len()).map(identifier).collect()
    }

    /// The bytes that a commitment is of: equal for equal tables alone.
    pub fn canonical(&self, write: &mut dyn FnMut(&[u8])) {
        write(&(self.names.len() as u64).to_be_bytes());
        write(&(self.rows.len() as u64).to_be_bytes());
        for name in &self.names {
            write(&(name.len() as u64).to_be_bytes());
            write(name.as_bytes());
        }
        for (index, number) in self.rows.iter().enumerate() {
            write(&number.to_be_bytes());
            self.write_row(index, write);
        }
    }

    fn write_row(&self, row: usize, write: &mut dyn FnMut(&[u8])) {
        for column in &self.columns {
            match &column[row] {
                Cell::Null => write(&[0]),
                Cell::Text(text) => {
                    write(&[1]);
                    write(&(text.len() as u64).to_be_bytes());
                    write(text);
                }
                Cell::Number(number) => {
                    write(&[2]);
                    write(&number.to_bits().to_be_bytes());
                }
                Cell::Integer(number) => {
                    write(&[3]);
                    write(&number.to_be_bytes());
                }
                Cell::Boolean(truth) => write(&[4, u8::from(*truth)]),
                Cell::Date(date) => {
                    write(&[5]);
                    write(&date.to_julian_day().to_be_bytes());
                }
            }
        }
    }

    fn reading(
        &self,
        source: &SourceConfig,
        cohort: &CohortSpecification,
        gridded: &HashSet<usize>,
        cell_min: u64,
    ) -> Reading {
        let mut unheard = |_| ();
        let (called, terms) = (super::called(source), Terms::Site { cell_min });
        let mut intake = Intake::new(source, (cohort, gridded), terms, called, &mut unheard);
        self.feed(&mut intake);
        intake.finish()
    }

    /// Reads all rows into `intake`, as their source would.
    pub(super) fn feed(&self, intake: &mut Intake<'_>) {
        let needed = intake.needed();
        let kept: Vec<usize> = (0..self.names.len())
            .filter(|index| needed.has(&self.names[*index]))
            .collect();
        let names: Vec<String> = kept
            .iter()
            .map(|index| self.names[*index].clone())
            .collect();
        let layout = intake.layout(&names);
        for (index, row) in self.rows.iter().enumerate() {
            intake.row(*row, &layout, |position| {
                self.columns[kept[position]][index].field()
            });
        }
    }

    pub(super) fn keep(&mut self, rows: &BTreeSet<u64>) {
        let marks: Vec<bool> = self.rows.iter().map(|row| rows.contains(row)).collect();
        super::outcome::retain(&mut self.rows, &marks);
        for column in &mut self.columns {
            super::outcome::retain(column, &marks);
        }
    }
}

impl fmt::Debug for FrozenTable {
    /// The count only.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} frozen patients", self.rows.len())
    }
}

impl Cell {
    pub(super) fn of(field: Field<'_>) -> Self {
        match field {
            Field::Null => Self::Null,
            // A snapshot holds UTF-8; a value that is none fits nothing, and a mark in its place fits as little.
            Field::Text(text) => {
                Self::Text(String::from_utf8_lossy(text).into_owned().into_bytes())
            }
            Field::Number(number) => Self::Number(number),
            Field::Integer(number) => Self::Integer(number),
            Field::Boolean(truth) => Self::Boolean(truth),
            Field::Date(date) => Self::Date(date),
        }
    }

    fn field(&self) -> Field<'_> {
        match self {
            Self::Null => Field::Null,
            Self::Text(text) => Field::Text(text),
            Self::Number(number) => Field::Number(*number),
            Self::Integer(number) => Field::Integer(*number),
            Self::Boolean(truth) => Field::Boolean(*truth),
            Self::Date(date) => Field::Date(*date),
        }
    }
}

impl Recorder {
    pub(super) fn new(wanted: Option<HashSet<String>>) -> Self {
        Self {
            wanted,
            table: FrozenTable {
                names: Vec::new(),
                rows: Vec::new(),
                columns: Vec::new(),
            },
        }
    }

    /// Which columns are needed.
    pub(super) fn needed(&self) -> super::layout::NeededColumns {
        match &self.wanted {
            None => super::layout::NeededColumns::All,
            Some(names) => super::layout::NeededColumns::Named(names.clone()),
        }
    }

    /// The places of the wanted columns among `names`.
    pub(super) fn places(&mut self, names: &[String]) -> Vec<usize> {
        let needed = self.needed();
        let places: Vec<usize> = (0..names.len())
            .filter(|place| needed.has(&names[*place]))
            .collect();
        self.table.names = places.iter().map(|place| names[*place].clone()).collect();
        self.table.columns = vec![Vec::new(); places.len()];
        places
    }

    /// Keeps one row.
    pub(super) fn keep<'f>(&mut self, row: u64, fields: impl Iterator<Item = Field<'f>>) {
        self.table.rows.push(row);
        for (column, field) in self.table.columns.iter_mut().zip(fields) {
            column.push(Cell::of(field));
        }
    }
}
