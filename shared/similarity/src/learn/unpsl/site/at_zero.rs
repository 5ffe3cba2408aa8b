//! The loss at W = 0, where all pairs are alike: a number of pairs and no patient is in it.
//!
//! Exact ones would say how many pairs of each kind all sites have, and so how many patients of each class each has. So a site
//! says by how much its loss at W differs from its own at 0, and adds to that its part of what the totals make of W = 0. The sum
//! moves by a constant, and no optimum moves.

use crate::learn::unpsl::labels::PairCounts;
use crate::learn::unpsl::pair_loss::PairWeightValues;
use crate::learn::unpsl::settings::{Form, Loss, Settings, SiteWeights, Threshold};
use crate::learn::unpsl::totals::Totals;

/// The loss of pairs at W = 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct AtZero {
    /// The weight of all similar pairs, and of all dissimilar ones.
    weights: [f64; 2],
    /// What the loss is multiplied by.
    scale: f64,
    threshold: Threshold,
    /// 1, or -1 where a distance has the threshold's place.
    sign: f64,
}

/// A loss, and its derivative with respect to a threshold that all sites learn.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flat {
    pub(super) loss: f64,
    pub(super) slope: f64,
}

impl AtZero {
    /// Of so many pairs.
    #[allow(clippy::cast_precision_loss)] // counts of pairs
    pub(super) fn of(
        settings: &Settings,
        pairs: PairCounts,
        weights: PairWeightValues,
        scale: f64,
    ) -> Self {
        Self {
            weights: [
                pairs.similar as f64 * weights.similar,
                pairs.dissimilar as f64 * weights.dissimilar,
            ],
            scale,
            threshold: settings.threshold,
            sign: match settings.form {
                Form::InnerProduct => 1.0,
                Form::Distance => -1.0,
            },
        }
    }

    /// A site's part of what the `totals` make of it, the same for each.
    #[allow(clippy::cast_precision_loss)] // a count of sites
    pub(super) fn part_of(settings: &Settings, totals: &Totals, weights: PairWeightValues) -> Self {
        let all = Self::of(settings, totals.pairs, weights, 1.0);
        // Where sites do not weigh what their pairs do, as much as it can be: no loss of all is then below 0.
        let weights = match (settings.loss, settings.site_weights, settings.threshold) {
            (Loss::Sum, ..) | (Loss::Mean, SiteWeights::Pairs, _) => all.weights,
            (Loss::Mean, _, Threshold::Site | Threshold::Common(_)) => [1.0, 1.0],
            (Loss::Mean, _, Threshold::Fixed(b)) if all.sign * b > 0.0 => [1.0, 0.0],
            (Loss::Mean, _, Threshold::Fixed(_)) => [0.0, 1.0],
        };
        let scale = match settings.loss {
            Loss::Mean => 1.0 / (weights[0] + weights[1]),
            Loss::Sum => 1.0,
        };
        Self {
            weights,
            scale: scale / totals.sites.max(1) as f64,
            ..all
        }
    }

    /// The least loss of these pairs at any threshold; where all are of one kind, that at the threshold `b`.
    pub(super) fn least(&self, b: f64) -> f64 {
        self.loss(self.best().unwrap_or(self.sign * b))
    }

    /// The threshold of the least loss of an inner product. None where all pairs are of one kind: it is beyond all bounds.
    fn best(&self) -> Option<f64> {
        let [similar, dissimilar] = self.weights;
        (similar > 0.0 && dissimilar > 0.0).then(|| libm::log(dissimilar / similar))
    }

    /// The loss at this threshold of an inner product.
    fn loss(&self, own: f64) -> f64 {
        let [similar, dissimilar] = self.weights;
        self.scale * (similar * softplus(own) + dissimilar * softplus(-own))
    }

    /// What all these pairs weigh in the loss.
    pub(super) fn weight(&self) -> f64 {
        self.scale * (self.weights[0] + self.weights[1])
    }

    /// The loss where all sites learn the threshold `b`, or where it is fixed or the best of these pairs.
    pub(super) fn at(&self, b: Option<f64>) -> Flat {
        let [similar, dissimilar] = self.weights;
        let own = match self.threshold {
            Threshold::Fixed(_) | Threshold::Common(_) => b.map(|b| self.sign * b),
            Threshold::Site => self.best(),
        };
        // Of a best threshold beyond all bounds the loss is 0.
        let Some(own) = own else {
            return Flat::default();
        };
        let slope = match self.threshold {
            Threshold::Common(_) => {
                self.sign * (similar * logistic(own) - dissimilar * logistic(-own))
            }
            Threshold::Fixed(_) | Threshold::Site => 0.0,
        };
        Flat {
            loss: self.loss(own),
            slope: self.scale * slope,
        }
    }
}

/// Whether the sites' losses at W = 0 add up to that of the totals, but for how the sites differ. Where they do not, a threshold that all
/// learn would move.
pub(super) fn adds_up(settings: &Settings) -> bool {
    match (settings.threshold, settings.loss, settings.site_weights) {
        (Threshold::Common(_), Loss::Mean, SiteWeights::Patients | SiteWeights::Equal) => false,
        (Threshold::Common(_), Loss::Mean, SiteWeights::Pairs)
        | (Threshold::Common(_), Loss::Sum, _)
        | (Threshold::Fixed(_) | Threshold::Site, ..) => true,
    }
}

fn softplus(x: f64) -> f64 {
    x.max(0.0) + libm::log1p(libm::exp(-x.abs()))
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}
