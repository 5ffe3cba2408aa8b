//! Two rules of prediction judged by the same patients: whether one is better than the other beyond chance.

use crate::cohort::Outcome;
use crate::judge::predicted::Predicted;
use crate::numeric::chi_squared;

/// The standard normal deviation that 95 % of a normal distribution lie within.
const NORMAL: f64 = 1.959_963_984_540_054;

/// By how much one rule is better than another; above 0 is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Of classes the difference of the shares that are right, of numbers of the mean squared errors, of survival times of the
    /// concordances.
    pub value: f64,
    /// The lower end of its interval of 95 %.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The chance of a difference so far from 0 or farther, were there none.
    pub p: f64,
}

/// What two rules' predictions of the same patients differ by, as sums that add up over sites.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PairedSums {
    /// Patients; of survival times comparable pairs of them.
    pub total: f64,
    /// By how much the second rule is better, over all of them.
    pub difference: f64,
    /// Over patients: the square of the difference that each of them makes.
    pub squares: f64,
    /// Over patients: the same times its part of the total, 1 or the pairs that it is one of.
    pub products: f64,
    /// Over patients: the square of its part of the total.
    pub parts: f64,
}

/// Patients that the first rule alone classifies correctly, those of the second alone, and all that both predict. None without classes.
#[must_use]
pub fn discordant(first: &Predicted, second: &Predicted, outcome: &Outcome) -> Option<[u64; 3]> {
    let Outcome::Classes { codes, .. } = outcome else {
        return None;
    };
    let mut counts = [0; 3];
    for (code, (one, other)) in codes.iter().zip(both(first, second)) {
        if one.is_nan() || other.is_nan() {
            continue;
        }
        let right = |found: f64| found == f64::from(*code);
        counts[0] += u64::from(right(one) && !right(other));
        counts[1] += u64::from(right(other) && !right(one));
        counts[2] += 1;
    }
    Some(counts)
}

fn both<'p>(first: &'p Predicted, second: &'p Predicted) -> impl Iterator<Item = (f64, f64)> + 'p {
    let values = first.values().iter().zip(second.values());
    values.map(|(one, other)| (*one, *other))
}

impl From<[f64; 5]> for PairedSums {
    fn from([total, difference, squares, products, parts]: [f64; 5]) -> Self {
        Self {
            total,
            difference,
            squares,
            products,
            parts,
        }
    }
}

impl From<PairedSums> for [f64; 5] {
    fn from(sums: PairedSums) -> Self {
        let PairedSums {
            total,
            difference,
            squares,
            products,
            parts,
        } = sums;
        [total, difference, squares, products, parts]
    }
}

impl PairedSums {
    /// Of the patients that both rules predict; none of classes.
    #[must_use]
    pub fn of(first: &Predicted, second: &Predicted, outcome: &Outcome) -> Option<Self> {
        let found: Vec<(f64, f64)> = both(first, second).collect();
        let is_known = |row: &usize| !found[*row].0.is_nan() && !found[*row].1.is_nan();
        let known: Vec<usize> = (0..found.len()).filter(is_known).collect();
        match outcome {
            Outcome::Classes { .. } => None,
            Outcome::Numeric(values) => {
                let mut sums = Self::default();
                for row in known {
                    let off = |predicted: f64| (predicted - values[row]).powi(2);
                    sums.add(1.0, off(found[row].0) - off(found[row].1));
                }
                sums.total = sums.parts;
                Some(sums)
            }
            Outcome::Survival { time, event } => {
                let case = |row: &usize| Case {
                    time: time[*row],
                    event: event[*row],
                    risks: [found[*row].0, found[*row].1],
                };
                Some(Self::of_cases(&known.iter().map(case).collect::<Vec<_>>()))
            }
        }
    }

    /// Every patient with every other.
    fn of_cases(cases: &[Case]) -> Self {
        let mut sums = Self::default();
        for one in cases {
            let (mut pairs, mut difference) = (0.0, 0.0);
            for other in cases {
                let compared = one.before(other).or_else(|| other.before(one));
                if let Some(better) = compared {
                    pairs += 1.0;
                    difference += better;
                }
            }
            sums.add(pairs, difference);
            sums.total += pairs;
        }
        // Each pair was seen from both ends.
        sums.total /= 2.0;
        sums.difference /= 2.0;
        sums
    }

    fn add(&mut self, part: f64, difference: f64) {
        self.difference += difference;
        self.squares += difference * difference;
        self.products += difference * part;
        self.parts += part * part;
    }

    /// The ratio of the sums, with an interval by the infinitesimal jackknife (Efron 1982) and a test by the normal distribution; none of
    /// nobody.
    #[must_use]
    pub fn tested(&self) -> Option<Difference> {
        if self.total <= 0.0 {
            return None;
        }
        let value = self.difference / self.total;
        let variance = self.squares - 2.0 * value * self.products + value * value * self.parts;
        let error = variance.max(0.0).sqrt() / self.total;
        let p = match error > 0.0 {
            true => chi_squared::above((value / error).powi(2), 1),
            false => 1.0,
        };
        Some(Difference {
            value,
            low: value - NORMAL * error,
            high: value + NORMAL * error,
            p,
        })
    }
}

/// Follow-up of a patient, and the risks that two rules predict.
struct Case {
    time: f64,
    event: bool,
    risks: [f64; 2],
}

impl Case {
    /// Where this one is known to have the event before the other: by how much more the second rule says so than the first.
    fn before(&self, other: &Self) -> Option<f64> {
        let is_first =
            self.event && (self.time < other.time || (self.time == other.time && !other.event));
        let says = |rule: usize| match self.risks[rule].total_cmp(&other.risks[rule]) {
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Less => 0.0,
        };
        is_first.then(|| says(1) - says(0))
    }
}

/// Patients classified correctly by the first rule alone, those by the second alone, and all: the exact test of McNemar (1947), with the
/// interval of Agresti and Min (2005). None of nobody.
#[must_use]
pub fn mcnemar([first, second, patients]: [u64; 3]) -> Option<Difference> {
    if patients == 0 {
        return None;
    }
    let all = patients as f64;
    let (first_more, second_more) = (first as f64, second as f64);
    let adjusted = (second_more - first_more) / (all + 2.0);
    let spread = (first_more + second_more + 1.0) / (all + 2.0) - adjusted * adjusted;
    let error = (spread.max(0.0) / (all + 2.0)).sqrt();
    Some(Difference {
        value: (second_more - first_more) / all,
        low: adjusted - NORMAL * error,
        high: adjusted + NORMAL * error,
        p: fair(first.min(second), first + second),
    })
}

/// The chance that of so many fair coins no more than `few` show one side, or no more the other.
fn fair(few: u64, coins: u64) -> f64 {
    let all = coins as f64;
    let chance = |heads: u64| {
        let heads = heads as f64;
        let ways =
            libm::lgamma(all + 1.0) - libm::lgamma(heads + 1.0) - libm::lgamma(all - heads + 1.0);
        libm::exp(ways - all * std::f64::consts::LN_2)
    };
    let tail: f64 = (0..=few).map(chance).sum();
    (2.0 * tail).min(1.0)
}

/// Chances of several tests, each so that the first of all that is falsely believed is as rare as that of one alone (Holm 1979).
#[must_use]
pub fn holm(chances: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..chances.len()).collect();
    order.sort_by(|one, other| chances[*one].total_cmp(&chances[*other]));
    let mut adjusted = vec![1.0; chances.len()];
    let mut largest = 0.0_f64;
    for (rank, place) in order.into_iter().enumerate() {
        let times = (chances.len() - rank) as f64;
        largest = largest.max((times * chances[place]).min(1.0));
        adjusted[place] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests;
