//! Figures as they are published of the exact sums over all sites.

use crate::assessment::{EvaluationCounts, Gains, PAIRS_RULE, VOTES_MAX, in_few_bins};
use crate::limits::CARD_PATIENTS_MIN;
use crate::scores::{area_under_curve, balanced_accuracy, roc};
use similarity::judge::paired::{PairedSums, on_grid};

/// A figure, rounded so coarsely that one patient is at most half a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rounded {
    /// A multiple of the step, or exact.
    pub value: f64,
    /// It is off by at most this: half a step, and what bins of a share leave open.
    pub within: f64,
}

/// What a table and its sums come to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Figures {
    /// The area under a receiver operating characteristic; none of pairs, or of a rule without a score.
    pub area: Option<Rounded>,
    /// The mean over classes of the share that is right; none where a class is empty.
    pub balanced: Option<Rounded>,
    /// Brier's score; none of a rule without shares.
    pub brier: Option<Rounded>,
}

impl Figures {
    /// Of exact counts, as they are.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
    pub fn exact(counts: &EvaluationCounts) -> Self {
        let exact = |value| Rounded { value, within: 0.0 };
        let scores = counts.scores.as_deref();
        let scores = scores.filter(|_| counts.rule != PAIRS_RULE);
        let area = scores.and_then(|scores| {
            let value = area_under_curve(scores)?;
            let within = open(counts, scores);
            Some(Rounded { value, within })
        });
        let patients: u64 = classes(counts).iter().sum();
        let loss = counts.loss.filter(|_| patients > 0);
        Self {
            area,
            balanced: counts
                .confusion
                .as_deref()
                .and_then(balanced_accuracy)
                .map(exact),
            brier: loss.map(|loss| exact(loss / patients as f64)),
        }
    }

    /// Of such counts, as they are published; none of few patients of a class.
    #[must_use]
    pub fn published(counts: &EvaluationCounts) -> Self {
        let Some(step) = Step::of(counts) else {
            return Self::default();
        };
        let exact = Self::exact(counts);
        let to = |figure: Option<Rounded>, step: f64| figure.map(|one| one.to(step));
        Self {
            area: to(exact.area, step.of_areas()),
            balanced: to(exact.balanced, step.of_shares()),
            brier: to(exact.brier, step.of_means()),
        }
    }
}

/// Steps of a figure, 1 over.
const HUNDREDTHS: f64 = 100.0;
/// The same of a difference, or of a mean of small numbers.
const THOUSANDTHS: f64 = 1_000.0;

/// Steps of a gain in areas, up to powers of ten.
const GAIN_STEPS: [f64; 6] = [1.0, 1.5, 2.0, 3.0, 5.0, 7.0];

/// How far apart published figures are.
#[derive(Debug, Clone, Copy)]
struct Step {
    patients: f64,
    fewest: f64,
    most: f64,
    classes: f64,
}

impl Step {
    /// None where a class has few patients.
    #[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
    fn of(counts: &EvaluationCounts) -> Option<Self> {
        let classes = classes(counts);
        let fewest = *classes.iter().min()?;
        let most = *classes.iter().max()?;
        (fewest >= CARD_PATIENTS_MIN).then_some(Self {
            patients: classes.iter().sum::<u64>() as f64,
            fewest: fewest as f64,
            most: most as f64,
            classes: classes.len() as f64,
        })
    }

    /// Patients of each class are known, and one of them takes part in a share of at most 1 / fewest of all pairs.
    fn of_areas(self) -> f64 {
        (2.0 * HUNDREDTHS / self.fewest).ceil() / HUNDREDTHS
    }

    /// One patient is in as many `pairs` within a hospital as that hospital has patients of the other class: no more than there are of a
    /// class, and fewer than its patients. Few steps are possible, because a step by itself tells of the pairs.
    #[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
    fn of_pairs(self, pairs: f64, largest: u64) -> f64 {
        let others = self.most.min(largest.saturating_sub(1) as f64);
        let least = 2.0 * THOUSANDTHS * others / pairs;
        let decade = libm::exp10(libm::log10(least.max(1.0)).floor());
        let steps = GAIN_STEPS.map(|step| step * decade);
        let step = steps.into_iter().find(|step| *step >= least);
        step.unwrap_or(10.0 * decade) / THOUSANDTHS
    }

    /// One patient is 1 / fewest of the share of its class, of which the mean over classes is taken.
    fn of_shares(self) -> f64 {
        (2.0 * HUNDREDTHS / self.fewest / self.classes).ceil() / HUNDREDTHS
    }

    /// One patient adds at most 1 to a sum over all.
    fn of_means(self) -> f64 {
        (2.0 * THOUSANDTHS / self.patients).ceil() / THOUSANDTHS
    }
}

/// Patients of each class.
fn classes(counts: &EvaluationCounts) -> Vec<u64> {
    let rows = counts.confusion.iter().flatten();
    rows.map(|row| row.iter().sum()).collect()
}

impl EvaluationCounts {
    /// Keeps what is published of the exact sums, and of the sums themselves nothing finer. What differs of numbers and survival times has
    /// no table and stays as it is. No hospital has more than `largest` patients.
    pub fn round_figures(&mut self, largest: u64) {
        // Of pairs one patient is many.
        if self.confusion.is_none() || self.rule == PAIRS_RULE {
            return;
        }
        self.figures = Some(Figures::published(self));
        self.scores = self.scores.as_deref().map(in_few_bins);
        self.loss = None;
        let step = Step::of(self);
        let rounded = |sums: Option<[f64; 5]>, of: &dyn Fn(Step, f64) -> f64| {
            let sums = PairedSums::from(sums?);
            let rounded = sums.rounded(of(step?, sums.total))?;
            Some(rounded.into())
        };
        self.gains = Gains {
            areas: rounded(
                self.gains.areas.map(|sums| bounded(sums, largest)),
                &|step, pairs| step.of_pairs(pairs, largest),
            ),
            errors: rounded(self.gains.errors, &|step, _| step.of_means()),
        };
    }
}

/// The sums of a gain in areas with the squares of each patient's pairs, which no site sends. Those of n and m patients of a site's classes
/// add up to n m (n + m), so to no more than all pairs times the patients of the `largest` site.
#[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
fn bounded(sums: [f64; 5], largest: u64) -> [f64; 5] {
    let sums = PairedSums::from(sums);
    let parts = sums.total * largest as f64;
    PairedSums { parts, ..sums }.into()
}

impl Rounded {
    fn to(self, step: f64) -> Self {
        Self {
            value: on_grid(self.value, step),
            within: step / 2.0 + self.within,
        }
    }

    /// The interval of 95 % of an area, from this and the patients of both classes alone. It held the area of everybody in at least 95.2 % of draws
    /// in each of 192 made-up cases (`tests/reference/area`).
    #[must_use]
    pub fn interval(&self, [others, own]: [u64; 2]) -> [f64; 2] {
        let half = 1.96 * self.standard_error([others, own]) + self.within;
        [(self.value - half).max(0.0), (self.value + half).min(1.0)]
    }

    /// The standard error of an area by Hanley and McNeil (1982): at the area nearest to 1/2 that rounding allows, because one of 1 has none; and the
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
        let all = scores.iter().map(|row| row.iter().sum::<u64>());
        let confusion: Vec<Vec<u64>> = all
            .zip([[1, 0], [0, 1]])
            .map(|(all, own)| own.map(|own| own * all).to_vec())
            .collect();
        EvaluationCounts::new(
            "distance",
            neighbours,
            Some(confusion),
            Some(scores.to_vec()),
        )
    }

    fn area(counts: &EvaluationCounts) -> Option<Rounded> {
        Figures::published(counts).area
    }

    #[test]
    fn one_patient_moves_an_area_by_at_most_a_step_and_few_have_none() {
        let few = counts(1, [vec![9, 10], vec![30, 30]]);
        assert_eq!(Figures::published(&few), Figures::default());
        for (others, own, step) in [(25, 400, 0.08), (200, 500, 0.01)] {
            let before = [vec![others - 5, 5], vec![own / 2, own / 2]];
            let after = [vec![others - 6, 6], vec![own / 2, own / 2]];
            let [before, after] = [before, after].map(|scores| area(&counts(1, scores)).unwrap());
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
            let found = Rounded { value, within }.interval(classes);
            for (found, wanted) in found.iter().zip(wanted) {
                assert!((found - wanted).abs() < 1e-11, "{found}, {wanted}");
            }
        }
    }

    /// Of scores 1, 2 and 2, 3 a quarter of the pairs are equal: 0.875, counted as halves.
    #[test]
    fn bins_of_a_share_say_how_far_off_their_area_may_be() {
        let area = area(&counts(0, [vec![100, 100, 0], vec![0, 100, 100]])).unwrap();
        assert!(
            (area.value - 0.875).abs() < 0.006 && area.within >= 0.125,
            "{area:?}"
        );
    }

    /// Of 30 and 200 patients: a step of 2 / 30 / 2 is 0.04 rounded up, and one of 2 / 230 is 0.009.
    #[test]
    fn balanced_accuracy_and_brier_score_are_of_exact_sums_and_stay_within_their_bound() {
        for (right, loss) in [([21, 150], 41.7), ([22, 150], 41.2), ([9, 199], 3.0)] {
            let [first, second] = right;
            let mut counts = EvaluationCounts {
                loss: Some(loss),
                gains: Gains {
                    areas: Some([6_000.0, 300.0, 40_000.0, 100_000.0, 1e6]),
                    errors: Some([230.0, 4.0, 3.0, 4.0, 230.0]),
                },
                confusion: Some(vec![vec![first, 30 - first], vec![200 - second, second]]),
                ..counts(1, [vec![15, 15], vec![100, 100]])
            };
            let exact = Figures::exact(&counts);
            let before = counts.gains;
            counts.round_figures(120);
            assert_eq!(counts.loss, None);
            let found = counts.figures.unwrap();
            for (exact, found, step) in [
                (exact.balanced, found.balanced, 0.04),
                (exact.brier, found.brier, 0.009),
            ] {
                let (exact, found) = (exact.unwrap(), found.unwrap());
                assert!((found.within - step / 2.0).abs() < 1e-12);
                assert!((exact.value - found.value).abs() <= found.within + 1e-12);
                assert!(((found.value / step).round() * step - found.value).abs() < 1e-12);
            }
            for (before, after, step) in [
                // 119 others at most, in 6,000 pairs.
                (
                    bounded(before.areas.unwrap(), 120),
                    counts.gains.areas,
                    0.05,
                ),
                (before.errors.unwrap(), counts.gains.errors, 0.009),
            ] {
                let wanted = PairedSums::from(before).rounded(step).unwrap();
                assert_eq!(after, Some(wanted.into()));
            }
        }
    }

    #[test]
    fn what_numbers_differ_by_stays_as_it_is() {
        let gains = Gains {
            areas: None,
            errors: Some([90.0, -1.5, 4.0, -1.5, 90.0]),
        };
        let mut counts = EvaluationCounts {
            gains,
            ..EvaluationCounts::new("gower", 5, None, None)
        };
        counts.round_figures(90);
        assert_eq!((counts.gains, counts.figures), (gains, None));
    }
}
