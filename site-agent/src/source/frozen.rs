//! Rows of a source as they were when they were read: what a study freezes, and what its runs read.

pub(super) mod fields;
mod recorder;
mod rows;

pub(super) use recorder::Recorder;
pub use recorder::Room;
pub use rows::{Damaged, FrozenRows, Identify};

use super::enrolled::{first_pass, of_patients};
use super::intake::{Intake, Single, repeated};
use super::layout::Layout;
use super::outcome::retain;
use super::problem::{Fault, Faults};
use super::terms::Terms;
use super::{CohortProblem, CohortProblems, read_source};
use crate::config::SourceConfig;
use fields::Fields;
use protocol::cohort::{CohortSpecification, Feature, FeatureKind};
use protocol::study::Study;
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::ops::ControlFlow;

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

/// What is done with what intakes have read of a block; it says whether that is enough.
pub(super) type After<'a> = dyn FnMut(&mut [Intake]) -> ControlFlow<()> + 'a;

/// Frozen patients, in memory or on the disk.
pub(super) trait Rows: Send + Sync {
    /// How many they are.
    fn patients(&self) -> usize;

    /// Reads the `kept` ones into every intake, as their source would, block by block until `after` one says that it is enough; all
    /// where nothing says which.
    fn in_blocks(&self, intakes: &mut [Intake], kept: Option<&[bool]>, after: &mut After<'_>);

    /// Reads the `kept` ones into every intake; all where nothing says which.
    fn feed(&self, intakes: &mut [Intake], kept: Option<&[bool]>) {
        self.in_blocks(intakes, kept, &mut |_| ControlFlow::Continue(()));
    }
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
    pub rows: FrozenRows,
    /// Which outcomes each of them has: the lowest bit stands for the first.
    pub outcomes: Vec<u32>,
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

    /// Reads the source once, and keeps the rows of patients who have at least one outcome. They wait in `room`.
    ///
    /// # Errors
    /// [`CohortProblems`]: everything that does not fit any of the cohorts, none of it with a patient's value.
    pub fn read(&self, room: Room) -> Result<FrozenPatients, CohortProblems> {
        self.freeze(self.record(self.wanted(), self.numbers(), room)?)
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
        room: Room,
    ) -> Result<FrozenRows, CohortProblems> {
        let Some(first) = self.cohorts.first() else {
            return Err(CohortProblems::new(Vec::new()));
        };
        let mut intake = self.intake(first, &self.gridded);
        intake.record(Recorder::new(wanted, (numbers, self.source.decimal), room));
        read_source(self.source, &mut intake);
        intake.into_rows()
    }

    /// Of all rows of the source those of patients who have at least one outcome.
    pub(super) fn freeze(&self, mut rows: FrozenRows) -> Result<FrozenPatients, CohortProblems> {
        let outcomes = self.cohorts.iter().map(|cohort| {
            let own = with_features(cohort, |_| false);
            self.intake(&own, &HashSet::new())
        });
        let mut outcomes: Vec<Intake> = outcomes.collect();
        first_pass(&rows, &mut outcomes, None);
        // What is wrong is said of the patients who are kept.
        outcomes.iter_mut().for_each(|one| drop(one.judge()));
        let mut has_outcome = Vec::with_capacity(rows.patients());
        of_patients(&rows, &mut outcomes, &mut |own| has_outcome.push(own != 0))?;
        rows.keep(&has_outcome);
        drop(has_outcome);
        let outcomes = self.judge(&rows)?;
        Ok(FrozenPatients { rows, outcomes })
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
    fn judge(&self, rows: &FrozenRows) -> Result<Vec<u32>, CohortProblems> {
        let mut problems: Vec<CohortProblem> = Vec::new();
        let mut note = |found: CohortProblems| {
            for problem in found.problems() {
                if !problems.contains(problem) {
                    problems.push(problem.clone());
                }
            }
        };
        let of_features = |first: &CohortSpecification| {
            let mut intake = self.intake(first, &self.gridded).of_queries();
            rows.feed_doubtful(&mut intake);
            intake.judge().map(drop)
        };
        let of_outcomes = || {
            let intakes = self.cohorts.iter().map(|cohort| {
                let own = with_features(cohort, |feature| !feature.missing.is_empty());
                self.intake(&own, &self.gridded_of(cohort, &own))
            });
            let mut intakes: Vec<Intake> = intakes.collect();
            first_pass(rows, &mut intakes, None);
            let judged: Vec<_> = intakes.iter_mut().map(Intake::judge).collect();
            (intakes, judged)
        };
        let (of_features, ((intakes, judged), repeated)) = rayon::join(
            || self.cohorts.first().map_or(Ok(()), of_features),
            || rayon::join(of_outcomes, || self.repeated(rows)),
        );
        of_features.err().into_iter().for_each(&mut note);
        repeated.err().into_iter().for_each(&mut note);
        judged.into_iter().filter_map(Result::err).for_each(note);
        if !problems.is_empty() {
            return Err(CohortProblems::new(problems));
        }
        let without_features = intakes.iter().map(|one| one.choosing(&[]));
        let mut intakes: Vec<Intake> = without_features.collect();
        let mut outcomes = Vec::with_capacity(rows.patients());
        of_patients(rows, &mut intakes, &mut |own| outcomes.push(own))?;
        Ok(outcomes)
    }

    /// Whether each patient is there once, where the site names patients. Few bytes are kept of each: those who may be there twice are
    /// looked at again.
    fn repeated(&self, rows: &FrozenRows) -> Result<(), CohortProblems> {
        let (called, word) = super::called(self.source);
        let damaged = |Damaged| CohortProblems::new(vec![Damaged.problem(&called)]);
        if self.source.patient.is_none() {
            return Ok(());
        }
        let digest = RandomState::new();
        let mut digests: Vec<u64> = Vec::with_capacity(rows.patients());
        let visited = rows.identifiers(self.source, &mut |_, identifiers| {
            let identifiers = identifiers.into_par_iter();
            digests.par_extend(identifiers.map(|id| digest.hash_one(id.trim_ascii())));
        });
        visited.map_err(damaged)?;
        digests.par_sort_unstable();
        let equal = digests.windows(2).filter(|two| two[0] == two[1]);
        let suspects: HashSet<u64> = equal.map(|two| two[0]).collect();
        if suspects.is_empty() {
            return Ok(());
        }
        let mut seen: HashSet<Vec<u8>> = HashSet::new();
        let mut faults = Faults::default();
        let visited = rows.identifiers(self.source, &mut |rows, identifiers| {
            for (id, row) in identifiers.iter().zip(rows) {
                let id = id.trim_ascii();
                if suspects.contains(&digest.hash_one(id)) && !seen.insert(id.to_vec()) {
                    faults.add(Fault::Repeated, *row);
                }
            }
        });
        visited.map_err(damaged)?;
        match repeated(&called, faults.rows(word)).collect::<Vec<_>>() {
            none if none.is_empty() => Ok(()),
            problems => Err(CohortProblems::new(problems)),
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

    /// As [`Rows::in_blocks`], of columns that are found already.
    fn fill(
        &self,
        intakes: &mut [Intake],
        layouts: &[Layout],
        kept: Option<&[bool]>,
        after: &mut After<'_>,
    ) -> ControlFlow<()> {
        for (place, rows) in self.rows.chunks(ROWS_OF_BLOCK).enumerate() {
            let first = place * ROWS_OF_BLOCK;
            let field = |column: usize, row: usize| self.columns[column].field(first + row);
            let kept = kept.map(|kept| &kept[first..first + rows.len()]);
            for (intake, layout) in intakes.iter_mut().zip(layouts) {
                intake.batch_of(rows, kept, layout, &Single(field));
            }
            after(intakes)?;
        }
        ControlFlow::Continue(())
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

impl fmt::Debug for FrozenPatients {
    /// The count only.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rows.fmt(formatter)
    }
}

impl fmt::Debug for FrozenTable {
    /// The count only.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} frozen patients", self.rows.len())
    }
}
