//! From typed columns to the standardised matrix X, by pooled moments.
//!
//! Missing values are imputed first (mean or median of a numeric column, most frequent level of a
//! categorical one), and the imputed matrix is then scaled by the pooled mean and the pooled
//! population standard deviation, so that the stacked matrices of all sites have mean 0 and variance 1
//! in every row of W. A robust row takes the pooled median and interquartile range of the values
//! present instead, which a few extreme values do not move.
//!
//! Where sites are centred by themselves, each subtracts its own means, and scales are standard deviations within the
//! sites.

mod candidate;
mod centred;
mod curved;
mod squares;

use candidate::{Candidate, candidates};
use ndarray::{Array1, Array2};

use crate::cohort::moments::ColumnMoments;
use crate::cohort::quantile::Quartiles;
use crate::cohort::spline::curve;
use crate::cohort::{Cohort, Column, MISSING_LEVEL, Values};

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
    /// Degrees of freedom of a numeric column's natural cubic spline; 0 and 1 are a line.
    pub spline: u32,
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
    /// This column, from 1, of the numeric value's natural cubic spline.
    Curve(u32),
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
    /// Of a curve.
    knots: Vec<f64>,
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
    /// Every feature with a spline must have its knots.
    #[error("column {column} has no spline of {degrees} degrees of freedom")]
    Curve {
        /// The column's name.
        column: String,
        /// Degrees of freedom.
        degrees: u32,
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
            knots: Vec::new(),
        })
    }

    /// The row's name: the column's, with `'` for each curved part, `column=level`, or `column=missing`.
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

    /// Names of the constant rows that were omitted.
    #[must_use]
    pub fn dropped(&self) -> &[String] {
        &self.dropped
    }

    /// Missing values over patients, from 0 to 1, one number a column of the cohort.
    #[must_use]
    pub fn shares_missing(&self) -> &[f64] {
        &self.shares_missing
    }

    /// The standardised matrix X, n x d: one row per patient, one column a [`MatrixRow`].
    ///
    /// # Errors
    /// [`StandardiseError::NoSuchColumn`] and [`StandardiseError::KindMismatch`].
    pub fn apply(&self, cohort: &Cohort) -> Result<Array2<f64>, StandardiseError> {
        self.apply_to(cohort.columns())
    }

    /// The same of columns without an outcome.
    ///
    /// # Errors
    /// [`StandardiseError::NoSuchColumn`] and [`StandardiseError::KindMismatch`].
    pub fn apply_to(&self, columns: &[Column]) -> Result<Array2<f64>, StandardiseError> {
        let patients = columns.first().map_or(0, |column| column.values.patients());
        let mut matrix = Array2::zeros((patients, self.rows.len()));
        for (row, mut target) in self.rows.iter().zip(matrix.columns_mut()) {
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
        (Transform::Curve(part), Values::Numeric(values)) => {
            Some(values.mapv(|value| curve(value, &row.knots, part as usize)))
        }
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
mod tests;
