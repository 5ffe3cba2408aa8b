//! Kernel logistic regression: sum log(1 + exp(-y f)) + lambda / 2 alpha' K alpha, f = K alpha + c, by Newton's method.

use ndarray::{Array1, Array2};

use super::{KernelFitError, check, check_positive, linear};
use crate::numeric::linear_algebra::Cholesky;

/// Newton's steps.
pub(super) const STEPS_MAX: usize = 100;
/// The largest change of f at the end.
pub(super) const CHANGE_MAX: f64 = 1e-9;
/// The least weight of a patient, so that one who is surely right divides nothing by 0.
pub(super) const WEIGHT_MIN: f64 = 1e-10;

/// A fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Logistic {
    /// One weight a training patient.
    pub weights: Array1<f64>,
    /// c.
    pub constant: f64,
}

impl Logistic {
    /// Of patients with and without; the constant is not penalised.
    ///
    /// # Errors
    /// [`KernelFitError`] where the kernel does not fit, lambda is not above 0, or there is one class alone.
    pub fn fit(
        kernel: &Array2<f64>,
        is_positive: &Array1<bool>,
        lambda: f64,
    ) -> Result<Self, KernelFitError> {
        let patients = is_positive.len();
        check(kernel, patients)?;
        check_positive("lambda", lambda)?;
        if is_positive.iter().all(|own| *own == is_positive[0]) {
            return Err(KernelFitError::OneOutcome);
        }
        let target = is_positive.mapv(|own| f64::from(u8::from(own)));
        let mut fit = Self {
            weights: Array1::zeros(patients),
            constant: 0.0,
        };
        let mut value = fit.objective(kernel, is_positive, lambda);
        for _ in 0..STEPS_MAX {
            let next = fit.newton(kernel, &target, lambda)?;
            let mut share = 1.0;
            // Halves the step until the objective falls.
            let (moved, lower) = loop {
                let moved = Self {
                    weights: &fit.weights + &((&next.weights - &fit.weights) * share),
                    constant: fit.constant + share * (next.constant - fit.constant),
                };
                let lower = moved.objective(kernel, is_positive, lambda);
                if lower <= value || share < 1e-10 {
                    break (moved, lower);
                }
                share /= 2.0;
            };
            let change = (moved.scores(kernel) - fit.scores(kernel))
                .fold(0.0_f64, |most, one| most.max(one.abs()));
            (fit, value) = (moved, lower);
            if change < CHANGE_MAX {
                return Ok(fit);
            }
        }
        Err(KernelFitError::Unsettled { steps: STEPS_MAX })
    }

    /// (K + lambda V^-1) alpha + c 1 = z with 1' alpha = 0, V the weights p (1 - p).
    fn newton(
        &self,
        kernel: &Array2<f64>,
        target: &Array1<f64>,
        lambda: f64,
    ) -> Result<Self, KernelFitError> {
        let scores = self.scores(kernel);
        let chance = scores.mapv(chance);
        let weight = chance.mapv(|p| (p * (1.0 - p)).max(WEIGHT_MIN));
        let wanted = &scores + &((target - &chance) / &weight);
        let mut matrix = kernel.clone();
        for (entry, weight) in matrix.diag_mut().iter_mut().zip(&weight) {
            *entry += lambda / weight;
        }
        let mut right = Array2::ones((target.len(), 2));
        right.column_mut(0).assign(&wanted);
        let solved = Cholesky::factor(&matrix)?.solve(&right);
        let constant = solved.column(0).sum() / solved.column(1).sum();
        Ok(Self {
            weights: &solved.column(0) - &(&solved.column(1) * constant),
            constant,
        })
    }

    fn scores(&self, kernel: &Array2<f64>) -> Array1<f64> {
        linear(kernel, &self.weights, self.constant)
    }

    fn objective(&self, kernel: &Array2<f64>, is_positive: &Array1<bool>, lambda: f64) -> f64 {
        let scores = self.scores(kernel);
        let losses: f64 = scores.iter().zip(is_positive).map(loss).sum();
        losses + lambda / 2.0 * self.weights.dot(&kernel.dot(&self.weights))
    }

    /// The chance of being positive of new patients, m, by their kernel with the training patients, m x n.
    #[must_use]
    pub fn predict(&self, cross: &Array2<f64>) -> Array1<f64> {
        self.scores(cross).mapv(chance)
    }
}

/// log(1 + exp(-margin)) without overflow.
pub(super) fn loss((score, own): (&f64, &bool)) -> f64 {
    let margin = if *own { *score } else { -score };
    (-margin).max(0.0) + libm::log1p(libm::exp(-margin.abs()))
}

pub(super) fn chance(score: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-score))
}
