//! A Gaussian process with a given covariance: predictions with their intervals.

use ndarray::{Array1, Array2, Axis};
use statrs::distribution::{ContinuousCDF, Normal};

use super::{KernelFitError, check, check_positive};
use crate::numeric::linear_algebra::Cholesky;

/// A fit: y - c has covariance scale (K + noise I).
#[derive(Debug, Clone)]
pub struct Gaussian {
    factor: Cholesky,
    weights: Array1<f64>,
    /// c, the mean of y.
    pub constant: f64,
    /// The factor of the covariance: its estimate of greatest likelihood, given K and the noise.
    pub scale: f64,
    /// The variance of an outcome around its own expectation, in units of the scale.
    pub noise: f64,
    /// The logarithm of the likelihood of y.
    pub log_likelihood: f64,
}

/// A prediction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Predicted {
    /// Its mean.
    pub mean: f64,
    /// The standard deviation of what is expected of such a patient.
    pub deviation: f64,
    /// The interval in which such a patient's outcome lies.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Gaussian {
    /// Of numbers, with the noise as a share of the scale.
    ///
    /// # Errors
    /// [`KernelFitError`] where the kernel does not fit, the noise is not above 0, or K + noise I is not positive definite.
    pub fn fit(kernel: &Array2<f64>, y: &Array1<f64>, noise: f64) -> Result<Self, KernelFitError> {
        check(kernel, y.len())?;
        check_positive("noise", noise)?;
        if y.iter().all(|value| *value == y[0]) {
            return Err(KernelFitError::OneOutcome);
        }
        let n = y.len() as f64;
        let constant = y.sum() / n;
        let centred = y - constant;
        let mut matrix = kernel.clone();
        matrix.diag_mut().mapv_inplace(|entry| entry + noise);
        let factor = Cholesky::factor(&matrix)?;
        let weights = factor
            .solve(&centred.clone().insert_axis(Axis(1)))
            .index_axis_move(Axis(1), 0);
        let scale = centred.dot(&weights) / n;
        let determinant = factor.log_determinant();
        let log_likelihood =
            -0.5 * (n + n * libm::log(scale) + determinant + n * libm::log(std::f64::consts::TAU));
        Ok(Self {
            factor,
            weights,
            constant,
            scale,
            noise,
            log_likelihood,
        })
    }

    /// Of several noises that of the greatest likelihood.
    ///
    /// # Errors
    /// [`KernelFitError`] as for [`Gaussian::fit`], of the first noise that fails, or without any noise.
    pub fn fit_best(
        kernel: &Array2<f64>,
        y: &Array1<f64>,
        noises: &[f64],
    ) -> Result<Self, KernelFitError> {
        let mut best: Option<Self> = None;
        for noise in noises {
            let found = Self::fit(kernel, y, *noise)?;
            if best
                .as_ref()
                .is_none_or(|best| found.log_likelihood > best.log_likelihood)
            {
                best = Some(found);
            }
        }
        best.ok_or(KernelFitError::Setting {
            name: "noise",
            found: f64::NAN,
            wanted: "above 0",
        })
    }

    /// alpha, one a training patient.
    #[must_use]
    pub fn weights(&self) -> &Array1<f64> {
        &self.weights
    }

    /// Of new patients by their kernel with the training patients, m x n, and with themselves, m; `level` is the share of
    /// outcomes that lie in the interval.
    #[must_use]
    pub fn predict(&self, cross: &Array2<f64>, own: &Array1<f64>, level: f64) -> Vec<Predicted> {
        let means = cross.dot(&self.weights);
        let solved = self.factor.solve(&cross.t().to_owned());
        let rows = means
            .iter()
            .zip(own)
            .zip(cross.outer_iter().zip(solved.columns()));
        let spread = Spread {
            scale: self.scale,
            noise: self.noise,
        };
        rows.map(|((mean, own), (row, solved))| {
            let variance = own - row.dot(&solved);
            spread.around(mean + self.constant, variance, level)
        })
        .collect()
    }
}

/// What an interval follows from beside a patient's own variance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub(super) scale: f64,
    pub(super) noise: f64,
}

impl Spread {
    /// The interval around a mean, of the variance of what is expected in units of the scale.
    pub(super) fn around(self, mean: f64, variance: f64, level: f64) -> Predicted {
        let Self { scale, noise } = self;
        // Rounding only; NaN stays.
        let variance = if variance < 0.0 { 0.0 } else { variance };
        let width = Normal::standard().inverse_cdf(f64::midpoint(1.0, level));
        let outcome = width * (scale * (variance + noise)).sqrt();
        Predicted {
            mean,
            deviation: (scale * variance).sqrt(),
            low: mean - outcome,
            high: mean + outcome,
        }
    }
}
