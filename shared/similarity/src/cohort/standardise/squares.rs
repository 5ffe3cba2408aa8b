//! What standardised rows come to over all patients, from the moments that they were made of.

use super::{MatrixRow, Standardisation, Transform};
use crate::cohort::moments::ColumnMoments;

impl Standardisation {
    /// Of each row the sum of its squares over the patients of these moments, but for rounding; without a bound of a spline's curved part.
    #[must_use]
    pub fn squares(&self, moments: &[ColumnMoments]) -> Vec<f64> {
        let of_row = |row: &MatrixRow| {
            let own = moments.get(row.column);
            own.and_then(|own| squares(row, own))
                .unwrap_or(f64::INFINITY)
        };
        self.rows.iter().map(of_row).collect()
    }
}

#[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
fn squares(row: &MatrixRow, moments: &ColumnMoments) -> Option<f64> {
    let square = |value: f64| ((value - row.mean) / row.scale).powi(2);
    let missing = moments.missing() as f64;
    Some(match (row.transform, moments) {
        (
            Transform::Identity,
            ColumnMoments::Numeric {
                count,
                sum,
                sum_squares,
                ..
            },
        ) => {
            let about = sum_squares - row.mean * (2.0 * sum - *count as f64 * row.mean);
            // What is lost where the mean is far above the spread.
            let lost = 16.0 * f64::EPSILON * sum_squares;
            (about.max(0.0) + lost) / (row.scale * row.scale) + missing * square(row.imputed)
        }
        (Transform::Level(level), ColumnMoments::Categorical { counts, .. }) => {
            let own = *counts.get(level as usize)? as f64;
            let others = counts.iter().sum::<u64>() as f64 - own;
            own * square(1.0) + others * square(0.0) + missing * square(row.imputed)
        }
        (Transform::Missing, _) => {
            let present = moments.patients() as f64 - missing;
            missing * square(1.0) + present * square(0.0)
        }
        (Transform::Identity | Transform::Level(_) | Transform::Curve(_), _) => return None,
    })
}
