//! Values of a column whose levels the site does not declare: what at least `cell_min` patients hold is a
//! level, and what fewer hold is none, whatever a job lists. So no job can find out who holds it.

use super::field::{Field, Shape, number_of_text};
use crate::config::DecimalMark;
use protocol::limits::LEVELS_MAX;
use std::collections::HashMap;

/// How many patients hold each value, and which.
#[derive(Default)]
pub(super) struct FoundValues {
    by_value: HashMap<Vec<u8>, u32>,
    counts: Vec<u64>,
    of_patients: Vec<Held>,
    unlisted: Vec<Unlisted>,
}

/// The value of one patient.
#[derive(Clone, Copy)]
enum Found {
    Missing,
    Value(u32),
    /// One of more values than a column has levels: too many to be held by enough patients each.
    Uncounted,
}

/// A patient's value, and its row.
struct Held {
    value: Found,
    row: u64,
}

/// A row whose value the job does not list.
struct Unlisted {
    value: Found,
    row: u64,
    shape: Shape,
}

impl FoundValues {
    /// Notes a patient whose value the job lists.
    pub(super) fn listed(&mut self, field: &Field<'_>, row: u64) {
        let value = self.count(field);
        self.of_patients.push(Held { value, row });
    }

    /// Notes a row whose value the job does not list; of a feature, the patient stays, without a value.
    pub(super) fn unlisted(&mut self, field: &Field<'_>, row: u64) {
        let value = self.count(field);
        let shape = field.shape();
        self.unlisted.push(Unlisted { value, row, shape });
    }

    /// Notes a patient without a value.
    pub(super) fn missing(&mut self) {
        let value = Found::Missing;
        self.of_patients.push(Held { value, row: 0 });
    }

    /// The places of patients whose value is held by fewer than `cell_min`, and their rows.
    pub(super) fn rare(&self, cell_min: u64) -> Vec<(usize, u64)> {
        let rare = self.of_patients.iter().enumerate();
        let rare = rare.filter(|(_, held)| self.is_rare(held.value, cell_min));
        rare.map(|(patient, held)| (patient, held.row)).collect()
    }

    /// Rows of values that the job does not list: held by at least `cell_min` patients, and by fewer.
    pub(super) fn unlisted_rows(&self, cell_min: u64) -> UnlistedRows {
        let mut rows = UnlistedRows::default();
        for one in &self.unlisted {
            match self.is_rare(one.value, cell_min) {
                true => rows.rare.push(one.row),
                false => rows.frequent.push((one.shape, one.row)),
            }
        }
        rows
    }

    fn is_rare(&self, value: Found, cell_min: u64) -> bool {
        match value {
            Found::Missing => false,
            Found::Value(index) => self.counts[index as usize] < cell_min,
            Found::Uncounted => true,
        }
    }

    fn count(&mut self, field: &Field<'_>) -> Found {
        let text = field.to_text();
        // So that 1 and 1.0 are one value.
        let value = match number_of_text(&text, DecimalMark::Point) {
            Ok(number) => number.to_string().into_bytes(),
            Err(_) => text,
        };
        if let Some(index) = self.by_value.get(&value) {
            self.counts[*index as usize] += 1;
            return Found::Value(*index);
        }
        if self.counts.len() >= LEVELS_MAX {
            return Found::Uncounted;
        }
        let index = u32::try_from(self.counts.len()).unwrap_or(u32::MAX);
        self.by_value.insert(value, index);
        self.counts.push(1);
        Found::Value(index)
    }
}

/// Rows whose value the job does not list.
#[derive(Default)]
pub(super) struct UnlistedRows {
    /// Of values that enough patients hold.
    pub(super) frequent: Vec<(Shape, u64)>,
    /// Of values that too few hold.
    pub(super) rare: Vec<u64>,
}
