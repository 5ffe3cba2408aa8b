//! What the accelerated consensus is asked, and what it shows.

use crate::numeric::admm::spread::Spread;
use crate::numeric::admm::{ConsensusError, Residuals};
use crate::numeric::linear_algebra::LinearAlgebraError;
use ndarray::Array2;

/// Features up to which S is estimated: a round costs the coordinator d^3 some hundred times.
const ESTIMATED_FEATURES_MAX: usize = 200;

/// What the coordinator is asked to do, and what it knows of the features.
#[derive(Debug, Clone)]
pub struct AcceleratedSettings {
    /// lambda_1, the weight of ||W||_{2,1}; at least 0.
    pub lambda_sparsity: f64,
    /// rho of the first round; above 0. Later ones follow the curvature.
    pub penalty_start: f64,
    /// S = X'X / n of the standardised features of all sites: their pooled correlations. The first d
    /// rows of W are features; rows after them (a learned threshold) are not shrunk.
    pub second_moments: SecondMoments,
    /// How much each site's pairs weigh in the objective: the share v_p under mean loss, the sum of its
    /// pair weights under summed loss; above 0.
    pub pair_weights: Vec<f64>,
    /// Absolute tolerance per entry (Boyd et al., 3.3.1).
    pub tolerance_absolute: f64,
    /// Tolerance relative to the matrices' norms.
    pub tolerance_relative: f64,
}

/// How the coordinator knows S.
#[derive(Debug, Clone, PartialEq)]
pub enum SecondMoments {
    /// Released by the sites, d x d.
    Released(Array2<f64>),
    /// Estimated from the gradients of the rounds, up to 200 features; beyond, the identity stands in.
    Estimated {
        /// d.
        features: usize,
    },
}

/// What a site contributes to a round.
#[derive(Debug, Clone)]
pub struct Contribution {
    /// W_p of (4.21).
    pub matrix: Array2<f64>,
    /// The gradient of f_p at the consensus that was broadcast, which the local search starts from.
    pub gradient_at_consensus: Array2<f64>,
    /// f_p at that consensus.
    pub objective_at_consensus: f64,
}

/// What a round showed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AcceleratedRound {
    /// `primal` is sqrt(sum_p ||W_p - W||^2) at the consensus just answered; `dual` is
    /// sqrt(P) rho ||W - prox(W - sum_p grad f_p(W) / (P rho))||, which is 0 exactly at a stationary W.
    pub residuals: Residuals,
    /// The objective (4.19) at the consensus just answered; `None` where a site did not answer.
    pub objective: Option<f64>,
    /// True where the objective rose and the safeguard went back to the best consensus.
    pub safeguarded: bool,
}

/// An accelerated consensus that cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum AcceleratedError {
    /// A setting or a contribution cannot be used.
    #[error("accelerated consensus cannot use what it was given")]
    Consensus(#[from] ConsensusError),
    /// LAPACK failed.
    #[error("curvature cannot be decomposed")]
    LinearAlgebra(#[from] LinearAlgebraError),
}

impl SecondMoments {
    /// d.
    pub(super) fn features(&self) -> usize {
        match self {
            Self::Released(matrix) => matrix.nrows(),
            Self::Estimated { features } => *features,
        }
    }

    pub(super) fn at_the_start(&self) -> Array2<f64> {
        match self {
            Self::Released(matrix) => matrix.clone(),
            Self::Estimated { features } => Array2::eye(*features),
        }
    }

    pub(super) fn spread(&self) -> Option<Spread> {
        match self {
            Self::Estimated { features } if *features <= ESTIMATED_FEATURES_MAX => {
                Some(Spread::new(*features))
            }
            _ => None,
        }
    }
}
