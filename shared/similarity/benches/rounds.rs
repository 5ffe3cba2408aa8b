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

use std::ops::Range;

use federation::{Federation, Run, synthetic_parts};
use hospitals::{data_folder, heart, parkinsons};
use rayon::prelude::*;
use similarity::numeric::admm::ConsensusSettings;

/// Starting penalties over the best fixed one.
const FACTORS: [f64; 5] = [0.01, 0.1, 1.0, 10.0, 100.0];
/// Where the best fixed penalty is looked for.
const FIXED_PENALTIES: [f64; 7] = [0.003, 0.01, 0.03, 0.06, 0.1, 0.3, 1.0];
const RELAXATIONS: [f64; 2] = [1.0, 1.6];
/// The starts of the accelerated runs that the tests know; the other methods go from the first.
const STARTS: Range<u64> = 0..5;
/// Starts that nothing was ever chosen by.
const FRESH_STARTS: Range<u64> = 200..210;
const RANK: usize = 8;
const ROUNDS_MAX: usize = 100;
/// What a federated run should need at most.
const ROUNDS_WANTED: usize = 15;
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
        "rounds to a gap of {GAP:e}, at most {ROUNDS_MAX}, m = {RANK}; accelerated: the most over {} known starts",
        STARTS.count()
    );
    let mut fresh = Vec::new();
    for (name, parts) in &sets {
        fresh.extend(table(name, &Federation::new(parts, RANK)));
    }
    println!("\nall sets, fresh starts: {}", counted(&fresh));
}

/// A fixed penalty and its relaxation.
#[derive(Clone, Copy)]
struct Fixed {
    penalty: f64,
    relaxation: f64,
}

/// Prints the rounds of a set; what is returned are those of the accelerated runs from fresh starts.
fn table(name: &str, federation: &Federation) -> Vec<Option<usize>> {
    let best = best_fixed(name, federation);
    println!(
        "{:>8}  {:>12}  {:>12}  {:>12}  {:>12}",
        "penalty", "fixed", "adaptive", "accelerated", "fresh starts"
    );
    let lines: Vec<(String, Vec<Option<usize>>)> = FACTORS
        .par_iter()
        .map(|factor| {
            let penalty = factor * best.penalty;
            let settings = plain_settings(federation, penalty);
            let adaptive = federation.plain(federation.start(0), settings, ROUNDS_MAX, GAP);
            let fixed = run_fixed(federation, Fixed { penalty, ..best });
            let known = accelerated(federation, penalty, STARTS);
            let fresh = accelerated(federation, penalty, FRESH_STARTS);
            let line = format!(
                "{factor:>7}x  {:>12}  {:>12}  {:>12}  {:>12}",
                shown(fixed.first_below(GAP)),
                shown(adaptive.first_below(GAP)),
                shown(most(&known)),
                shown(most(&fresh)),
            );
            (line, fresh)
        })
        .collect();
    lines.iter().for_each(|(line, _)| println!("{line}"));
    let fresh: Vec<_> = lines.into_iter().flat_map(|(_, fresh)| fresh).collect();
    println!("fresh starts: {}", counted(&fresh));
    fresh
}

/// Rounds of accelerated runs from each start; `None` where they did not get there.
fn accelerated(federation: &Federation, penalty: f64, starts: Range<u64>) -> Vec<Option<usize>> {
    starts
        .into_par_iter()
        .map(|index| {
            let start = federation.start(index);
            let run = federation.accelerated(start, penalty, ROUNDS_MAX, GAP);
            run.first_below(GAP)
        })
        .collect()
}

/// The most of them; `None` where one did not get there.
fn most(rounds: &[Option<usize>]) -> Option<usize> {
    let found: Option<Vec<usize>> = rounds.iter().copied().collect();
    found?.into_iter().max()
}

fn counted(rounds: &[Option<usize>]) -> String {
    let late = |rounds: &&Option<usize>| rounds.is_none_or(|rounds| rounds > ROUNDS_WANTED);
    format!(
        "{} of {} cells need more than {ROUNDS_WANTED} rounds, the most {}",
        rounds.iter().filter(late).count(),
        rounds.len(),
        shown(most(rounds))
    )
}

fn run_fixed(federation: &Federation, fixed: Fixed) -> Run {
    let mut settings = ConsensusSettings {
        relaxation: fixed.relaxation,
        ..plain_settings(federation, fixed.penalty)
    };
    settings.penalty.adaptive_rounds = 0;
    federation.plain(federation.start(0), settings, ROUNDS_MAX, GAP)
}

fn best_fixed(name: &str, federation: &Federation) -> Fixed {
    let candidates: Vec<Fixed> = FIXED_PENALTIES
        .iter()
        .flat_map(|&penalty| {
            RELAXATIONS.map(|relaxation| Fixed {
                penalty,
                relaxation,
            })
        })
        .collect();
    let found: Vec<Run> = candidates
        .par_iter()
        .map(|&one| run_fixed(federation, one))
        .collect();
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
        "\n{name}, {} sites; best fixed penalty {}, relaxation {}: {}",
        federation.sites.len(),
        best.penalty,
        best.relaxation,
        shown(best_run.first_below(GAP))
    );
    *best
}

fn plain_settings(federation: &Federation, penalty: f64) -> ConsensusSettings {
    let sparsity = federation.settings.lambda_sparsity;
    ConsensusSettings::new(sparsity, federation.features, penalty)
}

fn shown(rounds: Option<usize>) -> String {
    rounds.map_or_else(|| format!("> {ROUNDS_MAX}"), |rounds| rounds.to_string())
}
