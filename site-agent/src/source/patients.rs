//! Who the patients are. Their identifiers never leave this crate's local results.

use super::field::Field;
use crate::books::chain;
use ndarray::Array1;
use rayon::prelude::*;
use similarity::cohort::{Cohort, Outcome, Values};
use std::borrow::Cow;
use std::fmt;
use std::hash::{BuildHasher, RandomState};

/// Identifiers of the patients of a cohort, in its order: of the source's column, or the numbers of
/// their rows where the site names none.
#[derive(Clone)]
pub struct Patients {
    named: bool,
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Patients {
    /// The identifier of one patient.
    #[must_use]
    pub fn id(&self, index: usize) -> String {
        String::from_utf8_lossy(self.bytes(index)).into_owned()
    }

    /// The identifier of one patient; where the source has none, its place among the patients, from 1.
    #[must_use]
    pub fn name(&self, index: usize) -> String {
        self.lent_name(index).into_owned()
    }

    /// The same without a copy, where that can be.
    pub(crate) fn lent_name(&self, index: usize) -> Cow<'_, str> {
        match self.named {
            true => match std::str::from_utf8(self.bytes(index)) {
                Ok(name) => name.into(),
                Err(_) => self.id(index).into(),
            },
            false => (index + 1).to_string().into(),
        }
    }

    /// Number of patients.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True where there is no patient.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// True where the identifiers are the source's own.
    #[must_use]
    pub fn are_named(&self) -> bool {
        self.named
    }

    pub(super) fn new(named: bool) -> Self {
        Self {
            named,
            text: Vec::new(),
            ends: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, field: Field<'_>) {
        match field {
            Field::Text(text) => self.text.extend_from_slice(text.trim_ascii()),
            other => self.text.extend_from_slice(&other.to_text()),
        }
        self.ends.push(self.text.len());
    }

    /// Positions of the patients who share an identifier with an earlier one, in order.
    pub(super) fn repeated(&self) -> Vec<usize> {
        // Most differ by their digests, which are compared in no time.
        let digest = RandomState::new();
        let places = (0..self.len()).into_par_iter();
        let mut order: Vec<(u64, usize)> = places
            .map(|index| (digest.hash_one(self.bytes(index)), index))
            .collect();
        order.par_sort_unstable_by(|one, other| {
            let by_text = || self.bytes(one.1).cmp(self.bytes(other.1));
            let by_place = || one.1.cmp(&other.1);
            one.0.cmp(&other.0).then_with(by_text).then_with(by_place)
        });
        let mut repeated: Vec<usize> = order
            .windows(2)
            .filter(|pair| pair[0].0 == pair[1].0)
            .filter(|pair| self.bytes(pair[0].1) == self.bytes(pair[1].1))
            .map(|pair| pair[1].1)
            .collect();
        repeated.sort_unstable();
        repeated
    }

    /// Only the marked patients.
    pub(super) fn kept(&self, keep: &[bool]) -> Self {
        let mut kept = Self::new(self.named);
        for index in (0..self.len()).filter(|index| keep[*index]) {
            kept.text.extend_from_slice(self.bytes(index));
            kept.ends.push(kept.text.len());
        }
        kept
    }

    /// The place of the patient of this name; none where nobody has it.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<usize> {
        match self.named {
            true => (0..self.len()).find(|index| self.bytes(*index) == name.as_bytes()),
            false => {
                let place = name.parse::<usize>().ok()?.checked_sub(1)?;
                (place < self.len() && self.name(place) == name).then_some(place)
            }
        }
    }

    pub(super) fn bytes(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[index]]
    }
}

impl fmt::Debug for Patients {
    /// The count only.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} patients", self.len())
    }
}

/// SHA-256 of the identifiers, columns and outcomes of a cohort. One column's bytes are made at a time.
pub(crate) fn digest(cohort: &Cohort, patients: &Patients) -> String {
    let numbers = |values: &Array1<f64>| -> Vec<u8> {
        let bytes = values.iter().map(|value| value.to_le_bytes());
        bytes.collect::<Vec<_>>().into_flattened()
    };
    let codes = |codes: &mut dyn Iterator<Item = u32>| -> Vec<u8> {
        let bytes = codes.map(u32::to_le_bytes);
        bytes.collect::<Vec<_>>().into_flattened()
    };
    let names = (0..patients.len()).map(|row| (patients.name(row) + "\n").into_bytes());
    let columns = cohort.columns().iter().flat_map(|column| {
        let values = match &column.values {
            Values::Numeric(values) => numbers(values),
            Values::Categorical { codes: own, .. } => codes(&mut own.iter().copied()),
        };
        [format!("\n{}\n", column.name).into_bytes(), values]
    });
    let outcome = match cohort.outcome() {
        Outcome::Classes { codes: own, .. } => vec![codes(&mut own.iter().copied())],
        Outcome::Numeric(values) => vec![numbers(values)],
        Outcome::Survival { time, event } => vec![
            numbers(time),
            codes(&mut event.iter().map(|event| u32::from(*event))),
        ],
    };
    chain::digest_of(names.chain(columns).chain(outcome))
}
