//! From typed columns to the standardised matrix X, by pooled moments.
//!
//! Missing values are imputed first (mean or median of a numeric column, most frequent level of a
//! categorical one), and the imputed matrix is then scaled by the pooled mean and the pooled
//! population standard deviation, so that the stacked matrices of all sites have mean 0 and variance 1
//! in every row of W. A robust row takes the pooled median and interquartile range of the values
//! present instead, which a few extreme values do not move.

mod candidate;

use candidate::{Candidate, candidates};
use ndarray::{Array1, Array2};

use crate::cohort::{Cohort, MISSING_LEVEL, Values};
use crate::moments::ColumnMoments;
use crate::quantile::Quartiles;

/// What a job says of one column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// The column's name.
    pub name: String,
    /// The column's kind.
    pub kind: FeatureKind,
    /// What the job wants done with its values.
    pub treatment: Treatment,
}

/// What is done with the values of a column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Treatment {
    /// What stands for a missing value.
    pub impute: Impute,
    /// What a numeric column is scaled by.
    pub scale: Scale,
}

/// What stands for a missing value. A missing level is always the most frequent one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Impute {
    /// The pooled mean.
    #[default]
    Mean,
    /// The pooled median.
    Median,
    /// The pooled mean, and one more row that is 1 where the value is missing, else 0.
    Indicator,
}

/// What a numeric column is scaled by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scale {
    /// Pooled mean and standard deviation.
    #[default]
    Moments,
    /// Pooled median, and the interquartile range as a standard deviation ([`Quartiles::scale`]).
    /// Where the lower quartile equals the upper one, the pooled standard deviation.
    Robust,
}

impl Feature {
    /// True where the standardisation needs the column's pooled quartiles.
    #[must_use]
    pub fn needs_quartiles(&self) -> bool {
        self.kind == FeatureKind::Numeric
            && (self.treatment.impute == Impute::Median || self.treatment.scale == Scale::Robust)
    }
}

/// Kind of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeatureKind {
    /// Numbers.
    Numeric,
    /// One of the agreed levels.
    Categorical {
        /// The agreed levels, in the agreed order.
        levels: Vec<String>,
    },
}

/// How a column's raw value becomes the number that is scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transform {
    /// The numeric value itself.
    Identity,
    /// 1 where the patient has this level, else 0.
    Level(u32),
    /// 1 where the value is missing, else 0.
    Missing,
}

/// One row of the similarity metric W, which is one column of the standardised matrix X.
///
/// x = (t(value) - mean) / scale, where t is the transform and a missing t(value) is `imputed`.
#[derive(Debug, Clone, PartialEq)]
pub struct MatrixRow {
    name: String,
    column: usize,
    transform: Transform,
    mean: f64,
    scale: f64,
    imputed: f64,
}

/// How every site turns its cohort into the standardised matrix: equal at all sites of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Standardisation {
    rows: Vec<MatrixRow>,
    dropped: Vec<String>,
    shares_missing: Vec<f64>,
}

/// A standardisation that cannot be, or that does not fit a cohort.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StandardiseError {
    /// Features and moments must come in pairs.
    #[error("found moments of {found} columns, wanted {wanted}")]
    ColumnsMismatch {
        /// Columns with moments.
        found: usize,
        /// Columns described.
        wanted: usize,
    },
    /// Every feature that needs quartiles must have them.
    #[error("found quartiles of {found} columns, wanted {wanted}")]
    QuartilesMismatch {
        /// Columns with quartiles.
        found: usize,
        /// Columns that need them.
        wanted: usize,
    },
    /// The moments or the values are of another kind, or have other levels, than the feature.
    #[error("column {column} is not of the agreed kind or has other levels")]
    KindMismatch {
        /// The column's name.
        column: String,
    },
    /// A number of a row is NaN or infinite, or its scale is not positive.
    #[error(
        "row {row} has a {field} that is not usable; wanted finite numbers and a scale above 0"
    )]
    Unusable {
        /// The row's name.
        row: String,
        /// Which number.
        field: &'static str,
    },
    /// Every row is constant.
    #[error("all {dropped} rows are constant; wanted a feature that varies")]
    NothingVaries {
        /// Number of rows dropped.
        dropped: usize,
    },
    /// A row reads a column that the cohort does not have.
    #[error("row {row} reads column {column}, the cohort has {columns}")]
    NoSuchColumn {
        /// The row's name.
        row: String,
        /// Index of the column it reads, from 0.
        column: usize,
        /// Columns in the cohort.
        columns: usize,
    },
}

impl MatrixRow {
    /// A row from plain numbers, as they come over the wire: `column` is the index of the column it
    /// reads; mean, scale and imputed value are in the unit of the transformed value.
    ///
    /// # Errors
    /// [`StandardiseError::Unusable`].
    pub fn new(
        name: String,
        column: usize,
        transform: Transform,
        scaling: Scaling,
    ) -> Result<Self, StandardiseError> {
        let Scaling {
            mean,
            scale,
            imputed,
        } = scaling;
        let numbers = [
            ("mean", mean.is_finite()),
            ("scale", scale.is_finite() && scale > 0.0),
            ("imputed value", imputed.is_finite()),
        ];
        if let Some((field, _)) = numbers.iter().find(|(_, usable)| !usable) {
            return Err(StandardiseError::Unusable { row: name, field });
        }
        Ok(Self {
            name,
            column,
            transform,
            mean,
            scale,
            imputed,
        })
    }

    /// The row's name: the column's, `column=level`, or `column=missing`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Index of the column it reads, from 0, in the job's order.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }

    /// How the raw value becomes a number.
    #[must_use]
    pub fn transform(&self) -> Transform {
        self.transform
    }

    /// The numbers that scale it.
    #[must_use]
    pub fn scaling(&self) -> Scaling {
        Scaling {
            mean: self.mean,
            scale: self.scale,
            imputed: self.imputed,
        }
    }
}

/// The numbers of a [`MatrixRow`], in the unit of the transformed value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaling {
    /// Pooled mean after imputation; of a robust row the pooled median.
    pub mean: f64,
    /// Pooled population standard deviation after imputation; of a robust row the pooled
    /// interquartile range as a standard deviation. Positive.
    pub scale: f64,
    /// What stands for a missing value.
    pub imputed: f64,
}

impl Standardisation {
    /// Builds the rows from the merged moments of all columns, in the features' order, and the
    /// pooled quartiles of the features that need them ([`Feature::needs_quartiles`]), in the same
    /// order.
    ///
    /// Constant rows (also a column without any value, and a level that nobody or everybody has) are
    /// dropped and named in [`Self::dropped`].
    ///
    /// # Errors
    /// [`StandardiseError`] where features and moments do not belong together or nothing varies.
    pub fn from_moments(
        features: &[Feature],
        moments: &[ColumnMoments],
        quartiles: &[Quartiles],
    ) -> Result<Self, StandardiseError> {
        if features.len() != moments.len() {
            return Err(StandardiseError::ColumnsMismatch {
                found: moments.len(),
                wanted: features.len(),
            });
        }
        let wanted = features.iter().filter(|one| one.needs_quartiles()).count();
        if quartiles.len() != wanted {
            return Err(StandardiseError::QuartilesMismatch {
                found: quartiles.len(),
                wanted,
            });
        }
        let mut quartiles = quartiles.iter();
        let (mut rows, mut dropped) = (Vec::new(), Vec::new());
        for (column, (feature, moments)) in features.iter().zip(moments).enumerate() {
            let own = match feature.needs_quartiles() {
                true => quartiles.next(),
                false => None,
            };
            for candidate in candidates(feature, moments, own)? {
                let Candidate {
                    name,
                    transform,
                    scaling,
                    varies,
                } = candidate;
                if varies {
                    rows.push(MatrixRow::new(name, column, transform, scaling)?);
                } else {
                    dropped.push(name);
                }
            }
        }
        let shares_missing = moments.iter().map(ColumnMoments::share_missing).collect();
        Self::from_rows(rows, dropped, shares_missing)
    }

    /// Joins rows, the names of dropped rows, and the share of missing values per column.
    ///
    /// # Errors
    /// [`StandardiseError::NothingVaries`] without rows.
    pub fn from_rows(
        rows: Vec<MatrixRow>,
        dropped: Vec<String>,
        shares_missing: Vec<f64>,
    ) -> Result<Self, StandardiseError> {
        if rows.is_empty() {
            return Err(StandardiseError::NothingVaries {
                dropped: dropped.len(),
            });
        }
        Ok(Self {
            rows,
            dropped,
            shares_missing,
        })
    }

    /// The rows of W, which are the columns of X, in order.
    #[must_use]
    pub fn rows(&self) -> &[MatrixRow] {
        &self.rows
    }

    /// Names of the constant rows that were left out.
    #[must_use]
    pub fn dropped(&self) -> &[String] {
        &self.dropped
    }

    /// Missing values over patients, from 0 to 1, one number a column of the cohort.
    #[must_use]
    pub fn shares_missing(&self) -> &[f64] {
        &self.shares_missing
    }

    /// The standardised matrix X, n x d: one row a patient, one column a [`MatrixRow`].
    ///
    /// # Errors
    /// [`StandardiseError::NoSuchColumn`] and [`StandardiseError::KindMismatch`].
    pub fn apply(&self, cohort: &Cohort) -> Result<Array2<f64>, StandardiseError> {
        let mut matrix = Array2::zeros((cohort.patients(), self.rows.len()));
        for (row, mut target) in self.rows.iter().zip(matrix.columns_mut()) {
            let columns = cohort.columns();
            let column = columns
                .get(row.column)
                .ok_or_else(|| StandardiseError::NoSuchColumn {
                    row: row.name.clone(),
                    column: row.column,
                    columns: columns.len(),
                })?;
            let values =
                transformed(row, &column.values).ok_or_else(|| StandardiseError::KindMismatch {
                    column: column.name.clone(),
                })?;
            target.assign(&values.mapv(|value| {
                let present = if value.is_nan() { row.imputed } else { value };
                (present - row.mean) / row.scale
            }));
        }
        Ok(matrix)
    }
}

/// The transformed values of a column, NaN where missing; `None` where the kind does not fit.
fn transformed(row: &MatrixRow, values: &Values) -> Option<Array1<f64>> {
    match (row.transform, values) {
        (Transform::Identity, Values::Numeric(values)) => Some(values.clone()),
        (Transform::Missing, Values::Numeric(values)) => {
            Some(values.mapv(|value| f64::from(u8::from(value.is_nan()))))
        }
        (Transform::Missing, Values::Categorical { codes, .. }) => {
            Some(codes.mapv(|code| f64::from(u8::from(code == MISSING_LEVEL))))
        }
        (Transform::Level(level), Values::Categorical { codes, levels })
            if (level as usize) < levels.len() =>
        {
            Some(codes.mapv(|code| match code {
                MISSING_LEVEL => f64::NAN,
                code if code == level => 1.0,
                _ => 0.0,
            }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cohort::{Column, Outcome};
    use ndarray::{Axis, array, concatenate};

    fn features() -> Vec<Feature> {
        let levels = ["a", "b", "c"].map(String::from).to_vec();
        vec![
            Feature {
                name: "age".into(),
                kind: FeatureKind::Numeric,
                treatment: Treatment::default(),
            },
            Feature {
                name: "same".into(),
                kind: FeatureKind::Numeric,
                treatment: Treatment::default(),
            },
            Feature {
                name: "cp".into(),
                kind: FeatureKind::Categorical { levels },
                treatment: Treatment::default(),
            },
        ]
    }

    fn cohort(ages: Array1<f64>, codes: Array1<u32>) -> Cohort {
        let patients = ages.len();
        let levels = ["a", "b", "c"].map(String::from).to_vec();
        let column = |name: &str, values| Column {
            name: name.into(),
            values,
        };
        let columns = vec![
            column("age", Values::Numeric(ages)),
            column("same", Values::Numeric(Array1::from_elem(patients, 0.1))),
            column("cp", Values::Categorical { codes, levels }),
        ];
        Cohort::new(columns, Outcome::Numeric(Array1::zeros(patients))).unwrap()
    }

    fn two_sites() -> (Vec<Cohort>, Standardisation) {
        let north = cohort(
            array![1.0, 2.0, f64::NAN, 5.0],
            array![0, 1, 1, MISSING_LEVEL],
        );
        let south = cohort(array![-3.0, f64::NAN, 9.0], array![1, 0, 0]);
        let mut moments = ColumnMoments::of_cohort(&north).unwrap();
        for (mine, other) in moments
            .iter_mut()
            .zip(ColumnMoments::of_cohort(&south).unwrap())
        {
            mine.merge(&other).unwrap();
        }
        (
            vec![north, south],
            Standardisation::from_moments(&features(), &moments, &[]).unwrap(),
        )
    }

    #[test]
    fn stacked_sites_have_mean_zero_and_variance_one() {
        let (sites, standardisation) = two_sites();
        let parts: Vec<_> = sites
            .iter()
            .map(|site| standardisation.apply(site).unwrap())
            .collect();
        let stacked = concatenate(Axis(0), &[parts[0].view(), parts[1].view()]).unwrap();
        for column in stacked.columns() {
            assert!(column.mean().unwrap().abs() < 1e-15);
            assert!((column.std(0.0) - 1.0).abs() < 1e-14);
        }
    }

    #[test]
    fn missing_numbers_become_zero_and_missing_levels_the_mode() {
        let (sites, standardisation) = two_sites();
        let north = standardisation.apply(&sites[0]).unwrap();
        assert_eq!(north[[2, 0]], 0.0);
        // levels a and b are equally frequent: the first wins
        assert_eq!(
            north.row(3).slice(ndarray::s![1..]),
            north.row(0).slice(ndarray::s![1..])
        );
        assert_eq!(
            standardisation.shares_missing(),
            [2.0 / 7.0, 0.0, 1.0 / 7.0]
        );
    }

    #[test]
    fn constant_rows_are_dropped_and_named() {
        let (_, standardisation) = two_sites();
        let names: Vec<_> = standardisation.rows().iter().map(MatrixRow::name).collect();
        assert_eq!(names, ["age", "cp=a", "cp=b"]);
        assert_eq!(standardisation.dropped(), ["same", "cp=c"]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let (sites, standardisation) = two_sites();
        let scaling = Scaling {
            mean: 0.0,
            scale: 0.0,
            imputed: 0.0,
        };
        let refused = MatrixRow::new("age".into(), 0, Transform::Identity, scaling);
        assert!(matches!(
            refused,
            Err(StandardiseError::Unusable { field: "scale", .. })
        ));
        let scaling = Scaling {
            scale: 1.0,
            ..scaling
        };
        for (column, transform) in [
            (9, Transform::Identity),
            (2, Transform::Identity),
            (2, Transform::Level(3)),
        ] {
            let row = MatrixRow::new("age".into(), column, transform, scaling).unwrap();
            let strange = Standardisation::from_rows(vec![row], vec![], vec![]).unwrap();
            assert!(strange.apply(&sites[0]).is_err());
        }
        assert!(
            standardisation
                .apply(&Cohort::new(vec![], Outcome::Numeric(array![])).unwrap())
                .is_err()
        );
        let constant = [ColumnMoments::Numeric {
            count: 3,
            sum: 0.3,
            sum_squares: 0.03,
            missing: 0,
        }];
        let refused = Standardisation::from_moments(&features()[..1], &constant, &[]);
        assert_eq!(refused, Err(StandardiseError::NothingVaries { dropped: 1 }));
    }
}
