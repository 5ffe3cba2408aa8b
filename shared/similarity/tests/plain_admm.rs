//! Plain ADMM, led by the first questions of the few-rounds search, comes within 1e-4 of the optimum in 60 rounds, these questions included.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // how many rounds it took

#[path = "support/federation.rs"]
#[allow(dead_code, unreachable_pub)]
mod federation;

#[path = "support/hospitals.rs"]
#[allow(dead_code, unreachable_pub)]
mod hospitals;

use federation::{FORMS, Federation, Part, ROUNDS_MAX, synthetic_parts};
use hospitals::{breast_cancer, data_folder, heart, parkinsons};
use ndarray::s;
use similarity::learn::unpsl::accelerated::{LEAD, sum};
use similarity::learn::unpsl::{Form, Settings, Threshold, way_out};
use similarity::numeric::admm::ConsensusSettings;
use std::path::Path;

/// Where the gap is small enough to stop.
const ENOUGH: f64 = 1e-4;
const STARTS: u64 = 5;

/// The gap to the optimum, by the accelerated consensus, of every start after at most 60 rounds.
fn assert_comes_near(parts: &[Part], (form, threshold): (Form, Threshold)) {
    let settings = Settings {
        form,
        threshold,
        ..Settings::default()
    };
    let mut federation = Federation::unsolved(parts, settings);
    federation.minimum = federation
        .accelerated(federation.start(7), ROUNDS_MAX, 1e-12)
        .objective;
    let penalty = settings.penalty_led(parts.len() as u64, 1);
    let plain = ConsensusSettings::new(settings.lambda_sparsity, federation.features, penalty);
    for start in 0..STARTS {
        let from = federation.led(federation.start(start));
        let run = federation.plain(from, plain, ROUNDS_MAX - LEAD as usize, ENOUGH);
        let (rounds, last) = (LEAD as usize + run.gaps.len(), *run.gaps.last().unwrap());
        let found =
            format!("{form:?}, {threshold:?}, start {start}: {last:.1e} after {rounds} rounds");
        println!("{found}");
        assert!(last < ENOUGH, "{found}");
    }
}

/// Both forms, each with the paper's b = 1 and with a threshold of each site.
fn assert_arrives(parts: &[Part]) {
    for form in [0, 1, 3, 4] {
        assert_comes_near(parts, FORMS[form]);
    }
}

/// What the data folder has, where it is there.
fn of_folder(read: fn(&Path) -> Vec<Part>) -> Option<Vec<Part>> {
    let folder = data_folder();
    if folder.is_none() {
        println!("skipped: no data in KINDRED_DATA or ../shared/data");
    }
    folder.map(|folder| read(&folder))
}

/// No round leaves a start of one column, and each of them is stationary in the others. From the way out of where it ends, as often as there
/// is one, ADMM comes near the optimum.
#[test]
fn a_start_made_to_stall_has_a_way_out() {
    let settings = Settings::default();
    let mut federation = Federation::unsolved(&synthetic_parts(5), settings);
    federation.minimum = federation
        .accelerated(federation.start(7), ROUNDS_MAX, 1e-12)
        .objective;
    let penalty = settings.penalty_led(3, 1);
    let plain = ConsensusSettings::new(settings.lambda_sparsity, federation.features, penalty);
    let mut from = federation.start(0);
    from.slice_mut(s![.., 1..]).fill(0.0);
    let mut gaps = Vec::new();
    loop {
        let run = federation.plain(from, plain, 60, 1e-6);
        gaps.push(*run.gaps.last().unwrap());
        let answers = federation.sites.iter();
        let answers = answers.map(|site| site.derivatives(&run.metric, None).unwrap());
        let answer = sum(answers).unwrap();
        let lambda = settings.lambda_sparsity;
        match way_out(&run.metric, &answer, lambda, settings.form) {
            Some(out) if out.fall > 1e-4 * federation.minimum => from = out.metric,
            Some(_) | None => break,
        }
    }
    println!("gaps {gaps:?}");
    assert!(gaps[0] > 0.01, "the start does not stall");
    assert!(gaps.len() > 2 && gaps.is_sorted_by(|a, b| a > b));
    assert!(gaps[gaps.len() - 1] < ENOUGH);
}

#[test]
fn on_the_papers_synthetic_set() {
    assert_arrives(&synthetic_parts(5));
}

#[test]
fn on_parkinsons() {
    if let Some(parts) = of_folder(parkinsons) {
        assert_arrives(&parts);
    }
}

#[test]
fn on_four_heart_hospitals() {
    if let Some(parts) = of_folder(heart) {
        assert_arrives(&parts);
    }
}

#[test]
fn on_breast_cancer() {
    let Some(parts) = breast_cancer() else {
        println!("skipped: KINDRED_BREAST_CANCER names no file");
        return;
    };
    assert_arrives(&parts);
}
