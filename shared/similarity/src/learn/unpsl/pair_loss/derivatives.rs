//! First and second derivatives of the loss with respect to M = W W'.

use ndarray::{Array2, ArrayView2};

use super::{PairLoss, take_from_diagonal};
use crate::learn::unpsl::settings::Form;
use crate::numeric::linear_algebra::transposed_product;

/// The loss at one W, and its derivatives with respect to M and b.
#[derive(Debug, Clone)]
pub(in crate::learn::unpsl) struct PairDerivatives {
    pub(in crate::learn::unpsl) loss: f64,
    /// d loss / d M, d x d, symmetric.
    pub(in crate::learn::unpsl) gradient: Array2<f64>,
    /// Q = sum_i r_i x_i x_i' with r_i the sum of the second derivatives of patient i's pairs; of distances,
    /// about the mean of the x_i under these weights.
    pub(in crate::learn::unpsl) curvature: Array2<f64>,
    /// sum_i r_i: twice the sum over the pairs.
    pub(in crate::learn::unpsl) curvature_sum: f64,
    /// d loss / d b.
    pub(in crate::learn::unpsl) threshold_derivative: f64,
}

impl PairLoss {
    /// The loss and its derivatives at W (d x m) and threshold b, by one pass over the pairs.
    ///
    /// # Panics
    /// Where shapes do not fit.
    pub(in crate::learn::unpsl) fn derivatives(
        &self,
        metric: &ArrayView2<f64>,
        threshold: f64,
    ) -> PairDerivatives {
        let projected = self.project(metric);
        let passed = self.pass(&projected, threshold, Some(&self.patients), true);
        let (Some(mut weighted), Some(sums)) = (passed.weighted, passed.sums) else {
            unreachable!("both were asked for");
        };
        let half = match self.form {
            Form::InnerProduct => 0.5,
            Form::Distance => {
                take_from_diagonal(&mut weighted, &sums.derivatives.view(), &self.patients);
                1.0
            }
        };
        let mut gradient = transposed_product(&self.patients.view(), &weighted.view());
        make_symmetric(&mut gradient, half);
        let curvature_sum = sums.curvatures.sum();
        let mut scaled = self.patients.clone();
        for (mut row, weight) in scaled.rows_mut().into_iter().zip(&sums.curvatures) {
            row *= *weight;
        }
        let mut curvature = transposed_product(&self.patients.view(), &scaled.view());
        if self.form == Form::Distance && curvature_sum > 0.0 {
            let means = scaled.sum_axis(ndarray::Axis(0)) / curvature_sum;
            for ((one, other), value) in curvature.indexed_iter_mut() {
                *value -= curvature_sum * means[one] * means[other];
            }
        }
        make_symmetric(&mut curvature, 1.0);
        PairDerivatives {
            loss: passed.loss,
            gradient,
            curvature,
            curvature_sum,
            threshold_derivative: self.sign() * passed.derivative,
        }
    }
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
