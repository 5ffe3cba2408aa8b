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

use std::ops::Range;

use candidate::{Candidate, candidates};
use ndarray::parallel::prelude::*;
use ndarray::{Array2, Axis};

use crate::cohort::moments::ColumnMoments;
use crate::cohort::quantile::Quartiles;
use crate::cohort::spline::curve;
use crate::cohort::{Cohort, Column, MISSING_LEVEL, Values};

/// Patients of a block: its rows stay in the second-level cache.
const BLOCK_PATIENTS: usize = 1024;

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

    /// The same of columns without an outcome. Blocks of patients in parallel, for their rows lie together.
    ///
    /// # Errors
    /// [`StandardiseError::NoSuchColumn`] and [`StandardiseError::KindMismatch`].
    pub fn apply_to(&self, columns: &[Column]) -> Result<Array2<f64>, StandardiseError> {
        let patients = columns.first().map_or(0, |column| column.values.patients());
        let sources = self.sources(columns)?;
        let mut matrix = Array2::zeros((patients, sources.len()));
        let blocks = matrix.axis_chunks_iter_mut(Axis(0), BLOCK_PATIENTS);
        let blocks = blocks.into_par_iter().enumerate();
        blocks.for_each(|(block, mut rows)| {
            for (source, target) in sources.iter().zip(rows.columns_mut()) {
                let own = source.standardised(block * BLOCK_PATIENTS..patients);
                target
                    .into_iter()
                    .zip(own)
                    .for_each(|(to, from)| *to = from);
            }
        });
        Ok(matrix)
    }

    /// The sum of each column of X, which is never held.
    fn sums(&self, cohort: &Cohort) -> Result<Vec<f64>, StandardiseError> {
        let patients = cohort.patients();
        let sources = self.sources(cohort.columns())?.into_par_iter();
        Ok(sources
            .map(|source| source.standardised(0..patients).sum())
            .collect())
    }

    /// What each column of X is made of.
    fn sources<'c>(&'c self, columns: &'c [Column]) -> Result<Vec<Source<'c>>, StandardiseError> {
        let source = |row: &'c MatrixRow| {
            let column = columns
                .get(row.column)
                .ok_or_else(|| StandardiseError::NoSuchColumn {
                    row: row.name.clone(),
                    column: row.column,
                    columns: columns.len(),
                })?;
            let fits = match (row.transform, &column.values) {
                (Transform::Identity | Transform::Curve(_), Values::Numeric(_))
                | (Transform::Missing, _) => true,
                (Transform::Level(level), Values::Categorical { levels, .. }) => {
                    (level as usize) < levels.len()
                }
                (Transform::Identity | Transform::Curve(_), Values::Categorical { .. })
                | (Transform::Level(_), Values::Numeric(_)) => false,
            };
            let values = &column.values;
            fits.then_some(Source { row, values })
                .ok_or_else(|| StandardiseError::KindMismatch {
                    column: column.name.clone(),
                })
        };
        self.rows.iter().map(source).collect()
    }
}

/// A column of X before it is made.
struct Source<'c> {
    row: &'c MatrixRow,
    /// Of the kind that the row reads.
    values: &'c Values,
}

impl Source<'_> {
    /// Of these patients, in their order.
    fn standardised(&self, patients: Range<usize>) -> impl Iterator<Item = f64> {
        let row = self.row;
        patients.map(move |patient| {
            let value = transformed(row, self.values, patient);
            let present = if value.is_nan() { row.imputed } else { value };
            (present - row.mean) / row.scale
        })
    }
}

/// The transformed value of a patient, NaN where it is missing.
#[inline]
fn transformed(row: &MatrixRow, values: &Values, patient: usize) -> f64 {
    let truth = |is_so: bool| f64::from(u8::from(is_so));
    match values {
        Values::Numeric(values) => match row.transform {
            Transform::Identity | Transform::Level(_) => values[patient],
            Transform::Curve(part) => curve(values[patient], &row.knots, part as usize),
            Transform::Missing => truth(values[patient].is_nan()),
        },
        Values::Categorical { codes, .. } => match (row.transform, codes[patient]) {
            (Transform::Missing, code) => truth(code == MISSING_LEVEL),
            (_, MISSING_LEVEL) => f64::NAN,
            (Transform::Level(level), code) => truth(code == level),
            (Transform::Identity | Transform::Curve(_), code) => f64::from(code),
        },
    }
}

#[cfg(test)]
mod tests;
