//! Errors as sums, so that those of several sites add up, of a forest or of nearest neighbours.

use ndarray::{Array1, Axis};

use crate::cohort::Outcome;
use crate::judge::error::{RiskCase, concordant_pairs, largest};
use crate::judge::survival::{KaplanMeier, time_lost};
use crate::learn::forest::trees::predict::Prediction;
use crate::uses::nearest::Nearest;

/// Errors over patients (for survival: over comparable pairs); the error is `error` over `total`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorSums {
    /// Patients with a prediction; for survival comparable pairs of them.
    pub total: u64,
    /// Patients misclassified, the sum of squared errors, or discordant pairs (equal risks count half).
    pub error: f64,
}

/// One number per patient: the class's code, the number, or a risk that rises with the hazard. NaN where
/// nothing is predicted.
#[derive(Clone, PartialEq)]
pub struct Predicted(Vec<f64>);

impl Predicted {
    /// What a forest predicts: the class with the largest share (the first among equals), the mean, or
    /// the hazard summed over the event times.
    #[must_use]
    pub fn of_forest(prediction: &Prediction) -> Self {
        Self(match prediction {
            Prediction::Numeric(means) => means.to_vec(),
            Prediction::Classes(shares) => {
                let rows = shares.outer_iter();
                let class = |row: ndarray::ArrayView1<'_, f64>| match row.sum().is_nan() {
                    true => f64::NAN,
                    false => largest(row.iter().copied()) as f64,
                };
                rows.map(class).collect()
            }
            Prediction::CumulativeHazard(hazard) => hazard.sum_axis(Axis(1)).to_vec(),
        })
    }

    /// What a regression predicts of linear predictors: the second class where its chance is above a half, the mean, or the
    /// risk.
    #[must_use]
    pub fn of_linear(predictors: &Array1<f64>, outcome: &Outcome) -> Self {
        let of_one = |eta: &f64| match outcome {
            Outcome::Classes { .. } if eta.is_nan() => f64::NAN,
            Outcome::Classes { .. } => f64::from(u8::from(*eta > 0.0)),
            Outcome::Numeric(_) | Outcome::Survival { .. } => *eta,
        };
        Self(predictors.iter().map(of_one).collect())
    }

    /// What the neighbours of each patient predict: their commonest class (among equals that of the
    /// nearest), their mean, or the time that is lost to them by their Kaplan-Meier curve. It is counted up to `horizon` for all, or to
    /// the last event of `outcome`, after which no curve falls.
    #[must_use]
    pub fn of_neighbours(nearest: &[Nearest], outcome: &Outcome, horizon: f64) -> Self {
        let end = match outcome {
            Outcome::Classes { .. } | Outcome::Numeric(_) => horizon,
            Outcome::Survival { time, event } => {
                let seen = time.iter().zip(event).filter(|(_, event)| **event);
                let last = seen.map(|(time, _)| *time).fold(0.0, f64::max);
                last.min(horizon)
            }
        };
        let of_one = |near: &Nearest| {
            let rows = || near.neighbours.iter().map(|other| other.patient as usize);
            if near.neighbours.is_empty() {
                return f64::NAN;
            }
            match outcome {
                Outcome::Classes { codes, levels } => {
                    let mut votes = vec![0_u32; levels.len()];
                    rows().for_each(|row| votes[codes[row] as usize] += 1);
                    let most = votes.iter().copied().max().unwrap_or(0);
                    let winner = rows().find(|&row| votes[codes[row] as usize] == most);
                    winner.map_or(f64::NAN, |row| f64::from(codes[row]))
                }
                Outcome::Numeric(values) => {
                    rows().map(|row| values[row]).sum::<f64>() / near.neighbours.len() as f64
                }
                Outcome::Survival { time, event } => {
                    time_lost(KaplanMeier::of(time, event, rows()).points(), end)
                }
            }
        };
        Self(nearest.iter().map(of_one).collect())
    }

    /// What each patient is predicted, known by now.
    #[must_use]
    pub fn of_values(values: Vec<f64>) -> Self {
        Self(values)
    }

    /// One number per patient.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// The errors against what happened; `outcome` is of as many patients.
    #[must_use]
    pub fn errors(&self, outcome: &Outcome) -> ErrorSums {
        let known = self
            .0
            .iter()
            .enumerate()
            .filter(|(_, found)| !found.is_nan());
        match outcome {
            Outcome::Classes { codes, .. } => ErrorSums {
                total: known.clone().count() as u64,
                error: known
                    .filter(|&(row, &found)| found != f64::from(codes[row]))
                    .count() as f64,
            },
            Outcome::Numeric(wanted) => ErrorSums {
                total: known.clone().count() as u64,
                error: known
                    .map(|(row, found)| (found - wanted[row]).powi(2))
                    .sum(),
            },
            Outcome::Survival { time, event } => {
                let case = |(row, &risk): (usize, &f64)| RiskCase {
                    time: time[row],
                    event: event[row],
                    risk,
                };
                let cases: Vec<RiskCase> = known.map(case).collect();
                let pairs = concordant_pairs(&cases);
                ErrorSums {
                    total: pairs.comparable as u64,
                    error: pairs.comparable - pairs.concordant,
                }
            }
        }
    }

    /// Patients of class i (row) that were predicted as class j (column); none without classes.
    #[must_use]
    pub fn confusion(&self, outcome: &Outcome) -> Option<Vec<Vec<u64>>> {
        let Outcome::Classes { codes, levels } = outcome else {
            return None;
        };
        let mut table = vec![vec![0; levels.len()]; levels.len()];
        for (&code, found) in codes.iter().zip(&self.0) {
            if !found.is_nan() {
                table[code as usize][*found as usize] += 1;
            }
        }
        Some(table)
    }
}

impl std::fmt::Debug for Predicted {
    /// Length only: predictions describe patients.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("Predicted")
            .field(&self.0.len())
            .finish()
    }
}
