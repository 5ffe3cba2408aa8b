//! A quasi-Newton Hessian of one site, made of what the site has released.

use ndarray::{Array1, Array2, ArrayView2, Axis, s};

use crate::numeric::linear_algebra::{LinearAlgebraError, inner_product, norm, symmetric_eigen};

/// A curvature below this share of the base curvature is damped (Powell 1978; Nocedal and Wright, 18.2).
const DAMPING: f64 = 0.2;
/// Eigenvalues of the middle matrix below this share of the largest are taken as zero.
const EIGENVALUES_KEPT: f64 = 1e-12;

/// A step from the anchor and the change of the gradient along it.
#[derive(Debug, Clone)]
pub(super) struct Secant {
    /// W_j - anchor.
    pub(super) step: Array2<f64>,
    /// The gradient at W_j less that at the anchor.
    pub(super) change: Array2<f64>,
}

/// BFGS in its compact form, B = B_0 - F N^+ F' with F = [B_0 S, Y] and N = [S'B_0 S, L; L', -D]
/// (Byrd, Nocedal and Schnabel 1994, theorem 2.3): positive definite wherever B_0 is.
#[derive(Debug)]
pub(super) struct SecantHessian {
    /// F, one flattened matrix a column.
    columns: Array2<f64>,
    /// N^+.
    middle: Array2<f64>,
}

impl SecantHessian {
    /// Takes secants from the least to the most trusted; the last holds exactly unless it was damped.
    ///
    /// # Errors
    /// [`LinearAlgebraError`] where LAPACK finds no eigenvalues.
    pub(super) fn new(
        secants: &[Secant],
        base: impl Fn(&Array2<f64>) -> Array2<f64>,
        entries: usize,
    ) -> Result<Self, LinearAlgebraError> {
        let count = secants.len();
        let mut steps = Array2::zeros((entries, count));
        let mut columns = Array2::zeros((entries, 2 * count));
        for (index, secant) in secants.iter().enumerate() {
            let curved = base(&secant.step);
            let change = damped(secant, &curved);
            let scale = norm(&secant.step.view()).recip();
            let flat =
                |matrix: &Array2<f64>| matrix.iter().map(|v| v * scale).collect::<Array1<_>>();
            steps.column_mut(index).assign(&flat(&secant.step));
            columns.column_mut(index).assign(&flat(&curved));
            columns.column_mut(count + index).assign(&flat(&change));
        }
        let products = steps.t().dot(&columns);
        let mut middle = Array2::zeros((2 * count, 2 * count));
        for i in 0..count {
            for j in 0..count {
                middle[[i, j]] = 0.5 * (products[[i, j]] + products[[j, i]]);
                if i > j {
                    middle[[i, count + j]] = products[[i, count + j]];
                    middle[[count + j, i]] = products[[i, count + j]];
                }
            }
            middle[[count + i, count + i]] = -products[[i, count + i]];
        }
        Ok(Self {
            columns,
            middle: pseudo_inverse(&middle)?,
        })
    }

    /// target <- target - F N^+ F' matrix.
    pub(super) fn correct(&self, matrix: &Array2<f64>, target: &mut Array2<f64>) {
        if self.columns.is_empty() {
            return;
        }
        let flat: Array1<f64> = matrix.iter().copied().collect();
        let correction = self
            .columns
            .dot(&self.middle.dot(&self.columns.t().dot(&flat)));
        for (value, correction) in target.iter_mut().zip(&correction) {
            *value -= correction;
        }
    }
}

/// The change of the gradient, mixed with the base curvature until it curves upwards enough.
fn damped(secant: &Secant, curved: &Array2<f64>) -> Array2<f64> {
    let along = |matrix: &Array2<f64>| inner_product(&secant.step.view(), &matrix.view());
    let (expected, found) = (along(curved), along(&secant.change));
    if found >= DAMPING * expected {
        return secant.change.clone();
    }
    let share = (1.0 - DAMPING) * expected / (expected - found);
    &secant.change * share + curved * (1.0 - share)
}

fn pseudo_inverse(matrix: &Array2<f64>) -> Result<Array2<f64>, LinearAlgebraError> {
    if matrix.is_empty() {
        return Ok(matrix.clone());
    }
    let eigen = symmetric_eigen(matrix)?;
    let largest = eigen
        .values
        .iter()
        .fold(0.0, |most: f64, v| most.max(v.abs()));
    let inverse = |value: f64| {
        if value.abs() > EIGENVALUES_KEPT * largest {
            value.recip()
        } else {
            0.0
        }
    };
    let scaled = &eigen.vectors * &eigen.values.mapv(inverse).insert_axis(Axis(0));
    Ok(scaled.dot(&eigen.vectors.t()))
}

/// The part of a matrix that belongs to features.
pub(super) fn feature_rows(matrix: &Array2<f64>, rows: usize) -> ArrayView2<'_, f64> {
    matrix.slice(s![..rows, ..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    fn secant(step: Array2<f64>, hessian: &Array2<f64>) -> Secant {
        let change = hessian.dot(&step);
        Secant { step, change }
    }

    fn apply(hessian: &SecantHessian, matrix: &Array2<f64>, base: f64) -> Array2<f64> {
        let mut target = matrix * base;
        hessian.correct(matrix, &mut target);
        target
    }

    #[test]
    fn the_compact_form_equals_the_recursive_update_and_keeps_the_last_secant() {
        let truth = array![[3.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]];
        let steps = [array![[1.0], [0.2], [0.0]], array![[0.3], [-1.0], [0.4]]];
        let secants: Vec<_> = steps.iter().map(|s| secant(s.clone(), &truth)).collect();
        let compact = SecantHessian::new(&secants, |m| m * 0.7, 3).unwrap();
        // B <- B - B s s' B / s'B s + y y' / s'y, Nocedal and Wright (6.19)
        let mut recursive = Array2::<f64>::eye(3) * 0.7;
        for Secant { step, change } in &secants {
            let curved = recursive.dot(step);
            let expected = step.t().dot(&curved)[[0, 0]];
            let found = step.t().dot(change)[[0, 0]];
            recursive =
                recursive - curved.dot(&curved.t()) / expected + change.dot(&change.t()) / found;
        }
        let any = array![[0.3], [0.9], [-1.1]];
        let difference = apply(&compact, &any, 0.7) - recursive.dot(&any);
        assert!(norm(&difference.view()) < 1e-12);
        let last = apply(&compact, &secants[1].step, 0.7) - &secants[1].change;
        assert!(norm(&last.view()) < 1e-12);
    }

    #[test]
    fn it_curves_upwards_even_where_the_gradient_says_downwards() {
        let truth = array![[-2.0, 0.0], [0.0, 1.0]];
        let step = array![[1.0], [0.1]];
        let hessian = SecantHessian::new(&[secant(step.clone(), &truth)], |m| m * 0.5, 2).unwrap();
        for direction in [step, array![[0.0], [1.0]], array![[1.0], [-3.0]]] {
            let curved = apply(&hessian, &direction, 0.5);
            assert!(inner_product(&direction.view(), &curved.view()) > 0.0);
        }
    }
}
