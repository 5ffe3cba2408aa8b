//! Predictions of patients who were held out, beside those of their nearest and of no information.

use ndarray::{Array1, Array2};
use rayon::prelude::*;

use super::kernel::{KernelOf, as_known};
use super::machine::{Cohort, Machine, drawn};
use super::{Forecast, Learner, PredictionError};
use crate::cohort::Outcome;
use crate::compare::Placed;
use crate::judge::predicted::Predicted;
use crate::learn::unpsl::selection::{Folds, Split};
use crate::numeric::seed::Seed;
use crate::uses::nearest::{Nearest, Neighbour};

/// Patients that are held out in turn, at most.
pub(super) const JUDGED_MAX: usize = 5_000;
/// Patients whose neighbours are looked for at once.
const BLOCK: usize = 256;

/// What a rule says of the patients who were held out.
#[derive(Clone)]
pub struct Rule {
    /// One number a patient.
    pub predicted: Predicted,
    /// Of classes their shares, n x C.
    pub shares: Option<Array2<f64>>,
}

/// What several rules say of the same patients.
#[derive(Clone)]
pub struct HeldOut {
    /// Rows of the cohort, ascending.
    pub rows: Vec<usize>,
    /// What happened to them.
    pub outcome: Outcome,
    /// What the machines say.
    pub forecast: Forecast,
    /// The same as a rule.
    pub by_kernel: Rule,
    /// The k nearest among those who were not held out.
    pub by_neighbours: Rule,
    /// The commonest class, the mean, or nothing.
    pub by_nothing: Rule,
}

/// Every one of at most 5,000 patients (drawn by the seed) is predicted by machines, and by the `k` nearest, of all patients but those of
/// its fold; widths and penalties are chosen without them too.
///
/// # Errors
/// [`PredictionError`] where a fold cannot be made or learned from.
pub fn held_out(
    kernel: &KernelOf<'_>,
    cohort: &Cohort<'_>,
    learner: Learner,
    (folds, k): (usize, usize),
    seed: Seed,
) -> Result<HeldOut, PredictionError> {
    if !learner.suits(cohort.outcome) {
        return Err(PredictionError::Unsuited);
    }
    let everybody: Vec<usize> = (0..cohort.placed.patients()).collect();
    let judged = drawn(&everybody, JUDGED_MAX, seed, "judged");
    let outcome = cohort.outcome.select(&judged);
    let parted = Folds::stratified(&strata(&outcome, folds), folds, seed)?;
    let splits: Vec<Split> = (0..folds).map(|fold| parted.split(fold)).collect();
    let one = |split: &Split| -> Result<Fold, PredictionError> {
        let held: Vec<usize> = split.held_out.iter().map(|place| judged[*place]).collect();
        let training: Vec<usize> = everybody
            .iter()
            .copied()
            .filter(|row| held.binary_search(row).is_err())
            .collect();
        let machine = Machine::learn(kernel, cohort, &training, learner, seed)?;
        let queries = cohort.placed.select(&held);
        let near = nearest(kernel, cohort, &training, &queries, k)?;
        Ok(Fold {
            forecast: machine.forecast(kernel, &queries)?,
            neighbours: of_neighbours(&near, cohort.outcome),
            nothing: of_nothing(cohort.outcome, &training, held.len()),
        })
    };
    // Each holds some matrices of its own: two at once.
    let found: Vec<Fold> = splits
        .chunks(2)
        .map(|pair| pair.par_iter().map(one).collect::<Result<Vec<_>, _>>())
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .flatten()
        .collect();
    let order: Vec<usize> = splits
        .iter()
        .flat_map(|split| split.held_out.clone())
        .collect();
    let mut places = vec![0; order.len()];
    (0..)
        .zip(&order)
        .for_each(|(place, row)| places[*row] = place);
    let (mut forecasts, mut neighbours, mut nothing) = (Vec::new(), Vec::new(), Vec::new());
    for fold in found {
        forecasts.push(fold.forecast);
        neighbours.push(fold.neighbours);
        nothing.push(fold.nothing);
    }
    let forecast = Forecast::joined(forecasts).ok_or(PredictionError::Unsuited)?;
    let forecast = forecast.select(&places);
    Ok(HeldOut {
        rows: judged,
        outcome,
        by_kernel: Rule {
            predicted: Predicted::of_values(forecast.values()),
            shares: forecast.shares().cloned(),
        },
        forecast,
        by_neighbours: joined(neighbours, &places),
        by_nothing: joined(nothing, &places),
    })
}

struct Fold {
    forecast: Forecast,
    neighbours: Rule,
    nothing: Rule,
}

/// Rules of folds as one, in the order of the patients.
fn joined(rules: Vec<Rule>, places: &[usize]) -> Rule {
    let values: Vec<f64> = rules
        .iter()
        .flat_map(|rule| rule.predicted.values().to_vec())
        .collect();
    let views: Vec<_> = rules
        .iter()
        .filter_map(|rule| rule.shares.as_ref().map(|shares| shares.view()))
        .collect();
    let shares = match views.is_empty() {
        true => None,
        false => ndarray::concatenate(ndarray::Axis(0), &views).ok(),
    };
    let values = places.iter().map(|place| values[*place]).collect();
    Rule {
        predicted: Predicted::of_values(values),
        shares: shares.map(|shares| shares.select(ndarray::Axis(0), places)),
    }
}

/// Who is dealt to folds alike: patients of a class, or with the event; all of them, where a class has fewer than the folds.
pub(super) fn strata(outcome: &Outcome, folds: usize) -> Array1<u32> {
    let groups = match outcome {
        Outcome::Classes { codes, .. } => codes.clone(),
        Outcome::Numeric(values) => Array1::zeros(values.len()),
        Outcome::Survival { event, .. } => event.mapv(u32::from),
    };
    let few = |group: u32| {
        let patients = groups.iter().filter(|own| **own == group).count();
        (1..folds).contains(&patients)
    };
    let last = groups.iter().copied().max().unwrap_or(0);
    match (0..=last).any(few) {
        true => Array1::zeros(groups.len()),
        false => groups,
    }
}

/// The nearest of the training patients: those with the largest kernel, equal ones by rising row.
fn nearest(
    kernel: &KernelOf<'_>,
    cohort: &Cohort<'_>,
    training: &[usize],
    queries: &Placed,
    k: usize,
) -> Result<Vec<Nearest>, PredictionError> {
    let known = as_known(cohort.placed.select(training));
    let mut found = Vec::new();
    let sign = if kernel.has_width() { 1.0 } else { -1.0 };
    let kernel = kernel.with(&known)?;
    for begin in (0..queries.patients()).step_by(BLOCK) {
        let rows: Vec<usize> = (begin..(begin + BLOCK).min(queries.patients())).collect();
        let raw = kernel.raw(&queries.select(&rows))?;
        let raw = raw.as_standard_layout();
        let rows: Vec<Nearest> = raw
            .outer_iter()
            .into_par_iter()
            .map(|row| {
                let distances = row.mapv(|value| sign * value).to_vec();
                let cases = crate::uses::cases::Cases::nearest(&distances, k, |_| false);
                let neighbour = |case: &crate::uses::cases::Case| Neighbour {
                    patient: u32::try_from(training[case.patient]).unwrap_or(u32::MAX),
                    proximity: -case.distance,
                };
                Nearest {
                    neighbours: cases.cases.iter().map(neighbour).collect(),
                    tied: cases.tied,
                }
            })
            .collect();
        found.extend(rows);
    }
    Ok(found)
}

fn of_neighbours(near: &[Nearest], outcome: &Outcome) -> Rule {
    let shares = match outcome {
        Outcome::Classes { codes, levels } => {
            let mut shares = Array2::zeros((near.len(), levels.len()));
            for (mut row, near) in shares.rows_mut().into_iter().zip(near) {
                for other in &near.neighbours {
                    row[codes[other.patient as usize] as usize] += 1.0;
                }
                row /= near.neighbours.len() as f64;
            }
            Some(shares)
        }
        Outcome::Numeric(_) | Outcome::Survival { .. } => None,
    };
    Rule {
        predicted: Predicted::of_neighbours(near, outcome, f64::INFINITY),
        shares,
    }
}

/// What is said without looking at a patient.
fn of_nothing(outcome: &Outcome, training: &[usize], patients: usize) -> Rule {
    let all = training.len() as f64;
    match outcome {
        Outcome::Classes { codes, levels } => {
            let mut shares = Array1::<f64>::zeros(levels.len());
            training
                .iter()
                .for_each(|row| shares[codes[*row] as usize] += 1.0 / all);
            let class = crate::judge::error::largest(shares.iter().copied()) as f64;
            Rule {
                predicted: Predicted::of_values(vec![class; patients]),
                shares: shares
                    .broadcast((patients, levels.len()))
                    .map(|shares| shares.to_owned()),
            }
        }
        Outcome::Numeric(values) => {
            let mean = training.iter().map(|row| values[*row]).sum::<f64>() / all;
            Rule {
                predicted: Predicted::of_values(vec![mean; patients]),
                shares: None,
            }
        }
        Outcome::Survival { .. } => Rule {
            predicted: Predicted::of_values(vec![0.0; patients]),
            shares: None,
        },
    }
}
