//! How near plain ADMM comes to the optimum in 60 rounds, from its own start and penalty. Within 1e-4 it stops; real data are harder, and
//! each set has the gap that it must reach.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // what a threshold came to

#[path = "support/federation.rs"]
#[allow(dead_code, unreachable_pub)]
mod federation;

#[path = "support/hospitals.rs"]
#[allow(dead_code, unreachable_pub)]
mod hospitals;

use federation::{FORMS, Federation, Part, ROUNDS_MAX, synthetic_parts};
use hospitals::{breast_cancer, data_folder, heart, parkinsons};
use similarity::learn::unpsl::Settings;
use similarity::numeric::admm::ConsensusSettings;

/// Where the gap is small enough to stop.
const ENOUGH: f64 = 1e-4;

/// The paper's b = 1 and a threshold of each site: the gap to the optimum, by the accelerated consensus, after at most 60 rounds.
fn assert_comes_within(gap: f64, parts: &[Part]) {
    for (form, threshold) in [FORMS[0], FORMS[1]] {
        let settings = Settings {
            form,
            threshold,
            ..Settings::default()
        };
        let mut federation = Federation::unsolved(parts, settings);
        federation.minimum = federation
            .accelerated(federation.start(7), ROUNDS_MAX, 1e-12)
            .objective;
        let penalty = settings.penalty_start(parts.len() as u64, 1);
        let plain = ConsensusSettings::new(settings.lambda_sparsity, federation.features, penalty);
        for start in 0..2 {
            let run = federation.plain(federation.start(start), plain, ROUNDS_MAX, ENOUGH);
            let (rounds, last) = (run.gaps.len(), *run.gaps.last().unwrap());
            assert!(
                last < gap,
                "{threshold:?}, start {start}: {last:e} after {rounds} rounds"
            );
        }
    }
}

#[test]
fn on_the_papers_synthetic_set() {
    assert_comes_within(ENOUGH, &synthetic_parts(5));
}

#[test]
fn on_parkinsons() {
    let Some(folder) = data_folder() else {
        println!("skipped: no parkinsons.csv in KINDRED_DATA or ../shared/data");
        return;
    };
    assert_comes_within(2e-3, &parkinsons(&folder));
}

#[test]
fn on_four_heart_hospitals() {
    let Some(folder) = data_folder() else {
        println!("skipped: no heart_disease folder in KINDRED_DATA or ../shared/data");
        return;
    };
    assert_comes_within(2e-2, &heart(&folder));
}

#[test]
fn on_breast_cancer() {
    let Some(parts) = breast_cancer() else {
        println!("skipped: KINDRED_BREAST_CANCER names no file");
        return;
    };
    // Separable and collinear: 60 rounds are not enough there.
    assert_comes_within(2e-2, &parts);
}
