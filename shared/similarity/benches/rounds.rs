//! Rounds of the accelerated consensus, to a relative gap of 1e-4 and to its stop, beside those of plain ADMM.
//!
//! `cargo bench -p similarity --bench rounds`, with Parkinson's and the four heart disease hospitals
//! where the data folder (`KINDRED_DATA`, or ../shared/data beside the workspace) is present, and breast cancer (the copy
//! of scikit-learn: 30 features and the class, with a header) where `KINDRED_BREAST_CANCER` names the file.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

#[path = "../tests/support/federation.rs"]
#[allow(dead_code, unreachable_pub)]
mod federation;
#[path = "../tests/support/hospitals.rs"]
#[allow(dead_code, unreachable_pub)]
mod hospitals;

use federation::{Federation, Part, Run, synthetic_parts};
use hospitals::{breast_cancer, data_folder, heart, parkinsons};
use rayon::prelude::*;
use similarity::learn::unpsl::{Form, Settings, Threshold};
use similarity::numeric::admm::ConsensusSettings;

/// The default of a job.
const TOLERANCE: f64 = 2e-7;
const GAP: f64 = 1e-4;
const ROUNDS_MAX: usize = 100;
const STARTS: u64 = 5;
const LAMBDAS: [f64; 4] = [1e-4, 1e-3, 1e-2, 1e-1];
const RANKS: [usize; 3] = [2, 8, 16];

fn main() {
    let mut sets = vec![("synthetic", synthetic_parts(5))];
    if let Some(folder) = data_folder() {
        sets.push(("parkinsons", parkinsons(&folder)));
        sets.push(("heart", heart(&folder)));
    } else {
        println!("no data folder: the synthetic set alone");
    }
    if let Some(parts) = breast_cancer() {
        sets.push(("breast cancer", parts));
    }
    println!(
        "the most rounds over {STARTS} starts: to a gap of {GAP:e}, to the stop, and the gap there"
    );
    for (name, parts) in &sets {
        defaults(name, parts);
    }
    println!(
        "\nlambda_1 {LAMBDAS:?} x rank {RANKS:?}, 3 starts: rounds to the stop, by lambda_1 the ranks"
    );
    for (name, parts) in &sets {
        grid(name, parts);
    }
}

/// The defaults by form and threshold, and plain ADMM after the questions that lead it.
fn defaults(name: &str, parts: &[Part]) {
    for (form, threshold) in [
        (Form::InnerProduct, Threshold::Fixed(1.0)),
        (Form::InnerProduct, Threshold::Site),
        (Form::Distance, Threshold::Site),
    ] {
        let settings = Settings {
            form,
            threshold,
            ..Settings::default()
        };
        let federation = solved(parts, settings);
        let runs = accelerated(&federation, STARTS);
        let plain = plain(&federation);
        println!(
            "{name:>14} {form:?} {threshold:?}: {}, {}, {:.1e}; ADMM {}",
            shown(runs.iter().map(|run| run.first_below(GAP)).collect()),
            stops(&runs),
            runs.iter()
                .map(|run| *run.gaps.last().unwrap())
                .fold(0.0, f64::max),
            shown(vec![plain.first_below(GAP)]),
        );
    }
}

fn grid(name: &str, parts: &[Part]) {
    for threshold in [Threshold::Fixed(1.0), Threshold::Site] {
        let cells: Vec<(usize, f64)> = LAMBDAS
            .iter()
            .flat_map(|lambda| RANKS.map(|rank| (rank, *lambda)))
            .collect();
        let found: Vec<String> = cells
            .par_iter()
            .map(|&(rank, lambda_sparsity)| {
                let settings = Settings {
                    rank: rank.min(parts[0].patients.ncols()),
                    lambda_sparsity,
                    threshold,
                    ..Settings::default()
                };
                stops(&accelerated(&Federation::unsolved(parts, settings), 3))
            })
            .collect();
        let lines: Vec<String> = found
            .chunks(RANKS.len())
            .map(|ranks| ranks.join(" "))
            .collect();
        println!("{name:>14} {threshold:?}: {}", lines.join(" | "));
    }
}

/// With the least objective that a far longer search finds.
fn solved(parts: &[Part], settings: Settings) -> Federation {
    let mut federation = Federation::unsolved(parts, settings);
    let longest = federation.accelerated(federation.start(50), ROUNDS_MAX, 1e-12);
    federation.minimum = longest.objective;
    federation
}

fn accelerated(federation: &Federation, starts: u64) -> Vec<Run> {
    (0..starts)
        .into_par_iter()
        .map(|start| federation.accelerated(federation.start(start), ROUNDS_MAX, TOLERANCE))
        .collect()
}

fn plain(federation: &Federation) -> Run {
    let penalty = federation
        .settings
        .penalty_led(federation.sites.len() as u64, 1);
    let sparsity = federation.settings.lambda_sparsity;
    let settings = ConsensusSettings::new(sparsity, federation.features, penalty);
    let from = federation.led(federation.start(0));
    federation.plain(from, settings, ROUNDS_MAX, GAP)
}

/// The most rounds to the stop.
fn stops(runs: &[Run]) -> String {
    shown(
        runs.iter()
            .map(|run| run.converged.then_some(run.gaps.len()))
            .collect(),
    )
}

fn shown(rounds: Vec<Option<usize>>) -> String {
    let all: Option<Vec<usize>> = rounds.into_iter().collect();
    all.and_then(|all| all.into_iter().max())
        .map_or_else(|| format!("> {ROUNDS_MAX}"), |most| most.to_string())
}
