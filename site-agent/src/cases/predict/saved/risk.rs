//! What makes chances of predicted times, in the file.

use super::super::super::survival::Presentation;
use super::super::chances::Chances;
use super::numbers::Matrix;
use ndarray::Array2;
use protocol::job::Job;
use serde::{Deserialize, Serialize};
use similarity::uses::prediction::risk::{Risk, Step};

/// Numbers of a step.
const WIDTH: usize = 5;

#[derive(Serialize, Deserialize)]
pub(super) struct SavedChances {
    scale: [f64; 2],
    ends: [f64; 2],
    slope: f64,
    variance: f64,
    /// Time, events, hazard, mean and square of each step.
    steps: Matrix,
    last: f64,
    is_logarithm: bool,
    times: Vec<f64>,
}

impl SavedChances {
    #[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
    pub(super) fn of(chances: &Chances) -> Self {
        let Risk {
            scale,
            ends,
            slope,
            variance,
            steps,
            last,
        } = &chances.risk;
        let number = |(row, column): (usize, usize)| {
            let step = steps[row];
            let numbers = [
                step.time,
                step.events as f64,
                step.hazard,
                step.mean,
                step.square,
            ];
            numbers[column]
        };
        Self {
            scale: *scale,
            ends: *ends,
            slope: *slope,
            variance: *variance,
            steps: Matrix::of(&Array2::from_shape_fn((steps.len(), WIDTH), number)),
            last: *last,
            is_logarithm: chances.is_logarithm,
            times: chances.presentation.times.clone(),
        }
    }

    /// None where shapes do not fit.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // counts of events
    pub(super) fn made(self, job: &Job) -> Option<Chances> {
        let steps = self.steps.matrix()?;
        (steps.ncols() == WIDTH).then_some(())?;
        let step = |row: ndarray::ArrayView1<'_, f64>| Step {
            time: row[0],
            events: row[1] as usize,
            hazard: row[2],
            mean: row[3],
            square: row[4],
        };
        Some(Chances {
            risk: Risk {
                scale: self.scale,
                ends: self.ends,
                slope: self.slope,
                variance: self.variance,
                steps: steps.outer_iter().map(step).collect(),
                last: self.last,
            },
            is_logarithm: self.is_logarithm,
            presentation: Presentation {
                specification: job.cohort.outcome.clone(),
                times: self.times,
            },
        })
    }
}
