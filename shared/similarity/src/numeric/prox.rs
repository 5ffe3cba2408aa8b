//! The proximal operator of the row-wise group norm.

use ndarray::{Array1, ArrayView2, ArrayViewMut2};

/// Group soft threshold in place: w_k <- [1 - threshold / ||w_k||]_+ w_k for every row k.
///
/// This is the proximal operator of `threshold` * ||W||_{2,1}, equations (3.17) and (4.22).
/// A row whose norm is at most the threshold becomes exactly zero.
pub fn shrink_rows(matrix: &mut ArrayViewMut2<f64>, threshold: f64) {
    for mut row in matrix.rows_mut() {
        let norm = row.iter().map(|value| value * value).sum::<f64>().sqrt();
        if norm <= threshold {
            row.fill(0.0);
        } else {
            let factor = 1.0 - threshold / norm;
            row.mapv_inplace(|value| value * factor);
        }
    }
}

/// The Euclidean norm of every row: a feature's importance, zero where it was not selected.
#[must_use]
pub fn row_norms(matrix: &ArrayView2<f64>) -> Array1<f64> {
    matrix
        .rows()
        .into_iter()
        .map(|row| row.iter().map(|value| value * value).sum::<f64>().sqrt())
        .collect()
}

/// The row-wise group norm ||W||_{2,1}: the sum over rows of their Euclidean norms.
#[must_use]
pub fn row_norm_sum(matrix: &ArrayView2<f64>) -> f64 {
    row_norms(matrix).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, array};
    use proptest::prelude::*;

    fn matrices() -> impl Strategy<Value = (Array2<f64>, Array2<f64>)> {
        let entries = || proptest::collection::vec(-10.0..10.0_f64, 12);
        (entries(), entries()).prop_map(|(a, b)| {
            let shape = |entries| Array2::from_shape_vec((4, 3), entries).unwrap();
            (shape(a), shape(b))
        })
    }

    fn shrunk(matrix: &Array2<f64>, threshold: f64) -> Array2<f64> {
        let mut result = matrix.clone();
        shrink_rows(&mut result.view_mut(), threshold);
        result
    }

    #[test]
    fn a_row_of_three_four_shrinks_along_itself() {
        let result = shrunk(&array![[3.0, 4.0], [0.3, 0.4]], 1.0);
        assert!(
            (&result - &array![[2.4, 3.2], [0.0, 0.0]])
                .iter()
                .all(|x| x.abs() < 1e-15)
        );
    }

    proptest! {
        #[test]
        fn it_minimises_norm_plus_half_squared_distance((at, other) in matrices(), t in 0.0..8.0_f64) {
            let cost = |x: &Array2<f64>| {
                t * row_norm_sum(&x.view()) + 0.5 * (x - &at).iter().map(|v| v * v).sum::<f64>()
            };
            let best = shrunk(&at, t);
            prop_assert!(cost(&best) <= cost(&other) + 1e-9);
            let near = &best + &(&other * 1e-3);
            prop_assert!(cost(&best) <= cost(&near) + 1e-9);
        }

        #[test]
        fn it_never_widens_a_distance((a, b) in matrices(), t in 0.0..8.0_f64) {
            let distance = |x: &Array2<f64>, y: &Array2<f64>| {
                (x - y).iter().map(|v| v * v).sum::<f64>().sqrt()
            };
            prop_assert!(distance(&shrunk(&a, t), &shrunk(&b, t)) <= distance(&a, &b) + 1e-12);
        }
    }
}
