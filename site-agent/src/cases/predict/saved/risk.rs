//! What makes chances of predicted times, in the file.

use super::super::super::record::LearnedRegression;
use super::super::super::survival::Presentation;
use super::super::chances::{Basis, Chances};
use super::numbers::Matrix;
use ndarray::Array2;
use protocol::job::Job;
use serde::{Deserialize, Serialize};
use similarity::uses::prediction::risk::{Risk, Step};

/// Numbers of a step.
const WIDTH: usize = 5;

#[derive(Serialize, Deserialize)]
pub(super) struct SavedChances {
    basis: SavedBasis,
    times: Vec<f64>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SavedBasis {
    Hospital(SavedRisk),
    Common(LearnedRegression),
}

#[derive(Serialize, Deserialize)]
struct SavedRisk {
    scale: [f64; 2],
    ends: [f64; 2],
    slope: f64,
    variance: f64,
    /// Time, events, hazard, mean and square of each step.
    steps: Matrix,
    last: f64,
    is_logarithm: bool,
}

impl SavedChances {
    pub(super) fn of(chances: &Chances) -> Self {
        Self {
            basis: match &chances.basis {
                Basis::Hospital { risk, is_logarithm } => {
                    SavedBasis::Hospital(SavedRisk::of(risk, *is_logarithm))
                }
                Basis::Common { learned, .. } => SavedBasis::Common(learned.clone()),
            },
            times: chances.presentation.times.clone(),
        }
    }

    /// None where shapes do not fit.
    pub(super) fn made(self, job: &Job) -> Option<Chances> {
        let presentation = Presentation {
            specification: job.cohort.outcome.clone(),
            times: self.times,
        };
        match self.basis {
            SavedBasis::Hospital(risk) => Some(Chances {
                basis: risk.made()?,
                presentation,
            }),
            SavedBasis::Common(learned) => Chances::common(learned, presentation),
        }
    }
}

impl SavedRisk {
    #[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
    fn of(risk: &Risk, is_logarithm: bool) -> Self {
        let Risk {
            scale,
            ends,
            slope,
            variance,
            steps,
            last,
        } = risk;
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
            is_logarithm,
        }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // counts of events
    fn made(self) -> Option<Basis> {
        let steps = self.steps.matrix()?;
        (steps.ncols() == WIDTH).then_some(())?;
        let step = |row: ndarray::ArrayView1<'_, f64>| Step {
            time: row[0],
            events: row[1] as usize,
            hazard: row[2],
            mean: row[3],
            square: row[4],
        };
        Some(Basis::Hospital {
            risk: Risk {
                scale: self.scale,
                ends: self.ends,
                slope: self.slope,
                variance: self.variance,
                steps: steps.outer_iter().map(step).collect(),
                last: self.last,
            },
            is_logarithm: self.is_logarithm,
        })
    }
}
