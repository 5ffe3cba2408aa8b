//! Standardisation about each site's own means: what differs between the sites then tells nothing of the patients.

use super::{Feature, MatrixRow, Scale, Standardisation, StandardiseError, Transform};
use crate::cohort::Cohort;
use crate::cohort::moments::{BetweenMoments, ColumnMoments};
use ndarray::Axis;

/// A row is constant within the sites where this little of its variance lies there: rounding alone.
const CONSTANT_SHARE: f64 = 1e-9;

impl Standardisation {
    /// Of each row the share of its pooled variance that lies within the sites, 0 to 1, from the moments of all and what
    /// the sites' means add (both in the features' order). A robust row counts as 1: its scale is no variance.
    ///
    /// # Errors
    /// [`StandardiseError::KindMismatch`] where moments are not those of the features.
    pub fn shares_within(
        &self,
        features: &[Feature],
        pooled: &[ColumnMoments],
        between: &[BetweenMoments],
    ) -> Result<Vec<f64>, StandardiseError> {
        let share = |row: &MatrixRow| {
            let mismatch = || StandardiseError::KindMismatch {
                column: row.name.clone(),
            };
            let feature = features.get(row.column).ok_or_else(mismatch)?;
            if feature.treatment.scale == Scale::Robust && row.transform == Transform::Identity {
                return Ok(1.0);
            }
            let own = pooled.get(row.column).zip(between.get(row.column));
            let own = own.and_then(|(pooled, between)| imputed(row, pooled, between));
            let Imputed { sum, squares } = own.ok_or_else(mismatch)?;
            let patients = pooled[row.column].patients().max(1) as f64;
            let between = squares - sum * sum / patients;
            let variance = row.scale * row.scale;
            let share = 1.0 - between / patients / variance;
            Ok(if share > CONSTANT_SHARE {
                share.min(1.0)
            } else {
                0.0
            })
        };
        self.rows.iter().map(share).collect()
    }

    /// The same scaled by the standard deviation within the sites: `shares` is what [`Self::shares_within`] gave. Rows
    /// with a share of 0 are dropped.
    ///
    /// # Errors
    /// [`StandardiseError`] where there are not as many shares as rows, one is no share, or nothing is left.
    pub fn scaled_within(mut self, shares: &[f64]) -> Result<Self, StandardiseError> {
        let (found, wanted) = (shares.len(), self.rows.len());
        if found != wanted {
            return Err(StandardiseError::ColumnsMismatch { found, wanted });
        }
        let mut rows = Vec::with_capacity(wanted);
        for (row, share) in self.rows.into_iter().zip(shares) {
            if !(0.0..=1.0).contains(share) {
                let (row, field) = (row.name, "share within the sites");
                return Err(StandardiseError::Unusable { row, field });
            }
            if *share > 0.0 {
                let scale = row.scale * share.sqrt();
                rows.push(MatrixRow { scale, ..row });
            } else {
                self.dropped.push(row.name);
            }
        }
        Self::from_rows(rows, self.dropped, self.shares_missing)
    }

    /// The same about the means of one site's patients, missing values imputed as everywhere.
    ///
    /// # Errors
    /// [`StandardiseError::NoSuchColumn`] and [`StandardiseError::KindMismatch`].
    pub fn centred(&self, cohort: &Cohort) -> Result<Self, StandardiseError> {
        let matrix = self.apply(cohort)?;
        let Some(means) = matrix.mean_axis(Axis(0)) else {
            return Ok(self.clone());
        };
        let row = |(row, own): (&MatrixRow, &f64)| {
            let mean = row.mean + own * row.scale;
            let row = row.clone();
            MatrixRow { mean, ..row }
        };
        let rows = self.rows.iter().zip(&means).map(row).collect();
        Self::from_rows(rows, self.dropped.clone(), self.shares_missing.clone())
    }
}

/// A row with missing values imputed: its sum over all patients, and the sum over the sites of n mean^2.
struct Imputed {
    sum: f64,
    squares: f64,
}

fn imputed(row: &MatrixRow, pooled: &ColumnMoments, between: &BetweenMoments) -> Option<Imputed> {
    let missing = pooled.missing() as f64;
    let filled = |sum: f64, place: usize| {
        let [square, product] = *between.sums.get(place)?;
        let fill = row.imputed;
        Some(Imputed {
            sum: sum + missing * fill,
            squares: square + fill * (2.0 * product + fill * between.missing),
        })
    };
    match (row.transform, pooled) {
        (Transform::Identity, ColumnMoments::Numeric { sum, .. }) => filled(*sum, 0),
        (Transform::Missing, _) => Some(Imputed {
            sum: missing,
            squares: between.missing,
        }),
        (Transform::Level(level), ColumnMoments::Categorical { counts, .. }) => {
            let own = *counts.get(level as usize)?;
            filled(own as f64, level as usize)
        }
        _ => None,
    }
}
