//! The coordinator's arithmetic, one rule at a time.

#![allow(clippy::unwrap_used)]

use ndarray::{Array2, array};
use similarity::numeric::admm::{Consensus, ConsensusError, ConsensusSettings, PenaltySettings};

/// Plain ADMM: no relaxation, a fixed penalty of 2, no sparsity.
fn plain() -> ConsensusSettings {
    ConsensusSettings {
        relaxation: 1.0,
        penalty: PenaltySettings {
            start: 2.0,
            adaptive_rounds: 0,
        },
        ..ConsensusSettings::new(0.0, 2, 2.0)
    }
}

fn two_sites(settings: ConsensusSettings) -> Consensus {
    Consensus::new(array![[1.0, 0.0], [0.0, 1.0]], 2, settings).unwrap()
}

#[test]
fn a_round_is_the_mean_and_the_duals_are_the_differences() {
    let mut consensus = two_sites(plain());
    let (north, south) = (
        array![[3.0, 0.0], [0.0, 2.0]],
        array![[1.0, 2.0], [0.0, 0.0]],
    );
    let residuals = consensus.absorb(&[Some(north), Some(south)]).unwrap();
    let mean = array![[2.0, 1.0], [0.0, 1.0]];
    assert_eq!(consensus.consensus(), mean);
    // U_p = W_p - W, so the centre W - U_p is 2 W - W_p
    assert_eq!(consensus.centre(0).unwrap(), array![[1.0, 2.0], [0.0, 0.0]]);
    assert_eq!(consensus.centre(1).unwrap(), array![[3.0, 0.0], [0.0, 2.0]]);
    // ||W_p - W||^2 = 3 each; ||W - W_previous||^2 = 2, rho = 2, P = 2
    assert!((residuals.primal - 6_f64.sqrt()).abs() < 1e-15);
    assert!((residuals.dual - 4.0).abs() < 1e-15);
    assert!(residuals.complete && !residuals.converged());
}

#[test]
fn rows_shrink_by_lambda_over_penalty_and_sites_but_not_the_thresholds() {
    let settings = ConsensusSettings {
        lambda_sparsity: 4.0,
        feature_rows: 1,
        ..plain()
    };
    let mut consensus = two_sites(settings);
    let answer = array![[3.0, 4.0], [0.5, 0.0]];
    consensus
        .absorb(&[Some(answer.clone()), Some(answer)])
        .unwrap();
    // 4 / (2 * 2) = 1 off a norm of 5; the second row is no feature
    let wanted = array![[2.4, 3.2], [0.5, 0.0]];
    assert!(
        (consensus.consensus() - &wanted)
            .iter()
            .all(|d| d.abs() < 1e-15)
    );
    assert!((consensus.sparsity_term(&wanted.view()) - 16.0).abs() < 1e-14);
}

#[test]
fn over_relaxation_mixes_in_the_last_consensus() {
    let mut consensus = two_sites(ConsensusSettings {
        relaxation: 1.5,
        ..plain()
    });
    let answer = array![[3.0, 0.0], [0.0, 1.0]];
    let residuals = consensus
        .absorb(&[Some(answer.clone()), Some(answer)])
        .unwrap();
    // 1.5 * 3 - 0.5 * 1
    assert_eq!(consensus.consensus(), array![[4.0, 0.0], [0.0, 1.0]]);
    // the primal residual is of W_p itself
    assert!((residuals.primal - 2_f64.sqrt()).abs() < 1e-15);
}

#[test]
fn a_stragglers_last_answer_counts_and_its_dual_rests() {
    let mut consensus = two_sites(plain());
    let (north, south) = (
        array![[3.0, 0.0], [0.0, 2.0]],
        array![[1.0, 2.0], [0.0, 0.0]],
    );
    consensus
        .absorb(&[Some(north.clone()), Some(south)])
        .unwrap();
    let dual_before = consensus.consensus() - &consensus.centre(1).unwrap();
    let residuals = consensus.absorb(&[Some(north), None]).unwrap();
    // north: (3, 0; 0, 2) + (1, -1; 0, 1); south: (1, 2; 0, 0) + (-1, 1; 0, -1)
    assert_eq!(consensus.consensus(), array![[2.0, 1.0], [0.0, 1.0]]);
    let dual_after = consensus.consensus() - &consensus.centre(1).unwrap();
    assert_eq!(dual_before, dual_after);
    assert!(!residuals.complete && !residuals.converged());
}

#[test]
fn an_incomplete_round_never_counts_as_converged() {
    let mut consensus = two_sites(plain());
    let same = consensus.consensus().clone();
    let half = consensus.absorb(&[Some(same.clone()), None]).unwrap();
    assert!(half.primal == 0.0 && half.dual == 0.0 && !half.converged());
    let whole = consensus.absorb(&[Some(same.clone()), Some(same)]).unwrap();
    assert!(whole.converged());
}

#[test]
fn a_site_that_is_away_does_not_count_and_comes_back_with_its_dual() {
    let mut consensus = two_sites(plain());
    let (north, south) = (
        array![[3.0, 0.0], [0.0, 2.0]],
        array![[1.0, 2.0], [0.0, 0.0]],
    );
    consensus.absorb(&[Some(north), Some(south)]).unwrap();
    let dual = consensus.consensus() - &consensus.centre(1).unwrap();
    consensus.suspend_site(1);
    assert_eq!(consensus.sites(), 1);
    assert!(consensus.centre(1).is_none());
    // north's own dual, (1, -1; 0, 1), is all that is added to its answer
    let answer = array![[5.0, 0.0], [0.0, 2.0]];
    let residuals = consensus.absorb(&[Some(answer), None]).unwrap();
    assert_eq!(consensus.consensus(), array![[6.0, -1.0], [0.0, 3.0]]);
    assert!(residuals.complete);
    consensus.resume_site(1);
    assert_eq!(consensus.sites(), 2);
    assert_eq!(consensus.consensus() - &consensus.centre(1).unwrap(), dual);
}

#[test]
fn a_new_penalty_rescales_the_duals() {
    let penalty = PenaltySettings {
        start: 2.0,
        adaptive_rounds: 8,
    };
    let mut consensus = two_sites(ConsensusSettings { penalty, ..plain() });
    let (north, south) = (
        array![[3.0, 0.0], [0.0, 2.0]],
        array![[1.0, 2.0], [0.0, 0.0]],
    );
    consensus
        .absorb(&[Some(north.clone()), Some(south)])
        .unwrap();
    assert!(consensus.penalty() != 2.0);
    let dual = consensus.consensus() - &consensus.centre(0).unwrap();
    let unscaled = (&north - consensus.consensus()) * 2.0;
    let now = dual * consensus.penalty();
    assert!(
        (now - unscaled)
            .iter()
            .all(|difference| difference.abs() < 1e-12)
    );
}

#[test]
fn what_cannot_be_used_is_refused_and_changes_nothing() {
    let start = Array2::ones((2, 2));
    let refused = |settings| Consensus::new(start.clone(), 2, settings).unwrap_err();
    let strange = [
        ConsensusSettings {
            lambda_sparsity: -1.0,
            ..plain()
        },
        ConsensusSettings {
            relaxation: 2.0,
            ..plain()
        },
        ConsensusSettings {
            tolerance_relative: f64::NAN,
            ..plain()
        },
        ConsensusSettings {
            penalty: PenaltySettings {
                start: 0.0,
                adaptive_rounds: 0,
            },
            ..plain()
        },
    ];
    for settings in strange {
        assert!(
            matches!(refused(settings), ConsensusError::Setting { .. }),
            "{settings:?}"
        );
    }
    let wide = ConsensusSettings {
        feature_rows: 3,
        ..plain()
    };
    assert_eq!(
        refused(wide),
        ConsensusError::FeatureRows {
            found: 2,
            wanted: 3
        }
    );
    assert_eq!(
        Consensus::new(start.clone(), 0, plain()).unwrap_err(),
        ConsensusError::NoSites
    );

    let mut consensus = two_sites(plain());
    let before = consensus.consensus().clone();
    let fine = || Some(Array2::ones((2, 2)));
    let few = consensus.absorb(&[fine()]).unwrap_err();
    assert_eq!(
        few,
        ConsensusError::Places {
            found: 1,
            wanted: 2
        }
    );
    let shape = consensus
        .absorb(&[fine(), Some(Array2::ones((2, 3)))])
        .unwrap_err();
    assert!(matches!(
        shape,
        ConsensusError::Shape {
            site: 1,
            found_columns: 3,
            ..
        }
    ));
    let nan = consensus
        .absorb(&[Some(array![[0.0, f64::NAN], [0.0, 0.0]]), fine()])
        .unwrap_err();
    assert_eq!(nan, ConsensusError::NotFinite { site: 0 });
    assert_eq!(consensus.consensus(), before);
    assert_eq!(consensus.centre(0).unwrap(), before);
}
