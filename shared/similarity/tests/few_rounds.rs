//! Accelerated consensus ADMM needs few rounds from any starting penalty, and keeps its promises.

#![allow(clippy::unwrap_used)]

#[path = "support/federation.rs"]
#[allow(dead_code, unreachable_pub)]
mod federation;

#[path = "support/hospitals.rs"]
#[allow(dead_code, unreachable_pub)]
mod hospitals;

use federation::{Federation, Part, synthetic_parts};
use hospitals::{data_folder, heart, parkinsons};
use ndarray::Array2;
use similarity::numeric::admm::{
    AcceleratedConsensus, AcceleratedError, AcceleratedSettings, ConsensusError, ConsensusSettings,
    Contribution, SecondMoments,
};

const GAP: f64 = 1e-4;

/// The best fixed penalties that the benchmark of rounds found, by set, at rank 8.
const SYNTHETIC: f64 = 0.03;
const PARKINSONS: f64 = 0.3;
const HEART: f64 = 0.3;

/// Every start within 15 rounds from penalties of 0.01 to 100 times `best_fixed`.
fn assert_few_rounds(parts: &[Part], rank: usize, best_fixed: f64, starts: u64) {
    let federation = Federation::new(parts, rank);
    for factor in [0.01, 0.1, 1.0, 10.0, 100.0] {
        for index in 0..starts {
            let start = federation.start(index);
            let run = federation.accelerated(start, factor * best_fixed, 15, GAP);
            assert!(
                run.first_below(GAP).is_some(),
                "m = {rank}, {factor}x, start {index}: gaps {:?}",
                run.gaps
            );
        }
    }
}

#[test]
fn the_papers_synthetic_set_takes_at_most_15_rounds_from_any_penalty_within_two_decades() {
    assert_few_rounds(&synthetic_parts(5), 8, SYNTHETIC, 3);
}

#[test]
fn parkinsons_takes_at_most_15_rounds_from_any_penalty_within_two_decades() {
    let Some(folder) = data_folder() else {
        println!("skipped: no parkinsons.csv in KINDRED_DATA or ../shared/data");
        return;
    };
    assert_few_rounds(&parkinsons(&folder), 8, PARKINSONS, 3);
}

#[test]
fn four_heart_hospitals_take_at_most_15_rounds_from_any_penalty_within_two_decades() {
    let Some(folder) = data_folder() else {
        println!("skipped: no heart_disease folder in KINDRED_DATA or ../shared/data");
        return;
    };
    assert_few_rounds(&heart(&folder), 8, HEART, 2);
}

#[test]
fn fixed_penalty_admm_does_not_get_there_from_two_decades_off() {
    let federation = Federation::new(&synthetic_parts(5), 8);
    for factor in [0.01, 100.0] {
        let mut settings = ConsensusSettings::new(3e-3, 30, factor * SYNTHETIC);
        settings.penalty.adaptive_rounds = 0;
        let run = federation.plain(federation.start(0), settings, 15, GAP);
        assert_eq!(run.first_below(GAP), None, "{factor}x");
    }
}

#[test]
fn it_converges_to_the_pooled_minimum_within_tight_tolerances() {
    let federation = Federation::new(&synthetic_parts(5), 8);
    let run = federation.accelerated(federation.start(0), SYNTHETIC, 60, f64::NEG_INFINITY);
    assert!(run.converged, "gaps {:?}", run.gaps);
    assert!(run.gaps.last().unwrap().abs() < 1e-7, "gaps {:?}", run.gaps);
}

#[test]
fn plain_admm_that_wanders_under_too_small_a_penalty_is_noticed_and_the_penalty_raised() {
    let federation = Federation::new(&synthetic_parts(5), 8);
    let mut settings = ConsensusSettings::new(3e-3, 30, 0.03 * SYNTHETIC);
    settings.penalty.adaptive_rounds = 1;
    let run = federation.plain(federation.start(0), settings, 40, GAP);
    assert!(run.safeguarded > 0, "gaps {:?}", run.gaps);
    let rises = |gaps: &[f64]| gaps.windows(2).filter(|two| two[1] > two[0]).count();
    assert!(rises(&run.gaps) > 1, "gaps {:?}", run.gaps);
}

fn settings(pair_weights: Vec<f64>) -> AcceleratedSettings {
    AcceleratedSettings {
        lambda_sparsity: 0.0,
        penalty_start: 1.0,
        second_moments: SecondMoments::Estimated { features: 2 },
        pair_weights,
        tolerance_absolute: 1e-9,
        tolerance_relative: 1e-6,
    }
}

/// A contribution to f(W) = ||W - 1||^2 / 2 * `height`, with W_p of (4.21) in closed form.
fn contribution(
    consensus: &AcceleratedConsensus,
    site: usize,
    height: f64,
) -> Option<Contribution> {
    let (w, rho) = (consensus.consensus(), consensus.penalty());
    let centre = consensus.centre(site).unwrap();
    Some(Contribution {
        matrix: (centre * rho + height) / (rho + height),
        gradient_at_consensus: (w - 1.0) * height,
        objective_at_consensus: 1.0 + 0.5 * height * (w - 1.0).mapv(|v| v * v).sum(),
    })
}

#[test]
fn the_safeguard_goes_back_to_the_best_where_the_objective_rises() {
    let start = Array2::from_elem((2, 2), 0.5);
    let mut consensus = AcceleratedConsensus::new(start.clone(), settings(vec![1.0])).unwrap();
    let first = contribution(&consensus, 0, 1.0);
    assert!(!consensus.absorb(&[first]).unwrap().safeguarded);
    let (tried, penalty) = (consensus.consensus().clone(), consensus.penalty());
    let mut risen = contribution(&consensus, 0, 1.0).unwrap();
    risen.objective_at_consensus = 100.0;
    assert!(consensus.absorb(&[Some(risen)]).unwrap().safeguarded);
    assert_eq!(consensus.best(), start);
    assert!(consensus.penalty() > penalty);
    let distance = |w: &Array2<f64>| (w - &start).mapv(|v| v * v).sum();
    assert!(distance(consensus.consensus()) < distance(&tried));
}

#[test]
fn a_round_without_a_site_has_no_objective_and_never_converges() {
    let start = Array2::ones((2, 2));
    let mut consensus = AcceleratedConsensus::new(start, settings(vec![0.5, 0.5])).unwrap();
    let one = contribution(&consensus, 0, 1.0);
    let round = consensus.absorb(&[one.clone(), None]).unwrap();
    assert_eq!(round.objective, None);
    assert!(!round.residuals.converged());
    consensus.suspend_site(1);
    let one = contribution(&consensus, 0, 1.0);
    let round = consensus.absorb(&[one, None]).unwrap();
    assert!(round.residuals.converged());
    assert_eq!(consensus.sites(), 1);
}

#[test]
fn bad_settings_and_contributions_are_refused() {
    let start = Array2::ones((2, 2));
    let refused = |settings| AcceleratedConsensus::new(Array2::ones((2, 2)), settings).unwrap_err();
    assert!(matches!(
        refused(settings(vec![])),
        AcceleratedError::Consensus(ConsensusError::NoSites)
    ));
    assert!(matches!(
        refused(settings(vec![0.0])),
        AcceleratedError::Consensus(ConsensusError::Setting {
            setting: "pair_weights",
            ..
        })
    ));
    let mut consensus = AcceleratedConsensus::new(start, settings(vec![1.0])).unwrap();
    let mut bad = contribution(&consensus, 0, 1.0).unwrap();
    bad.gradient_at_consensus[[0, 1]] = f64::NAN;
    assert!(matches!(
        consensus.absorb(&[Some(bad)]),
        Err(AcceleratedError::Consensus(ConsensusError::NotFinite {
            site: 0
        }))
    ));
}
