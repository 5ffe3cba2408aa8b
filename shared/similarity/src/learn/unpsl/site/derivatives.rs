//! A site's part of the objective as a function of M = W W', in which it is convex.

use ndarray::{Array2, s};

use super::{ObjectiveError, SiteObjective};
use crate::learn::unpsl::settings::Threshold;

/// f_p at one W, and its derivatives. Sums of them over the sites are those of the whole smooth part.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteDerivatives {
    /// f_p.
    pub objective: f64,
    /// Gamma_p = d f_p / d M, d x d, symmetric; the gradient in W is 2 Gamma_p W.
    pub gradient: Array2<f64>,
    /// T_p, d x d, symmetric: f_p'' D is about T_p D T_p (of distances 8 T_p D T_p + 4 tr(T_p D) T_p), divided by the
    /// site's share.
    pub curvature: Array2<f64>,
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
    /// [`crate::learn::unpsl::accelerated`] sums over the sites.
    ///
    /// # Errors
    /// [`ObjectiveError::Shape`].
    pub fn derivatives(&self, matrix: &Array2<f64>) -> Result<SiteDerivatives, ObjectiveError> {
        self.check_shape(matrix)?;
        let metric = matrix.slice(s![..self.features, ..]);
        let square = || Array2::zeros((self.features, self.features));
        let mut found = SiteDerivatives {
            objective: 0.0,
            gradient: square(),
            curvature: square(),
            threshold: ThresholdDerivatives::default(),
        };
        if let Some(threshold) = self.threshold(matrix) {
            let of_pairs = self.loss.derivatives(&metric, threshold);
            found.objective = self.loss_scale * of_pairs.loss;
            found.gradient = of_pairs.gradient * self.loss_scale;
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
        if let Some((correlation, weight)) = self.correlation() {
            found.objective += weight * correlation.quadratic_form(&metric);
            correlation.add_to(weight, &mut found.gradient);
        }
        Ok(found)
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
