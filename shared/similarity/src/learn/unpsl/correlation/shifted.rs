//! Solving (lambda_2 (R o R) + rho I) X = B, which the Z-update (3.18) needs, factored once per rho.

use ndarray::{Array2, ArrayView1, Axis, Zip, s};

use super::{Correlation, Form};
use crate::numeric::linear_algebra::{
    Cholesky, LinearAlgebraError, gram, product, transposed_product,
};

/// The largest inner system of Woodbury's identity; beyond it conjugate gradients are cheaper.
const WOODBURY_SIZE_MAX: usize = 2000;
/// Conjugate gradients stop at this residual relative to the right-hand side.
const RESIDUAL_RATIO: f64 = 1e-12;
/// Or after this many steps.
const STEPS_MAX: usize = 1000;

/// lambda_2 (R o R) + rho I, ready to be solved against many right-hand sides.
#[derive(Debug)]
pub struct ShiftedSolver<'a> {
    correlation: &'a Correlation,
    weight: f64,
    shift: f64,
    method: Method,
}

#[derive(Debug)]
enum Method {
    /// No correlation term: divide by rho.
    Scale,
    /// d x d, factored.
    Dense(Cholesky),
    /// (A + rho I)^{-1} B = (B - K (rho/lambda_2 I + K'K)^{-1} K'B) / rho, where R o R = K K'.
    Woodbury { root: Array2<f64>, inner: Cholesky },
    /// Conjugate gradients, one column at a time in lockstep.
    ConjugateGradients,
}

impl Correlation {
    /// Prepares `weight` (R o R) + `shift` I: lambda_2 and rho in (3.18).
    ///
    /// # Errors
    /// [`LinearAlgebraError::NotPositiveDefinite`], where `shift` is not above 0.
    pub fn shifted_solver(
        &self,
        weight: f64,
        shift: f64,
    ) -> Result<ShiftedSolver<'_>, LinearAlgebraError> {
        if !(shift > 0.0 && weight >= 0.0) {
            return Err(LinearAlgebraError::NotPositiveDefinite {
                size: self.features(),
            });
        }
        let method = match &self.form {
            _ if weight == 0.0 => Method::Scale,
            Form::Dense(squared) => {
                let mut matrix = squared * weight;
                matrix.diag_mut().mapv_inplace(|value| value + shift);
                Method::Dense(Cholesky::factor(&matrix)?)
            }
            Form::Implicit(normalised) => {
                let count = normalised.nrows();
                if count * (count + 1) / 2 <= WOODBURY_SIZE_MAX {
                    let root = square_root(normalised);
                    let mut inner = gram(&root.view());
                    inner
                        .diag_mut()
                        .mapv_inplace(|value| value + shift / weight);
                    Method::Woodbury {
                        root,
                        inner: Cholesky::factor(&inner)?,
                    }
                } else {
                    Method::ConjugateGradients
                }
            }
        };
        Ok(ShiftedSolver {
            correlation: self,
            weight,
            shift,
            method,
        })
    }
}

impl ShiftedSolver<'_> {
    /// X with (lambda_2 (R o R) + rho I) X = `right`, d x m.
    ///
    /// # Panics
    /// Where `right` has another number of rows than there are features.
    #[must_use]
    pub fn solve(&self, right: &Array2<f64>) -> Array2<f64> {
        match &self.method {
            Method::Scale => right / self.shift,
            Method::Dense(factor) => factor.solve(right),
            Method::Woodbury { root, inner } => {
                let small = inner.solve(&transposed_product(&root.view(), &right.view()));
                (right - &product(&root.view(), &small.view())) / self.shift
            }
            Method::ConjugateGradients => self.conjugate_gradients(right),
        }
    }

    fn conjugate_gradients(&self, right: &Array2<f64>) -> Array2<f64> {
        let mut solution = right / (self.shift + self.weight);
        let mut image = Array2::zeros(right.raw_dim());
        let apply = |matrix: &Array2<f64>, image: &mut Array2<f64>| {
            self.correlation.multiply_into(&matrix.view(), image);
            Zip::from(image)
                .and(matrix)
                .for_each(|i, m| *i = self.weight * *i + self.shift * m);
        };
        apply(&solution, &mut image);
        let mut residual = right - &image;
        let mut direction = residual.clone();
        let square = |column: ArrayView1<f64>| column.dot(&column);
        let wanted = right.map_axis(Axis(0), |column| RESIDUAL_RATIO.powi(2) * square(column));
        let mut squares = residual.map_axis(Axis(0), square);
        for _ in 0..STEPS_MAX {
            if squares
                .iter()
                .zip(&wanted)
                .all(|(found, wanted)| found <= wanted)
            {
                break;
            }
            apply(&direction, &mut image);
            for column in 0..right.ncols() {
                if squares[column] <= wanted[column] {
                    continue;
                }
                let at = s![.., column];
                let length = squares[column] / direction.slice(at).dot(&image.slice(at));
                solution
                    .slice_mut(at)
                    .scaled_add(length, &direction.slice(at));
                residual.slice_mut(at).scaled_add(-length, &image.slice(at));
                let next = square(residual.slice(at));
                let turn = next / squares[column];
                squares[column] = next;
                Zip::from(direction.slice_mut(at))
                    .and(residual.slice(at))
                    .for_each(|d, r| *d = r + turn * *d);
            }
        }
        solution
    }
}

/// K, d x n(n+1)/2, with R o R = K K': the products of two patients' entries, feature by feature.
fn square_root(normalised: &Array2<f64>) -> Array2<f64> {
    let (count, features) = normalised.dim();
    let mut root = Array2::zeros((features, count * (count + 1) / 2));
    for (patient, mut row) in normalised.columns().into_iter().zip(root.rows_mut()) {
        let mut at = 0;
        for one in 0..count {
            for other in 0..=one {
                let times = if one == other {
                    1.0
                } else {
                    std::f64::consts::SQRT_2
                };
                row[at] = times * patient[one] * patient[other];
                at += 1;
            }
        }
    }
    root
}
