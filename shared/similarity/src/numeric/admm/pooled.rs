//! Consensus ADMM from sums: the sites hold their duals, and nobody learns a site's own W_p.
//!
//! Everything here is IEEE arithmetic in a fixed order, without BLAS, so that every site that repeats it has the same bits.

use super::anderson::Anderson;
use super::broadcast::{Broadcast, Squares};
use super::{ConsensusError, ConsensusSettings, DualStep, Residuals, UpdateProducts, check_matrix};
use crate::numeric::portable::inner_product;
use ndarray::{Array2, ArrayView2};

/// The consensus W, the sum of the scaled duals, and the penalty.
#[derive(Debug, Clone)]
pub struct PooledConsensus {
    broadcast: Broadcast,
    /// sum_p U_p.
    duals: Array2<f64>,
    /// How the sites move theirs before the coming round.
    step: DualStep,
    anderson: Anderson,
}

impl PooledConsensus {
    /// Starts all sites at `start` with duals of 0. W = 0 is a stationary point, so the start must not be zero.
    ///
    /// # Errors
    /// [`ConsensusError`] where a setting is out of range.
    pub fn new(start: Array2<f64>, settings: ConsensusSettings) -> Result<Self, ConsensusError> {
        Ok(Self {
            duals: Array2::zeros(start.raw_dim()),
            anderson: Anderson::new(settings.memory),
            broadcast: Broadcast::new(start, settings)?,
            step: DualStep::ZERO,
        })
    }

    /// The consensus W.
    #[must_use]
    pub fn consensus(&self) -> &Array2<f64> {
        self.broadcast.consensus()
    }

    /// The penalty rho of the coming round.
    #[must_use]
    pub fn penalty(&self) -> f64 {
        self.broadcast.penalty()
    }

    /// How every site moves its dual before the coming round.
    #[must_use]
    pub fn step(&self) -> DualStep {
        self.step.clone()
    }

    /// The mean of the scaled duals U_p over `sites` sites: (4.23), by the mean of W_p alone.
    #[must_use]
    pub fn mean_dual(&self, sites: usize) -> Array2<f64> {
        &self.duals / sites.max(1) as f64
    }

    /// lambda_1 ||W||_{2,1} at `matrix`.
    #[must_use]
    pub fn sparsity_term(&self, matrix: &ArrayView2<f64>) -> f64 {
        self.broadcast.sparsity_term(matrix)
    }

    /// Absorbs one round of `sites` sites: `sum` is sum_p W_p, and `products` those of all sites. The residuals are of this round by the letter
    /// of (4.22) and (4.23); where they are not within tolerance, and the penalty is fixed, the next round begins at a mixture of the last.
    ///
    /// # Errors
    /// [`ConsensusError`] for no site, another shape, or a number that is not finite; nothing has changed then.
    pub fn absorb(
        &mut self,
        sum: &Array2<f64>,
        products: &UpdateProducts,
        sites: usize,
    ) -> Result<Residuals, ConsensusError> {
        if sites == 0 {
            return Err(ConsensusError::NoSites);
        }
        check_matrix(0, sum, self.consensus().dim())?;
        let count = sites as f64;
        let alpha = self.broadcast.settings().relaxation;
        let previous = self.consensus().clone();
        let update = sum - &previous * count;
        let moved = |factor: f64| &self.duals / factor + &update * alpha;
        let before = self
            .broadcast
            .shrink(sites, |factor| &previous + &(moved(factor) / count));
        let step = self.consensus() - &previous;
        let moved = &self.duals / before + &update * alpha;
        let reached = &previous + &(&moved / count);
        let squares = squares(&Moved {
            previous: &previous,
            update: &update,
            step: &step,
            moved: &moved,
            products,
            relaxation: alpha,
            before,
            sites: count,
        });
        let (residuals, relative) = self.broadcast.residuals(sites, &squares, &previous);
        self.duals = moved - &step * count;
        self.step = DualStep {
            moves: self.step.moves.saturating_add(1),
            before,
            after: 1.0,
            weights: Vec::new(),
        };
        if before != 1.0 {
            self.anderson.forget();
        }
        self.anderson.learn(reached, &update * (alpha / count));
        if !residuals.converged() && self.broadcast.is_fixed() {
            self.mix(alpha * products.update.max(0.0).sqrt(), sites);
        }
        let factor = self.broadcast.after_round(&relative);
        self.scale_duals(factor);
        Ok(residuals)
    }

    /// (4.22) and (4.23) of the mixture of the last rounds, where there is one; `size` is alpha ||W_p - W|| over all sites.
    fn mix(&mut self, size: f64, sites: usize) {
        let Some((weights, mean)) = self.anderson.mixture(size) else {
            return;
        };
        self.broadcast.shrink(sites, |_| mean.clone());
        self.duals = (mean - self.broadcast.consensus()) * sites as f64;
        self.step.weights = weights;
    }

    /// Tells the safeguard the objective (4.19) at the consensus of the round just answered. It raises the penalty where the objective
    /// wanders; true where it did.
    pub fn observe_objective(&mut self, objective: f64) -> bool {
        let factor = self.broadcast.after_objective(objective);
        self.scale_duals(factor);
        factor != 1.0
    }

    fn scale_duals(&mut self, factor: f64) {
        if factor != 1.0 {
            self.anderson.forget();
        }
        self.duals /= factor;
        self.step.after *= factor;
    }
}

/// What a round has moved, in sums over the sites.
struct Moved<'m> {
    previous: &'m Array2<f64>,
    /// sum_p D_p, D_p = W_p - W.
    update: &'m Array2<f64>,
    /// From W to the next.
    step: &'m Array2<f64>,
    /// sum_p (U_p / before + alpha D_p).
    moved: &'m Array2<f64>,
    products: &'m UpdateProducts,
    relaxation: f64,
    /// The penalty's factor before the move.
    before: f64,
    sites: f64,
}

/// The sums of squares, multiplied out, so that no site's own matrix is wanted. Rounding may take one below 0.
fn squares(round: &Moved<'_>) -> Squares {
    let (alpha, before) = (round.relaxation, round.before);
    let product = |a: &Array2<f64>, b: &Array2<f64>| inner_product(&a.view(), &b.view());
    let UpdateProducts {
        update,
        cross,
        dual,
    } = *round.products;
    let step = round.sites * product(round.step, round.step);
    let apart = update - 2.0 * product(round.step, round.update) + step;
    let answers = round.sites * product(round.previous, round.previous)
        + 2.0 * product(round.previous, round.update)
        + update;
    let moved = dual / (before * before) + 2.0 * alpha / before * cross + alpha * alpha * update;
    let duals = moved - 2.0 * product(round.step, round.moved) + step;
    Squares {
        apart: apart.max(0.0),
        answers: answers.max(0.0),
        duals: duals.max(0.0),
    }
}
