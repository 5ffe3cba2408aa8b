//! Symmetric matrices by IEEE operations in a fixed order, so that their bits are the same on every processor.

use ndarray::{Array1, Array2};

/// The sum of the products of two vectors.
pub(super) fn inner(one: &Array1<f64>, other: &Array1<f64>) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

/// L of A = L L', by IEEE operations in a fixed order.
pub(super) struct Factor {
    lower: Array2<f64>,
}

impl Factor {
    /// None where the matrix is not positive definite.
    pub(super) fn of(matrix: &Array2<f64>) -> Option<Self> {
        let size = matrix.nrows();
        let mut lower: Array2<f64> = Array2::zeros((size, size));
        for row in 0..size {
            for column in 0..=row {
                let known: f64 = (0..column)
                    .map(|place| lower[(row, place)] * lower[(column, place)])
                    .sum();
                let left = matrix[(row, column)] - known;
                lower[(row, column)] = match row == column {
                    true if left > 0.0 => left.sqrt(),
                    true => return None,
                    false => left / lower[(column, column)],
                };
            }
        }
        Some(Self { lower })
    }

    /// The logarithm of the determinant of A.
    pub(super) fn log_determinant(&self) -> f64 {
        let diagonal = self.lower.diag();
        2.0 * diagonal.iter().map(|one| libm::log(*one)).sum::<f64>()
    }

    /// A^-1 times `right`.
    pub(super) fn solve(&self, right: &Array1<f64>) -> Array1<f64> {
        let (lower, size) = (&self.lower, right.len());
        let mut solved = right.clone();
        for row in 0..size {
            let known: f64 = (0..row)
                .map(|place| lower[(row, place)] * solved[place])
                .sum();
            solved[row] = (solved[row] - known) / lower[(row, row)];
        }
        for row in (0..size).rev() {
            let known: f64 = (row + 1..size)
                .map(|place| lower[(place, row)] * solved[place])
                .sum();
            solved[row] = (solved[row] - known) / lower[(row, row)];
        }
        solved
    }
}

/// Whether a symmetric matrix is positive definite, by IEEE operations in a fixed order.
#[must_use]
pub fn is_positive_definite(matrix: &Array2<f64>) -> bool {
    Factor::of(matrix).is_some()
}

/// The information with the penalty on its diagonal.
#[must_use]
pub fn penalised(information: &Array2<f64>, penalty: &Array1<f64>) -> Array2<f64> {
    let mut information = information.clone();
    information
        .diag_mut()
        .iter_mut()
        .zip(penalty)
        .for_each(|(entry, penalty)| *entry += penalty);
    information
}
