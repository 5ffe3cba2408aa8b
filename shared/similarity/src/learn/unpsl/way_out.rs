//! The way out of a stationary W of too low a rank. Plain ADMM may end there: every site's (4.21) is symmetric in a direction u that W lacks, W u = 0,
//! so that no round leaves it, though the objective falls along W + t v u'.
//!
//! With M = W W' the step adds t^2 v v'. So F moves by t^2 v' Gamma v + c t^4 (v' T v)^2 / 2, where c is 1, or 12 of distances, and the
//! sparsity by lambda_1 t^2 v_k^2 / (2 ||w_k||) in every row that is not 0. Such a W is a local minimum only if no eigenvalue of
//! Gamma + lambda_1 / 2 diag(1 / ||w_k||) over these rows is below 0.
//!
//! All sites must find equal bits: IEEE additions, products, quotients and square roots in a fixed order, and no LAPACK.

use ndarray::{Array1, Array2, Axis, s};

use super::settings::Form;
use super::site::SiteDerivatives;
use crate::numeric::prox::row_norms;

/// A singular value below this share of all together is none.
const MISSING: f64 = 0.01;
/// Rounds of Jacobi's rotations at most; about ten are needed.
const SWEEPS: usize = 60;
/// An entry off the diagonal below this share of the largest is 0.
const ZERO: f64 = 1e-15;

/// Where the objective is lower.
#[derive(Debug, Clone, PartialEq)]
pub struct WayOut {
    /// W + t v u', of the travelling shape.
    pub metric: Array2<f64>,
    /// By about how much the objective falls.
    pub fall: f64,
}

/// The steepest way out of `metric`, where a direction is missing and an answer of all sites there says that it leads downwards.
#[must_use]
pub fn way_out(
    metric: &Array2<f64>,
    answer: &SiteDerivatives,
    lambda_sparsity: f64,
    form: Form,
) -> Option<WayOut> {
    let features = answer.gradient.nrows();
    let missing = missing_axis(metric, features)?;
    let lengths = row_norms(&metric.slice(s![..features, ..]));
    let rows: Vec<usize> = (0..features).filter(|row| lengths[*row] > 0.0).collect();
    let of_rows = |matrix: &Array2<f64>| matrix.select(Axis(0), &rows).select(Axis(1), &rows);
    let mut curvature = of_rows(&answer.gradient);
    for (place, row) in rows.iter().enumerate() {
        curvature[[place, place]] += lambda_sparsity / (2.0 * lengths[*row]);
    }
    let (steepest, axis) = least_axis(&curvature);
    let spread = product(&axis, &of_rows(&answer.curvature));
    let bend = match form {
        Form::InnerProduct => spread * spread,
        Form::Distance => 12.0 * spread * spread,
    };
    if steepest >= 0.0 || bend <= 0.0 {
        return None;
    }
    let length = (-steepest / bend).sqrt();
    let mut found = metric.clone();
    for (row, along) in rows.iter().zip(&axis) {
        found.row_mut(*row).scaled_add(length * along, &missing);
    }
    found.iter().all(|entry| entry.is_finite()).then(|| WayOut {
        metric: found,
        fall: steepest * steepest / (2.0 * bend),
    })
}

/// The direction u that W lacks; none where it lacks none, or is 0.
#[must_use]
pub fn missing_axis(metric: &Array2<f64>, features: usize) -> Option<Array1<f64>> {
    let rank = metric.ncols();
    let rows = metric.slice(s![..features, ..]);
    let mut gram = Array2::zeros((rank, rank));
    for row in rows.outer_iter() {
        for ((one, other), sum) in gram.indexed_iter_mut() {
            *sum += row[one] * row[other];
        }
    }
    let all: f64 = gram.diag().iter().sum();
    let (least, axis) = least_axis(&gram);
    (all > 0.0 && least <= MISSING * MISSING * all).then_some(axis)
}

/// v' A v, summed in a fixed order.
fn product(axis: &Array1<f64>, matrix: &Array2<f64>) -> f64 {
    let terms = matrix.indexed_iter();
    terms
        .map(|((row, column), entry)| axis[row] * entry * axis[column])
        .sum()
}

/// The least eigenvalue of a symmetric matrix of at least one row and its eigenvector, by Jacobi's rotations (Golub and Van Loan, 8.5).
fn least_axis(matrix: &Array2<f64>) -> (f64, Array1<f64>) {
    let size = matrix.nrows();
    let (mut left, mut axes) = (matrix.clone(), Array2::eye(size));
    let largest = matrix
        .iter()
        .fold(0.0, |most: f64, one| most.max(one.abs()));
    for _ in 0..SWEEPS {
        let mut is_over = true;
        for one in 0..size {
            for other in one + 1..size {
                if left[[one, other]].abs() > ZERO * largest {
                    is_over = false;
                    rotate(&mut left, &mut axes, [one, other]);
                }
            }
        }
        if is_over {
            break;
        }
    }
    let values = left.diag();
    let least = (0..size).reduce(|a, b| if values[b] < values[a] { b } else { a });
    let least = least.unwrap_or(0);
    (values[least], axes.column(least).to_owned())
}

/// Makes one entry off the diagonal 0.
fn rotate(matrix: &mut Array2<f64>, axes: &mut Array2<f64>, [one, other]: [usize; 2]) {
    let apart = (matrix[[other, other]] - matrix[[one, one]]) / (2.0 * matrix[[one, other]]);
    let sign = if apart < 0.0 { -1.0 } else { 1.0 };
    let tangent = sign / (apart.abs() + (apart * apart + 1.0).sqrt());
    let cosine = 1.0 / (tangent * tangent + 1.0).sqrt();
    let sine = tangent * cosine;
    let turned = |a: f64, b: f64| [cosine * a - sine * b, sine * a + cosine * b];
    for row in 0..matrix.nrows() {
        for turning in [&mut *matrix, &mut *axes] {
            let both = turned(turning[[row, one]], turning[[row, other]]);
            [turning[[row, one]], turning[[row, other]]] = both;
        }
    }
    for column in 0..matrix.ncols() {
        let both = turned(matrix[[one, column]], matrix[[other, column]]);
        [matrix[[one, column]], matrix[[other, column]]] = both;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::unpsl::site::ThresholdDerivatives;
    use crate::numeric::linear_algebra::symmetric_eigen;
    use ndarray::array;

    /// LAPACK is the oracle.
    #[test]
    fn the_least_axis_is_that_of_lapack() {
        for size in [1, 2, 5, 30] {
            let entry = |(row, column): (usize, usize)| ((row * 7 + column * 3) % 11) as f64 - 4.5;
            let some = Array2::from_shape_fn((size, size), entry);
            let matrix = &some + &some.t();
            let wanted = symmetric_eigen(&matrix).unwrap();
            let (least, axis) = least_axis(&matrix);
            assert!((least - wanted.values[0]).abs() < 1e-10, "{least}");
            let off = matrix.dot(&axis) - &axis * least;
            assert!(off.iter().all(|one| one.abs() < 1e-9), "{off}");
        }
    }

    /// F = -2 M_22 + (M_11^2 + M_22^2) / 2 has its minimum over M_22 at 2, which W = (1, 0) in the first row does not see.
    #[test]
    fn a_metric_that_lacks_the_direction_in_which_it_would_fall_has_a_way_out() {
        let metric = array![[1.0, 0.0], [0.001, 0.0], [0.0, 0.0]];
        let answer = |second: f64| SiteDerivatives {
            objective: 1.0,
            gradient: array![[1.0, 0.0, 0.0], [0.0, second, 0.0], [0.0, 0.0, -9.0]],
            curvature: Array2::eye(3),
            slope: None,
            threshold: ThresholdDerivatives::default(),
        };
        let found = |second, lambda| way_out(&metric, &answer(second), lambda, Form::InnerProduct);
        let out = found(-2.0, 0.0).unwrap();
        assert!((out.fall - 2.0).abs() < 1e-5, "{}", out.fall);
        assert!((out.metric[[1, 1]].abs() - 2.0_f64.sqrt()).abs() < 1e-5);
        // Rows that are 0 stay 0, and lambda_1 may hold the way shut.
        assert_eq!(out.metric[[2, 1]], 0.0);
        assert_eq!(found(-2.0, 0.01), None);
        assert_eq!(found(0.5, 0.0), None);
        let whole = array![[1.0, 0.0], [0.5, 0.5], [0.0, 0.0]];
        assert_eq!(
            way_out(&whole, &answer(-2.0), 0.0, Form::InnerProduct),
            None
        );
    }
}
