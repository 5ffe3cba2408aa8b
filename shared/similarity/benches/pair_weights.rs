//! Whether pairs had better weigh alike or in balance: how well neighbours judge held-out patients under either.
//!
//! `cargo bench -p similarity --bench pair_weights`, on the data that `rounds.rs` takes. In each of [`SPLITS`] random splits
//! seven patients of ten of every site are learned from; every other is judged by its nearest among those of its site, by
//! the learned distance: the area under the curve of the neighbours' share of the second class, and balanced accuracy.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

#[path = "../tests/support/federation.rs"]
#[allow(dead_code, unreachable_pub)]
mod federation;
#[path = "../tests/support/hospitals.rs"]
#[allow(dead_code, unreachable_pub)]
mod hospitals;

use federation::{Federation, Part};
use hospitals::{breast_cancer, colon, data_folder, heart, leukaemia, parkinsons};
use ndarray::{Array1, Array2, Axis};
use rand::seq::SliceRandom as _;
use similarity::learn::unpsl::{Form, Labels, PairWeights, Settings};
use similarity::numeric::seed::Seed;
use similarity::uses::neighbours::{NeighbourRule, neighbours};

const SPLITS: u64 = 8;
const NEIGHBOURS: usize = 15;
const TOLERANCE: f64 = 1e-5;

fn main() {
    let mut sets = Vec::new();
    if let Some(folder) = data_folder() {
        sets.push(("heart", heart(&folder)));
        sets.push(("parkinsons", parkinsons(&folder)));
        sets.push(("colon", colon(&folder)));
        sets.push(("leukaemia", leukaemia(&folder)));
    }
    if let Some(parts) = breast_cancer() {
        sets.insert(0, ("breast cancer", parts));
    }
    println!(
        "{SPLITS} splits: area under the curve and balanced accuracy, equal and balanced pair weights; the mean difference and its standard error"
    );
    for (name, parts) in &sets {
        for form in [Form::InnerProduct, Form::Distance] {
            let splits: Vec<[[f64; 2]; 2]> = (0..SPLITS)
                .map(|split| {
                    [PairWeights::Equal, PairWeights::Balanced]
                        .map(|weights| scores(parts, form, weights, split))
                })
                .collect();
            for (measure, what) in ["area under the curve", "balanced accuracy"]
                .iter()
                .enumerate()
            {
                let mean = |of: &dyn Fn(&[[f64; 2]; 2]) -> f64| {
                    splits.iter().map(of).sum::<f64>() / SPLITS as f64
                };
                let (equal, balanced) = (mean(&|s| s[0][measure]), mean(&|s| s[1][measure]));
                let apart = balanced - equal;
                let variance = mean(&|s| (s[1][measure] - s[0][measure] - apart).powi(2));
                let error = (variance / (SPLITS - 1) as f64).sqrt();
                println!(
                    "{name:>14} {form:?} {what}: {equal:.3} {balanced:.3}; {apart:+.4} ({error:.4})"
                );
            }
        }
    }
}

/// One site's patients of one side of a split.
fn chosen(part: &Part, rows: &[usize]) -> (Array2<f64>, Array1<u32>) {
    let Labels::Classes(classes) = &part.labels else {
        panic!("a set of classes");
    };
    (
        part.patients.select(Axis(0), rows),
        classes.select(Axis(0), rows),
    )
}

fn scores(parts: &[Part], form: Form, pair_weights: PairWeights, split: u64) -> [f64; 2] {
    let mut random = Seed(split).stream("held out", 0);
    let sides: Vec<(Vec<usize>, Vec<usize>)> = parts
        .iter()
        .map(|part| {
            let mut rows: Vec<usize> = (0..part.patients.nrows()).collect();
            rows.shuffle(&mut random);
            let held = rows.split_off(rows.len() * 7 / 10);
            (rows, held)
        })
        .collect();
    let training: Vec<Part> = parts
        .iter()
        .zip(&sides)
        .map(|(part, (rows, _))| {
            let (patients, classes) = chosen(part, rows);
            let labels = Labels::Classes(classes);
            Part { patients, labels }
        })
        .collect();
    let settings = Settings {
        form,
        pair_weights,
        ..Settings::default()
    };
    let federation = Federation::unsolved(&training, settings);
    let metric = federation
        .accelerated(federation.start(split), 60, TOLERANCE)
        .metric;
    let mut judged: Vec<(f64, u32)> = Vec::new();
    for (part, (rows, held)) in parts.iter().zip(&sides) {
        let (known, known_classes) = chosen(part, rows);
        let (asked, classes) = chosen(part, held);
        let (known, asked) = (known.dot(&metric), asked.dot(&metric));
        let near = neighbours(
            &known.view(),
            &asked.view(),
            NeighbourRule::Distance,
            NEIGHBOURS,
        );
        for (near, class) in near.unwrap().iter().zip(classes) {
            let second = near
                .iter()
                .filter(|other| known_classes[other.row] == 1)
                .count();
            judged.push((second as f64 / near.len() as f64, class));
        }
    }
    [area(&judged), balanced_accuracy(&judged)]
}

/// The share of pairs of a patient of each class that the scores order right; equal scores are half right.
fn area(judged: &[(f64, u32)]) -> f64 {
    let of = |class: u32| {
        judged
            .iter()
            .filter(move |(_, own)| *own == class)
            .map(|(score, _)| *score)
    };
    let (mut right, mut all) = (0.0, 0.0);
    for high in of(1) {
        for low in of(0) {
            all += 1.0;
            right += f64::from(u8::from(high > low)) + 0.5 * f64::from(u8::from(high == low));
        }
    }
    right / all
}

fn balanced_accuracy(judged: &[(f64, u32)]) -> f64 {
    let share = |class: u32| {
        let own: Vec<bool> = judged
            .iter()
            .filter(|(_, own)| *own == class)
            .map(|(score, _)| (*score > 0.5) == (class == 1))
            .collect();
        own.iter().filter(|right| **right).count() as f64 / own.len() as f64
    };
    0.5 * (share(0) + share(1))
}
