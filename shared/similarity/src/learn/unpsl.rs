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
//!
//! One site, and a class per patient. Only the first of three features makes the class, so it alone keeps a weight:
//!
//! ```
//! use ndarray::{Array1, Array2};
//! use similarity::learn::unpsl::accelerated::{Knowledge, Search, SearchSettings, search_sites};
//! use similarity::learn::unpsl::{Labels, Settings, SiteObjective, Totals, start, summarise};
//! use similarity::numeric::seed::Seed;
//!
//! let value = |i: usize, k: usize| (i * [17, 29, 41][k] % 60) as f64;
//! let patients = Array2::from_shape_fn((60, 3), |(i, k)| (value(i, k) - 29.5) / 17.318);
//! let classes: Array1<u32> = patients.column(0).map(|x| u32::from(*x > 0.0));
//!
//! let (labels, settings, seed) = (Labels::Classes(classes), Settings { rank: 2, ..Settings::default() }, Seed(1));
//! let totals = Totals::of(&[summarise(&labels, settings.pairs, seed)]);
//! let site = SiteObjective::new(&patients.view(), &labels, &settings, &totals, seed, None)?;
//!
//! let wanted = SearchSettings {
//!     lambda_sparsity: 0.1,
//!     form: settings.form,
//!     tolerance: 2e-7,
//!     tolerance_residual: 1e-3,
//! };
//! let search = Search::new(wanted, start(&settings, 3, seed, 0), 3);
//! let found = search_sites(&[site], search, &mut Knowledge::new(), 60, &mut |_, _| ())?;
//! let weights = found.best().map_axis(ndarray::Axis(1), |row| row.dot(&row).sqrt());
//! assert!(weights[0] > 0.5 && weights[1] == 0.0 && weights[2] == 0.0, "{weights}");
//! # Ok::<(), similarity::learn::unpsl::ObjectiveError>(())
//! ```

pub mod accelerated;
mod correlation;
mod labels;
mod local;
mod pair_loss;
pub mod personal;
mod pooled;
pub mod selection;
mod settings;
mod shared;
mod site;
mod sweep;
mod totals;
mod way_out;

pub use correlation::{Correlation, SecondMoments, SecondMomentsError, ShiftedSolver};
pub use labels::{JUDGED_STEPS, JudgedPairs, Labels, LabelsError, PAIRS_STEP, PairCounts};
pub use local::{
    LocalError, LocalLimits, LocalRound, LocalRun, LocalStatus, learn, learn_from_starts,
    learn_observed,
};
pub use pair_loss::{PairLoss, PairWeightValues};
pub use pooled::{PooledLimits, PooledSolution, minimise_pooled, objective};
pub use settings::{
    Centring, CorrelationScope, Form, Loss, PARTNERS_MAX, PairWeights, Pairs, Settings,
    SettingsError, SiteWeights, Threshold, led, start,
};
pub use shared::SharedPatients;
pub use site::{
    COARSE_UNFIT, COARSER, LocalSolution, ObjectiveError, SiteDerivatives, SiteObjective,
    ThresholdDerivatives,
};
pub use totals::{Summary, Totals, summarise};
pub use way_out::{WayOut, missing_axis, way_out};
