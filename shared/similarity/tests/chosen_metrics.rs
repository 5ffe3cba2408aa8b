//! Promise: who chooses all metrics and subtracts its own part reads no patient of the others.
//!
//! The attacker knows one feature of every patient, or four, their classes, and asks about metrics of these features alone, each as steep
//! as hospitals answer. Entries of Gamma are then sums of the last feature's values with factors that it works out; so are those of T.

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

/// A metric of the known features, and a threshold.
type Question = (Array1<f64>, f64);

/// One hospital: what is known of its patients, a column a feature, what is looked for, their classes.
struct Site {
    known: Array2<f64>,
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

/// What the secret is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Secret {
    /// A number.
    Value,
    /// Whether a patient is of a level, which some three of ten are.
    Level,
}

fn site(site: usize, known: usize, kind: Secret) -> Site {
    let standardised = |values: Array1<f64>| {
        let mean = values.mean().unwrap();
        (&values - mean) / values.std(0.0)
    };
    let raw = |column: usize| -> Array1<f64> {
        let values = (0..PATIENTS).map(|row| normal(site * PATIENTS + row, column));
        values.collect()
    };
    let of = |column: usize| standardised(raw(column));
    let columns: Vec<_> = [1, 4, 5, 6][..known].iter().map(|one| of(*one)).collect();
    let views: Vec<_> = columns.iter().map(|one| one.view()).collect();
    let secret = match kind {
        Secret::Value => of(2),
        Secret::Level => standardised(raw(2).mapv(|value| f64::from(u8::from(value > 0.5244)))),
    };
    Site {
        known: ndarray::stack(Axis(1), &views).unwrap(),
        secret,
        classes: (&columns[0] + &of(3)).mapv(|value| u32::from(value > 0.0)),
    }
}

fn sites(known: usize, kind: Secret) -> Vec<Site> {
    (0..SITES).map(|place| site(place, known, kind)).collect()
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
        let secret = site.secret.view().insert_axis(Axis(1));
        let x = ndarray::concatenate![Axis(1), site.known, secret];
        SiteObjective::new(&x.view(), &labels(site), &settings, &totals, Seed(1), None).unwrap()
    });
    made.collect()
}

fn answers(objectives: &[SiteObjective], (metric, threshold): &Question) -> Vec<SiteDerivatives> {
    let entries = metric.iter().copied().chain([0.0, *threshold]);
    let matrix = Array2::from_shape_vec((metric.len() + 2, 1), entries.collect()).unwrap();
    let answers = objectives
        .iter()
        .map(|one| one.derivatives(&matrix, None).unwrap());
    answers.collect()
}

/// What hospitals say of the secret: of every known feature an entry of Gamma, and one of T.
fn said(told: &[SiteDerivatives], known: usize) -> Vec<f64> {
    let gamma = (0..known).map(|one| told.iter().map(|site| site.gradient[[one, known]]).sum());
    let curvature =
        (0..known).map(|one| told.iter().map(|site| site.curvature[[one, known]]).sum());
    gamma.chain(curvature).collect()
}

/// What each patient's secret weighs in these entries, worked out from what is known.
fn weights(sites: &[Site], (metric, threshold): &Question) -> Vec<Array1<f64>> {
    let pairs = (SITES * PATIENTS * (PATIENTS - 1) / 2) as f64;
    let known = metric.len();
    let mut weights = vec![Vec::new(); 2 * known];
    for site in sites {
        let sigmoid = |value: f64| 1.0 / (1.0 + (-value).exp());
        let places = site.known.dot(metric);
        let mut slopes = Array2::<f64>::zeros((PATIENTS, known));
        let mut curved = Array1::<f64>::zeros(PATIENTS);
        for one in 0..PATIENTS {
            for other in (0..PATIENTS).filter(|other| *other != one) {
                let y = if site.classes[one] == site.classes[other] {
                    1.0
                } else {
                    -1.0
                };
                let similarity = places[one] * places[other];
                let wrong = sigmoid(-y * (similarity - threshold));
                let factor = -0.5 * y * wrong / pairs;
                slopes
                    .row_mut(one)
                    .scaled_add(factor, &site.known.row(other));
                curved[one] += wrong * (1.0 - wrong);
            }
        }
        let own = pairs / SITES as f64;
        let size = 1.0 / (SITES as f64 * (2.0 * own * curved.sum()).sqrt());
        for feature in 0..known {
            weights[feature].extend(slopes.column(feature));
            weights[known + feature].extend(&curved * &site.known.column(feature) * size);
        }
    }
    weights.into_iter().map(Array1::from).collect()
}

/// So many metrics of the known features, steep and gentle, with thresholds over all that their similarities are.
fn questions(known: usize, count: usize) -> Vec<Question> {
    let share = |one: usize, of: usize| (one as f64 + 0.5) / of as f64;
    let slopes = (count as f64).sqrt().floor() as usize;
    let of_slope = |one: usize| {
        let steepest = STEEPEST.sqrt();
        let weight = steepest * 0.05_f64.powf(1.0 - share(one % slopes, slopes));
        let place = one / slopes;
        let border = 3.0 * (2.0 * share(place, count.div_ceil(slopes)) - 1.0);
        let direction: Array1<f64> = (0..known).map(|feature| normal(one, 7 + feature)).collect();
        let size = direction.dot(&direction).sqrt();
        (
            direction * (weight / size),
            weight * weight * border.powi(3) / 9.0,
        )
    };
    (0..count).map(of_slope).collect()
}

/// The best guess of all secrets, where secrets are standard normal and entries of the two kinds are known to these errors.
fn guessed(rows: &[(Vec<Array1<f64>>, Vec<f64>)], errors: [f64; 2]) -> Array1<f64> {
    let patients = SITES * PATIENTS;
    let mut normal = Array2::<f64>::eye(patients);
    let mut right = Array2::<f64>::zeros((patients, 1));
    for (all, said) in rows {
        for (place, (weights, said)) in all.iter().zip(said).enumerate() {
            // Half of them are of Gamma, the others of T.
            let error = errors[2 * place / all.len()];
            let scaled = weights / error;
            let column = scaled.view().insert_axis(Axis(1));
            normal += &column.dot(&column.t());
            right.scaled_add(said / error, &column);
        }
    }
    let solved = Cholesky::factor(&normal).unwrap().solve(&right);
    solved.column(0).to_owned()
}

/// Secrets that are read from the answers to so many questions, by the best of several beliefs of how far numbers are rounded.
fn read(sites: &[Site], kind: Secret, precision: Precision, asked: &[Question]) -> usize {
    let objectives = objectives(sites, precision);
    let known = sites[0].known.ncols();
    let rows: Vec<_> = asked
        .iter()
        .map(|question| {
            (
                weights(sites, question),
                said(&answers(&objectives, question), known),
            )
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
            [6e-4, 6e-2],
            [2e-3, 2e-1],
        ],
    };
    let right = beliefs.iter().map(|errors| {
        let guessed = guessed(&rows, *errors);
        let pairs = guessed.iter().zip(&secrets);
        let is_right = |(guess, secret): &(&f64, &f64)| match kind {
            Secret::Value => (*guess - *secret).abs() < READ,
            // Half of the way between the two levels.
            Secret::Level => (**guess > 0.6547) == (**secret > 0.0),
        };
        pairs.filter(is_right).count()
    });
    right.max().unwrap()
}

#[test]
fn what_is_told_is_what_the_attacker_works_out() {
    let sites = sites(1, Secret::Value);
    let secrets = sites.iter().flat_map(|one| one.secret.to_vec());
    let secrets: Array1<f64> = secrets.collect();
    let exact = objectives(&sites, Precision::Exact);
    for (metric, threshold) in [(0.0, 0.0), (1.0, 0.5), (3.0, -1.0), (9.0, 4.0)] {
        let question = (Array1::from_elem(1, metric), threshold);
        let entries = said(&answers(&exact, &question), 1);
        for (weights, entry) in weights(&sites, &question).iter().zip(entries) {
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
    let sites = sites(1, Secret::Value);
    let [few, many, most] = [12, 240, 1200].map(|count| {
        [Precision::Exact, Precision::Rounded]
            .map(|one| read(&sites, Secret::Value, one, &questions(1, count)))
    });
    println!("exact and rounded: {few:?} by 12, {many:?} by 240, {most:?} by 1,200");
    assert!(many[0] > 150 && most[0] > 170, "the attack reads nothing");
    // Guesses near the mean alone are right for 7.
    assert!(
        few[1] <= 12 && many[1] <= 25 && most[1] <= 25,
        "{few:?} {many:?} {most:?}"
    );
}

/// What rounding does not hold back: who knows four features of every patient, and not one, reads half of the values of a fifth from 60
/// metrics, and all from 240. Hospitals open pair sums by name alone.
#[test]
fn who_knows_four_features_reads_a_fifth() {
    for kind in [Secret::Value, Secret::Level] {
        let sites = sites(4, kind);
        let [few, many] =
            [60, 240].map(|count| read(&sites, kind, Precision::Rounded, &questions(4, count)));
        println!("{kind:?}: {few} by 60, {many} by 240");
        assert!(few >= 80 && many == 180, "the page says more than there is");
    }
}
