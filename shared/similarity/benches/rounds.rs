//! Rounds to a relative objective gap of 1e-4, by starting penalty and method.
//!
//! `cargo bench -p similarity --bench rounds`, with Parkinson's and the four heart disease hospitals
//! where the data folder (`KINDRED_DATA`, or ../shared/data beside the workspace) is present.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

#[path = "../tests/support/federation.rs"]
#[allow(dead_code, unreachable_pub)]
mod federation;
#[path = "../tests/support/hospitals.rs"]
#[allow(dead_code, unreachable_pub)]
mod hospitals;

use federation::{Federation, Run, synthetic_parts};
use hospitals::{data_folder, heart, parkinsons};
use rayon::prelude::*;
use similarity::admm::ConsensusSettings;

/// Starting penalties over the best fixed one.
const FACTORS: [f64; 5] = [0.01, 0.1, 1.0, 10.0, 100.0];
/// Where the best fixed penalty is looked for.
const FIXED_PENALTIES: [f64; 7] = [0.003, 0.01, 0.03, 0.06, 0.1, 0.3, 1.0];
const RELAXATIONS: [f64; 2] = [1.0, 1.6];
/// Starts of the accelerated runs; the other methods go from the first.
const STARTS: u64 = 5;
const ROUNDS_MAX: usize = 100;
const GAP: f64 = 1e-4;

fn main() {
    let mut sets = vec![("synthetic", synthetic_parts(5))];
    if let Some(folder) = data_folder() {
        sets.push(("parkinsons", parkinsons(&folder)));
        sets.push(("heart", heart(&folder)));
    } else {
        println!("no data folder: the synthetic set alone");
    }
    println!(
        "rounds to a gap of {GAP:e}, at most {ROUNDS_MAX}; accelerated: median (most) over {STARTS} starts"
    );
    for (name, parts) in &sets {
        for rank in [8, parts[0].patients.ncols()] {
            table(name, &Federation::new(parts, rank));
        }
    }
}

/// A fixed penalty and its relaxation.
#[derive(Clone, Copy)]
struct Fixed {
    penalty: f64,
    relaxation: f64,
}

fn table(name: &str, federation: &Federation) {
    let run_fixed = |Fixed {
                         penalty,
                         relaxation,
                     }| {
        let mut settings = ConsensusSettings {
            relaxation,
            ..plain_settings(federation, penalty)
        };
        settings.penalty.adaptive_rounds = 0;
        federation.plain(federation.start(0), settings, ROUNDS_MAX, GAP)
    };
    let candidates: Vec<Fixed> = FIXED_PENALTIES
        .iter()
        .flat_map(|&penalty| {
            RELAXATIONS.map(|relaxation| Fixed {
                penalty,
                relaxation,
            })
        })
        .collect();
    let found: Vec<Run> = candidates.par_iter().map(|&one| run_fixed(one)).collect();
    // the fewest rounds; where none gets there, the smallest gap
    let (best, best_run) = candidates
        .iter()
        .zip(&found)
        .min_by(|(_, a), (_, b)| {
            let rounds = |run: &Run| run.first_below(GAP).unwrap_or(usize::MAX);
            let gap = |run: &Run| run.gaps.last().copied().unwrap_or(f64::INFINITY);
            rounds(a).cmp(&rounds(b)).then(gap(a).total_cmp(&gap(b)))
        })
        .unwrap();
    println!(
        "\n{name}, m = {}, {} sites; best fixed penalty {}, relaxation {}: {}",
        federation.settings.rank,
        federation.sites.len(),
        best.penalty,
        best.relaxation,
        shown(best_run.first_below(GAP))
    );
    println!(
        "{:>8}  {:>12}  {:>12}  {:>12}",
        "start", "fixed", "adaptive", "accelerated"
    );
    let lines: Vec<String> = FACTORS
        .par_iter()
        .map(|factor| {
            let penalty = factor * best.penalty;
            let settings = plain_settings(federation, penalty);
            let adaptive = federation.plain(federation.start(0), settings, ROUNDS_MAX, GAP);
            let mut rounds: Vec<Option<usize>> = (0..STARTS)
                .into_par_iter()
                .map(|index| {
                    let start = federation.start(index);
                    let run = federation.accelerated(start, penalty, ROUNDS_MAX, GAP);
                    run.first_below(GAP)
                })
                .collect();
            rounds.sort_unstable_by_key(|rounds| rounds.unwrap_or(usize::MAX));
            format!(
                "{factor:>7}x  {:>12}  {:>12}  {:>12}",
                shown(run_fixed(Fixed { penalty, ..*best }).first_below(GAP)),
                shown(adaptive.first_below(GAP)),
                format!(
                    "{} ({})",
                    shown(rounds[rounds.len() / 2]),
                    shown(rounds[rounds.len() - 1])
                )
            )
        })
        .collect();
    lines.iter().for_each(|line| println!("{line}"));
}

fn plain_settings(federation: &Federation, penalty: f64) -> ConsensusSettings {
    let sparsity = federation.settings.lambda_sparsity;
    ConsensusSettings::new(sparsity, federation.features, penalty)
}

fn shown(rounds: Option<usize>) -> String {
    rounds.map_or_else(|| format!("> {ROUNDS_MAX}"), |rounds| rounds.to_string())
}
