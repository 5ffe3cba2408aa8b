//! Kernel ridge regression: alpha = (K + lambda I)^-1 (y - c).
//!
//! Leave-one-out chooses the penalty without a second fit. Here one patient is really held out, and its prediction is the same:
//!
//! ```
//! use ndarray::{Array1, Array2, Axis, s};
//! use similarity::compare::laplace::{Norm, laplace};
//! use similarity::learn::kernel::ridge::{Mode, Ridge};
//!
//! let ages = Array1::range(40.0, 80.0, 1.0).insert_axis(Axis(1));
//! let pressure = ages.column(0).mapv(|age: f64| 90.0 + age / 2.0 + (age / 3.0).sin());
//! let kernel: Array2<f64> = laplace(ages.view(), ages.view(), Norm::L1, 20.0)?;
//!
//! let chosen = Ridge::fit(&kernel, &pressure, Mode::LeaveOneOut)?;
//! assert!(chosen.left_out_error(&pressure) < 0.05 * pressure.var(0.0));
//!
//! // The same by hand, with the paper's penalty and no constant: all patients but the first.
//! let (rest, all) = (s![1.., 1..], Ridge::fit(&kernel, &pressure, Mode::Paper)?);
//! let (others, known) = (kernel.slice(rest).to_owned(), pressure.slice(s![1..]).to_owned());
//! let without = Ridge::fit(&others, &known, Mode::Paper)?;
//! let predicted = without.predict(&kernel.slice(s![..1, 1..]).to_owned());
//! assert!((predicted[0] - all.left_out[0]).abs() < 1e-6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use ndarray::{Array1, Array2};

use super::{KernelFitError, check, linear};
use crate::numeric::linear_algebra::{SymmetricEigen, symmetric_eigen};

/// Eigenvalues below this share of the largest are 0 but for rounding.
const FLAT: f64 = 1e-12;
/// Penalties that leave-one-out chooses from, for one power of ten.
const STEPS: i32 = 4;
/// Their ends, as powers of ten of the mean eigenvalue.
const POWERS: (i32, i32) = (-8, 3);

/// How the penalty is found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    /// As Feng and Baumgartner (2020): y as it is, and the smallest penalty that inverts, 0 where the kernel is regular.
    Paper,
    /// y less its mean, and the penalty of the least leave-one-out error.
    LeaveOneOut,
    /// y less its mean, and this penalty.
    Given(f64),
}

/// A fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Ridge {
    /// One weight a training patient.
    pub weights: Array1<f64>,
    /// c.
    pub constant: f64,
    /// The penalty.
    pub lambda: f64,
    /// What each training patient's outcome would be predicted without it, in closed form (c is kept).
    pub left_out: Array1<f64>,
}

impl Ridge {
    /// Of outcomes that are numbers; of two classes those are -1 and 1, and the sign of a prediction is the class.
    ///
    /// # Errors
    /// [`KernelFitError`] where the kernel does not fit, holds no number or cannot be inverted.
    pub fn fit(kernel: &Array2<f64>, y: &Array1<f64>, mode: Mode) -> Result<Self, KernelFitError> {
        check(kernel, y.len())?;
        let constant = match mode {
            Mode::Paper => 0.0,
            Mode::LeaveOneOut | Mode::Given(_) => y.sum() / y.len() as f64,
        };
        let eigen = symmetric_eigen(kernel)?;
        let largest = eigen
            .values
            .iter()
            .fold(0.0_f64, |most, value| most.max(value.abs()));
        let floor = FLAT * largest * y.len() as f64;
        let least = eigen.values[0];
        let fit = |lambda: f64| Self::with(&eigen, y, constant, lambda);
        match mode {
            Mode::Given(lambda) if !(lambda.is_finite() && lambda >= 0.0) => {
                Err(KernelFitError::Setting {
                    name: "lambda",
                    found: lambda,
                    wanted: "of at least 0",
                })
            }
            Mode::Given(lambda) if least + lambda <= floor => {
                Err(KernelFitError::Singular { most: lambda })
            }
            Mode::Given(lambda) => Ok(fit(lambda)),
            Mode::Paper => {
                // 0, or what lifts the smallest eigenvalue out of rounding; an indefinite kernel is none.
                let lambda = if least > floor { 0.0 } else { 2.0 * floor };
                match least + lambda > 0.0 && lambda.is_finite() && largest > 0.0 {
                    true => Ok(fit(lambda)),
                    false => Err(KernelFitError::Singular { most: lambda }),
                }
            }
            Mode::LeaveOneOut => {
                let mean = largest.max(f64::MIN_POSITIVE) / y.len() as f64;
                let grid = (POWERS.0 * STEPS..=POWERS.1 * STEPS)
                    .map(|step| mean * libm::exp10(f64::from(step) / f64::from(STEPS)));
                let mut best: Option<(f64, Self)> = None;
                for lambda in grid.filter(|lambda| least + lambda > floor) {
                    let found = fit(lambda);
                    let error = found.left_out_error(y);
                    if best.as_ref().is_none_or(|(least, _)| error < *least) {
                        best = Some((error, found));
                    }
                }
                let most = mean * 10.0_f64.powi(POWERS.1);
                best.map(|(_, found)| found)
                    .ok_or(KernelFitError::Singular { most })
            }
        }
    }

    fn with(eigen: &SymmetricEigen, y: &Array1<f64>, constant: f64, lambda: f64) -> Self {
        let centred = y - constant;
        let inverse = eigen.values.mapv(|value| 1.0 / (value + lambda));
        let turned = eigen.vectors.t().dot(&centred) * &inverse;
        let weights = eigen.vectors.dot(&turned);
        let squares = eigen.vectors.mapv(|entry| entry * entry);
        let diagonal = squares.dot(&inverse);
        // y_i less what is predicted without i is alpha_i over the diagonal of the inverse.
        let left_out = y - &(&weights / &diagonal);
        Self {
            weights,
            constant,
            lambda,
            left_out,
        }
    }

    /// The mean squared leave-one-out error.
    #[must_use]
    pub fn left_out_error(&self, y: &Array1<f64>) -> f64 {
        let errors = y - &self.left_out;
        errors.mapv(|error| error * error).sum() / y.len() as f64
    }

    /// Of new patients, m, by their kernel with the training patients, m x n.
    #[must_use]
    pub fn predict(&self, cross: &Array2<f64>) -> Array1<f64> {
        linear(cross, &self.weights, self.constant)
    }
}
