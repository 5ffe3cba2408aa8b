//! lambda_1 relative to the data, where a job states none: what keeps most of the features of one cohort leaves none of another,
//! in which few patients are ill.

use super::knowledge::{Knowledge, Point};
use crate::learn::unpsl::settings::Form;
use crate::learn::unpsl::site::SiteDerivatives;

/// lambda_1 as a share of [`strongest`], and how far it may be lowered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RelativeSparsity {
    /// The share.
    pub share: f64,
    /// Where W = 0 is the best, lambda_1 becomes [`LOWERED`] times as large, at most so many times.
    pub lowerings: u32,
}

/// By how much lambda_1 becomes smaller where nothing stays.
pub const LOWERED: f64 = 0.25;

impl RelativeSparsity {
    /// Where a job states no lambda_1: this share of the largest, then smaller ones until something stays.
    pub const USUAL: Self = Self {
        share: 0.06,
        lowerings: 4,
    };

    /// This share, whatever stays.
    #[must_use]
    pub fn of_share(share: f64) -> Self {
        Self {
            share,
            lowerings: 0,
        }
    }
}

/// How strongly the strongest feature alone tells similar from dissimilar pairs, from what all sites answer at W = 0: about the
/// lambda_1 from which on W = 0 is the best.
///
/// With one row w, F falls by g w^2 - c w^4 / 2, where g = -Gamma_kk, and c = T_kk^2, or 12 T_kk^2 of distances. The largest lambda_1 at
/// which this is worth lambda_1 w is the maximum over w of g w - c w^3 / 2. Where no feature says anything by itself, the
/// largest entry of Gamma stands for g. It is 0 where Gamma is.
#[must_use]
pub fn strongest(answer: &SiteDerivatives, form: Form) -> f64 {
    let gradient = answer.gradient.iter().copied();
    let diagonals = answer.gradient.diag().into_iter().copied();
    let curvatures = answer.curvature.diag().into_iter().copied();
    strength(gradient, diagonals.zip(curvatures), form)
}

impl Knowledge {
    /// [`strongest`] of the point W = 0; none where that has not been answered.
    pub(super) fn strongest(&self, form: Form) -> Option<f64> {
        let zero = self.points().iter().find(|point| point.is_empty())?;
        let (
            rows,
            Point {
                gradient,
                curvature,
                ..
            },
        ) = (zero.count(), zero);
        let diagonal = |place: usize| (gradient[place * (rows + 1)], curvature[place * (rows + 1)]);
        let entries = gradient[..rows * rows].iter().copied();
        Some(strength(entries, (0..rows).map(diagonal), form))
    }
}

fn strength(
    entries: impl Iterator<Item = f64>,
    diagonals: impl Iterator<Item = (f64, f64)>,
    form: Form,
) -> f64 {
    let curved = |curvature: f64| {
        let square = curvature * curvature;
        match form {
            Form::InnerProduct => square,
            Form::Distance => 12.0 * square,
        }
    };
    let alone = |fall: f64, curved: f64| match fall > 0.0 && curved > 0.0 {
        true => 2.0 / 3.0 * fall * (2.0 * fall / (3.0 * curved)).sqrt(),
        false => 0.0,
    };
    let (mut strongest, mut steepest) = (0.0_f64, 0.0_f64);
    for (derivative, curvature) in diagonals {
        strongest = strongest.max(alone(-derivative, curved(curvature)));
        steepest = steepest.max(curved(curvature));
    }
    match strongest > 0.0 {
        true => strongest,
        false => {
            let largest = entries.fold(0.0, |most: f64, entry| most.max(entry.abs()));
            alone(largest, steepest)
        }
    }
}
