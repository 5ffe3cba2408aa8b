//! Prediction from a kernel matrix, whatever kernel made it: a forest's proximity, path, depth or KeRF, or Laplace's.
//!
//! | learner | predicts | fitted by |
//! | --- | --- | --- |
//! | [`ridge`] | a number, or a class by its sign | one eigendecomposition; lambda by closed-form leave-one-out |
//! | [`logistic`] | the chance of a class | Newton's method |
//! | [`survival`] | a time of survival, by a support vector machine | sequential minimal optimisation, with its duality gap |
//! | [`gaussian`] | a number with its interval | one Cholesky factor |
//! | [`landmarks`] | what the others predict, of many patients | Nystroem's embedding |
//!
//! A fit is alpha, one weight a training patient; the prediction of a new patient is the sum of its kernel values with them, times
//! alpha. `kernel` is n x n and symmetric (its lower triangle counts), `cross` is m x n: new patients across training ones.

#![expect(clippy::disallowed_methods, reason = "one site works it out alone")]

pub mod gaussian;
pub mod landmarks;
pub mod logistic;
pub mod ridge;
pub mod survival;

use ndarray::{Array1, Array2};

use crate::numeric::linear_algebra::LinearAlgebraError;

/// A kernel that nothing can be learned from.
#[derive(Debug, thiserror::Error)]
pub enum KernelFitError {
    /// A matrix of another shape than the outcomes.
    #[error(
        "found a kernel of {rows} x {columns}, wanted {wanted} x {wanted}, as many as outcomes"
    )]
    Shape {
        /// Rows.
        rows: usize,
        /// Columns.
        columns: usize,
        /// Outcomes.
        wanted: usize,
    },
    /// NaN or infinite.
    #[error("row {row}, column {column} of the kernel is not a finite number")]
    Entry {
        /// Row.
        row: usize,
        /// Column.
        column: usize,
    },
    /// A penalty, noise or bound that is none.
    #[error("{name} is {found}, wanted a finite number {wanted}")]
    Setting {
        /// Its name.
        name: &'static str,
        /// What was found.
        found: f64,
        /// What was wanted.
        wanted: &'static str,
    },
    /// No penalty up to this one makes the matrix regular.
    #[error(
        "the kernel is singular, or not positive semidefinite: lambda up to {most} does not help"
    )]
    Singular {
        /// The largest that was tried.
        most: f64,
    },
    /// One class alone.
    #[error("all patients have the same outcome: there is nothing to learn")]
    OneOutcome,
    /// No event.
    #[error("nobody has the event: any late time explains all patients")]
    NoEvent,
    /// Too few patients.
    #[error("found {found} patients, wanted at least {wanted}")]
    Patients {
        /// What was found.
        found: usize,
        /// What was wanted.
        wanted: usize,
    },
    /// The search has no end.
    #[error("no solution after {steps} steps")]
    Unsettled {
        /// Steps made.
        steps: usize,
    },
    /// LAPACK failed.
    #[error(transparent)]
    LinearAlgebra(#[from] LinearAlgebraError),
}

/// # Errors
/// [`KernelFitError::Shape`], [`KernelFitError::Entry`], and [`KernelFitError::Patients`] of fewer than two.
fn check(kernel: &Array2<f64>, outcomes: usize) -> Result<(), KernelFitError> {
    if kernel.dim() != (outcomes, outcomes) {
        let (rows, columns) = kernel.dim();
        return Err(KernelFitError::Shape {
            rows,
            columns,
            wanted: outcomes,
        });
    }
    if outcomes < 2 {
        return Err(KernelFitError::Patients {
            found: outcomes,
            wanted: 2,
        });
    }
    match kernel.indexed_iter().find(|(_, value)| !value.is_finite()) {
        Some(((row, column), _)) => Err(KernelFitError::Entry { row, column }),
        None => Ok(()),
    }
}

/// # Errors
/// [`KernelFitError::Setting`] of what is not above 0.
fn check_positive(name: &'static str, found: f64) -> Result<(), KernelFitError> {
    match found.is_finite() && found > 0.0 {
        true => Ok(()),
        false => Err(KernelFitError::Setting {
            name,
            found,
            wanted: "above 0",
        }),
    }
}

/// cross x weights + constant.
fn linear(cross: &Array2<f64>, weights: &Array1<f64>, constant: f64) -> Array1<f64> {
    cross.dot(weights) + constant
}
