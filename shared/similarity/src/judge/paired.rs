//! Two rules of prediction judged by the same patients: whether one is better than the other beyond chance.

use ndarray::Array1;

use crate::cohort::Outcome;
use crate::judge::predicted::Predicted;
use crate::learn::unpsl::PAIRS_STEP;
use crate::numeric::chi_squared;
use crate::numeric::precision::nearest;

/// The standard normal deviation that 95 % of a normal distribution lie within.
const NORMAL: f64 = 1.959_963_984_540_054;

/// By how much one rule is better than another; above 0 is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// The difference of accuracies, areas under a curve, Brier scores, mean squared errors or concordances.
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
    /// Patients; of survival times and areas comparable pairs of them.
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

    /// Of classes, by the shares that both rules predict of each patient, empty where one predicts none: how much lower the second rule's
    /// Brier score is.
    #[must_use]
    pub fn of_shares(first: &[Vec<f64>], second: &[Vec<f64>], codes: &Array1<u32>) -> Self {
        let mut sums = Self::default();
        let both = first.iter().zip(second).zip(codes);
        for ((one, other), code) in both {
            if !one.is_empty() && !other.is_empty() {
                sums.add(1.0, brier(one, *code) - brier(other, *code));
            }
        }
        sums.total = sums.parts;
        sums
    }

    /// Of two classes, by the second one's shares: how much larger the second rule's area under the receiver operating characteristic is. Its
    /// error has the components of DeLong, DeLong and Clarke-Pearson (1988).
    #[must_use]
    pub fn of_areas(first: &[Vec<f64>], second: &[Vec<f64>], codes: &Array1<u32>) -> Self {
        let is_known = |row: &usize| first[*row].len() > 1 && second[*row].len() > 1;
        let rows: Vec<usize> = (0..codes.len()).filter(is_known).collect();
        let own: Vec<bool> = rows.iter().map(|row| codes[*row] == 1).collect();
        let [one, other] = [first, second].map(|shares| {
            let shares: Vec<f64> = rows.iter().map(|row| shares[*row][1]).collect();
            places(&shares, &own)
        });
        let owns = own.iter().filter(|is_own| **is_own).count();
        let mut sums = Self::default();
        for ((is_own, one), other) in own.iter().zip(one).zip(other) {
            let pairs = if *is_own { own.len() - owns } else { owns };
            sums.add(pairs as f64, other - one);
            sums.total += pairs as f64;
        }
        // Each pair was seen from both ends.
        sums.total /= 2.0;
        sums.difference /= 2.0;
        sums
    }

    /// The same of areas, as a site of a federation says it: the pairs to the nearest twenty, and without the squares of each patient's
    /// pairs. Of exact ones, and the patients of each class, the sums over three or four sites have few solutions in whole numbers, among
    /// them the classes of each site. Whoever sums bounds the squares by the largest site.
    #[must_use]
    pub fn among_sites(self) -> Self {
        Self {
            total: match self.total > 0.0 {
                true => nearest(self.total, PAIRS_STEP as f64).max(PAIRS_STEP as f64),
                false => 0.0,
            },
            parts: 0.0,
            ..self
        }
    }

    /// The same difference per patient, rounded to steps of which one patient moves it by half a one at most. Its interval holds the exact
    /// one. None of nobody.
    #[must_use]
    pub fn rounded(&self, step: f64) -> Option<Self> {
        let Difference { value, high, .. } = self.tested()?;
        let error = (high - value + step / 2.0) / NORMAL;
        let fine = step / 4.0;
        Some(Self {
            total: 1.0,
            difference: on_grid(value, step),
            squares: ((error / fine).ceil() * fine).powi(2),
            products: 0.0,
            parts: 0.0,
        })
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

/// The nearest multiple of a step of whole thousandths, in as few digits.
#[must_use]
pub fn on_grid(value: f64, step: f64) -> f64 {
    const DIGITS: f64 = 1e6;
    // Nothing is -0.
    ((value / step).round() * step * DIGITS).round() / DIGITS + 0.0
}

/// Half the squared distance of the shares of all classes from the own one: 0 is best, 1 is worst.
#[must_use]
pub fn brier(shares: &[f64], own: u32) -> f64 {
    let off = |(class, share): (usize, &f64)| {
        (share - f64::from(u8::from(class == own as usize))).powi(2)
    };
    shares.iter().enumerate().map(off).sum::<f64>() / 2.0
}

/// Of each patient the others of the other class that lie on the right side by this score; equal ones count half.
fn places(scores: &[f64], own: &[bool]) -> Vec<f64> {
    let sorted = |class: bool| -> Vec<f64> {
        let of_class = scores.iter().zip(own).filter(|(_, own)| **own == class);
        let mut of_class: Vec<f64> = of_class.map(|(score, _)| *score).collect();
        of_class.sort_by(f64::total_cmp);
        of_class
    };
    let (own_scores, others) = (sorted(true), sorted(false));
    let place = |(score, is_own): (&f64, &bool)| {
        let against = if *is_own { &others } else { &own_scores };
        let lower = against.partition_point(|one| one.total_cmp(score).is_lt());
        let up_to = against.partition_point(|one| one.total_cmp(score).is_le());
        let (lower, equal) = (lower as f64, (up_to - lower) as f64);
        match is_own {
            true => lower + equal / 2.0,
            false => against.len() as f64 - lower - equal / 2.0,
        }
    };
    scores.iter().zip(own).map(place).collect()
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
