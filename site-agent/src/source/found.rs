//! Values of a column whose levels the site does not declare: what at least `cell_min` patients hold is a
//! level, and what fewer hold is none, whatever a job lists. So no job can find out who holds it.

use super::asked::Holder;
use super::field::{Field, Shape, number_of_text};
use super::problem::{Fault, Faults};
use crate::config::DecimalMark;
use protocol::limits::LEVELS_MAX;
use std::collections::HashMap;

/// How many patients hold each value, and who holds those that few do.
#[derive(Clone)]
pub(super) struct FoundValues {
    by_value: HashMap<Vec<u8>, usize>,
    levels: LevelCounts,
}

impl FoundValues {
    /// Of nobody yet; what fewer than `cell_min` hold is none.
    pub(super) fn new(cell_min: u64) -> Self {
        Self {
            by_value: HashMap::new(),
            levels: LevelCounts::new(0, cell_min),
        }
    }

    /// Notes a patient whose value the job lists.
    pub(super) fn listed(&mut self, field: &Field<'_>, holder: Holder) {
        let level = self.level(field);
        self.levels.note(level, holder, None);
    }

    /// Notes a row whose value the job does not list; of a feature, the patient stays, without a value.
    pub(super) fn unlisted(&mut self, field: &Field<'_>, row: u64) {
        let level = self.level(field);
        let patient = None;
        self.levels
            .note(level, Holder { patient, row }, Some(field.shape()));
    }

    /// Judges them, once all are noted.
    pub(super) fn settle(&mut self) -> SettledLevels {
        self.levels.settle()
    }

    /// Whether few patients hold a value, once all are noted.
    pub(super) fn is_rare(&self, field: &Field<'_>) -> bool {
        self.levels
            .is_rare(self.by_value.get(&spelled(field)).copied())
    }

    /// The place of a value; none of one of more values than a column has levels: too many to be held by enough patients each.
    fn level(&mut self, field: &Field<'_>) -> Option<usize> {
        let value = spelled(field);
        if let Some(level) = self.by_value.get(&value) {
            return Some(*level);
        }
        let next = self.by_value.len();
        if next >= LEVELS_MAX {
            return None;
        }
        self.by_value.insert(value, next);
        self.levels.levels.push(Level::default());
        Some(next)
    }
}

/// The value of a field, so that 1 and 1.0 are one.
fn spelled(field: &Field<'_>) -> Vec<u8> {
    let text = field.to_text();
    match number_of_text(&text, DecimalMark::Point) {
        Ok(number) => number.to_string().into_bytes(),
        Err(_) => text,
    }
}

/// How many rows hold each level, and which hold those that few do: of a level that enough hold, nobody is remembered.
#[derive(Clone)]
pub(super) struct LevelCounts {
    cell_min: u64,
    levels: Vec<Level>,
    /// Rows of levels that the job does not list, though enough patients hold them.
    unlisted: Faults,
    /// Rows that hold none of the levels.
    others: Vec<Holder>,
}

#[derive(Clone, Default)]
struct Level {
    rows: u64,
    /// All of them, as long as they are few, with what the field of one looks like that the job does not list.
    few: Vec<(Holder, Option<Shape>)>,
}

/// What becomes of rows once the levels that few patients hold are known.
#[derive(Default)]
pub(super) struct SettledLevels {
    /// Rows whose level the job does not list, though enough patients hold it.
    pub(super) unlisted: Faults,
    /// Rows whose level few patients hold, whether the job lists it or not, in order.
    pub(super) rare_rows: Vec<u64>,
    /// Places of patients whose level few hold, in order.
    pub(super) rare_patients: Vec<usize>,
}

impl LevelCounts {
    pub(super) fn new(levels: usize, cell_min: u64) -> Self {
        Self {
            cell_min,
            levels: vec![Level::default(); levels],
            unlisted: Faults::default(),
            others: Vec::new(),
        }
    }

    /// Notes a row that holds a level, or none of them; `unlisted` is what the field looks like of one that the job does not list.
    pub(super) fn note(&mut self, level: Option<usize>, holder: Holder, unlisted: Option<Shape>) {
        let Some(level) = level.and_then(|level| self.levels.get_mut(level)) else {
            return self.others.push(holder);
        };
        level.rows += 1;
        if level.rows < self.cell_min {
            return level.few.push((holder, unlisted));
        }
        let few = std::mem::take(&mut level.few).into_iter();
        for (holder, unlisted) in few.chain([(holder, unlisted)]) {
            if let Some(shape) = unlisted {
                self.unlisted.add(Fault::UnlistedLevel(shape), holder.row);
            }
        }
    }

    /// Whether few patients hold a level, once all rows are noted.
    pub(super) fn is_rare(&self, level: Option<usize>) -> bool {
        let level = level.and_then(|level| self.levels.get(level));
        level.is_none_or(|level| level.rows < self.cell_min)
    }

    pub(super) fn settle(&mut self) -> SettledLevels {
        let mut rare = std::mem::take(&mut self.others);
        for level in &mut self.levels {
            let few = std::mem::take(&mut level.few);
            rare.extend(few.into_iter().map(|(holder, _)| holder));
        }
        let mut rare_rows: Vec<u64> = rare.iter().map(|one| one.row).collect();
        rare_rows.sort_unstable();
        let mut rare_patients: Vec<usize> = rare.iter().filter_map(|one| one.patient).collect();
        rare_patients.sort_unstable();
        SettledLevels {
            unlisted: std::mem::take(&mut self.unlisted),
            rare_rows,
            rare_patients,
        }
    }
}
