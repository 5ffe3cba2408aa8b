//! An operator who asks about one study's outcome, about its judged pairs, and about both, a thousand times each, and takes the sums
//! apart: of both less those of the outcome are sums over the pairs alone.
//!
//! It knows one feature of every patient, the outcomes, and even who is in which pair, and it chooses every metric. What it wants is the
//! other feature of patients in pairs. Of ten patients with three pairs each and steps as of an outcome it read 28 of 30; of as few as
//! hospitals answer about now, with coarser steps, it comes near to about as many as of an outcome.

use ndarray::{Array1, Array2, Axis, stack};
use privacy::JUDGED_PATIENTS_MIN;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use similarity::learn::unpsl::{
    JudgedPairs, Labels, Settings, SiteObjective, Threshold, Totals, summarise,
};
use similarity::numeric::linear_algebra::Cholesky;
use similarity::numeric::precision::Precision;
use similarity::numeric::seed::Seed;

const SITES: usize = 3;
const PATIENTS: usize = 60;
const TIMES: u32 = 100;
/// Runs of each supervision.
const RUNS: usize = 1_000;
/// A value is read where it is known to so much of a standard deviation.
const READ: f64 = 0.05;
/// ||W'x||^2 in the mean, as much as hospitals answer.
const STEEPEST: f64 = 100.0;
const STEP: f64 = 1.0 / 128.0;

/// Who is in pairs at a site.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Everybody with so many next ones.
    Ring(usize),
    /// One patient with each of the others.
    Hub,
}

struct Site {
    known: Array1<f64>,
    secret: Array1<f64>,
    classes: Array1<u32>,
    pairs: Vec<([usize; 2], bool)>,
}

#[derive(Clone, Copy)]
enum Asked {
    Outcome,
    Pairs,
    Both,
}

const ALL: [Asked; 3] = [Asked::Outcome, Asked::Pairs, Asked::Both];

fn standard(draw: &mut ChaCha8Rng) -> Array1<f64> {
    let values: Array1<f64> = (0..PATIENTS)
        .map(|_| (0..12).map(|_| draw.random::<f64>()).sum::<f64>() - 6.0)
        .collect();
    let mean = values.mean().unwrap();
    (&values - mean) / values.std(0.0)
}

fn sites(shape: Shape) -> Vec<Site> {
    let mut draw = ChaCha8Rng::seed_from_u64(29);
    let members = usize::try_from(JUDGED_PATIENTS_MIN).unwrap();
    let places: Vec<[usize; 2]> = match shape {
        Shape::Ring(next) => (0..members)
            .flat_map(|one| (1..=next).map(move |by| [one, (one + by) % members]))
            .collect(),
        Shape::Hub => (1..=members).map(|one| [0, one]).collect(),
    };
    let site = |_| {
        let [known, secret, noise] = [(); 3].map(|()| standard(&mut draw));
        let classes = (&known + &noise).mapv(|value| u32::from(value > 0.0));
        let pairs = places
            .iter()
            .map(|pair| (*pair, draw.random_range(0..2) == 1));
        let pairs = pairs.collect();
        Site {
            known,
            secret,
            classes,
            pairs,
        }
    };
    (0..SITES).map(site).collect()
}

fn labels(site: &Site, asked: Asked) -> Labels {
    let judged = || JudgedPairs::new(PATIENTS, site.pairs.clone()).unwrap();
    match asked {
        Asked::Outcome => Labels::Classes(site.classes.clone()),
        Asked::Pairs => Labels::Judged(judged()),
        Asked::Both => Labels::Both {
            codes: site.classes.clone(),
            judged: judged(),
            times: TIMES,
        },
    }
}

/// The programs of all hospitals.
fn objectives(sites: &[Site], asked: Asked, precision: Precision) -> Vec<SiteObjective> {
    let settings = Settings {
        rank: 1,
        lambda_correlation: 0.0,
        threshold: Threshold::Common(0.0),
        precision,
        ..Settings::default()
    };
    let labels: Vec<Labels> = sites.iter().map(|site| labels(site, asked)).collect();
    let summaries: Vec<_> = labels
        .iter()
        .map(|own| summarise(own, settings.pairs, Seed(1)))
        .collect();
    let totals = Totals::of(&summaries);
    let made = sites.iter().zip(&labels).map(|(site, labels)| {
        let x = stack![Axis(1), site.known, site.secret];
        SiteObjective::new(&x.view(), labels, &settings, &totals, Seed(1), None).unwrap()
    });
    made.collect()
}

/// The entry of Gamma of the two features, in the sum over all hospitals.
fn told(objectives: &[SiteObjective], [weight, border]: [f64; 2]) -> f64 {
    let matrix = Array2::from_shape_vec((3, 1), vec![weight, 0.0, border]).unwrap();
    let answers = objectives.iter();
    answers
        .map(|one| one.derivatives(&matrix, None).unwrap().gradient[[0, 1]])
        .sum()
}

/// All pairs of a site that enter a sum, with what each counts.
fn counted(site: &Site, asked: Asked) -> Vec<([usize; 2], bool, f64)> {
    let of_outcome = || {
        (0..PATIENTS).flat_map(|one| {
            (0..one).map(move |other| ([one, other], site.classes[one] == site.classes[other], 1.0))
        })
    };
    let of_pairs = |times: f64| {
        let pairs = site.pairs.iter();
        pairs.map(move |(pair, is_similar)| (*pair, *is_similar, times))
    };
    match asked {
        Asked::Outcome => of_outcome().collect(),
        Asked::Pairs => of_pairs(1.0).collect(),
        Asked::Both => of_outcome().chain(of_pairs(f64::from(TIMES))).collect(),
    }
}

/// What each patient's secret weighs in that entry, worked out from what is known.
fn factors(sites: &[Site], asked: Asked, [weight, border]: [f64; 2]) -> Array1<f64> {
    let mut factors = Array1::<f64>::zeros(SITES * PATIENTS);
    let mut all = 0.0;
    for (place, site) in sites.iter().enumerate() {
        for ([one, other], is_similar, times) in counted(site, asked) {
            let y = if is_similar { 1.0 } else { -1.0 };
            let similarity = weight * weight * site.known[one] * site.known[other];
            let wrong = 1.0 / (1.0 + (y * (similarity - border)).exp());
            factors[place * PATIENTS + one] -= 0.5 * times * y * wrong * site.known[other];
            factors[place * PATIENTS + other] -= 0.5 * times * y * wrong * site.known[one];
            all += times;
        }
    }
    factors / all
}

/// Steep and gentle metrics of the known feature, with borders over all that its similarities are.
fn questions() -> Vec<[f64; 2]> {
    let slopes = RUNS.isqrt();
    let question = |one: usize| {
        let part = (one % slopes) as f64 / slopes as f64;
        let weight = STEEPEST.sqrt() * 0.05_f64.powf(1.0 - part);
        let border = 6.0 * (one / slopes) as f64 / (RUNS / slopes) as f64 - 3.0;
        [weight, weight * weight * border.powi(3) / 9.0]
    };
    (0..RUNS).map(question).collect()
}

/// Secrets of patients in pairs that are read from the answers to all questions, how many they are, and how many the best guess without
/// an answer, the mean, comes as near to.
fn read(sites: &[Site], precision: Precision) -> (usize, usize, usize) {
    let mut rows: Vec<(Array1<f64>, f64, f64)> = Vec::new();
    for asked in ALL {
        let objectives = objectives(sites, asked, precision);
        for question in questions() {
            let factors = factors(sites, asked, question);
            // Half of a step, as of evenly many pairs.
            let error = match precision {
                Precision::Exact => 1e-8,
                Precision::Rounded => STEP / (2 * SITES * PATIENTS) as f64,
            };
            rows.push((factors, told(&objectives, question), error));
        }
    }
    let members = |site: &Site| {
        let mut is_member = vec![false; PATIENTS];
        for (pair, _) in &site.pairs {
            pair.iter().for_each(|patient| is_member[*patient] = true);
        }
        is_member
    };
    let is_member: Vec<bool> = sites.iter().flat_map(members).collect();
    let secrets: Vec<f64> = sites.iter().flat_map(|one| one.secret.to_vec()).collect();
    let near = |guess: &[f64]| {
        let all = guess.iter().zip(&secrets).zip(&is_member);
        all.filter(|((guess, secret), is_member)| **is_member && (*guess - *secret).abs() < READ)
            .count()
    };
    // The best of several beliefs of how far numbers are rounded.
    let beliefs = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
    let right = beliefs.map(|belief| near(&guessed(&rows, belief)));
    let few = is_member.iter().filter(|one| **one).count();
    let mean = near(&vec![0.0; secrets.len()]);
    (right.into_iter().max().unwrap(), few, mean)
}

/// The best guess, where secrets are standard normal.
fn guessed(rows: &[(Array1<f64>, f64, f64)], belief: f64) -> Vec<f64> {
    let patients = SITES * PATIENTS;
    let mut scaled = Array2::<f64>::zeros((rows.len(), patients));
    let mut right = Array1::<f64>::zeros(rows.len());
    for (place, (factors, told, error)) in rows.iter().enumerate() {
        scaled.row_mut(place).assign(&(factors / (error * belief)));
        right[place] = told / (error * belief);
    }
    let normal = scaled.t().dot(&scaled) + Array2::<f64>::eye(patients);
    let right = scaled.t().dot(&right).insert_axis(Axis(1));
    let solved = Cholesky::factor(&normal).unwrap().solve(&right);
    solved.column(0).to_vec()
}

#[test]
fn sums_over_pairs_less_those_of_the_outcome_read_nobody_in_a_thousand_runs() {
    for shape in [Shape::Ring(1), Shape::Ring(4), Shape::Hub] {
        let sites = sites(shape);
        // The attacker works out what is told.
        let secrets = sites.iter().flat_map(|one| one.secret.to_vec());
        let secrets: Array1<f64> = secrets.collect();
        for asked in ALL {
            let exact = objectives(&sites, asked, Precision::Exact);
            for question in [[0.5, 0.1], [3.0, -1.0]] {
                let away = factors(&sites, asked, question).dot(&secrets) - told(&exact, question);
                assert!(away.abs() < 1e-12, "{away}");
            }
        }
        let (by_exact, few, by_mean) = read(&sites, Precision::Exact);
        let (by_rounded, ..) = read(&sites, Precision::Rounded);
        println!(
            "{shape:?}, of {few}: exact {by_exact}, rounded {by_rounded}, by the mean {by_mean}"
        );
        assert!(
            3 * by_exact > 2 * few,
            "the attack reads nothing: {by_exact}"
        );
        assert!(by_rounded <= few / 6, "{shape:?}: {by_rounded} of {few}");
    }
}
