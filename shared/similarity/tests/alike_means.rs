//! Promise: intervals of a mean, and of events in a unit of time, that groups tell with noise hold what is counted patient by patient, in
//! 93 % of answers or more on every set, at every radius.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // functions that tests share

#[path = "support/alike.rs"]
#[allow(dead_code, unreachable_pub)]
mod alike;

use alike::{PERCENTS, distance, made_up, radii};
use ndarray::{Array1, Array2, ArrayView1, Axis};
use rand::RngExt;
use similarity::numeric::seed::Seed;
use similarity::uses::cases::Interval;
use similarity::uses::estimates::{Counted, Noised, variance};
use similarity::uses::hidden::Hidden;
use similarity::uses::microaggregation::{Closeness, Group, parted};

const DRAWS: u64 = 20;
const EPSILON: f64 = 1.0;
const SIZE: usize = 10;
/// One patient in so many asks.
const QUERIES: usize = 12;
/// Of fewer nothing is said.
const FEW: f64 = 20.0;

/// What a patient counts: a number, or whether and when the event was.
type Counts = [f64; 2];

/// Patients of each hospital: where they are, and what each counts.
type Sites = Vec<(Array2<f64>, Vec<Counts>)>;

/// How sums of a group are hidden, and what they say of patients who are alike and of everybody.
struct Said {
    hide: fn(&mut Hidden, &[Counts]) -> [Noised; 2],
    interval: fn(Counted, [Noised; 2], f64, [Noised; 2]) -> Interval,
    truth: fn(&[Counts]) -> f64,
}

/// The widest a study may declare for numbers of a deviation of about 1, in both directions.
const END: f64 = 8.0;
const HORIZON: f64 = 10.0;

const MEAN: Said = Said {
    hide: |hidden, values| {
        let of = || values.iter().map(|own| own[0].clamp(-END, END));
        let sum = hidden.measured(of(), 2.0 * END, EPSILON / 2.0);
        let squares = hidden.measured(of().map(|y| y * y), END * END, EPSILON / 2.0);
        [sum, squares]
    },
    interval: |counted, [sum, squares], all, [of_all, squares_of_all]| {
        counted.mean(sum, squares, variance(all, of_all.sum, squares_of_all.sum))
    },
    truth: |values| {
        let sum: f64 = values.iter().map(|own| own[0].clamp(-END, END)).sum();
        sum / values.len() as f64
    },
};

const RATE: Said = Said {
    hide: |hidden, values| {
        let events = values.iter().map(|own| own[0]).sum::<f64>();
        let counts = [values.len() as f64 - events, events];
        let events = hidden.classes(&counts, EPSILON / 2.0)[1];
        let time = values.iter().map(|own| own[1]);
        [events, hidden.measured(time, HORIZON, EPSILON / 2.0)]
    },
    interval: |counted, [events, time], all, [of_all, _]| {
        counted.rate(events, time, (of_all.sum / all).clamp(0.0, 1.0))
    },
    truth: |values| {
        let sum = |place: usize| values.iter().map(|own| own[place]).sum::<f64>();
        sum(0) / sum(1)
    },
};

/// In how many of all answers the interval held the truth, and its mean width: of the queries of one `part`.
fn held(
    said: &Said,
    sites: &[(Array2<f64>, Vec<Counts>)],
    (percent, part): (usize, usize),
) -> (usize, usize, f64) {
    let (mut kept, mut queries) = (Vec::new(), Vec::new());
    for (x, counts) in sites {
        let is_new = |row: &usize| row % QUERIES == part;
        queries.extend(
            (0..x.nrows())
                .filter(is_new)
                .map(|row| x.row(row).to_owned()),
        );
        let rows: Vec<usize> = (0..x.nrows()).filter(|row| !is_new(row)).collect();
        let own: Vec<Counts> = rows.iter().map(|row| counts[*row]).collect();
        kept.push((x.select(Axis(0), &rows), own));
    }
    let places: Vec<_> = kept
        .iter()
        .map(|(x, own)| (x.clone(), vec![0; own.len()]))
        .collect();
    let radius = radii(&places, Closeness::Euclidean)[percent];
    let mut groups = Vec::new();
    for (x, counts) in &kept {
        for members in parted(x.view(), SIZE) {
            let values: Vec<Counts> = members.iter().map(|row| counts[*row]).collect();
            let number = groups.len() as u64;
            let noised = |draw: u64| {
                let mut key = [0; 32];
                key[..8].copy_from_slice(&draw.to_le_bytes());
                key[8..16].copy_from_slice(&number.to_le_bytes());
                key[16] = part as u8;
                (said.hide)(&mut Hidden::by(key), &values)
            };
            let told: Vec<[Noised; 2]> = (0..DRAWS).map(noised).collect();
            groups.push((Group::of(x.view(), &members), told));
        }
    }
    let summed = |weights: &[f64], draw: usize| {
        let mut sums = [Noised::default(); 2];
        for ((_, told), weight) in groups.iter().zip(weights) {
            for (sum, own) in sums.iter_mut().zip(told[draw]) {
                sum.add(*weight, own);
            }
        }
        sums
    };
    let everybody = vec![1.0; groups.len()];
    let all: f64 = groups.iter().map(|(group, _)| group.patients as f64).sum();
    let (mut holds, mut answers, mut width) = (0, 0, 0.0);
    for query in &queries {
        let near =
            |row: ArrayView1<'_, f64>| distance(Closeness::Euclidean, row, query.view()) <= radius;
        let mut alike = Vec::new();
        for (x, counts) in &kept {
            let rows = x.outer_iter().zip(counts);
            alike.extend(rows.filter(|(row, _)| near(*row)).map(|(_, own)| *own));
        }
        let within =
            |group: &Group| group.within(query.as_slice().unwrap(), radius, Closeness::Euclidean);
        let shares: Vec<f64> = groups.iter().map(|(group, _)| within(group)).collect();
        let sum = |of: fn(f64) -> f64| -> f64 {
            let both = groups.iter().zip(&shares);
            both.map(|((group, _), w)| of(*w) * group.patients as f64)
                .sum()
        };
        let counted = Counted {
            patients: sum(|w| w),
            border: sum(|w| w * (1.0 - w)),
        };
        if alike.is_empty() || counted.patients < FEW {
            continue;
        }
        let truth = (said.truth)(&alike);
        for draw in 0..DRAWS as usize {
            let (own, of_all) = (summed(&shares, draw), summed(&everybody, draw));
            let found = (said.interval)(counted, own, all, of_all);
            answers += 1;
            holds += usize::from(found.low - 1e-9 <= truth && truth <= found.high + 1e-9);
            width += (found.high - found.low).min(1e3);
        }
    }
    (holds, answers, width / answers.max(1) as f64)
}

/// The places of made-up patients, each with numbers that follow from them and chance.
fn sets(of: fn(&Array1<f64>, &mut dyn FnMut() -> f64) -> Counts) -> Vec<(String, Sites)> {
    let mut stream = Seed(12).stream("numbers", 0);
    let mut uniform = move || stream.random::<f64>();
    let mut all = Vec::new();
    for (name, hospitals) in made_up() {
        let mut sites = Vec::new();
        for hospital in hospitals {
            let rows = hospital.patients.outer_iter();
            let counts = rows.map(|row| of(&row.to_owned(), &mut uniform)).collect();
            sites.push((hospital.patients, counts));
        }
        all.push((name.to_owned(), sites));
    }
    all
}

fn normal(uniform: &mut dyn FnMut() -> f64) -> f64 {
    (0..12).map(|_| uniform()).sum::<f64>() - 6.0
}

fn judge(said: &Said, named: &str, sets: &[(String, Sites)]) {
    for (name, sites) in sets {
        for (place, percent) in PERCENTS.into_iter().enumerate() {
            let (mut holds, mut answers, mut width) = (0, 0, 0.0);
            // Of few patients each asks once, of many one in a few.
            let patients: usize = sites.iter().map(|(_, own)| own.len()).sum();
            for part in (0..QUERIES).step_by(patients.div_ceil(500).min(QUERIES)) {
                let (own, all, mean) = held(said, sites, (place, part));
                holds += own;
                answers += all;
                width += mean * all as f64;
            }
            let width = width / answers.max(1) as f64;
            println!("{named}, {name}, {percent} %: {holds} of {answers}, width {width:.2}");
            assert!(
                100 * holds >= 93 * answers,
                "{named}, {name}, {percent} %: {holds} of {answers}"
            );
        }
    }
}

#[test]
fn intervals_of_means_hold_the_mean_of_the_patients_who_are_alike() {
    judge(
        &MEAN,
        "a slope",
        &sets(|x, u| [x[0] + 0.5 * normal(u), 0.0]),
    );
    judge(
        &MEAN,
        "a step",
        &sets(|x, _| [f64::from(u8::from(x[0] > 0.0)) * 3.0, 0.0]),
    );
    // A narrow spread in a wide range: all of the interval is noise.
    judge(
        &MEAN,
        "nearly constant",
        &sets(|x, u| [2.0 + 0.01 * (x[0] + normal(u)), 0.0]),
    );
    judge(
        &MEAN,
        "long tails",
        &sets(|x, u| [(x[0] + normal(u)).powi(3), 0.0]),
    );
}

#[test]
fn intervals_of_rates_hold_the_rate_of_the_patients_who_are_alike() {
    judge(
        &RATE,
        "often",
        &sets(|x, u| follow(0.3 * x[0].clamp(-3.0, 3.0).exp(), u)),
    );
    judge(
        &RATE,
        "seldom",
        &sets(|x, u| follow(0.02 * x[0].clamp(-3.0, 3.0).exp(), u)),
    );
}

/// Whether and when the event is seen, at this rate; follow-up ends anywhere up to twice the horizon.
fn follow(rate: f64, uniform: &mut dyn FnMut() -> f64) -> Counts {
    let (event, censored) = (-uniform().ln() / rate, 2.0 * HORIZON * uniform());
    let end = censored.min(HORIZON);
    [f64::from(u8::from(event <= end)), event.min(end)]
}
