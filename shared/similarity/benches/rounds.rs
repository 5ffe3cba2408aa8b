//! Rounds to a relative objective gap of 1e-4, by starting penalty and method.
//!
//! `cargo bench -p similarity --bench rounds`, with Parkinson's and the four heart disease hospitals
//! where the data folder (`KINDRED_DATA`, or ../shared/data beside the workspace) is present.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

#[path = "../tests/support/federation.rs"]
#[allow(dead_code, unreachable_pub)]
mod federation;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use federation::{Federation, Part, standardise, synthetic_parts};
use ndarray::{Array1, Array2, Axis, s};
use rand::seq::SliceRandom as _;
use similarity::admm::ConsensusSettings;
use similarity::seed::Seed;
use similarity::unpsl::Labels;

const FACTORS: [f64; 5] = [0.01, 0.1, 1.0, 10.0, 100.0];
const FIXED_PENALTIES: [f64; 6] = [0.003, 0.01, 0.03, 0.1, 0.3, 1.0];
const STARTS: u64 = 5;
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
        "rounds to a gap of {GAP:e}: median (most) over {STARTS} starts; fixed: the first start"
    );
    for (name, parts) in &sets {
        let features = parts[0].patients.ncols();
        for rank in [features, 8] {
            table(name, &Federation::new(parts, rank));
        }
    }
}

fn table(name: &str, federation: &Federation) {
    let fixed = |penalty: f64, relaxation: f64, rounds: usize| {
        let mut settings = ConsensusSettings {
            relaxation,
            ..plain_settings(federation, penalty)
        };
        settings.penalty.adaptive_rounds = 0;
        federation
            .plain(federation.start(0), settings, rounds)
            .first_below(GAP)
    };
    let search = FIXED_PENALTIES
        .iter()
        .flat_map(|&penalty| [(penalty, 1.0), (penalty, 1.6)])
        .map(|(penalty, relaxation)| (fixed(penalty, relaxation, 60), penalty, relaxation))
        .min_by_key(|(rounds, ..)| rounds.unwrap_or(usize::MAX))
        .unwrap();
    let (best_rounds, best_penalty, relaxation) = search;
    let (rank, sites) = (federation.settings.rank, federation.sites.len());
    println!(
        "\n{name}, m = {rank}, {sites} sites; best fixed penalty {best_penalty}, relaxation {relaxation}: {}",
        shown(best_rounds)
    );
    println!(
        "{:>8}  {:>12}  {:>12}  {:>20}",
        "start", "fixed", "balanced", "accelerated"
    );
    for factor in FACTORS {
        let penalty = factor * best_penalty;
        let balanced = federation
            .plain(federation.start(0), plain_settings(federation, penalty), 60)
            .first_below(GAP);
        let mut rounds: Vec<usize> = (0..STARTS)
            .map(|index| {
                let run = federation.accelerated(federation.start(index), penalty, 40);
                run.first_below(GAP).unwrap_or(usize::MAX)
            })
            .collect();
        rounds.sort_unstable();
        let text = |rounds: usize| {
            if rounds == usize::MAX {
                "> 40".into()
            } else {
                rounds.to_string()
            }
        };
        let accelerated = format!(
            "{} ({})",
            text(rounds[rounds.len() / 2]),
            text(rounds[rounds.len() - 1])
        );
        println!(
            "{factor:>7}x  {:>12}  {:>12}  {accelerated:>20}",
            shown(fixed(penalty, relaxation, 60)),
            shown(balanced)
        );
    }
}

fn plain_settings(federation: &Federation, penalty: f64) -> ConsensusSettings {
    let features = federation.second_moments.nrows();
    ConsensusSettings::new(federation.settings.lambda_sparsity, features, penalty)
}

fn shown(rounds: Option<usize>) -> String {
    rounds.map_or_else(|| "-".into(), |rounds| rounds.to_string())
}

fn data_folder() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let folder =
        std::env::var_os("KINDRED_DATA").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    folder.join("parkinsons.csv").is_file().then_some(folder)
}

/// The cells of a file without its header.
fn cells(path: PathBuf) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).unwrap();
    let row = |line: &str| line.split(',').map(str::to_owned).collect();
    text.lines().skip(1).map(row).collect()
}

/// 195 recordings in a random order, in 3 parts.
fn parkinsons(folder: &std::path::Path) -> Vec<Part> {
    let mut rows = cells(folder.join("parkinsons.csv"));
    rows.shuffle(&mut Seed(3).stream("split", 0));
    let status = 17;
    let features = (1..24)
        .filter(|column| *column != status)
        .collect::<Vec<_>>();
    let number = |(row, column): (usize, usize)| rows[row][features[column]].parse().unwrap();
    let patients = standardise(Array2::from_shape_fn((rows.len(), features.len()), number));
    let classes: Vec<u32> = rows
        .iter()
        .map(|row| row[status].parse().unwrap())
        .collect();
    split(&patients, &classes, &[65, 65, 65])
}

/// Four hospitals of very unequal size and case mix; a zero of chol or trestbps is missing.
fn heart(folder: &std::path::Path) -> Vec<Part> {
    let files = ["cleveland", "hungarian", "switzerland", "va"];
    let hospitals = files.map(|name| cells(folder.join(format!("heart_disease/{name}.csv"))));
    let sizes: Vec<usize> = hospitals.iter().map(Vec::len).collect();
    let mut rows = hospitals.concat();
    for row in &mut rows {
        for column in [3, 4] {
            if row[column].parse() == Ok(0.0) {
                row[column].clear();
            }
        }
    }
    let mut columns: Vec<Array1<f64>> = Vec::new();
    for column in [0, 3, 4, 7, 9, 11] {
        let present: Vec<f64> = rows
            .iter()
            .filter_map(|row| row[column].parse().ok())
            .collect();
        let mean = present.iter().sum::<f64>() / present.len() as f64;
        columns.push(
            rows.iter()
                .map(|row| row[column].parse().unwrap_or(mean))
                .collect(),
        );
    }
    for (column, one_hot) in [
        (1, false),
        (5, false),
        (8, false),
        (2, true),
        (6, true),
        (10, true),
        (12, true),
    ] {
        let levels: BTreeSet<&str> = rows
            .iter()
            .map(|row| row[column].as_str())
            .filter(|cell| !cell.is_empty())
            .collect();
        let count = |level: &str| rows.iter().filter(|row| row[column] == level).count();
        let mode = levels
            .iter()
            .copied()
            .max_by_key(|level| count(level))
            .unwrap();
        for level in levels.iter().skip(usize::from(!one_hot)) {
            let is_level = |row: &Vec<String>| {
                let cell = if row[column].is_empty() {
                    mode
                } else {
                    &row[column]
                };
                f64::from(u8::from(cell == *level))
            };
            columns.push(rows.iter().map(is_level).collect());
        }
    }
    let views: Vec<_> = columns.iter().map(|column| column.view()).collect();
    let patients = standardise(ndarray::stack(Axis(1), &views).unwrap());
    let classes: Vec<u32> = rows.iter().map(|row| u32::from(row[13] != "0")).collect();
    split(&patients, &classes, &sizes)
}

fn split(patients: &Array2<f64>, classes: &[u32], sizes: &[usize]) -> Vec<Part> {
    let mut first = 0;
    sizes
        .iter()
        .map(|size| {
            let range = first..first + size;
            first += size;
            Part {
                patients: patients.slice(s![range.clone(), ..]).to_owned(),
                labels: Labels::Classes(classes[range].iter().copied().collect()),
            }
        })
        .collect()
}
