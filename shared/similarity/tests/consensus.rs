//! The coordinator's arithmetic, one rule at a time.

#![allow(clippy::unwrap_used)]

use ndarray::{Array2, array};
use similarity::numeric::admm::{
    Consensus, ConsensusError, ConsensusSettings, PenaltySettings, PooledConsensus, SiteDual,
    UpdateProducts,
};

/// Plain ADMM: no relaxation, a fixed penalty of 2, no sparsity.
fn plain() -> ConsensusSettings {
    ConsensusSettings {
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
    let residuals = consensus.absorb(&[north, south]).unwrap();
    let mean = array![[2.0, 1.0], [0.0, 1.0]];
    assert_eq!(consensus.consensus(), mean);
    // U_p = W_p - W, so the centre W - U_p is 2 W - W_p
    assert_eq!(consensus.centre(0).unwrap(), array![[1.0, 2.0], [0.0, 0.0]]);
    assert_eq!(consensus.centre(1).unwrap(), array![[3.0, 0.0], [0.0, 2.0]]);
    // ||W_p - W||^2 = 3 each; ||W - W_previous||^2 = 2, rho = 2, P = 2
    assert!((residuals.primal - 6_f64.sqrt()).abs() < 1e-15);
    assert!((residuals.dual - 4.0).abs() < 1e-15);
    assert!(!residuals.converged());
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
    consensus.absorb(&[answer.clone(), answer]).unwrap();
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
    let residuals = consensus.absorb(&[answer.clone(), answer]).unwrap();
    // 1.5 * 3 - 0.5 * 1
    assert_eq!(consensus.consensus(), array![[4.0, 0.0], [0.0, 1.0]]);
    // the primal residual is of W_p itself
    assert!((residuals.primal - 2_f64.sqrt()).abs() < 1e-15);
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
    consensus.absorb(&[north.clone(), south]).unwrap();
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
    let fine = || Array2::ones((2, 2));
    let few = consensus.absorb(&[fine()]).unwrap_err();
    assert_eq!(
        few,
        ConsensusError::Places {
            found: 1,
            wanted: 2
        }
    );
    let shape = consensus
        .absorb(&[fine(), Array2::ones((2, 3))])
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
        .absorb(&[array![[0.0, f64::NAN], [0.0, 0.0]], fine()])
        .unwrap_err();
    assert_eq!(nan, ConsensusError::NotFinite { site: 0 });
    assert_eq!(consensus.consensus(), before);
    assert_eq!(consensus.centre(0).unwrap(), before);
}

const SITES: usize = 3;

/// (4.21) of the smooth part a_p / 2 ||V - T_p||^2, which has a closed form.
fn solve(site: usize, centre: &Array2<f64>, penalty: f64) -> Array2<f64> {
    let target = Array2::from_shape_fn((4, 2), |(row, column)| {
        ((site * 7 + row * 3 + column * 5) % 11) as f64 - 4.5
    });
    let curvature = 0.2 + 0.3 * site as f64;
    (target * curvature + centre * penalty) / (curvature + penalty)
}

/// One round of sites that hold their duals; gives their answers' sum and products.
fn answers(duals: &mut [SiteDual], pooled: &PooledConsensus) -> (Array2<f64>, UpdateProducts) {
    let (mut sum, mut products) = (Array2::zeros((4, 2)), UpdateProducts::default());
    for (site, dual) in duals.iter_mut().enumerate() {
        let centre = dual.centre(pooled.consensus(), &pooled.step());
        // Asked again it is the same.
        assert_eq!(dual.centre(pooled.consensus(), &pooled.step()), centre);
        let answer = solve(site, &centre, pooled.penalty());
        let own = dual.answered(pooled.consensus(), &answer);
        products.update += own.update;
        products.cross += own.cross;
        products.dual += own.dual;
        sum += &answer;
    }
    (sum, products)
}

/// The objective wanders now and then.
fn wandering(round: u32) -> f64 {
    match round % 5 > 2 {
        true => 1.0 + f64::from(round),
        false => 0.5,
    }
}

/// (4.21) to (4.23), written here of duals Y_p = rho U_p that no penalty scales, with over-relaxation. Sites that hold their duals, and a
/// coordinator that gets sums alone, go the same way, also while the penalty grows before and after the move.
#[test]
fn sums_alone_go_the_way_of_the_papers_formulas() {
    for (start, adaptive_rounds) in [(2.0, 0), (0.01, 8), (1e-4, 8), (50.0, 8)] {
        let settings = ConsensusSettings {
            penalty: PenaltySettings {
                start,
                adaptive_rounds,
            },
            relaxation: 1.5,
            memory: 0,
            ..ConsensusSettings::new(0.4, 3, start)
        };
        let mut w = Array2::from_elem((4, 2), 0.1);
        let mut ys = vec![Array2::<f64>::zeros((4, 2)); SITES];
        let mut pooled = PooledConsensus::new(w.clone(), settings).unwrap();
        let mut duals = vec![SiteDual::new(settings.relaxation); SITES];
        for round in 0..60 {
            let rho = pooled.penalty();
            let own: Vec<Array2<f64>> = (0..SITES)
                .map(|site| solve(site, &(&w - &(&ys[site] / rho)), rho))
                .collect();
            let (sum, products) = answers(&mut duals, &pooled);
            let residuals = pooled.absorb(&sum, &products, SITES).unwrap();
            let rho = rho * pooled.step().before;
            let moved = |site: usize| &own[site] * 1.5 - &w * 0.5 + &ys[site] / rho;
            let mean = (moved(0) + moved(1) + moved(2)) / 3.0;
            let mut next = mean.clone();
            for mut row in next.rows_mut().into_iter().take(3) {
                let norm = row.dot(&row).sqrt();
                row *= (1.0 - 0.4 / (rho * 3.0) / norm).max(0.0);
            }
            ys = (0..SITES).map(|site| (moved(site) - &next) * rho).collect();
            let norm = |m: &Array2<f64>| m.iter().map(|x| x * x).sum::<f64>().sqrt();
            let apart: f64 = own.iter().map(|one| norm(&(one - &next)).powi(2)).sum();
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(1e-4);
            assert!(near(residuals.primal, apart.sqrt()), "{residuals:?}");
            let dual = rho * 3_f64.sqrt() * norm(&(&next - &w));
            assert!(near(residuals.dual, dual), "{residuals:?} {dual}");
            let all = ys.iter().map(|y| norm(y).powi(2)).sum::<f64>().sqrt();
            assert!(near(
                residuals.dual_tolerance,
                1e-4 * all + 1e-9 * 24_f64.sqrt()
            ));
            let far = (&next - pooled.consensus()).iter().any(|x| x.abs() > 1e-10);
            assert!(!far, "round {round}: {next} {}", pooled.consensus());
            w = next;
            pooled.observe_objective(wandering(round));
        }
    }
}

/// The minimum of sum_p a_p / 2 ||W - T_p||^2 + 0.4 ||W||_{2,1} is known: the weighted mean, with its rows shrunk. Mixtures lead to
/// it in fewer rounds, the duals of the sites stay those of which the coordinator knows the mean, and the objective that the safeguard
/// sees does not matter.
#[test]
fn mixtures_of_rounds_arrive_sooner_at_the_same_minimum() {
    let mut mean = Array2::<f64>::zeros((4, 2));
    for site in 0..SITES {
        mean = mean + solve(site, &Array2::zeros((4, 2)), 0.0) * (0.2 + 0.3 * site as f64) / 1.5;
    }
    for mut row in mean.rows_mut().into_iter().take(3) {
        let norm = row.dot(&row).sqrt();
        row *= (1.0 - 0.4 / 1.5 / norm).max(0.0);
    }
    let rounds = |memory: usize, start: f64, wanders: bool| {
        let settings = ConsensusSettings {
            memory,
            ..ConsensusSettings::new(0.4, 3, start)
        };
        let from = Array2::from_elem((4, 2), 0.1);
        let mut pooled = PooledConsensus::new(from, settings).unwrap();
        let mut duals = vec![SiteDual::new(settings.relaxation); SITES];
        for round in 0..400 {
            let (sum, products) = answers(&mut duals, &pooled);
            pooled.absorb(&sum, &products, SITES).unwrap();
            if wanders {
                pooled.observe_objective(wandering(round));
            }
            let mut own = Array2::<f64>::zeros((4, 2));
            for dual in &duals {
                let centre = dual.clone().centre(pooled.consensus(), &pooled.step());
                own = own + (pooled.consensus() - &centre) / 3.0;
            }
            let apart = own - pooled.mean_dual(SITES);
            assert!(
                apart.iter().all(|x: &f64| x.abs() < 1e-8),
                "round {round}: {apart}"
            );
            if (pooled.consensus() - &mean).iter().all(|x| x.abs() < 1e-8) {
                return round + 1;
            }
        }
        panic!("not there after 400 rounds, with a memory of {memory} from {start}");
    };
    for start in [0.01, 2.0, 50.0] {
        let (mixed, plain) = (rounds(5, start, false), rounds(0, start, false));
        println!("from {start}: {mixed} rounds, {plain} without mixtures");
        assert!(mixed < plain, "from {start}: {mixed} for {plain}");
    }
    rounds(5, 2.0, true);
}

#[test]
fn a_site_that_missed_a_question_begins_at_zero() {
    let settings = ConsensusSettings::new(0.0, 2, 2.0);
    let mut pooled = PooledConsensus::new(array![[1.0], [2.0]], settings).unwrap();
    let mut dual = SiteDual::new(settings.relaxation);
    let answer = array![[2.0], [1.0]];
    let centre = dual.centre(pooled.consensus(), &pooled.step());
    assert_eq!(centre, pooled.consensus());
    let products = dual.answered(pooled.consensus(), &answer);
    assert_eq!(products.update, 2.0);
    pooled.absorb(&(&answer + 1.5), &products, 2).unwrap();
    let moved = dual.clone().centre(pooled.consensus(), &pooled.step());
    let absent = SiteDual::new(settings.relaxation).centre(pooled.consensus(), &pooled.step());
    assert_eq!(absent, pooled.consensus());
    assert_ne!(moved, absent);
    let nobody = pooled.absorb(&answer, &products, 0);
    assert_eq!(nobody, Err(ConsensusError::NoSites));
}
