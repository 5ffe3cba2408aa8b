//! Standardisation about each site's own means: what differs between the sites then tells nothing of the patients.

use super::{Feature, MatrixRow, Scale, Standardisation, StandardiseError, Transform};
use crate::cohort::Cohort;
use crate::numeric::precision::{Precision, nearest};

/// A row is constant within the sites where this little of its variance lies there: rounding alone.
const CONSTANT_SHARE: f64 = 1e-9;

impl Standardisation {
    /// What the means of one site's patients add to the variance between the sites, of each row: n times the squared mean
    /// of the standardised patients. A robust row adds nothing: its scale is no variance.
    ///
    /// Rounded to about half a patient: exact ones are fractions of whole numbers, which whoever knows about how many patients
    /// each site has could solve for the patients that each has at a level.
    ///
    /// # Errors
    /// [`StandardiseError::NoSuchColumn`] and [`StandardiseError::KindMismatch`].
    #[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
    pub fn between(
        &self,
        features: &[Feature],
        cohort: &Cohort,
        precision: Precision,
    ) -> Result<Vec<f64>, StandardiseError> {
        let patients = (cohort.patients() as f64).max(1.0);
        let sums = self.sums(cohort)?;
        let rows = self.rows.iter().zip(&sums);
        Ok(rows
            .map(|(row, sum)| match (is_robust(features, row), precision) {
                (true, _) => 0.0,
                (false, Precision::Exact) => sum.powi(2) / patients,
                (false, Precision::Rounded) => nearest(sum.powi(2) / patients, step(row)),
            })
            .collect())
    }

    /// Of each row the share of its pooled variance that lies within the sites, 0 to 1, from what so many `sites` of so many
    /// `patients` together say is [`between`](Self::between) them.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
    pub fn shares_within(
        &self,
        between: &[f64],
        [patients, sites]: [u64; 2],
        precision: Precision,
    ) -> Vec<f64> {
        let patients = patients.max(1) as f64;
        let rows = self.rows.iter().zip(between);
        rows.map(|(row, between)| {
            let share = 1.0 - between / patients;
            let least = match precision {
                Precision::Exact => CONSTANT_SHARE,
                Precision::Rounded => sites as f64 * step(row) / 2.0 / patients,
            };
            match share > least {
                true => share.min(1.0),
                false => 0.0,
            }
        })
        .collect()
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
    #[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
    pub fn centred(&self, cohort: &Cohort) -> Result<Self, StandardiseError> {
        if cohort.patients() == 0 {
            return Ok(self.clone());
        }
        let patients = cohort.patients() as f64;
        let row = |(row, sum): (&MatrixRow, &f64)| {
            let mean = row.mean + sum / patients * row.scale;
            let row = row.clone();
            MatrixRow { mean, ..row }
        };
        let sums = self.sums(cohort)?;
        let rows = self.rows.iter().zip(&sums).map(row).collect();
        Self::from_rows(rows, self.dropped.clone(), self.shares_missing.clone())
    }
}

/// How finely what is between the sites is known of a row, in standardised patients: half a patient of a level, for a rare one
/// weighs much once it is standardised. Two of a number are as much, if it is yes or no and half of the patients have it.
fn step(row: &MatrixRow) -> f64 {
    match row.transform {
        Transform::Level(_) | Transform::Missing => 0.5 / (row.scale * row.scale),
        Transform::Identity | Transform::Curve(_) => 2.0,
    }
}

fn is_robust(features: &[Feature], row: &MatrixRow) -> bool {
    let treatment = features.get(row.column).map(|feature| &feature.treatment);
    let is_robust = treatment.is_some_and(|own| own.scale == Scale::Robust);
    is_robust && row.transform == Transform::Identity
}
