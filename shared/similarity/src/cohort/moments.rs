//! Mergeable moments of a cohort's columns: all that standardisation needs to know.

use rayon::prelude::*;

use crate::cohort::{Cohort, Column, MISSING_LEVEL, Values};

/// Moments of one column at one site, or of several sites together. Counts are of patients.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnMoments {
    /// A numeric column, in its declared unit.
    Numeric {
        /// Observed values.
        count: u64,
        /// Sum of the observed values.
        sum: f64,
        /// Sum of their squares.
        sum_squares: f64,
        /// Missing values.
        missing: u64,
    },
    /// A categorical column.
    Categorical {
        /// Patients per level, in the agreed order.
        counts: Vec<u64>,
        /// Missing values.
        missing: u64,
    },
}

/// Moments that do not belong together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MomentsError {
    /// A numeric column met a categorical one.
    #[error("numeric and categorical moments cannot be merged")]
    KindMismatch,
    /// The columns have different numbers of levels.
    #[error("found {found} levels, wanted {wanted}")]
    LevelsMismatch {
        /// Levels of the other column.
        found: usize,
        /// Levels of this column.
        wanted: usize,
    },
    /// A value is infinite.
    #[error("column {column} holds an infinite value; wanted finite numbers or missing")]
    NotFinite {
        /// The column's name.
        column: String,
    },
    /// A code has no level.
    #[error("column {column} holds a code without a level; wanted codes below {levels}")]
    UnknownLevel {
        /// The column's name.
        column: String,
        /// Number of its levels.
        levels: usize,
    },
}

impl ColumnMoments {
    /// Moments of every column of a cohort, in its order.
    ///
    /// # Errors
    /// [`MomentsError::NotFinite`] and [`MomentsError::UnknownLevel`], naming the column.
    pub fn of_cohort(cohort: &Cohort) -> Result<Vec<Self>, MomentsError> {
        let columns = cohort.columns().par_iter();
        let made: Vec<_> = columns.map(Self::of_column).collect();
        made.into_iter().collect()
    }

    /// Moments of one column. Sums are compensated (Neumaier), so a constant column has a variance
    /// of a few rounding errors however many patients there are.
    ///
    /// # Errors
    /// [`MomentsError::NotFinite`] and [`MomentsError::UnknownLevel`].
    pub fn of_column(column: &Column) -> Result<Self, MomentsError> {
        match &column.values {
            Values::Numeric(values) => {
                if values.iter().any(|value| value.is_infinite()) {
                    return Err(MomentsError::NotFinite {
                        column: column.name.clone(),
                    });
                }
                let observed = || values.iter().copied().filter(|value| !value.is_nan());
                let count = observed().count() as u64;
                Ok(Self::Numeric {
                    count,
                    sum: compensated_sum(observed()),
                    sum_squares: compensated_sum(observed().map(|value| value * value)),
                    missing: values.len() as u64 - count,
                })
            }
            Values::Categorical { codes, levels } => {
                let mut counts = vec![0; levels.len()];
                let mut missing = 0;
                for &code in codes {
                    if code == MISSING_LEVEL {
                        missing += 1;
                    } else if let Some(count) = counts.get_mut(code as usize) {
                        *count += 1;
                    } else {
                        return Err(MomentsError::UnknownLevel {
                            column: column.name.clone(),
                            levels: levels.len(),
                        });
                    }
                }
                Ok(Self::Categorical { counts, missing })
            }
        }
    }

    /// Adds the moments of the same column at another site.
    ///
    /// # Errors
    /// [`MomentsError::KindMismatch`] and [`MomentsError::LevelsMismatch`]; nothing is added then.
    pub fn merge(&mut self, other: &Self) -> Result<(), MomentsError> {
        match (self, other) {
            (
                Self::Numeric {
                    count,
                    sum,
                    sum_squares,
                    missing,
                },
                Self::Numeric {
                    count: other_count,
                    sum: other_sum,
                    sum_squares: other_squares,
                    missing: other_missing,
                },
            ) => {
                *count += other_count;
                *sum += other_sum;
                *sum_squares += other_squares;
                *missing += other_missing;
                Ok(())
            }
            (
                Self::Categorical { counts, missing },
                Self::Categorical {
                    counts: other_counts,
                    missing: other_missing,
                },
            ) => {
                if counts.len() != other_counts.len() {
                    return Err(MomentsError::LevelsMismatch {
                        found: other_counts.len(),
                        wanted: counts.len(),
                    });
                }
                counts
                    .iter_mut()
                    .zip(other_counts)
                    .for_each(|(count, other)| *count += other);
                *missing += other_missing;
                Ok(())
            }
            _ => Err(MomentsError::KindMismatch),
        }
    }

    /// Patients, observed and missing together.
    #[must_use]
    pub fn patients(&self) -> u64 {
        match self {
            Self::Numeric { count, missing, .. } => count + missing,
            Self::Categorical { counts, missing } => counts.iter().sum::<u64>() + missing,
        }
    }

    /// Missing values.
    #[must_use]
    pub fn missing(&self) -> u64 {
        match self {
            Self::Numeric { missing, .. } | Self::Categorical { missing, .. } => *missing,
        }
    }

    /// Missing values as a share of the patients, from 0 to 1 (0 without patients).
    #[must_use]
    pub fn share_missing(&self) -> f64 {
        match self.patients() {
            0 => 0.0,
            patients => self.missing() as f64 / patients as f64,
        }
    }
}

/// Neumaier's sum: the error does not grow with the number of terms.
fn compensated_sum(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0);
    for value in values {
        let next = sum + value;
        lost += if sum.abs() >= value.abs() {
            (sum - next) + value
        } else {
            (value - next) + sum
        };
        sum = next;
    }
    sum + lost
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array1;
    use proptest::prelude::*;

    fn numeric(values: Vec<f64>) -> ColumnMoments {
        let values = Values::Numeric(Array1::from(values));
        ColumnMoments::of_column(&Column {
            name: "age".into(),
            values,
        })
        .unwrap()
    }

    fn categorical(codes: Vec<u32>) -> ColumnMoments {
        let levels = ["1", "2", "3"].map(String::from).to_vec();
        let values = Values::Categorical {
            codes: Array1::from(codes),
            levels,
        };
        ColumnMoments::of_column(&Column {
            name: "cp".into(),
            values,
        })
        .unwrap()
    }

    fn integers() -> impl Strategy<Value = Vec<f64>> {
        // whole numbers, so that sums are exact and laws can be asked for to the bit
        let value = prop_oneof![9 => (-1000..1000_i32).prop_map(f64::from), 1 => Just(f64::NAN)];
        proptest::collection::vec(value, 0..30)
    }

    proptest! {
        #[test]
        fn merging_sites_equals_moments_of_all_their_patients(a in integers(), b in integers()) {
            let mut merged = numeric(a.clone());
            merged.merge(&numeric(b.clone())).unwrap();
            prop_assert_eq!(merged, numeric([a, b].concat()));
        }

        #[test]
        fn merging_numbers_commutes_and_associates(a in integers(), b in integers(), c in integers()) {
            let (a, b, c) = (numeric(a), numeric(b), numeric(c));
            let join = |x: &ColumnMoments, y: &ColumnMoments| {
                let mut x = x.clone();
                x.merge(y).unwrap();
                x
            };
            prop_assert_eq!(join(&a, &b), join(&b, &a));
            prop_assert_eq!(join(&join(&a, &b), &c), join(&a, &join(&b, &c)));
        }

        #[test]
        fn merging_levels_equals_counts_of_all_their_patients(
            a in proptest::collection::vec(prop_oneof![0..3_u32, Just(MISSING_LEVEL)], 0..30),
            b in proptest::collection::vec(prop_oneof![0..3_u32, Just(MISSING_LEVEL)], 0..30),
        ) {
            let mut merged = categorical(a.clone());
            merged.merge(&categorical(b.clone())).unwrap();
            prop_assert_eq!(merged, categorical([a, b].concat()));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut age = numeric(vec![1.0]);
        assert_eq!(
            age.merge(&categorical(vec![0])),
            Err(MomentsError::KindMismatch)
        );
        let mut levels = categorical(vec![0]);
        let two = ColumnMoments::Categorical {
            counts: vec![1, 2],
            missing: 0,
        };
        assert_eq!(
            levels.merge(&two),
            Err(MomentsError::LevelsMismatch {
                found: 2,
                wanted: 3
            })
        );
        let infinite = Values::Numeric(Array1::from(vec![f64::INFINITY]));
        let refused = ColumnMoments::of_column(&Column {
            name: "age".into(),
            values: infinite,
        });
        assert_eq!(
            refused,
            Err(MomentsError::NotFinite {
                column: "age".into()
            })
        );
        let unknown = Values::Categorical {
            codes: Array1::from(vec![2]),
            levels: vec![],
        };
        let refused = ColumnMoments::of_column(&Column {
            name: "cp".into(),
            values: unknown,
        });
        assert_eq!(
            refused,
            Err(MomentsError::UnknownLevel {
                column: "cp".into(),
                levels: 0
            })
        );
    }
}
