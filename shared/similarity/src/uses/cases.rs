//! Similar cases: the nearest patients of a query, how they fared, and how unusual the query is.
//!
//! Which patients are alike to a new one, and how did they fare? By Gower's distance, of a table with a missing value:
//!
//! ```
//! use ndarray::array;
//! use similarity::cohort::{Column, MISSING_LEVEL, Outcome, Values};
//! use similarity::compare::{Comparison, Gower};
//! use similarity::uses::cases::{Cases, Fared};
//!
//! let levels = vec!["female".to_owned(), "male".to_owned()];
//! let table = |ages, codes| {
//!     let sex = Values::Categorical { codes, levels: levels.clone() };
//!     let columns = [("age", Values::Numeric(ages)), ("sex", sex)];
//!     columns.map(|(name, values)| Column { name: name.to_owned(), values })
//! };
//! let known = table(array![40.0, 52.0, 55.0, 80.0], array![0, 1, MISSING_LEVEL, 1]);
//! let days = Outcome::Numeric(array![3.0, 8.0, 10.0, 21.0]);
//!
//! let gower = Comparison::Gower(Gower::of_columns(&known));
//! let (candidates, new) = (gower.place(&known)?, gower.place(&table(array![50.0], array![1]))?);
//! let alike = Cases::nearest(&gower.distances(&candidates, &new, 0), 2, |_| false);
//! let rows: Vec<usize> = alike.cases.iter().map(|case| case.patient).collect();
//! assert_eq!(rows, [1, 2]);
//! assert!(matches!(Fared::of(&days, &rows), Fared::Mean(mean) if mean.value == 9.0));
//! # Ok::<(), similarity::compare::CompareError>(())
//! ```

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::cohort::Outcome;
use crate::compare::{Comparison, Placed};
use crate::judge::survival::KaplanMeier;
use crate::uses::search::{Queries, Search};

/// Patients of the cohort with which a query is compared, at most; they are taken at equal steps.
pub const BESIDE_MAX: usize = 1_000;
/// The same of a large cohort, at least.
const BESIDE_MIN: usize = 100;
/// Pairs that are compared for it, between these ends.
const PAIRS: usize = 20_000_000;

/// A near patient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Case {
    /// Row of the candidate.
    pub patient: usize,
    /// Its distance, as the comparison tells it.
    pub distance: f64,
}

/// The nearest candidates of one query, nearest first, equal distances by rising row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cases {
    /// The cases.
    pub cases: Vec<Case>,
    /// Further candidates exactly as near as the last one, excluded by their row alone.
    pub tied: usize,
    /// Candidates who cannot be compared with the query.
    pub incomparable: usize,
}

impl Cases {
    /// The `k` nearest by the distances of all candidates; `left_out` says which not to take. There are fewer where fewer
    /// can be compared.
    #[must_use]
    pub fn nearest(distances: &[f64], k: usize, left_out: impl Fn(usize) -> bool) -> Self {
        let mut kept = Kept::new(k);
        for (patient, &distance) in distances.iter().enumerate() {
            if !left_out(patient) {
                kept.push(patient, distance);
            }
        }
        kept.cases()
    }

    /// The `k` nearest of those who were found among parts of the candidates.
    #[must_use]
    pub fn merged<'c>(parts: impl Iterator<Item = &'c Self> + Clone, k: usize) -> Self {
        let mut cases: Vec<Case> = parts.clone().flat_map(|part| part.cases.clone()).collect();
        cases.sort_by(|a, b| {
            let by_distance = a.distance.total_cmp(&b.distance);
            by_distance.then(a.patient.cmp(&b.patient))
        });
        let beyond = cases.split_off(k.min(cases.len()));
        let last = cases.last().map(|last| last.distance);
        // What a part excluded is as near as the last of all where its own last is.
        let is_as_near = |case: Option<&Case>| case.map(|case| case.distance) == last;
        let tied = beyond.iter().filter(|case| is_as_near(Some(case))).count();
        let left_out = parts.clone().filter(|part| is_as_near(part.cases.last()));
        Self {
            tied: tied + left_out.map(|part| part.tied).sum::<usize>(),
            incomparable: parts.map(|part| part.incomparable).sum(),
            cases,
        }
    }

    /// The mean distance of the cases; NaN of none.
    #[must_use]
    pub fn mean_distance(&self) -> f64 {
        let sum: f64 = self.cases.iter().map(|case| case.distance).sum();
        sum / self.cases.len() as f64
    }
}

/// The nearest of candidates who come one by one, by rising row.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    k: usize,
    cases: Vec<Case>,
    tied: usize,
    incomparable: usize,
}

/// Distances that are looked through at once.
const CHUNK: usize = 32;

impl Kept {
    pub(crate) fn new(k: usize) -> Self {
        Self {
            k,
            cases: Vec::new(),
            tied: 0,
            incomparable: 0,
        }
    }

    /// Takes the next candidate.
    pub(crate) fn push(&mut self, patient: usize, distance: f64) {
        if distance.is_nan() {
            self.incomparable += 1;
            return;
        }
        if self.k == 0 {
            return;
        }
        let last = self
            .cases
            .last()
            .map_or(f64::INFINITY, |last| last.distance);
        if self.cases.len() == self.k {
            if distance >= last {
                self.tied += usize::from(distance == last);
                return;
            }
            // Whoever falls out is tied with the last who stays, or no longer.
            self.cases.pop();
            let now = self.cases.last().map(|last| last.distance);
            self.tied = if now == Some(last) { self.tied + 1 } else { 0 };
        }
        // Candidates come by row, so that an equal distance goes behind.
        let place = self
            .cases
            .partition_point(|known| known.distance <= distance);
        self.cases.insert(place, Case { patient, distance });
    }

    /// Takes the candidates from row `begin` on but one, at `own`. Most chunks hold nobody.
    pub(crate) fn push_all(&mut self, begin: usize, distances: &[f64], own: Option<usize>) {
        for (chunk, distances) in distances.chunks(CHUNK).enumerate() {
            let last = self.cases.last().filter(|_| self.cases.len() == self.k);
            if last.is_some_and(|last| distances.iter().all(|one| *one > last.distance)) {
                continue;
            }
            for (place, distance) in (chunk * CHUNK..).zip(distances) {
                if own != Some(place) {
                    self.push(begin + place, *distance);
                }
            }
        }
    }

    pub(crate) fn cases(self) -> Cases {
        Cases {
            cases: self.cases,
            tied: self.tied,
            incomparable: self.incomparable,
        }
    }
}

/// The mean distance of patients of the cohort from their own `k` nearest others, rising; of at most [`BESIDE_MAX`],
/// and where their vectors cannot be searched by products of matrices, of fewer of a cohort beyond 20,000.
#[must_use]
pub fn usual_distances(comparison: &Comparison, placed: &Placed, k: usize) -> Vec<f64> {
    let search = Search::new(comparison, placed);
    let beside = match search.is_by_products() {
        true => BESIDE_MAX,
        false => (PAIRS / placed.patients().max(1)).clamp(BESIDE_MIN, BESIDE_MAX),
    };
    let step = placed.patients().div_ceil(beside).max(1);
    let looked: Vec<usize> = (0..placed.patients()).step_by(step).collect();
    let found = others(&search, placed, &looked, k);
    let mut means: Vec<f64> = found.iter().map(Cases::mean_distance).collect();
    means.retain(|mean| !mean.is_nan());
    means.sort_unstable_by(f64::total_cmp);
    means
}

/// The `k` nearest others of the patients at `looked` among all who are placed.
#[must_use]
pub fn nearest_others(
    comparison: &Comparison,
    placed: &Placed,
    looked: &[usize],
    k: usize,
) -> Vec<Cases> {
    others(&Search::new(comparison, placed), placed, looked, k)
}

fn others(search: &Search<'_>, placed: &Placed, looked: &[usize], k: usize) -> Vec<Cases> {
    let own: Vec<Option<usize>> = looked.iter().copied().map(Some).collect();
    let queries = Queries {
        placed,
        rows: looked,
        own: &own,
    };
    search.nearest(&queries, k)
}

/// The share of the usual distances that are below `distance`.
#[must_use]
pub fn share_below(usual: &[f64], distance: f64) -> f64 {
    usual.partition_point(|other| *other < distance) as f64 / usual.len() as f64
}

/// A share or a mean with its interval of 95 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The share or mean.
    pub value: f64,
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// Patients of one class.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassShare {
    /// The class.
    pub level: String,
    /// How many.
    pub patients: usize,
    /// Their share, with Wilson's interval.
    pub share: Interval,
}

/// How a group of patients fared.
#[derive(Debug, Clone, PartialEq)]
pub enum Fared {
    /// By class.
    Classes(Vec<ClassShare>),
    /// The mean, with Student's interval, in the outcome's unit.
    Mean(Interval),
    /// The share without an event by time, by Kaplan and Meier.
    Survival(KaplanMeier),
}

impl Fared {
    /// How these patients fared; `members` are rows of the outcome.
    #[must_use]
    pub fn of(outcome: &Outcome, members: &[usize]) -> Self {
        match outcome {
            Outcome::Classes { codes, levels } => {
                let of_level = |(code, level): (usize, &String)| {
                    let patients = members
                        .iter()
                        .filter(|row| codes[**row] as usize == code)
                        .count();
                    ClassShare {
                        level: level.clone(),
                        patients,
                        share: wilson(patients, members.len()),
                    }
                };
                Self::Classes(levels.iter().enumerate().map(of_level).collect())
            }
            Outcome::Numeric(values) => {
                let seen: Vec<f64> = members.iter().map(|row| values[*row]).collect();
                Self::Mean(mean(&seen))
            }
            Outcome::Survival { time, event } => {
                Self::Survival(KaplanMeier::of(time, event, members.iter().copied()))
            }
        }
    }
}

/// Wilson's interval (1927) of a share at 95 %.
#[must_use]
pub fn wilson(part: usize, whole: usize) -> Interval {
    let z = Normal::standard().inverse_cdf(0.975);
    let (n, share) = (whole as f64, part as f64 / whole as f64);
    let middle = share + z * z / (2.0 * n);
    let half = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z * z / n;
    Interval {
        value: share,
        low: ((middle - half) / scale).max(0.0),
        high: ((middle + half) / scale).min(1.0),
    }
}

/// A mean with Student's interval at 95 %; the ends are NaN of fewer than two numbers.
#[must_use]
pub fn mean(values: &[f64]) -> Interval {
    let n = values.len() as f64;
    let value = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|other| (other - value).powi(2)).sum();
    let error = (squares / (n - 1.0) / n).sqrt();
    around(value, n, error)
}

fn around(value: f64, n: f64, error: f64) -> Interval {
    let width =
        StudentsT::new(0.0, 1.0, n - 1.0).map_or(f64::NAN, |law| law.inverse_cdf(0.975) * error);
    Interval {
        value,
        low: value - width,
        high: value + width,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::seed::Seed;
    use ndarray::array;
    use rand::RngExt;

    #[test]
    fn the_nearest_come_in_order_with_ties_counted_and_the_incomparable_left_out() {
        let distances = [2.0, 1.0, f64::NAN, 1.0, 3.0, 2.0, 0.0, 2.0];
        let found = Cases::nearest(&distances, 4, |row| row == 6);
        let rows: Vec<usize> = found.cases.iter().map(|case| case.patient).collect();
        assert_eq!(rows, [1, 3, 0, 5]);
        assert_eq!((found.tied, found.incomparable), (1, 1));
        assert!((found.mean_distance() - 1.5).abs() < 1e-15);
        assert_eq!(Cases::nearest(&distances, 0, |_| false).cases, []);
        assert_eq!(Cases::nearest(&distances, 99, |_| false).cases.len(), 7);
    }

    #[test]
    fn the_nearest_are_those_of_a_whole_sort() {
        let mut stream = Seed(5).stream("cases", 0);
        for _ in 0..300 {
            let distances: Vec<f64> = (0..40)
                .map(|_| f64::from(stream.random_range(-3..6_i32)))
                .collect();
            let k = stream.random_range(0..45_usize);
            let mut rows: Vec<usize> = (0..40).filter(|row| *row != 7).collect();
            rows.sort_by(|a, b| distances[*a].total_cmp(&distances[*b]).then(a.cmp(b)));
            let found = Cases::nearest(&distances, k, |row| row == 7);
            let patients: Vec<usize> = found.cases.iter().map(|case| case.patient).collect();
            assert_eq!(patients, rows[..k.min(39)]);
            let last = found.cases.last().map(|case| case.distance);
            let tied = rows
                .iter()
                .skip(k)
                .filter(|row| Some(distances[**row]) == last)
                .count();
            assert_eq!(found.tied, tied);
        }
    }

    /// statsmodels 0.15 (proportion_confint, method wilson) and SciPy 1.17 (t.interval).
    #[test]
    fn intervals_are_those_of_statsmodels_and_scipy() {
        let cases = [
            (3, 10, 0.107_791_267_406_301, 0.603_221_852_538_855),
            (0, 10, 0.0, 0.277_532_799_862_889),
            (10, 10, 0.722_467_200_137_111, 1.0),
            (214, 690, 0.276_762_520_651_671, 0.345_629_602_694_055),
        ];
        for (part, whole, low, high) in cases {
            let found = wilson(part, whole);
            assert!((found.low - low).abs() < 1e-9, "{found:?}");
            assert!((found.high - high).abs() < 1e-9, "{found:?}");
        }
        let found = mean(&[1.0, 2.5, 4.0, 3.5, 9.0]);
        assert!((found.value - 4.0).abs() < 1e-15);
        assert!(
            (found.low - 0.249_229_206_486_668).abs() < 1e-9,
            "{found:?}"
        );
        assert!(mean(&[1.0]).low.is_nan());
    }

    #[test]
    fn a_group_fares_by_the_kind_of_the_outcome() {
        let classes = Outcome::Classes {
            codes: array![0, 1, 1, 0, 1],
            levels: vec!["no".to_owned(), "yes".to_owned()],
        };
        let Fared::Classes(shares) = Fared::of(&classes, &[0, 1, 4]) else {
            panic!("not classes")
        };
        assert_eq!((shares[0].patients, shares[1].patients), (1, 2));
        let survival = Outcome::Survival {
            time: array![5.0, 2.0, 8.0, 3.0],
            event: array![true, true, false, true],
        };
        let Fared::Survival(curve) = Fared::of(&survival, &[0, 1, 2, 3]) else {
            panic!("not survival")
        };
        assert_eq!((curve.events(), curve.median().time), (3, Some(3.0)));
        assert_eq!(curve.points().last().map(|point| point.share), Some(0.25));
        assert_eq!(share_below(&[1.0, 2.0, 3.0, 4.0], 3.5), 0.75);
    }
}
