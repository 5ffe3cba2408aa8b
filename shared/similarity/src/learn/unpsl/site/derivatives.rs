//! A site's part of the objective as a function of M = W W', in which it is convex.

use ndarray::{Array2, ArrayView2, s};

use super::{ObjectiveError, SiteObjective};
use crate::learn::unpsl::settings::Threshold;
use crate::numeric::portable::inner_product;
use crate::numeric::precision::{Fit, Precision};

/// f_p at one W, and its derivatives. Sums of them over the sites are those of the whole smooth part.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteDerivatives {
    /// f_p.
    pub objective: f64,
    /// Gamma_p = d f_p / d M, symmetric, d x d or of the rows that were asked for; the gradient in W is 2 Gamma_p W.
    pub gradient: Array2<f64>,
    /// T_p, of the same rows: f_p'' D is about T_p D T_p (of distances 8 T_p D T_p + 4 tr(T_p D) T_p), divided by the
    /// site's share.
    pub curvature: Array2<f64>,
    /// Where rows were asked for: Gamma_p W, d x m; where a list of none, the diagonal of Gamma_p, d x 1.
    pub slope: Option<Array2<f64>>,
    /// With respect to a threshold that all sites learn; 0 where there is none.
    pub threshold: ThresholdDerivatives,
}

/// Derivatives with respect to b.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ThresholdDerivatives {
    /// d f_p / d b.
    pub first: f64,
    /// d^2 f_p / d b^2.
    pub second: f64,
}

impl SiteObjective {
    /// f_p and its derivatives with respect to M and b at a matrix of the travelling shape: what
    /// [`crate::learn::unpsl::accelerated`] sums over the sites, as finely as the settings say. Of wide data only some `rows` of the derivatives in M are
    /// wanted, ascending, and one product for all.
    ///
    /// # Errors
    /// [`ObjectiveError::Shape`], [`ObjectiveError::Rows`].
    pub fn derivatives(
        &self,
        matrix: &Array2<f64>,
        rows: Option<&[usize]>,
    ) -> Result<SiteDerivatives, ObjectiveError> {
        self.check_shape(matrix)?;
        self.check_rows(rows)?;
        let metric = matrix.slice(s![..self.features, ..]);
        let count = rows.map_or(self.features, <[usize]>::len);
        let square = || Array2::zeros((count, count));
        let columns = |rows: &[usize]| if rows.is_empty() { 1 } else { metric.ncols() };
        let mut found = SiteDerivatives {
            objective: 0.0,
            gradient: square(),
            curvature: square(),
            slope: rows.map(|rows| Array2::zeros((self.features, columns(rows)))),
            threshold: ThresholdDerivatives::default(),
        };
        let projected = self.loss.project(&metric);
        let mut fit = Fit::SUITS;
        if let Some(threshold) = self.threshold_of(matrix, &projected) {
            let of_pairs = self.loss.derivatives(&projected, threshold, rows);
            found.objective = self.loss_scale * of_pairs.loss;
            fit = self.fit(matrix, Some(threshold), found.objective);
            found.gradient = of_pairs.gradient * self.loss_scale;
            found.slope = of_pairs.slope.map(|slope| slope * self.loss_scale);
            if of_pairs.curvature_sum > 0.0 {
                let scale = self.curvature_scale / of_pairs.curvature_sum.sqrt();
                found.curvature = of_pairs.curvature * scale;
            }
            if let Threshold::Common(_) = self.settings.threshold {
                found.threshold = ThresholdDerivatives {
                    first: self.loss_scale * of_pairs.threshold_derivative,
                    second: self.loss_scale * 0.5 * of_pairs.curvature_sum,
                };
            }
        }
        let learned = self.settings.threshold_at(matrix, self.features);
        if self.settings.precision == Precision::Rounded {
            found = self.rounded(matrix, (rows, learned), found, fit)?;
        }
        // It is not along the patients' axes alone.
        self.add_correlation(&metric, rows, &mut found);
        found.objective = self.released(matrix, found.objective, fit);
        Ok(found)
    }

    fn add_correlation(
        &self,
        metric: &ArrayView2<f64>,
        rows: Option<&[usize]>,
        found: &mut SiteDerivatives,
    ) {
        let Some((correlation, weight)) = self.correlation() else {
            return;
        };
        correlation.add_to(weight, rows, &mut found.gradient);
        match (rows, &mut found.slope) {
            (Some([]), Some(slope)) => {
                slope
                    .column_mut(0)
                    .scaled_add(weight, &correlation.diagonal());
                found.objective += weight * correlation.quadratic_form(metric);
            }
            (Some(_), Some(slope)) => {
                let mut product = Array2::zeros(metric.raw_dim());
                correlation.multiply_into(metric, &mut product);
                slope.scaled_add(weight, &product);
                found.objective += weight * inner_product(metric, &product.view());
            }
            _ => found.objective += weight * correlation.quadratic_form(metric),
        }
    }

    fn check_rows(&self, rows: Option<&[usize]>) -> Result<(), ObjectiveError> {
        let Some(rows) = rows else { return Ok(()) };
        let rising = rows.is_sorted_by(|a, b| a < b);
        match rows.last() {
            Some(last) if *last >= self.features || !rising => Err(ObjectiveError::Rows {
                features: self.features,
            }),
            _ => Ok(()),
        }
    }

    /// The centre W - U_p of (4.21) with the site's own dual U_p = -grad f_p(W) / `penalty`: what ADMM has at an
    /// optimum, where W_p = W.
    ///
    /// # Errors
    /// [`ObjectiveError::Shape`].
    pub fn own_centre(
        &self,
        consensus: &Array2<f64>,
        penalty: f64,
    ) -> Result<Array2<f64>, ObjectiveError> {
        let mut gradient = Array2::zeros(consensus.raw_dim());
        self.value_and_gradient(consensus, &mut gradient)?;
        gradient.mapv_inplace(|entry| entry / penalty);
        Ok(gradient + consensus)
    }
}
