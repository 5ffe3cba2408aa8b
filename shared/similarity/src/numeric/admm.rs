//! Consensus ADMM: the coordinator's arithmetic of equations (4.22) and (4.23), pure and deterministic.
//!
//! A round is: every site receives the consensus and how its dual moved, solves (4.21) near W - U_p and contributes W_p;
//! [`PooledConsensus::absorb`] over-relaxes, averages, shrinks rows, moves the mean of the duals
//! and measures the residuals of Boyd et al. (2011), section 3.3. Each site holds its dual ([`SiteDual`]), so that nobody learns a
//! site's own W_p; [`Consensus`] is the same where all are in one place. Once the penalty is fixed, rounds are mixed (`admm/anderson.rs`): every round
//! is literally (4.21) to (4.23), and where it begins is a mixture of where the last ones ended. The problem is not convex (s is bilinear in W): what
//! ADMM converges to is a stationary point.

mod anderson;
mod broadcast;
mod dual;
mod penalty;
mod pooled;

use ndarray::{Array2, ArrayView2};

pub use dual::{DualStep, MIXED_MAX, SiteDual, UpdateProducts};
pub use penalty::PenaltySettings;
pub(crate) use penalty::{PenaltyRule, RelativeResiduals};
pub use pooled::PooledConsensus;

/// What the coordinator is asked to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConsensusSettings {
    /// lambda_1, the weight of ||W||_{2,1}; at least 0.
    pub lambda_sparsity: f64,
    /// Leading rows that are features. Rows after them (a learned threshold) are not shrunk.
    pub feature_rows: usize,
    /// Over-relaxation, above 0 and below 2; 1 is none.
    pub relaxation: f64,
    /// The penalty rho: its start and how it adapts.
    pub penalty: PenaltySettings,
    /// Differences of rounds that are mixed, below [`MIXED_MAX`]; 0 mixes none: the rounds of the paper alone.
    pub memory: usize,
    /// Absolute tolerance per entry (Boyd et al., 3.3.1).
    pub tolerance_absolute: f64,
    /// Tolerance relative to the matrices' norms.
    pub tolerance_relative: f64,
}

impl ConsensusSettings {
    /// The defaults: no over-relaxation, mixtures of up to [`MIXED_MAX`] rounds, tolerances 1e-9 (absolute, per entry) and 1e-4 (relative), and a
    /// penalty that starts at `penalty` and adapts.
    #[must_use]
    pub fn new(lambda_sparsity: f64, feature_rows: usize, penalty: f64) -> Self {
        Self {
            lambda_sparsity,
            feature_rows,
            relaxation: 1.0,
            penalty: PenaltySettings {
                start: penalty,
                adaptive_rounds: 8,
            },
            memory: MIXED_MAX - 1,
            tolerance_absolute: 1e-9,
            tolerance_relative: 1e-4,
        }
    }
}

/// A consensus that cannot be started, or a contribution that cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ConsensusError {
    /// A setting is out of its range.
    #[error("{setting} is {found}, wanted {wanted}")]
    Setting {
        /// Name of the setting.
        setting: &'static str,
        /// What was given.
        found: f64,
        /// The range.
        wanted: &'static str,
    },
    /// No site takes part.
    #[error("a consensus needs a site")]
    NoSites,
    /// There are more feature rows than rows.
    #[error("found {found} rows, wanted at least {wanted} feature rows")]
    FeatureRows {
        /// Rows of the start.
        found: usize,
        /// Feature rows asked for.
        wanted: usize,
    },
    /// One place per site, answered or not.
    #[error("found places for {found} sites, wanted {wanted}")]
    Places {
        /// Length of the slice.
        found: usize,
        /// Sites of the consensus, those away included.
        wanted: usize,
    },
    /// A matrix of the wrong shape.
    #[error("site {site} contributed {found_rows} x {found_columns}, wanted {rows} x {columns}")]
    Shape {
        /// Index of the site.
        site: usize,
        /// Rows contributed.
        found_rows: usize,
        /// Columns contributed.
        found_columns: usize,
        /// Rows of the consensus.
        rows: usize,
        /// Columns of the consensus.
        columns: usize,
    },
    /// A matrix with NaN or infinity in it.
    #[error("the matrix of site {site} is not finite")]
    NotFinite {
        /// Index of the site.
        site: usize,
    },
}

/// Residuals of one round and the tolerances that they were held against (Boyd et al., 3.3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Residuals {
    /// sqrt(sum_p ||W_p - W||^2).
    pub primal: f64,
    /// rho sqrt(P) ||W - W_previous||, with the penalty that the round was solved with.
    pub dual: f64,
    /// What `primal` must not exceed.
    pub primal_tolerance: f64,
    /// What `dual` must not exceed.
    pub dual_tolerance: f64,
    /// An estimate of how far the objective may be above the optimum: ||rho U|| primal + ||W|| dual over all sites, with ||W|| in the place of the
    /// distance to the optimum, which nobody knows. It holds where the f_p are convex (Boyd et al., 3.3.1), as they are near an optimum at best.
    pub left: f64,
}

impl Residuals {
    /// True where both residuals are within tolerance.
    #[must_use]
    pub fn converged(&self) -> bool {
        self.primal <= self.primal_tolerance && self.dual <= self.dual_tolerance
    }
}

/// The consensus W, the scaled duals U_p, and the penalty, where all sites are in one place.
#[derive(Debug, Clone)]
pub struct Consensus {
    pooled: PooledConsensus,
    duals: Vec<SiteDual>,
}

impl Consensus {
    /// Starts `sites` sites at `start` with zero duals.
    ///
    /// W = 0 is a stationary point, so the start must not be zero (see `unpsl::start`).
    ///
    /// # Errors
    /// [`ConsensusError`] where a setting is out of range or there is no site.
    pub fn new(
        start: Array2<f64>,
        sites: usize,
        settings: ConsensusSettings,
    ) -> Result<Self, ConsensusError> {
        let pooled = PooledConsensus::new(start, settings)?;
        if sites == 0 {
            return Err(ConsensusError::NoSites);
        }
        Ok(Self {
            pooled,
            duals: vec![SiteDual::new(settings.relaxation); sites],
        })
    }

    /// The consensus W, shared by all sites.
    #[must_use]
    pub fn consensus(&self) -> &Array2<f64> {
        self.pooled.consensus()
    }

    /// The penalty rho of the coming round.
    #[must_use]
    pub fn penalty(&self) -> f64 {
        self.pooled.penalty()
    }

    /// Sites.
    #[must_use]
    pub fn sites(&self) -> usize {
        self.duals.len()
    }

    /// The centre W - U_p that site `site` is to stay near; none where there is no such site.
    #[must_use]
    pub fn centre(&self, site: usize) -> Option<Array2<f64>> {
        let mut dual = self.duals.get(site)?.clone();
        Some(dual.centre(self.consensus(), &self.pooled.step()))
    }

    /// lambda_1 ||W||_{2,1} at `matrix`: the coordinator's own term of the objective (4.19).
    #[must_use]
    pub fn sparsity_term(&self, matrix: &ArrayView2<f64>) -> f64 {
        self.pooled.sparsity_term(matrix)
    }

    /// Absorbs one round: `contributions[p]` is W_p. The penalty may change, and the scaled duals with it.
    ///
    /// # Errors
    /// [`ConsensusError`] for a wrong number of places, a wrong shape, or a number that is not
    /// finite; nothing has changed then.
    pub fn absorb(&mut self, contributions: &[Array2<f64>]) -> Result<Residuals, ConsensusError> {
        self.check_contributions(contributions)?;
        let consensus = self.pooled.consensus().clone();
        let step = self.pooled.step();
        let mut sum = Array2::zeros(consensus.raw_dim());
        let mut products = UpdateProducts::default();
        for (dual, matrix) in self.duals.iter_mut().zip(contributions) {
            dual.centre(&consensus, &step);
            let own = dual.answered(&consensus, matrix);
            products.update += own.update;
            products.cross += own.cross;
            products.dual += own.dual;
            sum += matrix;
        }
        self.pooled.absorb(&sum, &products, self.duals.len())
    }

    /// As [`PooledConsensus::observe_objective`].
    pub fn observe_objective(&mut self, objective: f64) -> bool {
        self.pooled.observe_objective(objective)
    }

    fn check_contributions(&self, contributions: &[Array2<f64>]) -> Result<(), ConsensusError> {
        if contributions.len() != self.duals.len() {
            return Err(ConsensusError::Places {
                found: contributions.len(),
                wanted: self.duals.len(),
            });
        }
        for (site, matrix) in contributions.iter().enumerate() {
            check_matrix(site, matrix, self.consensus().dim())?;
        }
        Ok(())
    }
}

fn check_matrix(
    site: usize,
    matrix: &Array2<f64>,
    (rows, columns): (usize, usize),
) -> Result<(), ConsensusError> {
    let (found_rows, found_columns) = matrix.dim();
    if (found_rows, found_columns) != (rows, columns) {
        return Err(ConsensusError::Shape {
            site,
            found_rows,
            found_columns,
            rows,
            columns,
        });
    }
    if !matrix.iter().all(|value| value.is_finite()) {
        return Err(ConsensusError::NotFinite { site });
    }
    Ok(())
}

fn check(settings: &ConsensusSettings) -> Result<(), ConsensusError> {
    let at_least_zero = |value: f64| value.is_finite() && value >= 0.0;
    let ranges = [
        (
            "lambda_sparsity",
            settings.lambda_sparsity,
            "at least 0",
            at_least_zero as fn(f64) -> bool,
        ),
        (
            "relaxation",
            settings.relaxation,
            "above 0 and below 2",
            |v| v > 0.0 && v < 2.0,
        ),
        ("penalty", settings.penalty.start, "above 0", |v| {
            v.is_finite() && v > 0.0
        }),
        (
            "tolerance_absolute",
            settings.tolerance_absolute,
            "at least 0",
            at_least_zero,
        ),
        (
            "tolerance_relative",
            settings.tolerance_relative,
            "at least 0",
            at_least_zero,
        ),
    ];
    for (setting, found, wanted, holds) in ranges {
        if !holds(found) {
            return Err(ConsensusError::Setting {
                setting,
                found,
                wanted,
            });
        }
    }
    Ok(())
}
