//! What marks a cluster: how far its patients' values lie from those of all others, and how far those of as many patients drawn
//! at random would lie.

use rand::seq::SliceRandom;
use rayon::prelude::*;

use crate::cohort::{Column, MISSING_LEVEL, Values};
use crate::numeric::seed::Seed;

/// Groups that numbers are put into for Jensen and Shannon's distance.
const BINS: usize = 10;

/// How numbers of two groups are contrasted; levels are always contrasted by Jensen and Shannon's distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Contrast {
    /// Wasserstein's distance in standard deviations of all patients.
    #[default]
    Wasserstein,
    /// Jensen and Shannon's distance of the shares between the tenths of all patients.
    JensenShannon,
}

/// How far a cluster's values of one feature lie from those of all other patients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mark {
    /// The distance; NaN where one of the two has no value.
    pub distance: f64,
    /// The distance that 19 of 20 groups of as many random patients do not reach.
    pub by_chance: f64,
    /// The chance that of a random group any feature lies as far out, each by its own spread (Westfall and Young).
    pub p: f64,
}

/// A mark for every cluster and feature.
#[derive(Debug, Clone, PartialEq)]
pub struct Importance {
    /// One row a cluster, one mark a feature in the order of the columns.
    pub marks: Vec<Vec<Mark>>,
}

/// What the patients `rows` have of a feature.
#[derive(Debug, Clone, PartialEq)]
pub enum Spread {
    /// Numbers: the points below which 5, 25, 50, 75 and 95 % of them lie; NaN of none.
    Numbers([f64; 5]),
    /// The share of each level; NaN of none.
    Levels(Vec<f64>),
}

impl Spread {
    /// Of the patients `rows`; missing values are excluded.
    #[must_use]
    pub fn of(values: &Values, rows: &[usize]) -> Self {
        match values {
            Values::Numeric(values) => {
                let mut known: Vec<f64> = rows.iter().map(|row| values[*row]).collect();
                known.retain(|value| !value.is_nan());
                known.sort_unstable_by(f64::total_cmp);
                Self::Numbers([0.05, 0.25, 0.5, 0.75, 0.95].map(|share| quantile(&known, share)))
            }
            Values::Categorical { codes, levels } => {
                let mut counts = vec![0.0; levels.len()];
                let known = rows.iter().map(|row| codes[*row]);
                let known = known.filter(|code| *code != MISSING_LEVEL);
                known.for_each(|code| counts[code as usize] += 1.0);
                let whole: f64 = counts.iter().sum();
                Self::Levels(counts.iter().map(|count| count / whole).collect())
            }
        }
    }
}

/// Between the two sorted values around it, in proportion.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let place = share * last as f64;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to last
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}

/// Wasserstein's distance of order 1 between two sets of numbers: the area between their distribution functions.
#[must_use]
pub fn wasserstein(one: &[f64], other: &[f64]) -> f64 {
    let groups = one
        .iter()
        .map(|value| (*value, 0))
        .chain(other.iter().map(|value| (*value, 1)));
    let mut sorted: Vec<(f64, u32)> = groups.collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let values: Vec<f64> = sorted.iter().map(|one| one.0).collect();
    let assigned: Vec<u32> = sorted.iter().map(|one| one.1).collect();
    let rows: Vec<usize> = (0..values.len()).collect();
    areas(&values, &rows, &assigned, 2)[0]
}

/// Jensen and Shannon's distance, to the base 2, between two distributions over the same levels: 0 to 1.
#[must_use]
pub fn jensen_shannon(one: &[f64], other: &[f64]) -> f64 {
    let sum = |shares: &[f64]| shares.iter().sum::<f64>();
    let (all_one, all_other) = (sum(one), sum(other));
    let part = |share: f64, middle: f64| match share > 0.0 {
        true => share * libm::log2(share / middle),
        false => 0.0,
    };
    let divergence: f64 = one
        .iter()
        .zip(other)
        .map(|(a, b)| {
            let (a, b) = (a / all_one, b / all_other);
            let middle = f64::midpoint(a, b);
            f64::midpoint(part(a, middle), part(b, middle))
        })
        .sum();
    // Below 0 by rounding alone.
    if divergence < 0.0 {
        0.0
    } else {
        divergence.sqrt()
    }
}

/// The area between the distribution function of each group and that of all others; `rows` are the patients in the order of
/// their rising `values`.
fn areas(values: &[f64], rows: &[usize], assigned: &[u32], clusters: usize) -> Vec<f64> {
    let mut sizes = vec![0.0; clusters];
    rows.iter()
        .for_each(|row| sizes[assigned[*row] as usize] += 1.0);
    let whole = rows.len() as f64;
    let mut below = vec![0.0; clusters];
    let mut areas = vec![0.0; clusters];
    for (place, row) in rows.iter().enumerate() {
        below[assigned[*row] as usize] += 1.0;
        let Some(next) = values.get(place + 1) else {
            break;
        };
        let width = next - values[place];
        if width > 0.0 {
            let so_far = (place + 1) as f64;
            for ((area, below), size) in areas.iter_mut().zip(&below).zip(&sizes) {
                *area += width * (below / size - (so_far - below) / (whole - size)).abs();
            }
        }
    }
    for (area, size) in areas.iter_mut().zip(&sizes) {
        if *size == 0.0 || *size == whole {
            *area = f64::NAN;
        }
    }
    areas
}

/// A feature made ready.
enum Ready {
    /// Patients with a value in its rising order, and the values, in standard deviations.
    Numbers(Vec<usize>, Vec<f64>),
    /// One level a patient.
    Levels(Vec<u32>, usize),
}

impl Ready {
    fn new(values: &Values, contrast: Contrast) -> Self {
        match values {
            Values::Categorical { codes, levels } => Self::Levels(codes.to_vec(), levels.len()),
            Values::Numeric(values) => {
                let mut rows: Vec<usize> = (0..values.len())
                    .filter(|row| !values[*row].is_nan())
                    .collect();
                rows.sort_by(|a, b| values[*a].total_cmp(&values[*b]).then(a.cmp(b)));
                let known: Vec<f64> = rows.iter().map(|row| values[*row]).collect();
                match contrast {
                    Contrast::Wasserstein => {
                        let spread = deviation(&known);
                        let scaled = known.iter().map(|value| value / spread);
                        Self::Numbers(rows, scaled.collect())
                    }
                    Contrast::JensenShannon => {
                        let border = |tenth: usize| quantile(&known, tenth as f64 / BINS as f64);
                        let borders: Vec<f64> = (1..BINS).map(border).collect();
                        let level = |value: &f64| match value.is_nan() {
                            true => MISSING_LEVEL,
                            false => borders.partition_point(|border| border < value) as u32,
                        };
                        Self::Levels(values.iter().map(level).collect(), BINS)
                    }
                }
            }
        }
    }

    /// Of every cluster, from all others.
    fn distances(&self, assigned: &[u32], clusters: usize) -> Vec<f64> {
        match self {
            Self::Numbers(rows, values) => areas(values, rows, assigned, clusters),
            Self::Levels(codes, levels) => {
                let mut counts = vec![vec![0.0; *levels]; clusters];
                let mut all = vec![0.0; *levels];
                for (code, cluster) in codes.iter().zip(assigned) {
                    if *code != MISSING_LEVEL {
                        counts[*cluster as usize][*code as usize] += 1.0;
                        all[*code as usize] += 1.0;
                    }
                }
                let from_others = |own: &Vec<f64>| {
                    let others: Vec<f64> =
                        all.iter().zip(own).map(|(all, own)| all - own).collect();
                    let empty = |counts: &[f64]| counts.iter().all(|count| *count == 0.0);
                    match empty(own) || empty(&others) {
                        true => f64::NAN,
                        false => jensen_shannon(own, &others),
                    }
                };
                counts.iter().map(from_others).collect()
            }
        }
    }
}

/// The standard deviation; 1 of values that are all the same.
fn deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>()
        / n;
    match variance > 0.0 {
        true => variance.sqrt(),
        false => 1.0,
    }
}

/// What marks every cluster; `assigned` has one cluster below `clusters` a patient. Chance is estimated by so many `shuffles` of the
/// patients over the clusters.
#[must_use]
pub fn importance(
    columns: &[Column],
    (assigned, clusters): (&[u32], usize),
    contrast: Contrast,
    (shuffles, seed): (usize, Seed),
) -> Importance {
    let ready: Vec<Ready> = columns
        .par_iter()
        .map(|column| Ready::new(&column.values, contrast))
        .collect();
    // One list a feature of one distance a cluster.
    let distances = |assigned: &[u32]| -> Vec<Vec<f64>> {
        ready
            .iter()
            .map(|ready| ready.distances(assigned, clusters))
            .collect()
    };
    let found = distances(assigned);
    let shuffled: Vec<Vec<Vec<f64>>> = (0..shuffles)
        .into_par_iter()
        .map(|shuffle| {
            let mut assigned = assigned.to_vec();
            assigned.shuffle(&mut seed.stream("clusters/shuffles", shuffle as u64));
            distances(&assigned)
        })
        .collect();
    let of_cluster = |cluster: usize| marks(&found, &shuffled, cluster);
    Importance {
        marks: (0..clusters).map(of_cluster).collect(),
    }
}

/// The marks of one cluster. What was found counts as one of the shuffles, so that p is what it says.
fn marks(found: &[Vec<f64>], shuffled: &[Vec<Vec<f64>>], cluster: usize) -> Vec<Mark> {
    let features = found.len();
    let all = |feature: usize| {
        let own = std::iter::once(found[feature][cluster]);
        own.chain(shuffled.iter().map(move |one| one[feature][cluster]))
    };
    let standard: Vec<(f64, f64)> = (0..features)
        .map(|feature| {
            let known: Vec<f64> = all(feature).filter(|value| !value.is_nan()).collect();
            let mean = known.iter().sum::<f64>() / known.len() as f64;
            (mean, deviation(&known))
        })
        .collect();
    let out = |feature: usize, value: f64| (value - standard[feature].0) / standard[feature].1;
    let farthest: Vec<f64> = shuffled
        .iter()
        .map(|one| {
            let each = (0..features).map(|feature| out(feature, one[feature][cluster]));
            each.fold(f64::NEG_INFINITY, f64::max)
        })
        .collect();
    let mark = |feature: usize| {
        let distance = found[feature][cluster];
        let own = out(feature, distance);
        let as_far = farthest.iter().filter(|other| **other >= own).count();
        let mut chance: Vec<f64> = all(feature)
            .skip(1)
            .filter(|value| !value.is_nan())
            .collect();
        chance.sort_unstable_by(f64::total_cmp);
        Mark {
            distance,
            by_chance: quantile(&chance, 0.95),
            p: match own.is_nan() {
                true => 1.0,
                false => (1 + as_far) as f64 / (1 + shuffled.len()) as f64,
            },
        }
    };
    (0..features).map(mark).collect()
}
