//! First and second derivatives of the loss with respect to M = W W'.

use std::sync::Arc;

use ndarray::{Array1, Array2, ArrayView2, Axis, s};

use super::grouped::Groups;
use super::{PairLoss, Passed, RowSums, Sums, take_from_diagonal};
use crate::learn::unpsl::settings::Form;
use crate::learn::unpsl::shared::SharedPatients;
use crate::numeric::linear_algebra::{add_to_upper, mirror};

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
    /// The loss and its derivatives at E = XW and threshold b, by one pass over the pairs; of the matrices the rows and
    /// columns `rows`, or all.
    ///
    /// # Panics
    /// Where shapes do not fit.
    pub(in crate::learn::unpsl) fn derivatives(
        &self,
        projected: &Array2<f64>,
        threshold: f64,
        rows: Option<&[usize]>,
    ) -> PairDerivatives {
        let chosen = rows.map(|rows| {
            let columns = self.patients.columns(rows);
            SharedPatients::all(Arc::new(columns))
        });
        let patients = chosen.as_ref().unwrap_or(&self.patients);
        let narrow = |groups: &&Groups| groups.are_many(patients.ncols());
        if let Some(groups) = self.grouped().filter(narrow)
            && rows.is_none_or(|rows| !rows.is_empty())
            && let factor = rows.map(|_| projected.view())
            && let Some(pass) = self.at(projected, threshold, factor, Sums::Rows)
        {
            let (mut passed, gradient) = groups.derived(&pass, patients);
            let sums = passed.sums.take().expect("both were asked for");
            let slope = passed.weighted.take().map(|mut weighted| {
                self.take_own(&mut weighted, &sums, &projected.view());
                self.patients.transposed_product(&weighted.view()) * self.half()
            });
            return self.gathered(patients, (passed, sums), gradient, slope);
        }
        let whole = patients.whole();
        let joined = chosen.as_ref().map(|_| joined(&whole.view(), projected));
        let own = whole.view();
        let factor = joined.as_ref().map_or(own, |joined| joined.view());
        let (passed, weighted, sums) = self.weighted(projected, threshold, &factor);
        let of_rows = weighted.slice(s![.., ..patients.ncols()]);
        let columns = patients.ncols();
        let mut gradient = Array2::zeros((columns, columns));
        add_to_upper(&whole.view(), &of_rows, &mut gradient.view_mut());
        let slope = rows.map(|rows| match rows {
            [] => self.diagonal(projected, threshold),
            _ => {
                let of_metric = weighted.slice(s![.., patients.ncols()..]);
                self.patients.transposed_product(&of_metric) * self.half()
            }
        });
        self.gathered(patients, (passed, sums), gradient, slope)
    }

    /// Of X'GX, or X'(G - diag(r))X, not below the diagonal, and of what else a pass adds up.
    fn gathered(
        &self,
        patients: &SharedPatients,
        (passed, sums): (Passed, RowSums),
        mut gradient: Array2<f64>,
        slope: Option<Array2<f64>>,
    ) -> PairDerivatives {
        mirror(&mut gradient);
        gradient *= self.half();
        let curvature_sum = sums.curvatures.sum();
        PairDerivatives {
            loss: passed.loss,
            gradient,
            curvature: self.curvature(patients, &sums.curvatures, curvature_sum),
            slope,
            curvature_sum,
            threshold_derivative: self.sign() * passed.derivative,
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
        self.take_own(&mut weighted, &sums, factor);
        (passed, weighted, sums)
    }

    /// Of distances: G F becomes (G - diag(r)) F.
    fn take_own(&self, weighted: &mut Array2<f64>, sums: &RowSums, factor: &ArrayView2<f64>) {
        if self.form == Form::Distance {
            let derivatives = sums.derivatives.view();
            take_from_diagonal(&mut weighted.view_mut(), &derivatives, factor);
        }
    }

    /// The diagonal of d loss / d M, d x 1, so many columns at a time that their share of G X is small.
    fn diagonal(&self, projected: &Array2<f64>, threshold: f64) -> Array2<f64> {
        let mut diagonal = Array2::zeros((self.patients.ncols(), 1));
        let parts = diagonal.axis_chunks_iter_mut(Axis(0), DIAGONAL_COLUMNS);
        for (chunk, mut part) in parts.enumerate() {
            let first = chunk * DIAGONAL_COLUMNS;
            let columns: Vec<usize> = (first..first + part.nrows()).collect();
            let factor = self.patients.columns(&columns);
            let (_, weighted, _) = self.weighted(projected, threshold, &factor.view());
            let products = weighted * &factor * self.half();
            part.column_mut(0).assign(&products.sum_axis(Axis(0)));
        }
        diagonal
    }

    /// sum_i r_i x_i x_i' over columns of the patients; of distances about their weighted mean. The mean is taken from the
    /// patients and not from the sum, so that rounding leaves no variance below 0: every term of the diagonal is a square.
    fn curvature(&self, patients: &SharedPatients, weights: &Array1<f64>, sum: f64) -> Array2<f64> {
        let about_mean = self.form == Form::Distance && sum > 0.0;
        let means = about_mean.then(|| patients.weighted_sum(weights) / sum);
        let mut curvature = patients.sum(patients.ncols(), |places, own, sum| {
            let centred = means.as_ref().map(|means| own - means);
            let centred = centred.as_ref().map_or(own.view(), |own| own.view());
            let mut scaled = centred.to_owned();
            let weights = weights.slice(s![places]);
            for (mut row, weight) in scaled.rows_mut().into_iter().zip(weights) {
                row *= *weight;
            }
            add_to_upper(&centred, &scaled.view(), sum);
        });
        mirror(&mut curvature);
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
