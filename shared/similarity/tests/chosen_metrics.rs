//! Promise: who chooses all metrics and subtracts its own part reads no patient of the others.
//!
//! The attacker knows one feature of every patient, their classes, and asks about metrics of that feature alone, each as steep as
//! hospitals answer. An entry of Gamma is then a sum of the other feature's values with factors that it works out; so is one of T.

#![allow(clippy::unwrap_used)]

use ndarray::{Array1, Array2, Axis};
use similarity::learn::unpsl::{
    Labels, PairWeights, Settings, SiteDerivatives, SiteObjective, Threshold, Totals, summarise,
};
use similarity::numeric::linear_algebra::Cholesky;
use similarity::numeric::precision::Precision;
use similarity::numeric::seed::Seed;

const SITES: usize = 3;
const PATIENTS: usize = 60;
/// A value is read where it is known to so much of a standard deviation.
const READ: f64 = 0.05;
/// The mean of ||W'x||^2 that hospitals answer at most.
const STEEPEST: f64 = 100.0;

/// One hospital: what is known of its patients, what is looked for, their classes.
struct Site {
    known: Array1<f64>,
    secret: Array1<f64>,
    classes: Array1<u32>,
}

/// Normal numbers that no program has seen before.
fn normal(row: usize, column: usize) -> f64 {
    let mut bits =
        (row as u64 * 7919 + column as u64 * 104_729 + 17).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut sum = 0.0;
    for _ in 0..12 {
        bits ^= bits >> 29;
        bits = bits.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits ^= bits >> 32;
        sum += (bits >> 11) as f64 / (1_u64 << 53) as f64;
    }
    sum - 6.0
}

fn site(site: usize) -> Site {
    let of = |column: usize| {
        let values = (0..PATIENTS).map(|row| normal(site * PATIENTS + row, column));
        let values: Array1<f64> = values.collect();
        let mean = values.mean().unwrap();
        (&values - mean) / values.std(0.0)
    };
    let (known, secret, noise) = (of(1), of(2), of(3));
    let classes = (&known + &noise).mapv(|value| u32::from(value > 0.0));
    Site {
        known,
        secret,
        classes,
    }
}

fn settings(precision: Precision) -> Settings {
    Settings {
        rank: 1,
        lambda_correlation: 0.0,
        threshold: Threshold::Common(0.0),
        pair_weights: PairWeights::Equal,
        precision,
        ..Settings::default()
    }
}

/// What all hospitals together answer, by the program.
fn objectives(sites: &[Site], precision: Precision) -> Vec<SiteObjective> {
    let settings = settings(precision);
    let labels = |site: &Site| Labels::Classes(site.classes.clone());
    let summaries: Vec<_> = sites
        .iter()
        .map(|site| summarise(&labels(site), settings.pairs, Seed(1)))
        .collect();
    let totals = Totals::of(&summaries);
    let made = sites.iter().map(|site| {
        let x = ndarray::stack![Axis(1), site.known, site.secret];
        SiteObjective::new(&x.view(), &labels(site), &settings, &totals, Seed(1), None).unwrap()
    });
    made.collect()
}

fn answers(objectives: &[SiteObjective], question: [f64; 2]) -> Vec<SiteDerivatives> {
    let matrix = Array2::from_shape_vec((3, 1), vec![question[0], 0.0, question[1]]).unwrap();
    let answers = objectives
        .iter()
        .map(|one| one.derivatives(&matrix, None).unwrap());
    answers.collect()
}

/// What each patient's secret weighs in the two entries, worked out from what is known.
fn weights(sites: &[Site], question: [f64; 2]) -> [Array1<f64>; 2] {
    let pairs = (SITES * PATIENTS * (PATIENTS - 1) / 2) as f64;
    let mut slopes = Vec::new();
    let mut curvatures = Vec::new();
    for site in sites {
        let sigmoid = |value: f64| 1.0 / (1.0 + (-value).exp());
        let mut slope = Array1::<f64>::zeros(PATIENTS);
        let mut curved = Array1::<f64>::zeros(PATIENTS);
        for one in 0..PATIENTS {
            for other in (0..PATIENTS).filter(|other| *other != one) {
                let y = if site.classes[one] == site.classes[other] {
                    1.0
                } else {
                    -1.0
                };
                let similarity = question[0].powi(2) * site.known[one] * site.known[other];
                let wrong = sigmoid(-y * (similarity - question[1]));
                slope[one] -= 0.5 * y * wrong * site.known[other] / pairs;
                curved[one] += wrong * (1.0 - wrong);
            }
        }
        let own = pairs / SITES as f64;
        let size = 1.0 / (SITES as f64 * (2.0 * own * curved.sum()).sqrt());
        slopes.extend(slope);
        curvatures.extend(&curved * &site.known * size);
    }
    [slopes.into(), curvatures.into()]
}

/// So many metrics of the known feature, steep and gentle, with thresholds over all that its similarities are.
fn questions(count: usize) -> Vec<[f64; 2]> {
    let share = |one: usize, of: usize| (one as f64 + 0.5) / of as f64;
    let slopes = (count as f64).sqrt().floor() as usize;
    let of_slope = |one: usize| {
        let steepest = STEEPEST.sqrt();
        let weight = steepest * 0.05_f64.powf(1.0 - share(one % slopes, slopes));
        let place = one / slopes;
        let border = 3.0 * (2.0 * share(place, count.div_ceil(slopes)) - 1.0);
        [weight, weight * weight * border.powi(3) / 9.0]
    };
    (0..count).map(of_slope).collect()
}

/// The best guess of all secrets, where secrets are standard normal and the two entries are known to these errors.
fn guessed(rows: &[([Array1<f64>; 2], [f64; 2])], errors: [f64; 2]) -> Array1<f64> {
    let patients = SITES * PATIENTS;
    let mut normal = Array2::<f64>::eye(patients);
    let mut right = Array2::<f64>::zeros((patients, 1));
    for (weights, told) in rows {
        for ((weights, told), error) in weights.iter().zip(told).zip(errors) {
            let scaled = weights / error;
            let column = scaled.view().insert_axis(Axis(1));
            normal += &column.dot(&column.t());
            right.scaled_add(told / error, &column);
        }
    }
    let solved = Cholesky::factor(&normal).unwrap().solve(&right);
    solved.column(0).to_owned()
}

/// Secrets that are read from the answers to so many questions, by the best of several beliefs of how far numbers are rounded.
fn read(sites: &[Site], precision: Precision, count: usize) -> usize {
    let objectives = objectives(sites, precision);
    let asked = questions(count);
    let rows: Vec<_> = asked
        .iter()
        .map(|question| {
            let told = answers(&objectives, *question);
            let gamma: f64 = told.iter().map(|one| one.gradient[[0, 1]]).sum();
            let curvature: f64 = told.iter().map(|one| one.curvature[[0, 1]]).sum();
            (weights(sites, *question), [gamma, curvature])
        })
        .collect();
    let secrets = sites.iter().flat_map(|one| one.secret.to_vec());
    let secrets: Vec<f64> = secrets.collect();
    let beliefs: &[[f64; 2]] = match precision {
        Precision::Exact => &[[1e-8, 1e-8], [1e-7, 1e-7]],
        Precision::Rounded => &[
            [1e-5, 1e-3],
            [2e-5, 2e-3],
            [3e-5, 3e-3],
            [6e-5, 6e-3],
            [2e-4, 2e-2],
        ],
    };
    let right = beliefs.iter().map(|errors| {
        let guessed = guessed(&rows, *errors);
        let pairs = guessed.iter().zip(&secrets);
        pairs
            .filter(|(guess, secret)| (*guess - *secret).abs() < READ)
            .count()
    });
    right.max().unwrap()
}

#[test]
fn what_is_told_is_what_the_attacker_works_out() {
    let sites: Vec<Site> = (0..SITES).map(site).collect();
    let secrets = sites.iter().flat_map(|one| one.secret.to_vec());
    let secrets: Array1<f64> = secrets.collect();
    let exact = objectives(&sites, Precision::Exact);
    for question in [[0.0, 0.0], [1.0, 0.5], [3.0, -1.0], [9.0, 4.0]] {
        let told = answers(&exact, question);
        let entries = [
            told.iter().map(|one| one.gradient[[0, 1]]).sum::<f64>(),
            told.iter().map(|one| one.curvature[[0, 1]]).sum::<f64>(),
        ];
        for (weights, entry) in weights(&sites, question).iter().zip(entries) {
            assert!(
                (weights.dot(&secrets) - entry).abs() < 1e-12,
                "{question:?}"
            );
        }
    }
}

/// Of 180 patients of others: by exact sums 174 values at 240 questions, and all at 1,200.
#[test]
fn questions_of_ones_own_choice_say_little_of_a_patient() {
    let sites: Vec<Site> = (0..SITES).map(site).collect();
    let [few, many, most] = [12, 240, 1200]
        .map(|count| [Precision::Exact, Precision::Rounded].map(|one| read(&sites, one, count)));
    println!("exact and rounded: {few:?} by 12, {many:?} by 240, {most:?} by 1,200");
    assert!(many[0] > 150 && most[0] > 170, "the attack reads nothing");
    // Guesses near the mean alone are right for 7.
    assert!(
        few[1] <= 12 && many[1] <= 25 && most[1] <= 25,
        "{few:?} {many:?} {most:?}"
    );
}
