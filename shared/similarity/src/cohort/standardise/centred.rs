//! Standardisation about each site's own means: what differs between the sites then tells nothing of the patients.

use super::{Feature, MatrixRow, Scale, Scaling, Standardisation, StandardiseError, Transform};
use crate::cohort::Cohort;
use crate::cohort::moments::ColumnMoments;
use ndarray::Axis;

/// A row is constant within the sites where this little of its variance lies there: rounding alone.
const CONSTANT_SHARE: f64 = 1e-9;

impl Standardisation {
    /// Of each row the share of its pooled variance that lies within the sites, 0 to 1, from the moments of each
    /// (one list a site, in the features' order). A robust row counts as 1: its scale is no variance.
    ///
    /// # Errors
    /// [`StandardiseError::KindMismatch`] where moments are not those of the features.
    pub fn shares_within(
        &self,
        features: &[Feature],
        sites: &[Vec<ColumnMoments>],
    ) -> Result<Vec<f64>, StandardiseError> {
        let share = |row: &MatrixRow| {
            let mismatch = || StandardiseError::KindMismatch {
                column: row.name.clone(),
            };
            let feature = features.get(row.column).ok_or_else(mismatch)?;
            if feature.treatment.scale == Scale::Robust && row.transform == Transform::Identity {
                return Ok(1.0);
            }
            let mut means = Vec::with_capacity(sites.len());
            for site in sites {
                let moments = site.get(row.column).ok_or_else(mismatch)?;
                means.push(imputed_mean(row, moments).ok_or_else(mismatch)?);
            }
            let patients: f64 = means.iter().map(|(patients, _)| patients).sum();
            let sum: f64 = means.iter().map(|(patients, mean)| patients * mean).sum();
            let pooled = sum / patients.max(1.0);
            let between: f64 = means
                .iter()
                .map(|(patients, mean)| patients * (mean - pooled) * (mean - pooled))
                .sum();
            let variance = row.scale * row.scale;
            let share = 1.0 - between / patients.max(1.0) / variance;
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
            let Scaling {
                mean,
                scale,
                imputed,
            } = row.scaling();
            let mean = mean + own * scale;
            let scaling = Scaling {
                mean,
                scale,
                imputed,
            };
            MatrixRow::new(row.name.clone(), row.column, row.transform, scaling)
        };
        let rows: Result<Vec<_>, _> = self.rows.iter().zip(&means).map(row).collect();
        Self::from_rows(rows?, self.dropped.clone(), self.shares_missing.clone())
    }
}

/// Patients of a site and the mean of a row over them, those without a value imputed.
fn imputed_mean(row: &MatrixRow, moments: &ColumnMoments) -> Option<(f64, f64)> {
    let mean = |patients: f64, sum: f64| (patients, sum / patients.max(1.0));
    match (row.transform, moments) {
        (
            Transform::Identity,
            ColumnMoments::Numeric {
                count,
                sum,
                missing,
                ..
            },
        ) => {
            let (count, missing) = (*count as f64, *missing as f64);
            Some(mean(count + missing, sum + missing * row.imputed))
        }
        (Transform::Missing, moments) => {
            let share = moments.share_missing();
            let patients = moments.patients() as f64;
            Some((patients, share))
        }
        (Transform::Level(level), ColumnMoments::Categorical { counts, missing }) => {
            let own = *counts.get(level as usize)? as f64;
            let patients = (counts.iter().sum::<u64>() + missing) as f64;
            Some(mean(patients, own + *missing as f64 * row.imputed))
        }
        _ => None,
    }
}
