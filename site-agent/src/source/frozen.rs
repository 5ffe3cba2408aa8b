//! Rows of a source as they were when they were read: what a study freezes, and what its runs read.

pub(super) mod fields;

use super::field::Field;
use super::intake::{Intake, Single, strip};
use super::layout::Layout;
use super::outcome::retain;
use super::terms::Terms;
use super::{CohortProblem, CohortProblems, read_source};
use crate::config::{DecimalMark, SourceConfig};
use fields::Fields;
use protocol::cohort::{CohortSpecification, Feature, FeatureKind};
use protocol::study::Study;
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::fmt;
use std::ops::ControlFlow;
use std::slice::from_mut;

/// Rows of which the bytes of a commitment are made at once.
const ROWS_AT_ONCE: usize = 256;
/// So many times as many are made ready side by side.
const BLOCKS_AT_ONCE: usize = 16;
/// Rows that are read into intakes at once.
const ROWS_OF_BLOCK: usize = 1 << 16;

/// Rows of a source, with the names of its columns. It stays at the site.
#[derive(Clone, PartialEq)]
pub struct FrozenTable {
    pub(super) names: Vec<String>,
    /// The rows' numbers in the source.
    pub(super) rows: Vec<u64>,
    pub(super) columns: Vec<Fields>,
}

/// Frozen patients, in memory or on the disk.
pub(super) trait Rows: Send + Sync {
    /// How many they are.
    fn patients(&self) -> usize;

    /// Reads the `kept` ones into every intake, as their source would, block by block until `after` one says that it is enough; all
    /// where nothing says which.
    fn in_blocks(
        &self,
        intakes: &mut [Intake],
        kept: Option<&[bool]>,
        after: &mut dyn FnMut(&mut [Intake]) -> ControlFlow<()>,
    );

    /// Reads the `kept` ones into every intake; all where nothing says which.
    fn feed(&self, intakes: &mut [Intake], kept: Option<&[bool]>) {
        self.in_blocks(intakes, kept, &mut |_| ControlFlow::Continue(()));
    }
}

/// Which columns an intake keeps as they are, and what it has kept.
#[derive(Clone)]
pub(super) struct Recorder {
    /// None: all of them.
    wanted: Option<HashSet<String>>,
    /// Those of which nothing but the numbers counts, and what stands before their decimals.
    numbers: (HashSet<String>, DecimalMark),
    /// Whether each is among them.
    is_number: Vec<bool>,
    pub(super) table: FrozenTable,
}

/// What a study wants of a source.
pub struct Freezing<'s> {
    /// Where the patients are, and how their columns read.
    pub source: &'s SourceConfig,
    /// The patients of each outcome, with all features of the study.
    pub cohorts: Vec<CohortSpecification>,
    /// The places of the features that are counted on grids.
    pub gridded: HashSet<usize>,
    /// A count below this is withheld.
    pub cell_min: u64,
}

/// What a study has frozen of a source.
pub struct FrozenPatients {
    /// The rows of patients who have at least one outcome.
    pub table: FrozenTable,
    /// The places of those with each outcome, among all of them.
    pub with_outcome: Vec<Vec<usize>>,
}

impl<'s> Freezing<'s> {
    /// What a study wants of a source at a site whose policy has this `cell_min`.
    #[must_use]
    pub fn of_study(source: &'s SourceConfig, study: &Study, cell_min: u64) -> Self {
        let outcomes = study.outcomes.iter();
        Self {
            source,
            cohorts: outcomes.map(|outcome| study.cohort(outcome)).collect(),
            gridded: super::gridded_of_study(study),
            cell_min,
        }
    }

    /// Reads the source once, and keeps the rows of patients who have at least one outcome.
    ///
    /// # Errors
    /// [`CohortProblems`]: everything that does not fit any of the cohorts, none of it with a patient's value.
    pub fn read(&self) -> Result<FrozenPatients, CohortProblems> {
        self.freeze(self.record(self.wanted(), self.numbers())?)
    }

    /// What the site declares otherwise than any of the cohorts takes for granted. No row is read.
    #[must_use]
    pub fn declared(&self) -> Vec<CohortProblem> {
        let mut problems: Vec<CohortProblem> = Vec::new();
        for cohort in &self.cohorts {
            let intake = self.intake(cohort, &self.gridded);
            let new = intake.declared().into_iter();
            let new: Vec<_> = new.filter(|one| !problems.contains(one)).collect();
            problems.extend(new);
        }
        problems
    }

    /// All rows of the source, of these columns alone; of all where there is none. Of `numbers` nothing but the number counts.
    pub(super) fn record(
        &self,
        wanted: Option<HashSet<String>>,
        numbers: HashSet<String>,
    ) -> Result<FrozenTable, CohortProblems> {
        let Some(first) = self.cohorts.first() else {
            return Err(CohortProblems::new(Vec::new()));
        };
        let mut intake = self.intake(first, &self.gridded);
        intake.record(Recorder::new(wanted, (numbers, self.source.decimal)));
        read_source(self.source, &mut intake);
        intake.into_table()
    }

    /// Of all rows of the source those of patients who have at least one outcome.
    pub(super) fn freeze(&self, mut table: FrozenTable) -> Result<FrozenPatients, CohortProblems> {
        let mut has_outcome = vec![false; table.rows.len()];
        for cohort in &self.cohorts {
            let mut intake = self.intake(&with_features(cohort, |_| false), &HashSet::new());
            table.feed(from_mut(&mut intake), None);
            for place in intake.places_with_outcome() {
                has_outcome[place] = true;
            }
        }
        table.keep(&has_outcome);
        let with_outcome = self.judge(&table)?;
        Ok(FrozenPatients {
            table,
            with_outcome,
        })
    }

    /// The names of the columns that it wants; none where it wants all.
    pub(super) fn wanted(&self) -> Option<HashSet<String>> {
        // Where the site names no patients, it knows them by their whole rows.
        self.source.patient.as_ref()?;
        let names = self
            .cohorts
            .iter()
            .map(|cohort| self.intake(cohort, &self.gridded).needed().into_names());
        let names: Option<Vec<HashSet<String>>> = names.collect();
        Some(names?.into_iter().flatten().collect())
    }

    /// The names of the columns of which nothing but the numbers counts: numeric features alone read them. None where whole rows tell
    /// who a patient is.
    fn numbers(&self) -> HashSet<String> {
        if self.source.patient.is_none() {
            return HashSet::new();
        }
        let named = |is_number: bool| {
            let cohorts = self.cohorts.iter();
            cohorts.flat_map(move |cohort| {
                let numeric = |one: &Feature| matches!(one.kind, FeatureKind::Numeric { .. });
                let own = with_features(cohort, |one| numeric(one) == is_number);
                let intake = self.intake(&own, &HashSet::new());
                match is_number {
                    true => intake.of_queries().needed(),
                    false => intake.needed(),
                }
                .into_names()
                .unwrap_or_default()
            })
        };
        let others: HashSet<String> = named(false).chain(self.source.patient.clone()).collect();
        named(true).filter(|name| !others.contains(name)).collect()
    }

    /// Whether the rows fit every cohort, and which of them each is of. The features are read once, of all patients, as the study's card
    /// reads them; with each outcome again only those of which codes count as missing if enough of its patients have them.
    fn judge(&self, table: &FrozenTable) -> Result<Vec<Vec<usize>>, CohortProblems> {
        let mut problems: Vec<CohortProblem> = Vec::new();
        let mut note = |found: &CohortProblems| {
            for problem in found.problems() {
                if !problems.contains(problem) {
                    problems.push(problem.clone());
                }
            }
        };
        let of_features = |first: &CohortSpecification| {
            let intake = self.intake(first, &self.gridded);
            let mut intake = intake.of_queries();
            table.feed_doubtful(&mut intake);
            intake.into_problems()
        };
        let of_outcome = |cohort: &CohortSpecification| {
            let own = with_features(cohort, |feature| !feature.missing.is_empty());
            let mut intake = self.intake(&own, &self.gridded_of(cohort, &own));
            table.feed(from_mut(&mut intake), None);
            intake.into_outcome()
        };
        let (of_features, of_outcomes) = rayon::join(
            || self.cohorts.first().map(of_features),
            || self.cohorts.par_iter().map(of_outcome).collect::<Vec<_>>(),
        );
        of_features.iter().for_each(&mut note);
        let mut places = Vec::new();
        for of_outcome in of_outcomes {
            match of_outcome {
                Ok((known, _)) => places.push(known),
                Err(found) => note(&found),
            }
        }
        match problems.is_empty() {
            true => Ok(places),
            false => Err(CohortProblems::new(problems)),
        }
    }

    /// The places, among the features of a part, of those that are counted on grids.
    fn gridded_of(
        &self,
        whole: &CohortSpecification,
        part: &CohortSpecification,
    ) -> HashSet<usize> {
        let is_gridded = |name: &str| {
            let mut places = whole.features.iter().enumerate();
            places.any(|(place, one)| one.name == name && self.gridded.contains(&place))
        };
        let features = part.features.iter().enumerate();
        let gridded = features.filter(|(_, feature)| is_gridded(&feature.name));
        gridded.map(|(place, _)| place).collect()
    }

    fn intake(&self, cohort: &CohortSpecification, gridded: &HashSet<usize>) -> Intake {
        let source = self.source;
        let cell_min = self.cell_min;
        let terms = Terms::Site { cell_min };
        let called = super::called(source);
        Intake::new(source, (cohort, gridded), terms, called)
    }
}

/// A cohort with some of its features.
fn with_features(
    cohort: &CohortSpecification,
    is_wanted: impl Fn(&Feature) -> bool,
) -> CohortSpecification {
    let features = cohort.features.iter().filter(|one| is_wanted(one));
    CohortSpecification {
        outcome: cohort.outcome.clone(),
        features: features.cloned().collect(),
    }
}

impl FrozenTable {
    /// Rows, which are patients.
    #[must_use]
    pub fn patients(&self) -> u64 {
        self.rows.len() as u64
    }

    /// What tells each of these patients from others: the source's identifier or, where the site names none, a digest of the whole row,
    /// whatever a job reads of it. It stays at the site.
    #[must_use]
    pub fn identifiers(&self, source: &SourceConfig) -> Vec<Vec<u8>> {
        let place = source.patient.as_ref();
        let place = place.and_then(|name| self.names.iter().position(|own| own == name));
        let identifier = |row: usize| match place {
            Some(place) => self.columns[place].field(row).to_text(),
            None => {
                let mut bytes = Vec::new();
                self.write_row(row, &mut bytes);
                Sha256::digest(&bytes).to_vec()
            }
        };
        let rows = (0..self.rows.len()).into_par_iter();
        rows.map(identifier).collect()
    }

    /// The bytes that a commitment is of: equal for equal tables alone. Many rows are made ready side by side, and written in order.
    pub fn canonical(&self, write: &mut dyn FnMut(&[u8])) {
        write(&(self.names.len() as u64).to_be_bytes());
        write(&(self.rows.len() as u64).to_be_bytes());
        for name in &self.names {
            write(&(name.len() as u64).to_be_bytes());
            write(name.as_bytes());
        }
        let all: Vec<usize> = (0..self.rows.len()).collect();
        let bytes_of = |rows: &[usize]| {
            let mut bytes = Vec::new();
            for row in rows {
                bytes.extend_from_slice(&self.rows[*row].to_be_bytes());
                self.write_row(*row, &mut bytes);
            }
            bytes
        };
        for some in all.chunks(BLOCKS_AT_ONCE * ROWS_AT_ONCE) {
            let blocks: Vec<Vec<u8>> = some.par_chunks(ROWS_AT_ONCE).map(bytes_of).collect();
            blocks.iter().for_each(|bytes| write(bytes));
        }
    }

    fn write_row(&self, row: usize, bytes: &mut Vec<u8>) {
        self.columns
            .iter()
            .for_each(|column| column.write(row, bytes));
    }

    /// As [`Rows::feed`] of all, but for the columns of numbers that all fit: reading them would say nothing.
    fn feed_doubtful(&self, intake: &mut Intake) {
        let mut layout = intake.layout(&self.names);
        intake.pass_over(&mut layout, |column, reader| {
            let span = self.columns[column].span();
            span.is_some_and(|span| reader.takes_all(span))
        });
        self.fill(from_mut(intake), &[layout], None, &mut |_| {
            ControlFlow::Continue(())
        });
    }

    /// As [`Rows::in_blocks`], of columns that are found already.
    fn fill(
        &self,
        intakes: &mut [Intake],
        layouts: &[Layout],
        kept: Option<&[bool]>,
        after: &mut dyn FnMut(&mut [Intake]) -> ControlFlow<()>,
    ) {
        for (place, rows) in self.rows.chunks(ROWS_OF_BLOCK).enumerate() {
            let first = place * ROWS_OF_BLOCK;
            let field = |column: usize, row: usize| self.columns[column].field(first + row);
            let kept = kept.map(|kept| &kept[first..first + rows.len()]);
            for (intake, layout) in intakes.iter_mut().zip(layouts) {
                intake.batch_of(rows, kept, layout, &Single(field));
            }
            if after(intakes).is_break() {
                return;
            }
        }
    }

    /// Keeps the marked rows.
    pub(super) fn keep(&mut self, keep: &[bool]) {
        if keep.iter().all(|is_kept| *is_kept) {
            return;
        }
        retain(&mut self.rows, keep);
        let columns = self.columns.par_iter_mut();
        columns.for_each(|column| column.keep(keep));
    }
}

impl Rows for FrozenTable {
    fn patients(&self) -> usize {
        self.rows.len()
    }

    fn in_blocks(
        &self,
        intakes: &mut [Intake],
        kept: Option<&[bool]>,
        after: &mut dyn FnMut(&mut [Intake]) -> ControlFlow<()>,
    ) {
        let layouts = intakes.iter_mut().map(|one| one.layout(&self.names));
        let layouts: Vec<Layout> = layouts.collect();
        self.fill(intakes, &layouts, kept, after);
    }
}

impl fmt::Debug for FrozenPatients {
    /// The count only.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table.fmt(formatter)
    }
}

impl fmt::Debug for FrozenTable {
    /// The count only.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} frozen patients", self.rows.len())
    }
}

impl Recorder {
    pub(super) fn new(
        wanted: Option<HashSet<String>>,
        numbers: (HashSet<String>, DecimalMark),
    ) -> Self {
        Self {
            wanted,
            numbers,
            is_number: Vec::new(),
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
        self.table.columns = vec![Fields::default(); places.len()];
        let names = self.table.names.iter();
        self.is_number = names.map(|name| self.numbers.0.contains(name)).collect();
        places
    }

    /// Keeps one row.
    pub(super) fn keep<'f>(&mut self, row: u64, fields: impl Iterator<Item = Field<'f>>) {
        self.table.rows.push(row);
        let decimal = self.numbers.1;
        let columns = self.table.columns.iter_mut().zip(&self.is_number);
        for ((column, is_number), field) in columns.zip(fields) {
            column.add(field, *is_number, decimal);
        }
    }

    /// Keeps rows, of the fields that `field` gives by column and row.
    pub(super) fn keep_all<'f>(
        &mut self,
        rows: &[u64],
        field: impl Fn(usize, usize) -> Field<'f> + Sync,
    ) {
        self.table.rows.extend_from_slice(rows);
        let decimal = self.numbers.1;
        let width = strip(self.table.columns.len());
        let strips = self.table.columns.par_chunks_mut(width);
        let strips = strips.zip(self.is_number.par_chunks(width)).enumerate();
        strips.for_each(|(strip, (columns, are_numbers))| {
            for row in 0..rows.len() {
                let columns = columns.iter_mut().zip(are_numbers).enumerate();
                for (place, (column, is_number)) in columns {
                    column.add(field(strip * width + place, row), *is_number, decimal);
                }
            }
        });
    }
}
