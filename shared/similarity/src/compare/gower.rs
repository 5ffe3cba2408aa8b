//! Gower's distance (1971), for numbers and levels together.
//!
//! d(i, j) = mean over the features that both patients have: |x_i - x_j| / range for a number, at most 1, and 0 or 1 for
//! a level. The ranges are those of the cohort of the fit; a feature without a range counts nothing. Two patients who have
//! no feature in common cannot be compared.

use ndarray::Array2;

use crate::cohort::{Column, MISSING_LEVEL, Values};
use crate::compare::{CompareError, Placed};
use crate::learn::regression::terms::TermsError;

/// A comparison by ranges and levels.
#[derive(Debug, Clone)]
pub struct Gower {
    features: Vec<String>,
    scales: Vec<Scale>,
}

#[derive(Debug, Clone)]
enum Scale {
    /// The range of a number, above 0.
    Range(f64),
    /// A number without a range.
    Constant,
    Levels(Vec<String>),
}

impl Gower {
    /// By the ranges and levels of a cohort's columns.
    #[must_use]
    pub fn of_columns(columns: &[Column]) -> Self {
        let scale = |column: &Column| match &column.values {
            Values::Categorical { levels, .. } => Scale::Levels(levels.clone()),
            Values::Numeric(values) => {
                let present = values.iter().copied().filter(|value| !value.is_nan());
                let ends = present
                    .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                        (low.min(value), high.max(value))
                    });
                match ends.1 - ends.0 {
                    range if range > 0.0 => Scale::Range(range),
                    _ => Scale::Constant,
                }
            }
        };
        Self {
            features: columns.iter().map(|column| column.name.clone()).collect(),
            scales: columns.iter().map(scale).collect(),
        }
    }

    pub(super) fn features(&self) -> &[String] {
        &self.features
    }

    pub(super) fn place(&self, columns: &[Column]) -> Result<Placed, CompareError> {
        let patients = columns.first().map_or(0, |column| column.values.patients());
        let shape = (patients, self.scales.len());
        let mut numbers = Array2::from_elem(shape, f64::NAN);
        let mut codes = Array2::from_elem(shape, MISSING_LEVEL);
        if columns.len() != self.scales.len() {
            return Err(TermsError::Columns {
                found: columns.len(),
                wanted: self.scales.len(),
            }
            .into());
        }
        for (place, (column, scale)) in columns.iter().zip(&self.scales).enumerate() {
            let mismatch = || TermsError::Column {
                found: column.name.clone(),
                wanted: self.features[place].clone(),
            };
            if column.name != self.features[place] {
                return Err(mismatch().into());
            }
            match (&column.values, scale) {
                (Values::Numeric(values), Scale::Range(range)) => {
                    numbers.column_mut(place).assign(&(values / *range));
                }
                (Values::Numeric(_), Scale::Constant) => {}
                (Values::Categorical { codes: own, levels }, Scale::Levels(known)) => {
                    let code = |level: &String| known.iter().position(|one| one == level);
                    let known_codes: Vec<Option<usize>> = levels.iter().map(code).collect();
                    for (target, &code) in codes.column_mut(place).iter_mut().zip(own) {
                        if code == MISSING_LEVEL {
                            continue;
                        }
                        let found = known_codes.get(code as usize).copied().flatten();
                        let found = found.ok_or_else(|| TermsError::UnknownLevel {
                            column: column.name.clone(),
                            known: known.clone(),
                        })?;
                        *target = found as u32;
                    }
                }
                (Values::Numeric(_), Scale::Levels(_))
                | (Values::Categorical { .. }, Scale::Range(_) | Scale::Constant) => {
                    return Err(mismatch().into());
                }
            }
        }
        Ok(Placed::Mixed { numbers, codes })
    }

    pub(super) fn sum(&self, one: &Placed, i: usize, other: &Placed, j: usize) -> f64 {
        let (mut sum, mut count) = (0.0, 0.0_f64);
        for difference in self.differences(one, i, other, j).flatten() {
            sum += difference;
            count += 1.0;
        }
        // 0 / 0: nothing in common.
        sum / count
    }

    pub(super) fn parts(
        &self,
        one: &Placed,
        i: usize,
        other: &Placed,
        j: usize,
        parts: &mut [f64],
    ) {
        let common = self.differences(one, i, other, j).flatten().count() as f64;
        for (part, difference) in parts.iter_mut().zip(self.differences(one, i, other, j)) {
            *part = difference.unwrap_or(0.0) / common;
        }
    }

    /// The difference in each feature; none where one of the two has no value.
    fn differences<'a>(
        &'a self,
        one: &'a Placed,
        i: usize,
        other: &'a Placed,
        j: usize,
    ) -> impl Iterator<Item = Option<f64>> + 'a {
        self.scales.iter().enumerate().map(move |(place, scale)| {
            let (
                Placed::Mixed { numbers, codes },
                Placed::Mixed {
                    numbers: other_numbers,
                    codes: other_codes,
                },
            ) = (one, other)
            else {
                return None;
            };
            match scale {
                Scale::Range(_) => {
                    let difference = numbers[(i, place)] - other_numbers[(j, place)];
                    (!difference.is_nan()).then(|| difference.abs().min(1.0))
                }
                Scale::Constant => None,
                Scale::Levels(_) => {
                    let (a, b) = (codes[(i, place)], other_codes[(j, place)]);
                    let known = a != MISSING_LEVEL && b != MISSING_LEVEL;
                    known.then(|| f64::from(u8::from(a != b)))
                }
            }
        })
    }
}
