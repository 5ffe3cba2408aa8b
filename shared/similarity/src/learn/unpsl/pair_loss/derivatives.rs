//! First and second derivatives of the loss with respect to M = W W'.

use std::sync::Arc;

use ndarray::{Array1, Array2, ArrayView2, Axis, s};

use super::listed::{Derived, ListedPairs};
use super::{Compared, PairLoss, Passed, RowSums, Sums, take_from_diagonal};
use crate::learn::unpsl::settings::Form;
use crate::learn::unpsl::shared::SharedPatients;
use crate::numeric::linear_algebra::transposed_product;

/// Columns whose diagonal entries are found at once.
const DIAGONAL_COLUMNS: usize = 512;

/// The loss at one W, and its derivatives with respect to M and b.
#[derive(Debug, Clone)]
pub(in crate::learn::unpsl) struct PairDerivatives {
    pub(in crate::learn::unpsl) loss: f64,
    /// The rows that were asked for of d loss / d M, symmetric.
    pub(in crate::learn::unpsl) gradient: Array2<f64>,
    /// The same rows of Q = sum_i r_i x_i x_i' with r_i the sum of the second derivatives of patient i's pairs; of
    /// distances, about the mean of the x_i under these weights.
    pub(in crate::learn::unpsl) curvature: Array2<f64>,
    /// Where rows were named: (d loss / d M) W, d x m; where none of them, the diagonal of d loss / d M, d x 1.
    pub(in crate::learn::unpsl) slope: Option<Array2<f64>>,
    /// sum_i r_i: twice the sum over the pairs.
    pub(in crate::learn::unpsl) curvature_sum: f64,
    /// d loss / d b.
    pub(in crate::learn::unpsl) threshold_derivative: f64,
}

impl PairLoss {
    /// The loss and its derivatives at what was compared and threshold b, by one pass over the pairs; of the matrices the rows and
    /// columns `rows`, or all.
    ///
    /// # Panics
    /// Where shapes do not fit.
    pub(in crate::learn::unpsl) fn derivatives(
        &self,
        compared: Compared,
        threshold: f64,
        rows: Option<&[usize]>,
    ) -> PairDerivatives {
        let Compared { projected, listed } = compared;
        let chosen = rows.map(|rows| {
            let columns = self.patients.columns(rows);
            SharedPatients::all(Arc::new(columns))
        });
        let patients = chosen.as_ref().unwrap_or(&self.patients);
        let narrow = |pairs: &&ListedPairs| pairs.are_many(patients.ncols());
        if let Some(pairs) = self.listed().filter(narrow)
            && rows.is_none_or(|rows| !rows.is_empty())
            && let factor = rows.map(|_| projected.view())
            && let Some(pass) = self.at(&projected, threshold, factor, Sums::Rows)
            && let Some(listed) = listed
        {
            return self.of_listed(pairs.derived(&pass, patients, listed), &projected);
        }
        let patients = patients.whole();
        let joined = chosen
            .as_ref()
            .map(|_| joined(&patients.view(), &projected));
        let own = patients.view();
        let factor = joined.as_ref().map_or(own, |joined| joined.view());
        let (passed, weighted, sums) = self.weighted(&projected, threshold, &factor);
        let half = self.half();
        let of_rows = weighted.slice(s![.., ..patients.ncols()]);
        let mut gradient = transposed_product(&patients.view(), &of_rows);
        make_symmetric(&mut gradient, half);
        let slope = rows.map(|rows| match rows {
            [] => self.diagonal(&projected, threshold),
            _ => {
                let of_metric = weighted.slice(s![.., patients.ncols()..]);
                self.patients.transposed_product(&of_metric) * half
            }
        });
        let curvature_sum = sums.curvatures.sum();
        PairDerivatives {
            loss: passed.loss,
            gradient,
            curvature: self.curvature(&patients.view(), &sums.curvatures, curvature_sum),
            slope,
            curvature_sum,
            threshold_derivative: self.sign() * passed.derivative,
        }
    }

    /// The same, where pairs are listed.
    fn of_listed(&self, mut derived: Derived, projected: &Array2<f64>) -> PairDerivatives {
        make_symmetric(&mut derived.gradient, 2.0 * self.half());
        make_symmetric(&mut derived.curvature, 1.0);
        let slope = derived.weighted.map(|mut weighted| {
            if let Some(sums) = &derived.derivatives {
                take_from_diagonal(&mut weighted, &sums.view(), &projected.view());
            }
            self.patients.transposed_product(&weighted.view()) * self.half()
        });
        PairDerivatives {
            loss: derived.loss,
            gradient: derived.gradient,
            curvature: derived.curvature,
            slope,
            curvature_sum: derived.curvatures.sum(),
            threshold_derivative: self.sign() * derived.derivative,
        }
    }

    /// Of what (G F)'F is the derivative.
    fn half(&self) -> f64 {
        match self.form {
            Form::InnerProduct => 0.5,
            Form::Distance => 1.0,
        }
    }

    /// G F of a factor F, or (G - diag(r)) F, with what else a pass adds up.
    fn weighted(
        &self,
        projected: &Array2<f64>,
        threshold: f64,
        factor: &ArrayView2<f64>,
    ) -> (Passed, Array2<f64>, RowSums) {
        let mut passed = self.pass(projected, threshold, Some(*factor), Sums::Rows);
        let (Some(mut weighted), Some(sums)) = (passed.weighted.take(), passed.sums.take()) else {
            unreachable!("both were asked for");
        };
        if self.form == Form::Distance {
            take_from_diagonal(&mut weighted, &sums.derivatives.view(), factor);
        }
        (passed, weighted, sums)
    }

    /// The diagonal of d loss / d M, d x 1, so many columns at a time that their share of G X is small.
    fn diagonal(&self, projected: &Array2<f64>, threshold: f64) -> Array2<f64> {
        let mut diagonal = Array2::zeros((self.patients.ncols(), 1));
        let patients = self.patients.whole();
        let chunks = patients.axis_chunks_iter(Axis(1), DIAGONAL_COLUMNS);
        for (mut part, columns) in diagonal
            .axis_chunks_iter_mut(Axis(0), DIAGONAL_COLUMNS)
            .zip(chunks)
        {
            let factor = columns.as_standard_layout().into_owned();
            let (_, weighted, _) = self.weighted(projected, threshold, &factor.view());
            let products = weighted * &factor * self.half();
            part.column_mut(0).assign(&products.sum_axis(Axis(0)));
        }
        diagonal
    }

    /// sum_i r_i x_i x_i' over columns of the patients; of distances about their weighted mean. The mean is taken from the
    /// patients and not from the sum, so that rounding leaves no variance below 0: every term of the diagonal is a square.
    fn curvature(
        &self,
        patients: &ArrayView2<f64>,
        weights: &Array1<f64>,
        sum: f64,
    ) -> Array2<f64> {
        let about_mean = self.form == Form::Distance && sum > 0.0;
        let centred = about_mean.then(|| {
            let means = weights.dot(patients) / sum;
            patients - &means
        });
        let patients = centred.as_ref().map_or(patients.view(), |own| own.view());
        let mut scaled = patients.to_owned();
        for (mut row, weight) in scaled.rows_mut().into_iter().zip(weights) {
            row *= *weight;
        }
        let mut curvature = transposed_product(&patients.view(), &scaled.view());
        make_symmetric(&mut curvature, 1.0);
        curvature
    }
}

/// Two matrices of as many rows, side by side.
fn joined(left: &ArrayView2<f64>, right: &Array2<f64>) -> Array2<f64> {
    let mut both = Array2::zeros((left.nrows(), left.ncols() + right.ncols()));
    both.slice_mut(s![.., ..left.ncols()]).assign(left);
    both.slice_mut(s![.., left.ncols()..]).assign(right);
    both
}

/// `factor` times the symmetric part of a matrix.
fn make_symmetric(matrix: &mut Array2<f64>, factor: f64) {
    for one in 0..matrix.nrows() {
        matrix[[one, one]] *= factor;
        for other in 0..one {
            let mean = 0.5 * factor * (matrix[[one, other]] + matrix[[other, one]]);
            matrix[[one, other]] = mean;
            matrix[[other, one]] = mean;
        }
    }
}
