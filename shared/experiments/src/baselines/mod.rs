//! Metric learners that the paper compares with. Each gives W, d x m, for the squared distance
//! ||W'(x_i - x_j)||^2 = (x_i - x_j)' M (x_i - x_j), from patients X (n x d) and labels of their pairs; R2ML has several, and
//! gives neighbours; the low-rank similarity is no distance.

mod gmml;
mod itml;
mod lmnn;
mod low_rank;
#[cfg(test)]
mod metric_tests;
mod r2ml;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};
use similarity::numeric::linear_algebra::{
    LinearAlgebraError, SymmetricEigen, product, symmetric_eigen, transposed_product,
};
use similarity::uses::neighbours::Neighbour;

pub use gmml::{GmmlSettings, gmml};
pub use itml::{ItmlSettings, PairBounds, distance_percentiles, itml};
pub use lmnn::{LmnnLoss, lmnn};
pub use low_rank::{LowRank, LowRankLimits, LowRankSettings, low_rank};
pub use r2ml::{R2ml, r2ml};

/// sum_ij c_ij (x_i - x_j)(x_i - x_j)' over ordered pairs, d x d, for any n x n weights c.
fn pair_scatter(patients: &ArrayView2<f64>, weights: &Array2<f64>) -> Array2<f64> {
    let degrees: Array1<f64> = weights.sum_axis(Axis(0)) + weights.sum_axis(Axis(1));
    let mut laplacian = -(weights + &weights.t());
    laplacian
        .diag_mut()
        .iter_mut()
        .zip(&degrees)
        .for_each(|(entry, degree)| *entry += degree);
    transposed_product(patients, &product(&laplacian.view(), patients).view())
}

/// V f(Lambda) V' of a symmetric matrix.
fn of_eigenvalues(eigen: &SymmetricEigen, function: impl Fn(f64) -> f64) -> Array2<f64> {
    let scaled = &eigen.vectors * &eigen.values.mapv(function);
    product(&scaled.view(), &eigen.vectors.t())
}

/// W with W W' = M; eigenvalues below 0 are rounding.
fn factor(matrix: &Array2<f64>) -> Result<Array2<f64>, LinearAlgebraError> {
    let eigen = symmetric_eigen(matrix)?;
    Ok(&eigen.vectors * &eigen.values.mapv(|value| value.max(0.0).sqrt()))
}

/// The columns of the `count` smallest entries of each row, equal ones by rising column.
pub(crate) fn nearest(distances: &Array2<f64>, count: usize) -> Vec<Vec<Neighbour>> {
    let of_row = |row: ArrayView1<'_, f64>| {
        let scored = row.iter().enumerate();
        let mut near: Vec<Neighbour> = scored
            .map(|(row, score)| Neighbour { row, score: *score })
            .collect();
        near.sort_by(|a, b| a.score.total_cmp(&b.score));
        near.truncate(count);
        near
    };
    distances.outer_iter().map(of_row).collect()
}

/// Squared Euclidean distances of all pairs, n x n.
pub(crate) fn squared_distances(patients: &ArrayView2<f64>) -> Array2<f64> {
    let mut distances = product(patients, &patients.t()) * -2.0;
    let squares = patients.map_axis(Axis(1), |row| row.dot(&row));
    distances += &squares;
    distances += &squares.insert_axis(Axis(1));
    distances.mapv_inplace(|square| square.max(0.0));
    distances.diag_mut().fill(0.0);
    distances
}
