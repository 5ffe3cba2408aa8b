//! The threshold at which the loss of a site is least.

use ndarray::{Array2, ArrayView2};

use super::{Layout, PairLoss, Sums};
use crate::learn::unpsl::labels::PairCounts;
use crate::learn::unpsl::pair_loss::blocks::ClassRange;
use crate::learn::unpsl::shared::SharedPatients;

/// Patients whose pairs give the first estimate.
const SAMPLE_PATIENTS: usize = 384;
/// Steps of Newton's method at most; bisection alone would need fewer.
const STEPS_MAX: usize = 80;
/// A step this small compared with 1 + |b| ends the search: the next would be about its square, and so beyond the last digits.
const STEP_MIN: f64 = 1e-6;

impl PairLoss {
    /// [`Self::best_threshold_of`] at W (d x m).
    #[must_use]
    pub(in crate::learn::unpsl) fn best_threshold(
        &self,
        metric: &ArrayView2<f64>,
        pairs: PairCounts,
    ) -> Option<f64> {
        self.best_threshold_of(&self.project(metric), metric, pairs)
    }

    /// argmin over b of the loss at W (d x m) and E = XW: Newton's method with a bracket, for the loss is convex in b. None
    /// where the pairs are of one kind only: the loss then falls to 0 as b goes beyond all bounds.
    ///
    /// It starts from a sample: the pairs of patients at even steps of the classes, or groups at even steps. So a large site needs few
    /// passes over all pairs, and equal W give equal bits.
    #[must_use]
    pub(in crate::learn::unpsl) fn best_threshold_of(
        &self,
        projected: &Array2<f64>,
        metric: &ArrayView2<f64>,
        pairs: PairCounts,
    ) -> Option<f64> {
        if pairs.similar == 0 || pairs.dissimilar == 0 {
            return None;
        }
        let weight = |count: u64, weight: f64| count as f64 * weight;
        let ratio = weight(pairs.dissimilar, self.weights.dissimilar)
            / weight(pairs.similar, self.weights.similar);
        let mut threshold = self.sign() * libm::log(ratio);
        if let Some(sample) = self.sample() {
            threshold = sample.newton(&sample.project(metric), threshold);
        }
        Some(self.newton(projected, threshold))
    }

    /// The search from `start` on.
    fn newton(&self, projected: &Array2<f64>, start: f64) -> f64 {
        let (mut at, mut low, mut high) = (start, f64::NEG_INFINITY, f64::INFINITY);
        let mut reach = 4.0;
        for _ in 0..STEPS_MAX {
            let passed = self.pass(projected, at, None, Sums::Curvature);
            let (slope, curvature) = (self.sign() * passed.derivative, passed.curvature);
            if slope > 0.0 {
                high = at;
            } else {
                low = at;
            }
            let newton = at - (slope / curvature.max(1e-300)).clamp(-reach, reach);
            let next = if newton > low && newton < high {
                newton
            } else if low.is_finite() && high.is_finite() {
                0.5 * (low + high)
            } else {
                // the largest step was not large enough, or the slope is 0
                newton
            };
            let step = (next - at).abs();
            if step >= reach {
                reach *= 2.0;
            }
            at = next;
            if step <= STEP_MIN * (1.0 + at.abs()) {
                break;
            }
        }
        at
    }

    /// Some of the patients, who stand for all; none where that would not be fewer, or would leave one kind of pairs.
    fn sample(&self) -> Option<Self> {
        let (patients, layout) = match &self.layout {
            Layout::Classes(ranges) => self.sample_of_classes(ranges)?,
            Layout::Grouped(groups) => {
                let (places, sample) = groups.sample()?;
                (self.patients.some(&places), Layout::Grouped(sample))
            }
            Layout::Matrix(_) | Layout::Listed(_) => return None,
        };
        Some(Self {
            patients,
            layout,
            judged: None,
            weights: self.weights,
            form: self.form,
        })
    }

    /// Every so many-th patient of every class.
    fn sample_of_classes(&self, ranges: &[ClassRange]) -> Option<(SharedPatients, Layout)> {
        let every = self.patients.nrows().div_ceil(SAMPLE_PATIENTS);
        if every < 2 {
            return None;
        }
        let rows: Vec<usize> = (0..self.patients.nrows()).step_by(every).collect();
        let own = |row: &usize| ranges[*row].begin;
        let mut kept = Vec::with_capacity(rows.len());
        for class in rows.chunk_by(|a, b| own(a) == own(b)) {
            let (begin, end) = (kept.len(), kept.len() + class.len());
            kept.extend(std::iter::repeat_n(ClassRange { begin, end }, class.len()));
        }
        let several = kept.first().is_some_and(|first| first.end < kept.len());
        several.then(|| (self.patients.in_order(&rows), Layout::Classes(kept)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::unpsl::labels::Labels;
    use crate::learn::unpsl::pair_loss::{Form, PairWeightValues, Pairs};
    use crate::numeric::seed::Seed;
    use std::ops::Range;

    /// Patients in the order of their classes, but for the first of them: these rows are of the second class.
    fn found_from_a_sample(second: Range<usize>) -> bool {
        const PATIENTS: usize = 72_000;
        let x = Array2::from_shape_fn((PATIENTS, 3), |(row, column)| {
            libm::sin((1 + row * 37 + column * 101) as f64)
                + if second.contains(&row) { 0.4 } else { 0.0 }
        });
        let codes = (0..PATIENTS).map(|row| u32::from(second.contains(&row)));
        let labels = Labels::Classes(codes.collect());
        let weights = PairWeightValues {
            similar: 1.0,
            dissimilar: 1.0,
        };
        let (drawn, form) = (Pairs::PerPatient(16), Form::InnerProduct);
        let loss = PairLoss::new(&x.view(), &labels, drawn, weights, form, Seed(4));
        let metric = Array2::from_shape_fn((3, 2), |(row, column)| 0.3 + (row * column) as f64);
        let projected = loss.project(&metric.view());
        let counts = loss.grouped().unwrap().count();
        let found = loss.best_threshold_of(&projected, &metric.view(), counts);
        let wanted = loss.newton(&projected, 0.0);
        assert!((found.unwrap() - wanted).abs() < 1e-10 * (1.0 + wanted.abs()));
        loss.sample().is_some()
    }

    #[test]
    fn a_sample_of_the_groups_leads_to_the_threshold_of_all() {
        assert!(found_from_a_sample(400..20_000));
    }

    #[test]
    fn a_sample_of_pairs_of_one_kind_leads_nowhere() {
        assert!(!found_from_a_sample(400..400 + 1));
    }
}
