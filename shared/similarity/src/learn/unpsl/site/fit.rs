//! How well a metric suits a site's own patients, whatever it was learned from.
//!
//! A learned metric suits the patients of every site, or nearly. Others are somebody's choice: who chooses them, and knows all but one
//! value of every patient, reads that value from exact sums, or finely rounded ones, at 60 of them.

use ndarray::{Array2, s};

use super::SiteObjective;
use crate::learn::unpsl::settings::Threshold;
use crate::numeric::precision::{Fit, Precision};

/// By how much the loss of a mean pair is usually above that at W = 0 at most, each at the site's own best threshold; the second of few
/// patients, divided by the square of their number. Of honest fits to four hospitals, one of 123 patients is at 0.02. Half of all chosen
/// metrics are above 0.8. Tiny sites differ more: with 3 in place of 5 a fit of sites of 20 patients takes
/// 25 rounds and not 11.
const USUAL: f64 = 0.0025;
const USUAL_OF_FEW: f64 = 5.0;

impl SiteObjective {
    /// How well a matrix of the travelling shape suits the patients; of exact sums any does.
    #[must_use]
    pub fn fit_at(&self, matrix: &Array2<f64>) -> Fit {
        match self.settings.precision {
            Precision::Exact => Fit::SUITS,
            Precision::Rounded => {
                let threshold = self.threshold(matrix);
                self.fit(matrix, threshold, self.loss_at(matrix, threshold))
            }
        }
    }

    /// The same of one with this loss at this threshold of the site's. The threshold at which its loss is least is looked for only where the loss
    /// does not say so already.
    #[allow(clippy::cast_precision_loss)] // patients are far below 2^52
    pub(super) fn fit(&self, matrix: &Array2<f64>, threshold: Option<f64>, loss: f64) -> Fit {
        // Of pairs of one kind, at their own threshold, no derivative is above 0.
        let Some(threshold) = threshold else {
            return Fit::SUITS;
        };
        let own = &self.at_zero[0];
        let patients = self.summary.patients as f64;
        let usual = own.weight() * USUAL.max(USUAL_OF_FEW / (patients * patients));
        let by_loss = |loss: f64| Fit::of(loss - own.least(threshold), usual);
        let fit = by_loss(loss);
        if self.settings.precision == Precision::Exact || fit == Fit::SUITS {
            return Fit::SUITS;
        }
        match self.settings.threshold {
            Threshold::Site => fit,
            Threshold::Fixed(_) | Threshold::Common(_) => {
                let metric = matrix.slice(s![..self.features, ..]);
                let best = self.loss.best_threshold(&metric, self.summary.pairs);
                best.map_or(fit, |best| by_loss(self.loss_at(matrix, Some(best))))
            }
        }
    }
}
