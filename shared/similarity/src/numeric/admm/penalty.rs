//! How the penalty rho adapts: the only part of consensus ADMM that is a rule of thumb.
//!
//! In the first rounds the penalty follows the ratio of the relative residuals; then it is frozen, but for a safeguard that raises it when
//! the objective wanders. It changes finitely often, as convergence wants (Boyd et al. 2011, section 3.4.1).

/// Weight of the primal residual against the dual one.
const PRIMAL_WEIGHT: f64 = 4.0;
/// The smallest and the largest factor of one round.
const FACTORS: [f64; 2] = [0.1, 10.0];
/// Factor of the safeguard.
const RAISE: f64 = 1.5;
/// Rounds in a row that the objective may rise above its best before the safeguard acts.
const RISES_MAX: u32 = 2;
/// The safeguard acts so often at most.
const RAISES_MAX: u32 = 4;
/// An objective that is this much larger, relatively, has not risen.
const ROUNDING: f64 = 1e-9;

/// The start of the penalty, and for how long it adapts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PenaltySettings {
    /// The first round's penalty; above 0.
    pub start: f64,
    /// Rounds after which the penalty still follows the residuals; 0 keeps it fixed.
    pub adaptive_rounds: u32,
}

/// Residuals of one round relative to what they are made of (Wohlberg 2017).
#[derive(Debug, Clone, Copy)]
pub(crate) struct RelativeResiduals {
    /// Primal residual over the norm of W_p or W, whichever is larger.
    pub(crate) primal: f64,
    /// Dual residual over the norm of the unscaled duals.
    pub(crate) dual: f64,
}

/// The rule's memory.
#[derive(Debug, Clone)]
pub(crate) struct PenaltyRule {
    settings: PenaltySettings,
    rounds: u32,
    best: f64,
    last: f64,
    rises: u32,
    raises: u32,
}

impl PenaltyRule {
    pub(crate) fn new(settings: PenaltySettings) -> Self {
        Self {
            settings,
            rounds: 0,
            best: f64::INFINITY,
            last: f64::INFINITY,
            rises: 0,
            raises: 0,
        }
    }

    /// Whether the penalty still follows the residuals.
    pub(crate) fn is_adaptive(&self) -> bool {
        self.rounds < self.settings.adaptive_rounds
    }

    /// The factor for the penalty before rows are shrunk by `threshold`. W = 0 is a stationary point
    /// that a run does not leave, and a penalty that starts too small would shrink every row to it:
    /// while the penalty adapts, the longest row keeps half of its norm.
    pub(crate) fn before_shrinking(&self, longest_row: f64, threshold: f64) -> f64 {
        if !self.is_adaptive() || longest_row == 0.0 || threshold < longest_row {
            return 1.0;
        }
        2.0 * threshold / longest_row
    }

    /// The factor for the penalty after a round that every site answered.
    pub(crate) fn after_round(&mut self, residuals: &RelativeResiduals) -> f64 {
        self.rounds = self.rounds.saturating_add(1);
        let ratio = (PRIMAL_WEIGHT * residuals.primal / residuals.dual).sqrt();
        if self.rounds > self.settings.adaptive_rounds || !ratio.is_finite() || ratio == 0.0 {
            return 1.0;
        }
        ratio.clamp(FACTORS[0], FACTORS[1])
    }

    /// The factor for the penalty after the objective at the consensus is known.
    pub(crate) fn after_objective(&mut self, objective: f64) -> f64 {
        let rose = objective > self.last + ROUNDING * self.last.abs();
        let above_best = objective > self.best + ROUNDING * self.best.abs();
        self.rises = if rose && above_best {
            self.rises + 1
        } else {
            0
        };
        self.last = objective;
        self.best = self.best.min(objective);
        let frozen = self.rounds > self.settings.adaptive_rounds;
        let is_over = self.raises >= RAISES_MAX;
        if !frozen || is_over || self.settings.adaptive_rounds == 0 || self.rises < RISES_MAX {
            return 1.0;
        }
        self.rises = 0;
        self.raises += 1;
        RAISE
    }
}
