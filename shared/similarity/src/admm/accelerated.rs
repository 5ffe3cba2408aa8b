//! Consensus ADMM whose consensus step and duals use the sites' curvature, for few rounds.
//!
//! Every round is (4.21) to (4.23) in the same messages, with two departures:
//! * **Consensus step.** (4.22) models every f_p near W_p with the curvature rho I. Here f_p is modelled
//!   around the best consensus so far with B_p (see `curvature` and `secant`), and W minimises
//!   sum_p [<g_p, W - best> + 1/2 <W - best, B_p (W - best)>] + tau/2 ||W - best||^2 + lambda_1 ||W||_{2,1}:
//!   a proximal quasi-Newton step (Lee, Sun and Saunders 2014) with Levenberg's damping tau.
//! * **Duals.** (4.23) moves rho U_p by rho (W_p - W), which predicts the gradient of f_p at the new W
//!   with the curvature rho. Here -rho U_p is the model's own gradient there, g_p + B_p (W - best).
//!
//! With B_p = rho I around W_p this is ADMM, over-relaxed by 2 (Peaceman-Rachford). The fixed points are
//! those of consensus ADMM: W_p = W for all p exactly where 0 is in sum_p grad f_p(W) + lambda_1 d||W||_{2,1}.
//!
//! Safeguard: only a consensus whose objective fell becomes the best. Where it rose, tau and the penalty
//! go up and the next consensus starts from the best again, so a run cannot wander.

use std::collections::VecDeque;

use ndarray::{Array2, ArrayView2, s};

use super::curvature::{Anchor, Curvature, Observation, logistic_curvature};
use super::secant::{Secant, SecantHessian};
use super::{ConsensusError, Residuals, check_matrix};
use crate::linear_algebra::{LinearAlgebraError, inner_product, norm};
use crate::prox::{row_norm_sum, shrink_rows};

/// Observations kept of a site, two a round.
const OBSERVATIONS_MAX: usize = 32;
/// tau at the start, per unit of pair weight.
const DAMPING_START: f64 = 0.05;
/// tau after an objective that rose is at least this, per unit of pair weight, before it is raised.
const DAMPING_RISEN_MIN: f64 = 0.01;
/// Factor of tau after a step that the model predicted well, and its inverse after a rise.
const DAMPING_FACTOR: f64 = 4.0;
/// Shares of the predicted decrease that count as predicted well and badly.
const PREDICTED: [f64; 2] = [0.5, 0.1];
/// How much a rise raises the penalty, at most how far, and how a fall lowers it again.
const PENALTY_RAISE: [f64; 3] = [2.0, 64.0, 0.7];
/// Steps of the power iteration for the largest curvature.
const POWER_STEPS: usize = 15;
/// Limits of the proximal gradient search in the consensus step.
const CONSENSUS_STEPS_MAX: usize = 400;
const CONSENSUS_TOLERANCE: f64 = 1e-9;

/// What the coordinator is asked to do, and what it knows of the features.
#[derive(Debug, Clone)]
pub struct AcceleratedSettings {
    /// lambda_1, the weight of ||W||_{2,1}; at least 0.
    pub lambda_sparsity: f64,
    /// rho of the first round; above 0. Later ones follow the curvature.
    pub penalty_start: f64,
    /// S = X'X / n of the standardised features of all sites, d x d: their pooled correlations. The
    /// first d rows of W are features; rows after them (a learned threshold) are not shrunk.
    pub second_moments: Array2<f64>,
    /// How much each site's pairs weigh in the objective: the share v_p under mean loss, the sum of its
    /// pair weights under summed loss; above 0.
    pub pair_weights: Vec<f64>,
    /// Absolute tolerance per entry (Boyd et al., 3.3.1).
    pub tolerance_absolute: f64,
    /// Tolerance relative to the matrices' norms.
    pub tolerance_relative: f64,
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

/// One site as the coordinator knows it.
#[derive(Debug, Clone)]
struct Site {
    weight: f64,
    /// W - U_p.
    centre: Array2<f64>,
    observations: VecDeque<Observation>,
    /// The gradient of f_p at the best consensus.
    gradient_at_best: Array2<f64>,
}

/// The consensus with the lowest objective so far.
#[derive(Debug, Clone)]
struct Best {
    matrix: Array2<f64>,
    objective: f64,
}

/// The consensus W, the sites' centres, and what their gradients say about their curvature.
#[derive(Debug, Clone)]
pub struct AcceleratedConsensus {
    settings: AcceleratedSettings,
    consensus: Array2<f64>,
    sites: Vec<Option<Site>>,
    best: Option<Best>,
    penalty: f64,
    /// Factor that the safeguard keeps on the penalty, at least 1.
    raise: f64,
    /// tau.
    damping: f64,
    /// How far the model says that the objective falls to the coming consensus.
    predicted: f64,
}

impl AcceleratedConsensus {
    /// Starts one site per pair weight at `start`, with zero duals.
    ///
    /// # Errors
    /// [`AcceleratedError`] where a setting is out of range or no site takes part.
    pub fn new(
        start: Array2<f64>,
        settings: AcceleratedSettings,
    ) -> Result<Self, AcceleratedError> {
        check(&settings, &start)?;
        let site = |&weight: &f64| {
            Some(Site {
                weight,
                centre: start.clone(),
                observations: VecDeque::new(),
                gradient_at_best: Array2::zeros(start.raw_dim()),
            })
        };
        Ok(Self {
            sites: settings.pair_weights.iter().map(site).collect(),
            consensus: start,
            best: None,
            penalty: settings.penalty_start,
            raise: 1.0,
            damping: DAMPING_START,
            predicted: 0.0,
            settings,
        })
    }

    /// The consensus W to broadcast.
    #[must_use]
    pub fn consensus(&self) -> &Array2<f64> {
        &self.consensus
    }

    /// The consensus with the lowest objective that all sites have evaluated, or the start.
    #[must_use]
    pub fn best(&self) -> &Array2<f64> {
        self.best
            .as_ref()
            .map_or(&self.consensus, |best| &best.matrix)
    }

    /// The penalty rho of the coming round.
    #[must_use]
    pub fn penalty(&self) -> f64 {
        self.penalty
    }

    /// Sites that have not been removed.
    #[must_use]
    pub fn sites(&self) -> usize {
        self.sites.iter().flatten().count()
    }

    /// The centre W - U_p that site `site` is to stay near, or `None` where it was removed.
    #[must_use]
    pub fn centre(&self, site: usize) -> Option<&Array2<f64>> {
        Some(&self.sites.get(site)?.as_ref()?.centre)
    }

    /// lambda_1 ||W||_{2,1} at `matrix`: the coordinator's own term of the objective (4.19).
    #[must_use]
    pub fn sparsity_term(&self, matrix: &ArrayView2<f64>) -> f64 {
        let features = matrix.slice(s![..self.settings.second_moments.nrows(), ..]);
        self.settings.lambda_sparsity * row_norm_sum(&features)
    }

    /// Forgets a site for good. The objective is another one without it: the best is forgotten too.
    pub fn remove_site(&mut self, site: usize) {
        if let Some(known) = self.sites.get_mut(site)
            && known.take().is_some()
        {
            self.best = None;
        }
    }

    /// Absorbs one round: `contributions[p]`, or `None` where site p did not answer.
    ///
    /// A round that a site missed has no objective and never counts as converged; what the others
    /// contributed sharpens their curvature. Places of removed sites are not read.
    ///
    /// # Errors
    /// [`AcceleratedError`]; after a [`ConsensusError`] nothing has changed.
    pub fn absorb(
        &mut self,
        contributions: &[Option<Contribution>],
    ) -> Result<AcceleratedRound, AcceleratedError> {
        self.check_contributions(contributions)?;
        let objective = self.objective(contributions);
        let residuals = self.residuals(contributions, objective.is_some());
        self.observe(contributions);
        let safeguarded = objective.is_some_and(|objective| !self.accept(objective, contributions));
        if let Some(best) = self.best.take() {
            let stepped = self.step(&best);
            self.best = Some(best);
            stepped?;
        }
        Ok(AcceleratedRound {
            residuals,
            objective,
            safeguarded,
        })
    }

    /// (4.19) at the consensus, where every remaining site has told its term.
    fn objective(&self, contributions: &[Option<Contribution>]) -> Option<f64> {
        let mut sum = self.sparsity_term(&self.consensus.view());
        for (site, contribution) in self.sites.iter().zip(contributions) {
            if site.is_some() {
                sum += contribution.as_ref()?.objective_at_consensus;
            }
        }
        Some(sum)
    }

    fn observe(&mut self, contributions: &[Option<Contribution>]) {
        for (site, contribution) in self.sites.iter_mut().zip(contributions) {
            let (Some(site), Some(contribution)) = (site, contribution) else {
                continue;
            };
            // where (4.21) is solved, grad f_p(W_p) + rho (W_p - centre) = 0
            let gradient = (&site.centre - &contribution.matrix) * self.penalty;
            let consensus = Observation {
                point: self.consensus.clone(),
                gradient: contribution.gradient_at_consensus.clone(),
            };
            let point = contribution.matrix.clone();
            site.observations.push_back(consensus);
            site.observations.push_back(Observation { point, gradient });
            while site.observations.len() > OBSERVATIONS_MAX {
                site.observations.pop_front();
            }
        }
    }

    /// Makes the consensus the best where its objective fell; else the safeguard acts.
    fn accept(&mut self, objective: f64, contributions: &[Option<Contribution>]) -> bool {
        let [raise, raise_max, relief] = PENALTY_RAISE;
        if let Some(best) = &self.best {
            let fall = best.objective - objective;
            if fall <= 0.0 {
                self.damping = self.damping.max(DAMPING_RISEN_MIN) * DAMPING_FACTOR;
                self.raise = (self.raise * raise).min(raise_max);
                // a rise within rounding is convergence, not wandering
                return -fall <= 1e-12 * best.objective.abs();
            }
            let [well, badly] = PREDICTED;
            if fall > well * self.predicted {
                self.damping /= DAMPING_FACTOR;
            } else if fall < badly * self.predicted {
                self.damping *= 2.0;
            }
            self.raise = (self.raise * relief).max(1.0);
        }
        self.best = Some(Best {
            matrix: self.consensus.clone(),
            objective,
        });
        for (site, contribution) in self.sites.iter_mut().zip(contributions) {
            if let (Some(site), Some(contribution)) = (site, contribution) {
                site.gradient_at_best
                    .clone_from(&contribution.gradient_at_consensus);
            }
        }
        true
    }

    /// Finds the coming consensus, the penalty and the centres from the model around `best`.
    fn step(&mut self, best: &Best) -> Result<(), LinearAlgebraError> {
        let sites: Vec<&Site> = self.sites.iter().flatten().collect();
        let anchor = Anchor::new(&self.settings.second_moments, &best.matrix);
        let secants: Vec<Vec<Secant>> = sites.iter().map(|site| secants(site, best)).collect();
        let weighted: Vec<_> = sites
            .iter()
            .zip(&secants)
            .map(|(site, secants)| (site.weight, secants.as_slice()))
            .collect();
        let logistic = logistic_curvature(&anchor, &weighted);
        let mut bases = Vec::new();
        let mut hessians = Vec::new();
        for (site, secants) in sites.iter().zip(&secants) {
            let mut seen = site.observations.clone();
            let base = Curvature::new(&anchor, seen.make_contiguous(), site.weight, logistic)?;
            let apply = |matrix: &Array2<f64>| base.apply(&anchor, matrix);
            hessians.push(SecantHessian::new(secants, apply, best.matrix.len())?);
            bases.push(base);
        }
        let Some(base) = Curvature::sum(&bases) else {
            return Ok(());
        };
        let total_weight: f64 = sites.iter().map(|site| site.weight).sum();
        let damping = self.damping * total_weight;
        let curve = |matrix: &Array2<f64>| {
            let mut curved = base.apply(&anchor, matrix);
            hessians
                .iter()
                .for_each(|hessian| hessian.correct(matrix, &mut curved));
            curved
        };
        let mut gradient = Array2::zeros(best.matrix.raw_dim());
        sites
            .iter()
            .for_each(|site| gradient += &site.gradient_at_best);
        let damped = |matrix: &Array2<f64>| curve(matrix) + matrix * damping;
        let next = self.minimise_model(&best.matrix, &gradient, damped);
        let moved = &next - &best.matrix;
        let fall = -inner_product(&gradient.view(), &moved.view())
            - 0.5 * inner_product(&moved.view(), &curve(&moved).view())
            + self.sparsity_term(&best.matrix.view())
            - self.sparsity_term(&next.view());
        let largest = largest_curvature(best.matrix.raw_dim(), |m| base.apply(&anchor, m));
        let penalty = self.raise * largest / sites.len() as f64;
        let centres: Vec<Array2<f64>> = sites
            .iter()
            .zip(bases.iter().zip(&hessians))
            .map(|(site, (base, hessian))| {
                let mut dual = base.apply(&anchor, &moved);
                hessian.correct(&moved, &mut dual);
                &next + (dual + &site.gradient_at_best) / penalty
            })
            .collect();
        for (site, centre) in self.sites.iter_mut().flatten().zip(centres) {
            site.centre = centre;
        }
        self.predicted = fall;
        self.penalty = penalty;
        self.consensus = next;
        Ok(())
    }

    /// argmin of <gradient, W - best> + 1/2 <W - best, curve(W - best)> + lambda_1 ||W||_{2,1} by
    /// accelerated proximal gradients (Beck and Teboulle 2009), restarted where they turn back
    /// (O'Donoghue and Candes 2015).
    fn minimise_model(
        &self,
        best: &Array2<f64>,
        gradient: &Array2<f64>,
        curve: impl Fn(&Array2<f64>) -> Array2<f64>,
    ) -> Array2<f64> {
        let features = self.settings.second_moments.nrows();
        let step = (1.1 * largest_curvature(best.raw_dim(), &curve)).recip();
        let (mut current, mut ahead, mut momentum) = (best.clone(), best.clone(), 1.0_f64);
        for _ in 0..CONSENSUS_STEPS_MAX {
            let slope = curve(&(&ahead - best)) + gradient;
            let mut next = &ahead - &(slope * step);
            let threshold = step * self.settings.lambda_sparsity;
            shrink_rows(&mut next.slice_mut(s![..features, ..]), threshold);
            let moved = &next - &current;
            if inner_product(&(&ahead - &next).view(), &moved.view()) > 0.0 {
                momentum = 1.0;
            }
            let larger = 0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt());
            ahead = &next + &(&moved * ((momentum - 1.0) / larger));
            let settled = norm(&moved.view()) <= CONSENSUS_TOLERANCE * norm(&next.view());
            current = next;
            momentum = larger;
            if settled && momentum > 3.0 {
                break;
            }
        }
        current
    }

    /// Residuals at the consensus that was answered, before it moves.
    fn residuals(&self, contributions: &[Option<Contribution>], complete: bool) -> Residuals {
        let count = self.sites() as f64;
        let (mut primal, mut answers, mut duals) = (0.0, 0.0, 0.0);
        let mut gradient = Array2::zeros(self.consensus.raw_dim());
        for (site, contribution) in self.sites.iter().zip(contributions) {
            let (Some(_), Some(contribution)) = (site, contribution) else {
                continue;
            };
            let square = |matrix: &Array2<f64>| inner_product(&matrix.view(), &matrix.view());
            primal += square(&(&contribution.matrix - &self.consensus));
            answers += square(&contribution.matrix);
            duals += square(&contribution.gradient_at_consensus);
            gradient += &contribution.gradient_at_consensus;
        }
        let whole = count * self.penalty;
        let mut moved = &self.consensus - &(gradient / whole);
        let features = self.settings.second_moments.nrows();
        let threshold = self.settings.lambda_sparsity / whole;
        shrink_rows(&mut moved.slice_mut(s![..features, ..]), threshold);
        moved -= &self.consensus;
        let matrices = answers
            .sqrt()
            .max(count.sqrt() * norm(&self.consensus.view()));
        let AcceleratedSettings {
            tolerance_absolute,
            tolerance_relative,
            ..
        } = self.settings;
        let absolute = (count * self.consensus.len() as f64).sqrt() * tolerance_absolute;
        Residuals {
            primal: primal.sqrt(),
            dual: count.sqrt() * self.penalty * norm(&moved.view()),
            primal_tolerance: absolute + tolerance_relative * matrices,
            dual_tolerance: absolute + tolerance_relative * duals.sqrt(),
            complete,
        }
    }

    fn check_contributions(
        &self,
        contributions: &[Option<Contribution>],
    ) -> Result<(), ConsensusError> {
        let (found, wanted) = (contributions.len(), self.sites.len());
        if found != wanted {
            return Err(ConsensusError::Places { found, wanted });
        }
        for (site, (known, contribution)) in self.sites.iter().zip(contributions).enumerate() {
            let (Some(_), Some(contribution)) = (known, contribution) else {
                continue;
            };
            check_matrix(site, &contribution.matrix, self.consensus.dim())?;
            check_matrix(
                site,
                &contribution.gradient_at_consensus,
                self.consensus.dim(),
            )?;
            if !contribution.objective_at_consensus.is_finite() {
                return Err(ConsensusError::NotFinite { site });
            }
        }
        Ok(())
    }
}

/// Secants of a site from the best consensus, the farthest first.
fn secants(site: &Site, best: &Best) -> Vec<Secant> {
    let mut found: Vec<(f64, Secant)> = site
        .observations
        .iter()
        .map(|seen| {
            let step = &seen.point - &best.matrix;
            let change = &seen.gradient - &site.gradient_at_best;
            (norm(&step.view()), Secant { step, change })
        })
        .filter(|(length, _)| *length > 1e-11)
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.into_iter().map(|(_, secant)| secant).collect()
}

/// The largest eigenvalue of a positive definite map, from below, by power iteration.
fn largest_curvature(shape: ndarray::Ix2, curve: impl Fn(&Array2<f64>) -> Array2<f64>) -> f64 {
    // fractional parts of multiples of the golden ratio: spread evenly, and the same in every run
    let mut vector = Array2::from_shape_fn(shape, |(i, j)| {
        ((i * shape[1] + j + 1) as f64 * 0.618_033_988_749_895).fract() - 0.5
    });
    let mut largest = 0.0;
    for _ in 0..POWER_STEPS {
        vector /= norm(&vector.view());
        vector = curve(&vector);
        largest = norm(&vector.view());
    }
    largest
}

fn check(settings: &AcceleratedSettings, start: &Array2<f64>) -> Result<(), ConsensusError> {
    let positive = |value: f64| value.is_finite() && value > 0.0;
    let refuse = |setting, found, wanted| {
        Err(ConsensusError::Setting {
            setting,
            found,
            wanted,
        })
    };
    if settings.pair_weights.is_empty() {
        return Err(ConsensusError::NoSites);
    }
    if let Some(found) = settings
        .pair_weights
        .iter()
        .find(|weight| !positive(**weight))
    {
        return refuse("pair_weights", *found, "above 0");
    }
    if !positive(settings.penalty_start) {
        return refuse("penalty", settings.penalty_start, "above 0");
    }
    for (setting, found) in [
        ("lambda_sparsity", settings.lambda_sparsity),
        ("tolerance_absolute", settings.tolerance_absolute),
        ("tolerance_relative", settings.tolerance_relative),
    ] {
        if !(found.is_finite() && found >= 0.0) {
            return refuse(setting, found, "at least 0");
        }
    }
    let (wanted, columns) = settings.second_moments.dim();
    if start.nrows() < wanted || columns != wanted {
        let found = start.nrows().min(columns);
        return Err(ConsensusError::FeatureRows { found, wanted });
    }
    match settings
        .second_moments
        .iter()
        .find(|value| !value.is_finite())
    {
        Some(found) => refuse("second_moments", *found, "finite"),
        None => Ok(()),
    }
}
