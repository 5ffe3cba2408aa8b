//! Algorithm 1: three-block ADMM, (3.11) to (3.18), for one site or pooled data.
//!
//! Scaled form, with W = V = Z:
//!
//! ```text
//! W   <- argmin loss(W) + rho/2 ||W - (Z - U_W)||^2                 L-BFGS, from the last W
//! V   <- row-wise prox of lambda_1/rho at Z - U_V                   (3.17)
//! Z   <- (lambda_2 (R o R) + rho I)^{-1} rho (W + V + U_W + U_V)/2  (3.18), factored once per rho
//! U_W <- U_W + W - Z,  U_V <- U_V + V - Z
//! ```
//!
//! The answer is V, whose unselected rows are exactly zero.

use ndarray::{Array2, s};

use super::pooled::objective;
use super::site::{ObjectiveError, SiteObjective, add_proximity};
use crate::numeric::admm::{PenaltyRule, PenaltySettings, RelativeResiduals};
use crate::numeric::lbfgs::{Limits, minimise};
use crate::numeric::linear_algebra::LinearAlgebraError;
use crate::numeric::portable::{inner_product, norm};
use crate::numeric::prox::shrink_rows;

/// The W-update is solved to this share of the last round's residuals: loosely first, tightly later.
const INEXACTNESS: f64 = 0.1;

/// How long Algorithm 1 goes on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LocalLimits {
    /// rho: its start and how it adapts.
    pub penalty: PenaltySettings,
    /// Absolute tolerance per entry (Boyd et al. 2011, 3.3.1).
    pub tolerance_absolute: f64,
    /// Tolerance relative to the matrices' norms.
    pub tolerance_relative: f64,
    /// Rounds.
    pub rounds: usize,
    /// L-BFGS steps of one W-update.
    pub iterations: usize,
}

impl LocalLimits {
    /// 300 rounds of at most 50 steps, tolerances 1e-9 and 1e-4, a penalty that starts at `penalty`.
    #[must_use]
    pub fn new(penalty: f64) -> Self {
        Self {
            penalty: PenaltySettings {
                start: penalty,
                adaptive_rounds: 8,
            },
            tolerance_absolute: 1e-9,
            tolerance_relative: 1e-4,
            rounds: 300,
            iterations: 50,
        }
    }
}

/// Why Algorithm 1 ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalStatus {
    /// Both residuals are within tolerance.
    Converged,
    /// The rounds are used up.
    RoundLimit,
}

/// One round of Algorithm 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LocalRound {
    /// The objective (3.8) at V.
    pub objective: f64,
    /// sqrt(||W - Z||^2 + ||V - Z||^2).
    pub primal_residual: f64,
    /// rho sqrt(2) ||Z - Z_previous||.
    pub dual_residual: f64,
    /// rho of the round.
    pub penalty: f64,
}

/// What Algorithm 1 found.
#[derive(Debug, Clone)]
pub struct LocalRun {
    /// V, of the travelling shape.
    pub matrix: Array2<f64>,
    /// The objective (3.8) there.
    pub objective: f64,
    /// Every round.
    pub rounds: Vec<LocalRound>,
    /// Why it ended.
    pub status: LocalStatus,
}

/// Algorithm 1 cannot run.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// The start has the wrong shape.
    #[error("the start does not fit")]
    Start(#[from] ObjectiveError),
    /// The Z-update cannot be factored: the penalty is not above 0.
    #[error("the Z-update cannot be factored")]
    Factorisation(#[from] LinearAlgebraError),
    /// No start was given.
    #[error("found no start, wanted at least one")]
    NoStart,
}

/// Algorithm 1 from every start; the run with the lowest objective is kept (the first of equals).
///
/// # Errors
/// [`LocalError`].
pub fn learn_from_starts(
    site: &SiteObjective,
    starts: impl IntoIterator<Item = Array2<f64>>,
    limits: &LocalLimits,
) -> Result<LocalRun, LocalError> {
    let mut best: Option<LocalRun> = None;
    for start in starts {
        let run = learn(site, start, limits)?;
        if best
            .as_ref()
            .is_none_or(|best| run.objective < best.objective)
        {
            best = Some(run);
        }
    }
    best.ok_or(LocalError::NoStart)
}

/// Algorithm 1 from one start, which must not be zero (see [`super::start`]).
///
/// # Errors
/// [`LocalError`].
pub fn learn(
    site: &SiteObjective,
    start: Array2<f64>,
    limits: &LocalLimits,
) -> Result<LocalRun, LocalError> {
    learn_observed(site, start, limits, &mut |_| ())
}

/// [`learn`], with every round shown to `observe` as it closes.
///
/// # Errors
/// [`LocalError`].
pub fn learn_observed(
    site: &SiteObjective,
    start: Array2<f64>,
    limits: &LocalLimits,
    observe: &mut dyn FnMut(&LocalRound),
) -> Result<LocalRun, LocalError> {
    let sites = std::slice::from_ref(site);
    objective(sites, &start)?;
    let mut state = State::new(start);
    let mut rule = PenaltyRule::new(limits.penalty);
    let mut rounds = Vec::new();
    let mut penalty = limits.penalty.start;
    let mut inexactness = INEXACTNESS * norm(&state.z.view());
    let mut solver = ZUpdate::new(site, penalty)?;
    let mut status = LocalStatus::RoundLimit;
    while rounds.len() < limits.rounds {
        let tolerances = Limits {
            gradient_tolerance: penalty * inexactness,
            iterations: limits.iterations,
        };
        let residuals = state.round(site, &solver, penalty, tolerances);
        let value = objective(sites, &state.v)?;
        let round = LocalRound {
            objective: value,
            primal_residual: residuals.primal,
            dual_residual: residuals.dual,
            penalty,
        };
        observe(&round);
        rounds.push(round);
        let absolute = (2.0 * state.z.len() as f64).sqrt() * limits.tolerance_absolute;
        if residuals.primal <= absolute + limits.tolerance_relative * residuals.matrices
            && residuals.dual <= absolute + limits.tolerance_relative * residuals.duals
        {
            status = LocalStatus::Converged;
            break;
        }
        inexactness = INEXACTNESS * residuals.primal.min(residuals.dual / penalty);
        let relative = RelativeResiduals {
            primal: residuals.primal / residuals.matrices,
            dual: residuals.dual / residuals.duals,
        };
        let factor = rule.after_round(&relative) * rule.after_objective(value);
        if factor != 1.0 {
            penalty *= factor;
            state.scale_duals(1.0 / factor);
            solver = ZUpdate::new(site, penalty)?;
        }
    }
    let found = objective(sites, &state.v)?;
    Ok(LocalRun {
        matrix: state.v,
        objective: found,
        rounds,
        status,
    })
}

/// The variables of Algorithm 1.
struct State {
    w: Array2<f64>,
    v: Array2<f64>,
    z: Array2<f64>,
    dual_w: Array2<f64>,
    dual_v: Array2<f64>,
}

/// Residuals of a round, and the norms that they are relative to.
struct RoundResiduals {
    primal: f64,
    dual: f64,
    matrices: f64,
    duals: f64,
}

impl State {
    fn new(start: Array2<f64>) -> Self {
        let zeros = || Array2::zeros(start.raw_dim());
        let (dual_w, dual_v) = (zeros(), zeros());
        Self {
            w: start.clone(),
            v: start.clone(),
            z: start,
            dual_w,
            dual_v,
        }
    }

    fn round(
        &mut self,
        site: &SiteObjective,
        solver: &ZUpdate,
        penalty: f64,
        limits: Limits,
    ) -> RoundResiduals {
        let centre = &self.z - &self.dual_w;
        let w_update = |matrix: &Array2<f64>, gradient: &mut Array2<f64>| {
            let loss = site.scaled_loss_and_gradient(matrix, gradient);
            loss + add_proximity(matrix, &centre, penalty, gradient)
        };
        self.w = minimise(w_update, std::mem::take(&mut self.w), limits).point;
        self.v = &self.z - &self.dual_v;
        let threshold = site.settings().lambda_sparsity / penalty;
        shrink_rows(&mut self.v.slice_mut(s![..site.features(), ..]), threshold);
        let middle = (&self.w + &self.v + &self.dual_w + &self.dual_v) * 0.5;
        let previous = std::mem::replace(&mut self.z, solver.solve(middle, penalty));
        let (apart_w, apart_v) = (&self.w - &self.z, &self.v - &self.z);
        self.dual_w += &apart_w;
        self.dual_v += &apart_v;
        let both = |one: &Array2<f64>, other: &Array2<f64>| {
            let square = |m: &Array2<f64>| inner_product(&m.view(), &m.view());
            (square(one) + square(other)).sqrt()
        };
        RoundResiduals {
            primal: both(&apart_w, &apart_v),
            dual: penalty * std::f64::consts::SQRT_2 * norm(&(&self.z - &previous).view()),
            matrices: both(&self.w, &self.v).max(both(&self.z, &self.z)),
            duals: penalty * both(&self.dual_w, &self.dual_v),
        }
    }

    fn scale_duals(&mut self, factor: f64) {
        self.dual_w *= factor;
        self.dual_v *= factor;
    }
}

/// (3.18) for one penalty.
struct ZUpdate<'a> {
    solver: Option<super::ShiftedSolver<'a>>,
    features: usize,
}

impl<'a> ZUpdate<'a> {
    fn new(site: &'a SiteObjective, penalty: f64) -> Result<Self, LinearAlgebraError> {
        let solver = match site.correlation() {
            Some((correlation, weight)) => Some(correlation.shifted_solver(weight, penalty)?),
            None => None,
        };
        Ok(Self {
            solver,
            features: site.features(),
        })
    }

    /// Z from C = (W + V + U_W + U_V)/2. A row of the threshold has no correlation: it stays C.
    fn solve(&self, mut middle: Array2<f64>, penalty: f64) -> Array2<f64> {
        if let Some(solver) = &self.solver {
            let right = &middle.slice(s![..self.features, ..]) * penalty;
            middle
                .slice_mut(s![..self.features, ..])
                .assign(&solver.solve(&right));
        }
        middle
    }
}
