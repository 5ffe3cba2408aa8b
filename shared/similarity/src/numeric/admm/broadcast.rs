//! What all sites hear: the consensus and the penalty, and how both go on from one round to the next.

use super::penalty::{PenaltyRule, RelativeResiduals};
use super::{ConsensusError, ConsensusSettings, Residuals, check};
use crate::numeric::portable::norm;
use crate::numeric::prox::{row_norm_sum, row_norms, shrink_rows};
use ndarray::{Array2, ArrayView2, s};

/// The consensus W and the penalty rho, whoever holds the duals.
#[derive(Debug, Clone)]
pub(super) struct Broadcast {
    settings: ConsensusSettings,
    consensus: Array2<f64>,
    penalty: f64,
    rule: PenaltyRule,
}

/// Sums over the sites, from which the residuals follow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Squares {
    /// sum_p ||W_p - W||^2, of the new consensus.
    pub(super) apart: f64,
    /// sum_p ||W_p||^2.
    pub(super) answers: f64,
    /// sum_p ||U_p||^2, of the moved duals.
    pub(super) duals: f64,
}

impl Broadcast {
    pub(super) fn new(
        start: Array2<f64>,
        settings: ConsensusSettings,
    ) -> Result<Self, ConsensusError> {
        check(&settings)?;
        if start.nrows() < settings.feature_rows {
            return Err(ConsensusError::FeatureRows {
                found: start.nrows(),
                wanted: settings.feature_rows,
            });
        }
        Ok(Self {
            settings,
            consensus: start,
            penalty: settings.penalty.start,
            rule: PenaltyRule::new(settings.penalty),
        })
    }

    pub(super) fn settings(&self) -> &ConsensusSettings {
        &self.settings
    }

    pub(super) fn consensus(&self) -> &Array2<f64> {
        &self.consensus
    }

    pub(super) fn penalty(&self) -> f64 {
        self.penalty
    }

    /// Whether the penalty no longer follows the residuals.
    pub(super) fn is_fixed(&self) -> bool {
        !self.rule.is_adaptive()
    }

    pub(super) fn sparsity_term(&self, matrix: &ArrayView2<f64>) -> f64 {
        let features = matrix.slice(s![..self.settings.feature_rows, ..]);
        self.settings.lambda_sparsity * row_norm_sum(&features)
    }

    /// (4.22) at `mean`, which is mean_p (W_p + U_p) where the duals are divided by a factor. Gives the factor by which the
    /// penalty has grown: the duals are to be divided by it.
    pub(super) fn shrink(&mut self, sites: usize, mean: impl Fn(f64) -> Array2<f64>) -> f64 {
        let share = 1.0 / sites.max(1) as f64;
        let features = self.settings.feature_rows;
        let mut next = mean(1.0);
        let longest = row_norms(&next.slice(s![..features, ..]))
            .iter()
            .fold(0.0, |longest: f64, norm| longest.max(*norm));
        let threshold = |penalty: f64| self.settings.lambda_sparsity / penalty * share;
        let factor = self.rule.before_shrinking(longest, threshold(self.penalty));
        let threshold = threshold(self.penalty * factor);
        if factor != 1.0 {
            self.penalty *= factor;
            next = mean(factor);
        }
        shrink_rows(&mut next.slice_mut(s![..features, ..]), threshold);
        self.consensus = next;
        factor
    }

    pub(super) fn residuals(
        &self,
        sites: usize,
        squares: &Squares,
        previous: &Array2<f64>,
    ) -> (Residuals, RelativeResiduals) {
        let root_sites = (sites as f64).sqrt();
        let primal = squares.apart.sqrt();
        let moved = norm(&(&self.consensus - previous).view());
        let dual = self.penalty * root_sites * moved;
        let matrix_norm = squares
            .answers
            .sqrt()
            .max(root_sites * norm(&self.consensus.view()));
        let duals_norm = self.penalty * squares.duals.sqrt();
        let ConsensusSettings {
            tolerance_absolute,
            tolerance_relative,
            ..
        } = self.settings;
        let absolute = ((sites * self.consensus.len()) as f64).sqrt() * tolerance_absolute;
        let residuals = Residuals {
            primal,
            dual,
            primal_tolerance: absolute + tolerance_relative * matrix_norm,
            dual_tolerance: absolute + tolerance_relative * duals_norm,
            left: duals_norm * primal + root_sites * norm(&self.consensus.view()) * dual,
        };
        let relative = RelativeResiduals {
            primal: primal / matrix_norm,
            dual: dual / duals_norm,
        };
        (residuals, relative)
    }

    /// Lets the penalty follow the residuals of a round; gives the factor by which it has grown.
    pub(super) fn after_round(&mut self, relative: &RelativeResiduals) -> f64 {
        let factor = self.rule.after_round(relative);
        self.penalty *= factor;
        factor
    }

    /// Tells the safeguard the objective; gives the factor by which the penalty has grown.
    pub(super) fn after_objective(&mut self, objective: f64) -> f64 {
        let factor = self.rule.after_objective(objective);
        self.penalty *= factor;
        factor
    }
}
