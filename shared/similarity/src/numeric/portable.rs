//! Linear algebra whose bits are the same on every processor.
//!
//! A coordinator decides by it what is asked next, and every site works that out again on a processor of another kind. So it is IEEE
//! additions, products, quotients and square roots in a fixed order; exponentials and logarithms come from `libm`. What one site works
//! out alone is faster by [`linear_algebra`](crate::numeric::linear_algebra).

use ndarray::{Array1, Array2, ArrayRef1, ArrayRef2, ArrayView2, Axis};

/// Lanes of [`inner`]: enough for the widest registers, fixed so that bits do not depend on them.
const LANES: usize = 8;

/// Inner product of two slices of one length, summed in eight fixed lanes.
#[must_use]
#[inline(always)]
pub fn inner(left: &[f64], right: &[f64]) -> f64 {
    sum_of_pairs(left, right, |a, b| a * b)
}

/// Sums over two slices of one length what `of` makes of each pair, in eight fixed lanes.
#[must_use]
#[inline(always)]
pub fn sum_of_pairs(left: &[f64], right: &[f64], of: impl Fn(f64, f64) -> f64) -> f64 {
    let mut lanes = [0.0; LANES];
    let (left_chunks, left_rest) = left.as_chunks::<LANES>();
    let (right_chunks, right_rest) = right.as_chunks::<LANES>();
    for (a, b) in left_chunks.iter().zip(right_chunks) {
        for lane in 0..LANES {
            lanes[lane] += of(a[lane], b[lane]);
        }
    }
    let rest: f64 = left_rest
        .iter()
        .zip(right_rest)
        .map(|(a, b)| of(*a, *b))
        .sum();
    lanes.iter().sum::<f64>() + rest
}

/// Inner product of two vectors of one length.
#[must_use]
pub fn dot(left: &ArrayRef1<f64>, right: &ArrayRef1<f64>) -> f64 {
    match (left.as_slice(), right.as_slice()) {
        (Some(left), Some(right)) => inner(left, right),
        _ => left.iter().zip(right).map(|(a, b)| a * b).sum(),
    }
}

/// Frobenius inner product of two matrices of one shape: the sum of a_ij b_ij.
#[must_use]
pub fn inner_product(left: &ArrayView2<f64>, right: &ArrayView2<f64>) -> f64 {
    let rows = left.rows().into_iter().zip(right.rows());
    rows.map(|(a, b)| dot(&a, &b)).sum()
}

/// Frobenius norm of a matrix.
#[must_use]
pub fn norm(matrix: &ArrayView2<f64>) -> f64 {
    inner_product(matrix, matrix).sqrt()
}

/// left * right, of a matrix and a vector.
///
/// # Panics
/// Where the shapes do not fit.
#[must_use]
pub fn image(left: &ArrayRef2<f64>, right: &ArrayRef1<f64>) -> Array1<f64> {
    assert_eq!(left.ncols(), right.len(), "a column for every number");
    left.map_axis(Axis(1), |row| dot(&row, right))
}

/// left * right, of two matrices.
///
/// # Panics
/// Where the shapes do not fit.
#[must_use]
pub fn product(left: &ArrayRef2<f64>, right: &ArrayRef2<f64>) -> Array2<f64> {
    assert_eq!(left.ncols(), right.nrows(), "a column for every row");
    let mut target = Array2::zeros((left.nrows(), right.ncols()));
    for (mut sums, factors) in target.rows_mut().into_iter().zip(left.rows()) {
        for (factor, row) in factors.iter().zip(right.rows()) {
            sums.scaled_add(*factor, &row);
        }
    }
    target
}

/// L of A = L L', of a symmetric positive definite matrix A.
#[derive(Debug, Clone)]
pub struct Factor {
    lower: Array2<f64>,
}

impl Factor {
    /// Of a matrix, whose lower triangle is read; none where it is not positive definite.
    #[must_use]
    pub fn of(matrix: &ArrayRef2<f64>) -> Option<Self> {
        let size = matrix.nrows();
        let mut entries = vec![0.0; size * size];
        for row in 0..size {
            let (above, own) = entries.split_at_mut(row * size);
            for column in 0..=row {
                let other = match column == row {
                    true => &own[..column],
                    false => &above[column * size..column * size + column],
                };
                let left = matrix[(row, column)] - inner(&own[..column], other);
                own[column] = match column == row {
                    true if left > 0.0 => left.sqrt(),
                    true => return None,
                    false => left / above[column * size + column],
                };
            }
        }
        let lower = Array2::from_shape_vec((size, size), entries);
        lower.ok().map(|lower| Self { lower })
    }

    /// The logarithm of the determinant of A.
    #[must_use]
    pub fn log_determinant(&self) -> f64 {
        let diagonal = self.lower.diag();
        2.0 * diagonal.iter().map(|one| libm::log(*one)).sum::<f64>()
    }

    /// The solution x of A x = right.
    ///
    /// # Panics
    /// Where `right` is shorter or longer than the rows of A.
    #[must_use]
    pub fn solve(&self, right: &ArrayRef1<f64>) -> Array1<f64> {
        assert_eq!(right.len(), self.lower.nrows(), "a number for every row");
        let mut solved = right.to_vec();
        let rows = || self.lower.rows().into_iter().enumerate();
        for (row, factors) in rows() {
            let known: f64 = match factors.as_slice() {
                Some(factors) => inner(&factors[..row], &solved[..row]),
                None => factors.iter().zip(&solved[..row]).map(|(a, b)| a * b).sum(),
            };
            solved[row] = (solved[row] - known) / factors[row];
        }
        for (row, factors) in rows().rev() {
            solved[row] /= factors[row];
            let known = solved[row];
            let earlier = solved[..row].iter_mut().zip(factors);
            earlier.for_each(|(one, factor)| *one -= factor * known);
        }
        Array1::from(solved)
    }

    /// The solution X of A X = right, one column a right-hand side.
    ///
    /// # Panics
    /// Where `right` has another number of rows than A.
    #[must_use]
    pub fn solve_all(&self, right: &ArrayRef2<f64>) -> Array2<f64> {
        let mut solved = Array2::zeros(right.raw_dim());
        let columns = solved.columns_mut().into_iter().zip(right.columns());
        columns.for_each(|(mut target, column)| target.assign(&self.solve(&column)));
        solved
    }
}

/// Whether a symmetric matrix is positive definite.
#[must_use]
pub fn is_positive_definite(matrix: &ArrayRef2<f64>) -> bool {
    Factor::of(matrix).is_some()
}

#[cfg(test)]
mod tests {
    use super::{Factor, dot, image, is_positive_definite, product};
    use crate::numeric::linear_algebra;
    use ndarray::{Array2, Axis, array};

    /// A matrix of `rows` whose columns all differ.
    fn table(rows: usize, columns: usize) -> Array2<f64> {
        Array2::from_shape_fn((rows, columns), |(row, column)| {
            let place = (row * 31 + column * 17 + row * column) % 101;
            place as f64 / 50.0 - 1.0
        })
    }

    #[test]
    fn it_finds_what_lapack_finds() {
        for size in [1, 2, 7, 8, 9, 40, 131] {
            let rows = table(2 * size + 3, size);
            let matrix = product(&rows.t(), &rows) + Array2::<f64>::eye(size);
            let right = table(size, 3);
            let factor = Factor::of(&matrix).unwrap();
            let theirs = linear_algebra::Cholesky::factor(&matrix).unwrap();
            let (found, wanted) = (factor.solve_all(&right), theirs.solve(&right));
            let apart = (&found - &wanted).mapv(f64::abs);
            assert!(apart.iter().all(|one| *one < 1e-12), "{size}: {apart}");
            let (own, other) = (factor.log_determinant(), theirs.log_determinant());
            assert!((own - other).abs() < 1e-11 * other.abs().max(1.0), "{size}");
            let again = product(&matrix, &found) - &right;
            assert!(again.iter().all(|one| one.abs() < 1e-10), "{size}");
        }
    }

    #[test]
    fn products_are_those_of_blas() {
        let (left, right) = (table(13, 70), table(70, 9));
        let (found, wanted) = (
            product(&left, &right),
            linear_algebra::product(&left.view(), &right.view()),
        );
        assert!((&found - &wanted).iter().all(|one| one.abs() < 1e-12));
        let column = right.index_axis(Axis(1), 4);
        let one = image(&left, &column);
        assert!(
            (&one - &found.column(4))
                .iter()
                .all(|one| one.abs() < 1e-12)
        );
        assert!((dot(&left.row(2), &column) - found[(2, 4)]).abs() < 1e-12);
    }

    #[test]
    fn what_is_not_positive_definite_has_no_factor() {
        assert!(!is_positive_definite(&array![[1.0, 2.0], [2.0, 1.0]]));
        assert!(!is_positive_definite(&array![[f64::NAN]]));
        assert!(is_positive_definite(&array![[2.0, 1.0], [1.0, 2.0]]));
    }
}
