//! The threshold at which the loss of a site is least.

use ndarray::{Array2, ArrayView2};

use super::listed::{ListedPairs, Slopes};
use super::{Compared, Layout, PairLoss, Sums};
use crate::learn::unpsl::labels::PairCounts;
use crate::learn::unpsl::pair_loss::blocks::ClassRange;

/// Patients whose pairs give the first estimate.
const SAMPLE_PATIENTS: usize = 384;
/// Steps of Newton's method at most; bisection alone would need fewer.
const STEPS_MAX: usize = 80;
/// A step this small beside 1 + |b| ends the search: the next would be about its square, and so beyond the last digits.
const STEP_MIN: f64 = 1e-7;

impl PairLoss {
    /// [`Self::best_threshold_of`] at W (d x m).
    #[must_use]
    pub(in crate::learn::unpsl) fn best_threshold(
        &self,
        metric: &ArrayView2<f64>,
        pairs: PairCounts,
    ) -> Option<f64> {
        self.best_threshold_of(&self.compared(metric), metric, pairs)
    }

    /// argmin over b of the loss of what was compared at W (d x m): Newton's method with a bracket, for the loss is convex in b. None
    /// where the pairs are of one kind only: the loss then falls to 0 as b goes beyond all bounds.
    ///
    /// It starts from a sample: the pairs of patients at even steps of the classes, or listed pairs at even steps. So a large
    /// site needs few passes over all pairs, and equal W give equal bits.
    #[must_use]
    pub(in crate::learn::unpsl) fn best_threshold_of(
        &self,
        compared: &Compared,
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
            threshold = sample.newton(&sample.compared(metric), threshold, 1);
        }
        if let Some(every) = self.listed().and_then(ListedPairs::sample) {
            threshold = self.newton(compared, threshold, every);
        }
        Some(self.newton(compared, threshold, 1))
    }

    /// The search from `start` on; of listed pairs over every so many-th chunk.
    fn newton(&self, compared: &Compared, start: f64, every: usize) -> f64 {
        let (mut at, mut low, mut high) = (start, f64::NEG_INFINITY, f64::INFINITY);
        let mut reach = 4.0;
        let listed = self.listed().zip(compared.listed.as_ref());
        for _ in 0..STEPS_MAX {
            let Slopes { first, second } = match &listed {
                Some((pairs, compared)) => pairs.slopes(compared, self.kinds(at), every),
                None => self.slopes(&compared.projected, at),
            };
            let (slope, curvature) = (-self.sign() * first, second);
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

    /// Sums over the pairs at E and b.
    fn slopes(&self, projected: &Array2<f64>, threshold: f64) -> Slopes {
        let passed = self.pass(projected, threshold, None, Sums::Curvature);
        Slopes {
            first: -passed.derivative,
            second: passed.curvature,
        }
    }

    /// Every so many-th patient of every class; none where that would not be fewer, or pairs are no classes.
    fn sample(&self) -> Option<Self> {
        let Layout::Classes(ranges) = &self.layout else {
            return None;
        };
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
        several.then(|| Self {
            patients: self.patients.in_order(&rows),
            layout: Layout::Classes(kept),
            judged: None,
            weights: self.weights,
            form: self.form,
        })
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
    fn found_from_a_sample(second: Range<usize>) -> Option<usize> {
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
        let pairs = loss.listed().unwrap();
        let metric = Array2::from_shape_fn((3, 2), |(row, column)| 0.3 + (row * column) as f64);
        let (compared, counts) = (loss.compared(&metric.view()), pairs.count());
        let found = loss.best_threshold_of(&compared, &metric.view(), counts);
        let wanted = loss.newton(&compared, 0.0, 1);
        assert!((found.unwrap() - wanted).abs() < 1e-10 * (1.0 + wanted.abs()));
        pairs.sample()
    }

    #[test]
    fn a_sample_of_the_pairs_leads_to_the_threshold_of_all() {
        assert!(found_from_a_sample(400..20_000).is_some_and(|every| every >= 4));
    }

    #[test]
    fn a_sample_of_pairs_of_one_kind_leads_nowhere() {
        assert_eq!(found_from_a_sample(400..401), None);
    }
}
