//! Newton's method on a concave log-likelihood of which only sums are known.

use ndarray::{Array1, Array2, Axis};

use crate::learn::regression::sums::Sums;
use crate::numeric::linear_algebra::Cholesky;

/// Steps at most.
const STEPS_MAX: u32 = 100;
/// Halvings of one step at most.
const HALVINGS_MAX: u32 = 40;
/// The step after which nothing changes: g' H^-1 g, twice what the log-likelihood may still gain, as a share of it.
const SETTLED: f64 = 1e-12;
/// Coefficients that still move so far while the log-likelihood gains less than [`FLAT`] move without end.
const MOVING: f64 = 0.05;
/// See [`MOVING`].
const FLAT: f64 = 1e-5;

/// How a fit ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// At the maximum.
    Converged,
    /// There is no maximum: the coefficients of these columns grow without end, because they part the outcomes
    /// perfectly (separation, or a monotone likelihood). A ridge has a maximum.
    Separated(Vec<usize>),
    /// The steps ran out.
    StepLimit,
}

/// The coefficients that were found.
#[derive(Debug, Clone, PartialEq)]
pub struct Maximum {
    /// One a column.
    pub at: Array1<f64>,
    /// The sums there, without the penalty.
    pub sums: Sums,
    /// Steps made.
    pub steps: u32,
    /// How it ended.
    pub ending: Ending,
}

/// Maximises the log-likelihood less 1/2 sum penalty_k b_k^2, from 0. `evaluate` gives the sums over all sites at given
/// coefficients; it is asked once a step, and again for each halving.
///
/// # Errors
/// Those of `evaluate`.
pub fn maximise<E>(
    penalty: &Array1<f64>,
    mut evaluate: impl FnMut(&Array1<f64>) -> Result<Sums, E>,
) -> Result<Maximum, E> {
    let mut at = Array1::zeros(penalty.len());
    let mut sums = evaluate(&at)?;
    let value =
        |at: &Array1<f64>, sums: &Sums| sums.log_likelihood - 0.5 * (penalty * at * at).sum();
    for steps in 0..STEPS_MAX {
        let gradient = &sums.gradient - &(penalty * &at);
        let Some(step) = solved(&sums, penalty, &gradient) else {
            let ending = Ending::Separated(flat(&sums, penalty));
            return Ok(Maximum {
                at,
                sums,
                steps,
                ending,
            });
        };
        let gain = gradient.dot(&step);
        let farthest = step.iter().fold(0.0_f64, |most, part| most.max(part.abs()));
        if gain < FLAT && farthest > MOVING {
            let moving = (0..step.len()).filter(|column| step[*column].abs() > 0.1 * farthest);
            let ending = Ending::Separated(moving.collect());
            return Ok(Maximum {
                at,
                sums,
                steps,
                ending,
            });
        }
        if gain <= SETTLED * sums.log_likelihood.abs().max(1.0) {
            let settled = &at + &step;
            let sums = evaluate(&settled)?;
            return Ok(Maximum {
                at: settled,
                sums,
                steps: steps + 1,
                ending: Ending::Converged,
            });
        }
        let before = value(&at, &sums);
        let mut share = 1.0;
        for _ in 0..=HALVINGS_MAX {
            let next = &at + &(share * &step);
            let found = evaluate(&next)?;
            let after = value(&next, &found);
            // What a rounding takes away is no fall.
            if after >= before - 1e-12 * before.abs() {
                (at, sums) = (next, found);
                break;
            }
            share /= 2.0;
        }
    }
    Ok(Maximum {
        at,
        sums,
        steps: STEPS_MAX,
        ending: Ending::StepLimit,
    })
}

/// The information with the penalty on its diagonal.
#[must_use]
pub fn penalised(sums: &Sums, penalty: &Array1<f64>) -> Array2<f64> {
    let mut information = sums.information.clone();
    information
        .diag_mut()
        .iter_mut()
        .zip(penalty)
        .for_each(|(entry, penalty)| *entry += penalty);
    information
}

fn solved(sums: &Sums, penalty: &Array1<f64>, gradient: &Array1<f64>) -> Option<Array1<f64>> {
    let factor = Cholesky::factor(&penalised(sums, penalty)).ok()?;
    let right = gradient.clone().insert_axis(Axis(1));
    let step = factor.solve(&right).remove_axis(Axis(1));
    step.iter().all(|part| part.is_finite()).then_some(step)
}

/// Columns of which nearly no information is left.
fn flat(sums: &Sums, penalty: &Array1<f64>) -> Vec<usize> {
    let diagonal = &sums.information.diag() + penalty;
    let most = diagonal.iter().copied().fold(0.0, f64::max);
    let least = diagonal.iter().copied().fold(f64::INFINITY, f64::min);
    let border = (least * 10.0).max(most * 1e-8);
    (0..diagonal.len())
        .filter(|column| diagonal[*column] <= border)
        .collect()
}
