//! The Laplace kernel exp(-||x - y|| / sigma) of feature vectors.

use ndarray::{Array2, ArrayView2};

use crate::compare::proximity::kernel::{KernelError, by_rows, check_size};

/// The norm of a Laplace kernel. The kernel is positive semidefinite with both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Norm {
    /// Sum of absolute differences, as Feng and Baumgartner print it.
    L1,
    /// Euclidean, as their software computes it.
    L2,
}

/// The kernel of m patients against n, m x n, from feature matrices m x p and n x p; sigma is in the
/// unit of the norm. A missing value (NaN) gives NaN.
///
/// # Errors
/// [`KernelError`] where sigma is not positive and finite, the numbers of features differ, or the matrix is too large.
pub fn laplace(
    rows: ArrayView2<'_, f64>,
    columns: ArrayView2<'_, f64>,
    norm: Norm,
    sigma: f64,
) -> Result<Array2<f64>, KernelError> {
    if !(sigma.is_finite() && sigma > 0.0) {
        return Err(KernelError::Sigma { found: sigma });
    }
    if rows.ncols() != columns.ncols() {
        return Err(KernelError::Features {
            found: rows.ncols(),
            wanted: columns.ncols(),
        });
    }
    check_size(rows.nrows(), columns.nrows())?;
    Ok(by_rows(
        rows.nrows(),
        columns.nrows(),
        || (),
        |(), row, values| {
            let x = rows.row(row);
            for (value, y) in values.iter_mut().zip(columns.outer_iter()) {
                let differences = x.iter().zip(y).map(|(a, b)| a - b);
                let length = match norm {
                    Norm::L1 => differences.map(f64::abs).sum::<f64>(),
                    Norm::L2 => differences
                        .map(|difference| difference * difference)
                        .sum::<f64>()
                        .sqrt(),
                };
                *value = libm::exp(-length / sigma);
            }
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn both_norms_follow_the_formula() {
        let x = array![[0.0, 0.0], [3.0, 4.0]];
        let one = laplace(x.view(), x.view(), Norm::L1, 2.0).unwrap();
        let two = laplace(x.view(), x.view(), Norm::L2, 2.0).unwrap();
        assert_eq!(
            one,
            array![[1.0, (-3.5_f64).exp()], [(-3.5_f64).exp(), 1.0]]
        );
        assert_eq!(
            two,
            array![[1.0, (-2.5_f64).exp()], [(-2.5_f64).exp(), 1.0]]
        );
    }

    #[test]
    fn unusable_arguments_are_refused() {
        let x = array![[0.0, 0.0]];
        let y = array![[0.0]];
        assert_eq!(
            laplace(x.view(), x.view(), Norm::L1, 0.0),
            Err(KernelError::Sigma { found: 0.0 })
        );
        assert_eq!(
            laplace(x.view(), y.view(), Norm::L1, 1.0),
            Err(KernelError::Features {
                found: 2,
                wanted: 1
            })
        );
    }
}
