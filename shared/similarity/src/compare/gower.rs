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
    /// The place of each feature among those of its kind.
    places: Vec<usize>,
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
        let scales: Vec<Scale> = columns.iter().map(scale).collect();
        let place = |(place, scale): (usize, &Scale)| {
            let before = scales[..place].iter();
            before
                .filter(|other| std::mem::discriminant(*other) == std::mem::discriminant(scale))
                .count()
        };
        Self {
            features: columns.iter().map(|column| column.name.clone()).collect(),
            places: scales.iter().enumerate().map(place).collect(),
            scales,
        }
    }

    /// Of each feature its range, 0 where it has none, or its levels.
    pub fn scales(&self) -> impl Iterator<Item = Result<f64, &[String]>> {
        self.scales.iter().map(|scale| match scale {
            Scale::Range(range) => Ok(*range),
            Scale::Constant => Ok(0.0),
            Scale::Levels(levels) => Err(levels.as_slice()),
        })
    }

    /// Columns of numbers, and of codes.
    #[must_use]
    pub fn widths(&self) -> (usize, usize) {
        let count = |of: fn(&Scale) -> bool| self.scales.iter().filter(|scale| of(scale)).count();
        (
            count(|scale| matches!(scale, Scale::Range(_))),
            count(|scale| matches!(scale, Scale::Levels(_))),
        )
    }

    pub(super) fn features(&self) -> &[String] {
        &self.features
    }

    pub(super) fn place(&self, columns: &[Column]) -> Result<Placed, CompareError> {
        let patients = columns.first().map_or(0, |column| column.values.patients());
        let (of_numbers, of_codes) = self.widths();
        let mut numbers = Array2::from_elem((patients, of_numbers), f64::NAN);
        let mut codes = Array2::from_elem((patients, of_codes), MISSING_LEVEL);
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
                    let place = self.places[place];
                    numbers.column_mut(place).assign(&(values / *range));
                }
                (Values::Numeric(_), Scale::Constant) => {}
                (Values::Categorical { codes: own, levels }, Scale::Levels(known)) => {
                    let code = |level: &String| known.iter().position(|one| one == level);
                    let known_codes: Vec<Option<usize>> = levels.iter().map(code).collect();
                    let place = self.places[place];
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
        let (sum, count) = of_numbers(one.row(i), other.row(j));
        let (unequal, both) = of_codes(one.codes(i), other.codes(j));
        // 0 / 0: nothing in common.
        (sum + f64::from(unequal)) / (count + f64::from(both))
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
        let scales = self.scales.iter().zip(&self.places);
        scales.map(move |(scale, &place)| {
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

/// Numbers that are compared side by side.
const LANES: usize = 8;

/// The sum of the differences of numbers, each at most 1, and how many both have.
fn of_numbers(one: &[f64], other: &[f64]) -> (f64, f64) {
    let (mut sums, mut counts) = ([0.0; LANES], [0.0; LANES]);
    let mut add = |lane: usize, a: f64, b: f64| {
        let difference = (a - b).abs();
        // Of one that is missing the smaller of the two would be 1.
        let known = f64::from(u8::from(!difference.is_nan()));
        sums[lane] += difference.min(1.0) * known;
        counts[lane] += known;
    };
    let (chunks, rest) = one.as_chunks::<LANES>();
    let (other_chunks, other_rest) = other.as_chunks::<LANES>();
    for (a, b) in chunks.iter().zip(other_chunks) {
        for lane in 0..LANES {
            add(lane, a[lane], b[lane]);
        }
    }
    for (lane, (a, b)) in rest.iter().zip(other_rest).enumerate() {
        add(lane, *a, *b);
    }
    (sums.iter().sum(), counts.iter().sum())
}

/// How many levels differ, and how many both have.
fn of_codes(one: &[u32], other: &[u32]) -> (u32, u32) {
    let pairs = one.iter().zip(other);
    pairs.fold((0, 0), |(unequal, both), (a, b)| {
        let known = *a != MISSING_LEVEL && *b != MISSING_LEVEL;
        (
            unequal + u32::from(known && a != b),
            both + u32::from(known),
        )
    })
}
