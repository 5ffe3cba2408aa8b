//! Whether pairs had better weigh alike or in balance: how well neighbours judge held-out patients under either.
//!
//! `cargo bench -p similarity --bench pair_weights`, on the data that `rounds.rs` takes. In each of [`SPLITS`] random splits
//! seven patients of ten of every site are learned from; every other is judged by its nearest among those of its site, by
//! the learned distance: the area under the curve of the neighbours' share of the second class, and balanced accuracy.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

#[path = "../tests/support/federation.rs"]
#[allow(dead_code, unreachable_pub)]
mod federation;
#[path = "../tests/support/held_out.rs"]
#[allow(dead_code, unreachable_pub)]
mod held_out;
#[path = "../tests/support/hospitals.rs"]
#[allow(dead_code, unreachable_pub)]
mod hospitals;

use federation::Part;
use held_out::{Split, area, mean};
use hospitals::{breast_cancer, colon, data_folder, heart, leukaemia, parkinsons};
use similarity::learn::unpsl::{Form, PairWeights, Settings};

const SPLITS: u64 = 8;
const NEIGHBOURS: usize = 15;

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
                let of = |own: &dyn Fn(&[[f64; 2]; 2]) -> f64| {
                    mean(&splits.iter().map(own).collect::<Vec<f64>>())
                };
                let (equal, _) = of(&|s| s[0][measure]);
                let (balanced, _) = of(&|s| s[1][measure]);
                let (apart, error) = of(&|s| s[1][measure] - s[0][measure]);
                println!(
                    "{name:>14} {form:?} {what}: {equal:.3} {balanced:.3}; {apart:+.4} ({error:.4})"
                );
            }
        }
    }
}

fn scores(parts: &[Part], form: Form, pair_weights: PairWeights, number: u64) -> [f64; 2] {
    let settings = Settings {
        form,
        pair_weights,
        ..Settings::default()
    };
    let split = Split::drawn(parts, number);
    let judged = split.judged(&split.learned(settings, number), NEIGHBOURS);
    [area(&judged), balanced_accuracy(&judged)]
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
