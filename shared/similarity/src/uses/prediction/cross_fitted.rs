//! Patients who were held out of a machine's own fit, so that what it says of them is on its own scale.

use rayon::prelude::*;

use super::held_out::{JUDGED_MAX, strata};
use super::kernel::KernelOf;
use super::machine::{Cohort, Machine, drawn};
use super::tuning::Chosen;
use super::{Forecast, Learner, PredictionError};
use crate::cohort::Outcome;
use crate::learn::unpsl::selection::{Folds, Split};
use crate::numeric::seed::Seed;

/// Parts that are held out in turn.
const FOLDS: usize = 10;

/// What machines with one width and one penalty say of patients that they have not seen.
#[derive(Clone)]
pub struct CrossFitted {
    /// Rows of the cohort, ascending: those of [`HeldOut`](super::HeldOut).
    pub rows: Vec<usize>,
    /// Which part each was held out with.
    pub folds: Vec<usize>,
    /// What happened to them.
    pub outcome: Outcome,
    /// What is predicted.
    pub forecast: Forecast,
}

impl Machine {
    /// Every one of at most 5,000 patients by machines that differ from this one in its patients alone: its width and penalty are not chosen
    /// anew, because scores of other settings are on other scales.
    ///
    /// # Errors
    /// [`PredictionError`] where a fold cannot be made or learned from.
    pub fn cross_fitted(
        &self,
        kernel: &KernelOf<'_>,
        cohort: &Cohort<'_>,
        learner: Learner,
        seed: Seed,
    ) -> Result<CrossFitted, PredictionError> {
        let everybody: Vec<usize> = (0..cohort.placed.patients()).collect();
        let judged = drawn(&everybody, JUDGED_MAX, seed, "judged");
        let outcome = cohort.outcome.select(&judged);
        let folds = FOLDS.min(judged.len() / 2).max(2);
        let parted = Folds::stratified(&strata(&outcome, folds), folds, seed)?;
        let splits: Vec<Split> = (0..folds).map(|fold| parted.split(fold)).collect();
        let chosen = Chosen {
            width: self.width,
            penalty: self.penalty,
            at_end: self.at_end,
        };
        let one = |split: &Split| -> Result<Forecast, PredictionError> {
            let held: Vec<usize> = split.held_out.iter().map(|place| judged[*place]).collect();
            let training: Vec<usize> = everybody
                .iter()
                .copied()
                .filter(|row| held.binary_search(row).is_err())
                .collect();
            let machine = Self::with(kernel, cohort, &training, (learner, chosen), seed)?;
            machine.forecast(kernel, &cohort.placed.select(&held))
        };
        let found: Vec<Forecast> = splits
            .chunks(2)
            .map(|pair| pair.par_iter().map(one).collect::<Result<Vec<_>, _>>())
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .flatten()
            .collect();
        let order = splits.iter().flat_map(|split| split.held_out.clone());
        let mut places = vec![0; judged.len()];
        (0..)
            .zip(order)
            .for_each(|(place, row)| places[row] = place);
        let forecast = Forecast::joined(found).ok_or(PredictionError::Unsuited)?;
        Ok(CrossFitted {
            rows: judged,
            folds: folds_of(&splits),
            outcome,
            forecast: forecast.select(&places),
        })
    }
}

/// The fold of each patient.
fn folds_of(splits: &[Split]) -> Vec<usize> {
    let mut own = vec![0; splits.iter().map(|split| split.held_out.len()).sum()];
    for (fold, split) in splits.iter().enumerate() {
        split.held_out.iter().for_each(|row| own[*row] = fold);
    }
    own
}
