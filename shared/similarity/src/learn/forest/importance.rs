//! Permutation importance: how much worse a tree predicts its out-of-bag patients when one feature's
//! values are shuffled among them (Breiman 2001, section 10).

use ndarray::Array1;
use rand::seq::SliceRandom;
use rayon::prelude::*;

use crate::cohort::{Cohort, Outcome};
use crate::judge::error::{RiskCase, concordance, largest};
use crate::learn::forest::trees::schema::{SchemaMismatch, Table, Target};
use crate::learn::forest::trees::tree::{MISSING_LEFT, TERMINAL, TerminalValues};
use crate::learn::forest::{Grown, Tree};
use crate::numeric::seed::Seed;

/// The importance of every feature.
#[derive(Debug, Clone, PartialEq)]
pub struct Importance {
    /// Mean over trees of the rise in error (share misclassified, mean squared error, 1 - C), p.
    pub mean: Array1<f64>,
    /// Standard error of that mean over trees, p; NaN with fewer than two trees.
    pub standard_error: Array1<f64>,
}

/// Permutation importance of every feature over the trees that have out-of-bag patients; not scaled. A
/// feature that a tree does not use adds 0 there.
///
/// # Errors
/// [`SchemaMismatch`] where the cohort is not the one the forest was grown on.
pub fn permutation(
    grown: &Grown,
    cohort: &Cohort,
    seed: Seed,
) -> Result<Importance, SchemaMismatch> {
    let table = grown.forest.schema.table(cohort.columns())?;
    if table.patients != grown.in_bag.patients() {
        return Err(SchemaMismatch::Patients {
            found: table.patients,
            wanted: grown.in_bag.patients(),
        });
    }
    let features = table.columns.len();
    let rises: Vec<Vec<f64>> = (0..grown.forest.trees.len())
        .into_par_iter()
        .filter_map(|tree| rises_of_tree(grown, &table, cohort.outcome(), tree, seed))
        .collect();
    let trees = rises.len() as f64;
    let mut mean = Array1::zeros(features);
    let mut standard_error = Array1::zeros(features);
    for feature in 0..features {
        let average = rises.iter().map(|rise| rise[feature]).sum::<f64>() / trees;
        let squares: f64 = rises
            .iter()
            .map(|rise| (rise[feature] - average).powi(2))
            .sum();
        mean[feature] = average;
        standard_error[feature] = (squares / (trees - 1.0) / trees).sqrt();
    }
    Ok(Importance {
        mean,
        standard_error,
    })
}

/// The rise in error of every feature in one tree; none without a comparable out-of-bag patient.
fn rises_of_tree(
    grown: &Grown,
    table: &Table<'_>,
    outcome: &Outcome,
    number: usize,
    seed: Seed,
) -> Option<Vec<f64>> {
    let tree = &grown.forest.trees[number];
    let in_bag = grown.in_bag.of_tree(number);
    let out: Vec<usize> = (0..table.patients)
        .filter(|&patient| in_bag[patient] == 0)
        .collect();
    if out.is_empty() {
        return None;
    }
    let answers = answers(tree, &grown.forest.schema.target);
    let found = |replaced: u32, donors: &[usize]| -> Vec<f64> {
        out.iter()
            .zip(donors)
            .map(|(&patient, &donor)| {
                answers[tree.ordinal(tree.terminal_with_donor(table, patient, replaced, donor))]
            })
            .collect()
    };
    let before = error(&found(u32::MAX, &out), &out, outcome);
    if before.is_nan() {
        return None;
    }
    let mut stream = seed.stream("forest permutation", number as u64);
    let mut rises = vec![0.0; table.columns.len()];
    let mut used: Vec<u32> = tree
        .nodes
        .iter()
        .filter(|node| node.feature != TERMINAL)
        .map(|node| node.feature & !MISSING_LEFT)
        .collect();
    used.sort_unstable();
    used.dedup();
    for feature in used {
        let mut donors = out.clone();
        donors.shuffle(&mut stream);
        rises[feature as usize] = error(&found(feature, &donors), &out, outcome) - before;
    }
    Some(rises)
}

/// One number a terminal node: the class, the mean, or the mortality.
fn answers(tree: &Tree, target: &Target) -> Vec<f64> {
    match &tree.values {
        TerminalValues::Numeric(means) => means.clone(),
        TerminalValues::Classes { classes, shares } => shares
            .chunks_exact(*classes)
            .map(|shares| largest(shares.iter().copied()) as f64)
            .collect(),
        TerminalValues::Survival {
            starts,
            times,
            steps,
        } => {
            let grid = match target {
                Target::Survival { event_times } => event_times.len(),
                _ => 0,
            };
            starts
                .windows(2)
                .map(|ends| {
                    (ends[0] as usize..ends[1] as usize)
                        .map(|step| steps[step] * (grid - usize::from(times[step])) as f64)
                        .sum()
                })
                .collect()
        }
    }
}

fn error(found: &[f64], patients: &[usize], outcome: &Outcome) -> f64 {
    let count = patients.len() as f64;
    match outcome {
        Outcome::Numeric(wanted) => {
            found
                .iter()
                .zip(patients)
                .map(|(mean, &at)| (mean - wanted[at]).powi(2))
                .sum::<f64>()
                / count
        }
        Outcome::Classes { codes, .. } => {
            let wrong = found
                .iter()
                .zip(patients)
                .filter(|&(&class, &at)| class != f64::from(codes[at]));
            wrong.count() as f64 / count
        }
        Outcome::Survival { time, event } => {
            let cases: Vec<RiskCase> = found
                .iter()
                .zip(patients)
                .map(|(&risk, &at)| RiskCase {
                    time: time[at],
                    event: event[at],
                    risk,
                })
                .collect();
            1.0 - concordance(&cases)
        }
    }
}
