//! Uncorrelated patient similarity learning (UnPSL).
//!
//! Huai, Miao, Suo, Li, Gao, Zhang, *Uncorrelated Patient Similarity Learning*, SDM 2018; equation
//! numbers are that paper's. X is n x d (standardised patients, one row each), W is d x m, **row k of W
//! belongs to feature k**, M = W W', and s_ij = x_i' M x_j is the learned similarity. (The paper prints
//! x' W' W x, under which its row sparsity would remove no feature; its prose means W W'.)
//!
//! The objective (4.19) of P sites is
//!
//! ```text
//! sum_p [ a_p loss_p(W) + c_p lambda_2 Tr(W W' (R_p o R_p)') ] + lambda_1 ||W||_{2,1}
//! loss_p(W) = 1/2 sum_{i != j} w_ij softplus(-y_ij (s_ij - b))
//! ```
//!
//! with a_p and c_p from [`Settings`]. It is not convex in W, W = 0 is a stationary point, and W Q has
//! the objective of W for every orthogonal Q: compare M, never raw W.
//!
//! Where all sites learn one threshold b it travels as one more row of the matrix, (b, 0, ..., 0), which is
//! not a feature and is never shrunk.

pub mod accelerated;
mod correlation;
mod labels;
mod local;
mod pair_loss;
pub mod personal;
mod pooled;
pub mod selection;
mod settings;
mod site;
mod sweep;
mod totals;

pub use correlation::{Correlation, SecondMoments, SecondMomentsError, ShiftedSolver};
pub use labels::{JUDGED_STEPS, JudgedPairs, Labels, LabelsError, PairCounts};
pub use local::{
    LocalError, LocalLimits, LocalRound, LocalRun, LocalStatus, learn, learn_from_starts,
    learn_observed,
};
pub use pair_loss::{PairLoss, PairWeightValues};
pub use pooled::{PooledLimits, PooledSolution, minimise_pooled, objective};
pub use settings::{
    Centring, CorrelationScope, Form, Loss, PairWeights, Pairs, Settings, SettingsError,
    SiteWeights, Threshold, start,
};
pub use site::{
    LocalSolution, ObjectiveError, SiteDerivatives, SiteObjective, ThresholdDerivatives,
};
pub use totals::{Summary, Totals, summarise};
