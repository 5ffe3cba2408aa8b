//! Consensus ADMM: the coordinator's arithmetic of equations (4.22) and (4.23), pure and deterministic.
//!
//! A round is: every site receives the consensus and its own centre W - U_p, solves (4.21) and
//! contributes W_p; [`Consensus::absorb`] then over-relaxes, averages, shrinks rows, moves the duals
//! and measures the residuals of Boyd et al. (2011), section 3.3. The coordinator holds the duals, so
//! a site keeps nothing between rounds. The problem is not convex (s is bilinear in W): what ADMM
//! converges to is a stationary point, the same for all who start at the same W.

//!
//! Where nobody may learn a site's own W_p, the duals stay at the sites ([`SiteDual`]) and [`PooledConsensus`] does the same
//! from sums over them.

mod broadcast;
mod dual;
mod penalty;
mod pooled;

use ndarray::{Array2, ArrayView2};

use crate::numeric::linear_algebra::inner_product;
use broadcast::{Broadcast, Squares};
pub use dual::{DualStep, SiteDual, UpdateProducts};
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
    /// Absolute tolerance per entry (Boyd et al., 3.3.1).
    pub tolerance_absolute: f64,
    /// Tolerance relative to the matrices' norms.
    pub tolerance_relative: f64,
}

impl ConsensusSettings {
    /// The defaults: relaxation 1.5, tolerances 1e-9 (absolute, per entry) and 1e-4 (relative), and a
    /// penalty that starts at `penalty` and adapts.
    #[must_use]
    pub fn new(lambda_sparsity: f64, feature_rows: usize, penalty: f64) -> Self {
        Self {
            lambda_sparsity,
            feature_rows,
            relaxation: 1.5,
            penalty: PenaltySettings {
                start: penalty,
                adaptive_rounds: 8,
            },
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
}

impl Residuals {
    /// True where both residuals are within tolerance.
    #[must_use]
    pub fn converged(&self) -> bool {
        self.primal <= self.primal_tolerance && self.dual <= self.dual_tolerance
    }
}

/// What the coordinator knows of one site.
#[derive(Debug, Clone)]
struct Site {
    /// The last W_p, over-relaxed when it came.
    answer: Array2<f64>,
    /// The scaled dual U_p.
    dual: Array2<f64>,
}

/// The consensus W, the scaled duals U_p, and the penalty.
#[derive(Debug, Clone)]
pub struct Consensus {
    broadcast: Broadcast,
    sites: Vec<Site>,
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
        let broadcast = Broadcast::new(start, settings)?;
        if sites == 0 {
            return Err(ConsensusError::NoSites);
        }
        let start = broadcast.consensus();
        let site = Site {
            answer: start.clone(),
            dual: Array2::zeros(start.raw_dim()),
        };
        Ok(Self {
            broadcast,
            sites: vec![site; sites],
        })
    }

    /// The consensus W, shared by all sites.
    #[must_use]
    pub fn consensus(&self) -> &Array2<f64> {
        self.broadcast.consensus()
    }

    /// The penalty rho of the coming round.
    #[must_use]
    pub fn penalty(&self) -> f64 {
        self.broadcast.penalty()
    }

    /// Sites.
    #[must_use]
    pub fn sites(&self) -> usize {
        self.sites.len()
    }

    /// The centre W - U_p that site `site` is to stay near; none where there is no such site.
    #[must_use]
    pub fn centre(&self, site: usize) -> Option<Array2<f64>> {
        let known = self.sites.get(site)?;
        Some(self.consensus() - &known.dual)
    }

    /// lambda_1 ||W||_{2,1} at `matrix`: the coordinator's own term of the objective (4.19).
    #[must_use]
    pub fn sparsity_term(&self, matrix: &ArrayView2<f64>) -> f64 {
        self.broadcast.sparsity_term(matrix)
    }

    /// Absorbs one round: `contributions[p]` is W_p. The penalty may change, and the scaled duals with it.
    ///
    /// # Errors
    /// [`ConsensusError`] for a wrong number of places, a wrong shape, or a number that is not
    /// finite; nothing has changed then.
    pub fn absorb(&mut self, contributions: &[Array2<f64>]) -> Result<Residuals, ConsensusError> {
        self.check_contributions(contributions)?;
        let previous = self.consensus().clone();
        let alpha = self.broadcast.settings().relaxation;
        for (known, matrix) in self.sites.iter_mut().zip(contributions) {
            known.answer = matrix * alpha + &previous * (1.0 - alpha);
        }
        self.average();
        for known in &mut self.sites {
            known.dual += &(&known.answer - self.broadcast.consensus());
        }
        let squares = self.squares(contributions);
        let sites = self.sites();
        let (residuals, relative) = self.broadcast.residuals(sites, &squares, &previous);
        let factor = self.broadcast.after_round(&relative);
        self.scale_duals(factor);
        Ok(residuals)
    }

    /// Tells the safeguard the objective (4.19) at the consensus of the round just answered. It
    /// raises the penalty where the objective wanders; true where it did.
    pub fn observe_objective(&mut self, objective: f64) -> bool {
        let factor = self.broadcast.after_objective(objective);
        self.scale_duals(factor);
        factor != 1.0
    }

    /// W <- prox of lambda_1/(rho P) ||.||_{2,1} at mean_p (W_p + U_p), equation (4.22).
    fn average(&mut self) {
        let share = 1.0 / self.sites().max(1) as f64;
        let shape = self.consensus().raw_dim();
        let members = &self.sites;
        let mean = |factor: f64| {
            let mut mean = Array2::zeros(shape);
            for known in members {
                mean += &known.answer;
                mean += &(&known.dual / factor);
            }
            mean * share
        };
        let sites = self.sites();
        let factor = self.broadcast.shrink(sites, mean);
        self.scale_duals(factor);
    }

    fn squares(&self, answers: &[Array2<f64>]) -> Squares {
        let squares = |matrix: &Array2<f64>| inner_product(&matrix.view(), &matrix.view());
        Squares {
            apart: answers
                .iter()
                .map(|w| squares(&(w - self.consensus())))
                .sum(),
            answers: answers.iter().map(squares).sum(),
            duals: self.sites.iter().map(|known| squares(&known.dual)).sum(),
        }
    }

    /// Divides the scaled duals by the factor of the penalty, so that rho U_p stays what it was.
    fn scale_duals(&mut self, factor: f64) {
        for known in &mut self.sites {
            known.dual /= factor;
        }
    }

    fn check_contributions(&self, contributions: &[Array2<f64>]) -> Result<(), ConsensusError> {
        if contributions.len() != self.sites.len() {
            return Err(ConsensusError::Places {
                found: contributions.len(),
                wanted: self.sites.len(),
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
