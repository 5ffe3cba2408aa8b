//! The metric does not know which hospital a patient is from: on real patients, of four hospitals, of random splits, and of two sets more.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "support/federation.rs"]
#[allow(dead_code, unreachable_pub)]
mod federation;

#[path = "support/hospitals.rs"]
#[allow(dead_code, unreachable_pub)]
mod hospitals;

use federation::{Federation, Part};
use hospitals::{breast_cancer, data_folder, heart, parkinsons};
use ndarray::{Array1, Array2, Axis, concatenate};
use rand::seq::SliceRandom;
use rand_distr::{Distribution, StandardNormal};
use similarity::learn::unpsl::{Labels, Settings};
use similarity::numeric::seed::Seed;

const ROUNDS_MAX: usize = 60;
const TOLERANCE: f64 = 2e-7;

fn classes(part: &Part) -> &Array1<u32> {
    match &part.labels {
        Labels::Classes(classes) => classes,
        Labels::Pairs(_) | Labels::Judged(_) | Labels::Both { .. } => {
            panic!("patients of known classes")
        }
    }
}

/// The same patients, dealt anew to so many sites of equal size.
fn dealt(parts: &[Part], sites: usize, seed: u64) -> Vec<Part> {
    let views: Vec<_> = parts.iter().map(|part| part.patients.view()).collect();
    let patients = concatenate(Axis(0), &views).unwrap();
    let views: Vec<_> = parts.iter().map(|part| classes(part).view()).collect();
    let classes = concatenate(Axis(0), &views).unwrap();
    let mut order: Vec<usize> = (0..classes.len()).collect();
    order.shuffle(&mut Seed(seed).stream("deal", 0));
    let site = |rows: &[usize]| Part {
        patients: patients.select(Axis(0), rows),
        labels: Labels::Classes(classes.select(Axis(0), rows)),
    };
    order
        .chunks(order.len().div_ceil(sites))
        .map(site)
        .collect()
}

/// With one more column: `step` times the number of the site, and `noise` of the patient. Each column is then centred within the
/// sites and divided by its standard deviation there, or over all patients as in the paper; one that is constant is 0.
fn with_a_telltale(
    parts: &[Part],
    (step, noise): (f64, f64),
    centred: bool,
    seed: u64,
) -> Vec<Part> {
    let mut random = Seed(seed).stream("telltale", 0);
    let widened: Vec<Array2<f64>> = parts
        .iter()
        .enumerate()
        .map(|(site, part)| {
            let column = Array2::from_shape_simple_fn((part.patients.nrows(), 1), || {
                let own: f64 = StandardNormal.sample(&mut random);
                step * site as f64 + noise * own
            });
            concatenate(Axis(1), &[part.patients.view(), column.view()]).unwrap()
        })
        .collect();
    let views: Vec<_> = widened.iter().map(|own| own.view()).collect();
    let all = concatenate(Axis(0), &views).unwrap();
    let within = |column: usize| {
        let squares = |own: &Array2<f64>| own.column(column).var(0.0) * own.nrows() as f64;
        (widened.iter().map(squares).sum::<f64>() / all.nrows() as f64).sqrt()
    };
    let scale = |column: usize| match centred {
        true => within(column),
        false => all.column(column).std(0.0),
    };
    let site = |(own, part): (&Array2<f64>, &Part)| {
        let mut patients = own.clone();
        for (index, mut column) in patients.columns_mut().into_iter().enumerate() {
            let mean = match centred {
                true => column.mean().unwrap(),
                false => all.column(index).mean().unwrap(),
            };
            let scale = scale(index);
            column.mapv_inplace(|value| match scale > 1e-9 {
                true => (value - mean) / scale,
                false => 0.0,
            });
        }
        Part {
            patients,
            labels: Labels::Classes(classes(part).clone()),
        }
    };
    widened.iter().zip(parts).map(site).collect()
}

/// The length of every row of the metric.
fn norms(parts: &[Part], settings: Settings) -> Array1<f64> {
    let federation = Federation::unsolved(parts, settings);
    let run = federation.accelerated(federation.start(0), ROUNDS_MAX, TOLERANCE);
    assert!(run.converged);
    let length = |row: ndarray::ArrayView1<'_, f64>| row.dot(&row).sqrt();
    run.metric.rows().into_iter().map(length).collect()
}

/// The last row beside the largest of all others.
fn share(norms: &Array1<f64>) -> f64 {
    let last = norms.len() - 1;
    let others = norms.iter().take(last);
    norms[last] / others.copied().fold(0.0, f64::max)
}

fn sets() -> Vec<(String, Vec<Part>)> {
    let Some(folder) = data_folder() else {
        println!("skipped: no folder of data in KINDRED_DATA or ../shared/data");
        return Vec::new();
    };
    let hospitals = heart(&folder);
    let splits = (1..4).map(|seed| (format!("heart, split {seed}"), dealt(&hospitals, 3, seed)));
    let mut sets: Vec<(String, Vec<Part>)> = splits.collect();
    sets.insert(0, ("four heart hospitals".to_owned(), hospitals));
    sets.push(("Parkinson's".to_owned(), parkinsons(&folder)));
    sets.extend(breast_cancer().map(|parts| ("breast cancer".to_owned(), parts)));
    sets
}

#[test]
fn the_number_of_the_hospital_is_worth_nothing_and_was_among_the_first() {
    for (name, parts) in sets() {
        let number = (1.0, 0.0);
        let paper = norms(
            &with_a_telltale(&parts, number, false, 1),
            Settings::paper(),
        );
        let own = norms(
            &with_a_telltale(&parts, number, true, 1),
            Settings::default(),
        );
        println!(
            "{name}: the hospital's number has {:.1} % of the largest of the features, and {:.1} % as in the paper",
            100.0 * share(&own),
            100.0 * share(&paper)
        );
        assert!(share(&own) <= 0.05, "{name}");
        // The paper's threshold of 1, and means of all: what this test is able to see.
        assert!(share(&paper) > 0.4, "{name}: {}", share(&paper));
    }
}

/// A column of noise may be fitted like any other; what its means tell of the hospital adds nothing to that.
#[test]
fn the_means_of_hospitals_have_no_part_in_the_metric() {
    for (name, parts) in sets() {
        for seed in 1..4 {
            let of = |step| {
                norms(
                    &with_a_telltale(&parts, (step, 1.0), true, seed),
                    Settings::default(),
                )
            };
            let (without, with) = (of(0.0), of(10.0));
            let apart = (&without - &with).mapv(f64::abs);
            let apart = apart.iter().copied().fold(0.0, f64::max);
            println!(
                "{name}, draw {seed}: {:.1} % of the largest, with or without the means",
                100.0 * share(&with)
            );
            assert!(apart < 1e-4, "{name}: {apart}");
        }
    }
}
