//! The area under a receiver operating characteristic, as it is published of the exact sums over all sites.

use crate::assessment::{EvaluationCounts, PAIRS_RULE, VOTES_MAX};
use crate::limits::CARD_PATIENTS_MIN;
use crate::scores::{area_under_curve, roc};

/// An area, rounded so coarsely that one patient is at most half a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Area {
    /// A multiple of the step.
    pub value: f64,
    /// It is off by at most this: half a step, and what bins of a share leave open.
    pub within: f64,
}

impl Area {
    /// Of a table whose counts are exact, as it is; none of pairs, or of a rule without a score.
    #[must_use]
    pub fn exact(counts: &EvaluationCounts) -> Option<Self> {
        let scores = counts.scores.as_deref()?;
        let value = area_under_curve(scores).filter(|_| counts.rule != PAIRS_RULE)?;
        let within = open(counts, scores);
        Some(Self { value, within })
    }

    /// Of such a table, as it is published; none of few patients of a class.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
    pub fn published(counts: &EvaluationCounts) -> Option<Self> {
        let exact = Self::exact(counts)?;
        let classes = counts.scores.iter().flatten();
        let fewest: u64 = classes.map(|row| row.iter().sum()).min()?;
        if fewest < CARD_PATIENTS_MIN {
            return None;
        }
        // Patients of each class are known, and one of them takes part in a share of at most 1 / fewest of all pairs.
        let step = (200.0 / fewest as f64).ceil() / 100.0;
        Some(Self {
            value: (exact.value / step).round() * step,
            within: step / 2.0 + exact.within,
        })
    }

    /// The interval of 95 %, from this and the patients of both classes alone. It held the area of everybody in at least 95.2 % of draws
    /// in each of 192 made-up cases (`tests/reference/area`).
    #[must_use]
    pub fn interval(&self, [others, own]: [u64; 2]) -> [f64; 2] {
        let half = 1.96 * self.standard_error([others, own]) + self.within;
        [(self.value - half).max(0.0), (self.value + half).min(1.0)]
    }

    /// The standard error by Hanley and McNeil (1982): at the area nearest to 1/2 that rounding allows, because one of 1 has none; and the
    /// larger one of the two that either class gives, because their formula takes scores of both to be alike.
    #[must_use]
    pub fn standard_error(&self, [others, own]: [u64; 2]) -> f64 {
        let beyond = self.value - 0.5;
        let area = 0.5 + beyond.signum() * (beyond.abs() - self.within).max(0.0);
        hanley_mcneil(area, [others, own]).max(hanley_mcneil(area, [own, others]))
    }
}

#[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
fn hanley_mcneil(area: f64, [others, own]: [u64; 2]) -> f64 {
    let (others, own) = (others as f64, own as f64);
    let square = area * area;
    let two_own = area / (2.0 - area) - square;
    let two_others = 2.0 * square / (1.0 + area) - square;
    let sum = area * (1.0 - area) + (own - 1.0) * two_own + (others - 1.0) * two_others;
    (sum.max(0.0) / (others * own)).sqrt()
}

/// What the order of patients within a bin may move: nothing where a bin is a number of votes, in which they are equal.
#[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
fn open(counts: &EvaluationCounts, scores: &[Vec<u64>]) -> f64 {
    let [others, own] = scores else { return 0.0 };
    if (1..=VOTES_MAX).contains(&counts.neighbours) || roc(scores).is_none() {
        return 0.0;
    }
    let tied: f64 = others
        .iter()
        .zip(own)
        .map(|(one, other)| (one * other) as f64)
        .sum();
    let pairs = others.iter().sum::<u64>() as f64 * own.iter().sum::<u64>() as f64;
    tied / pairs / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(neighbours: u32, scores: [Vec<u64>; 2]) -> EvaluationCounts {
        EvaluationCounts {
            rule: "distance".to_owned(),
            neighbours,
            confusion: None,
            scores: Some(scores.to_vec()),
            rounded_to: 1,
            area: None,
        }
    }

    #[test]
    fn one_patient_moves_an_area_by_at_most_a_step_and_few_have_none() {
        assert_eq!(
            Area::published(&counts(1, [vec![9, 10], vec![30, 30]])),
            None
        );
        for (others, own, step) in [(25, 400, 0.08), (200, 500, 0.01)] {
            let before = [vec![others - 5, 5], vec![own / 2, own / 2]];
            let after = [vec![others - 6, 6], vec![own / 2, own / 2]];
            let [before, after] =
                [before, after].map(|scores| Area::published(&counts(1, scores)).unwrap());
            assert!((before.value - after.value).abs() <= step + 1e-12);
            assert!(
                (before.within - step / 2.0).abs() < 1e-12,
                "{}",
                before.within
            );
        }
    }

    /// Those of NumPy (`tests/reference/area/coverage.txt`). An area that rounding makes 1 has an interval that is no point.
    #[test]
    fn intervals_are_those_of_the_measured_coverage() {
        for (value, within, classes, wanted) in [
            (
                0.93,
                0.005,
                [313, 247],
                [0.900_928_606_439, 0.959_071_393_561],
            ),
            (1.0, 0.05, [20, 300], [0.883_007_159_587, 1.0]),
            (
                0.3,
                0.02,
                [50, 1_000],
                [0.196_479_830_842, 0.403_520_169_158],
            ),
        ] {
            let found = Area { value, within }.interval(classes);
            for (found, wanted) in found.iter().zip(wanted) {
                assert!((found - wanted).abs() < 1e-11, "{found}, {wanted}");
            }
        }
    }

    /// Of scores 1, 2 and 2, 3 a quarter of the pairs are equal: 0.875, counted as halves.
    #[test]
    fn bins_of_a_share_say_how_far_off_their_area_may_be() {
        let area = Area::published(&counts(0, [vec![100, 100, 0], vec![0, 100, 100]])).unwrap();
        assert!(
            (area.value - 0.875).abs() < 0.006 && area.within >= 0.125,
            "{area:?}"
        );
    }
}
