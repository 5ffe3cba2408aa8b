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

mod settings;

use ndarray::{Array2, ArrayView2, s};
pub use settings::{
    AcceleratedError, AcceleratedRound, AcceleratedSettings, Contribution, SecondMoments,
};

use super::curvature::{Anchor, Observation};
use super::model::{Model, ModelledSite};
use super::spread::Spread;
use super::{ConsensusError, Residuals, check_matrix};
use crate::numeric::linear_algebra::{LinearAlgebraError, inner_product, norm};
use crate::numeric::prox::{row_norm_sum, shrink_rows};

/// Observations kept of a site, two per round.
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
/// The penalty as a share of the largest curvature of all sites together over their number: small
/// enough that W_p moves along flat directions too, and shows how flat they are.
const PENALTY_SHARE: f64 = 0.2;

/// One site as the coordinator knows it.
#[derive(Debug, Clone)]
struct Site {
    weight: f64,
    /// W - U_p.
    centre: Array2<f64>,
    observations: Vec<Observation>,
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
    /// `None` while away.
    sites: Vec<Option<Site>>,
    /// What is kept of the sites that are away.
    away: Vec<Option<Site>>,
    best: Option<Best>,
    penalty: f64,
    /// Factor that the safeguard keeps on the penalty, at least 1.
    raise: f64,
    /// tau.
    damping: f64,
    /// How far the model says that the objective falls to the coming consensus.
    predicted: f64,
    /// S, released or estimated.
    second_moments: Array2<f64>,
    /// How S is estimated, where it is.
    spread: Option<Spread>,
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
                observations: Vec::new(),
                gradient_at_best: Array2::zeros(start.raw_dim()),
            })
        };
        Ok(Self {
            sites: settings.pair_weights.iter().map(site).collect(),
            away: vec![None; settings.pair_weights.len()],
            consensus: start,
            best: None,
            penalty: settings.penalty_start,
            raise: 1.0,
            damping: DAMPING_START,
            predicted: 0.0,
            spread: settings.second_moments.spread(),
            second_moments: settings.second_moments.at_the_start(),
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

    /// Sites that are not away.
    #[must_use]
    pub fn sites(&self) -> usize {
        self.sites.iter().flatten().count()
    }

    /// The centre W - U_p that site `site` is to stay near, or `None` where it is away.
    #[must_use]
    pub fn centre(&self, site: usize) -> Option<&Array2<f64>> {
        Some(&self.sites.get(site)?.as_ref()?.centre)
    }

    /// lambda_1 ||W||_{2,1} at `matrix`: the coordinator's own term of the objective (4.19).
    #[must_use]
    pub fn sparsity_term(&self, matrix: &ArrayView2<f64>) -> f64 {
        let features = matrix.slice(s![..self.settings.second_moments.features(), ..]);
        self.settings.lambda_sparsity * row_norm_sum(&features)
    }

    /// True where the site takes part.
    #[must_use]
    pub fn takes_part(&self, site: usize) -> bool {
        self.sites.get(site).is_some_and(Option::is_some)
    }

    /// Takes a site out until it comes back. The objective is another one without it, so the best
    /// is forgotten.
    pub fn suspend_site(&mut self, site: usize) {
        if self.takes_part(site) {
            self.away[site] = self.sites[site].take();
            self.best = None;
        }
    }

    /// Takes a site in again, with what was known of it.
    pub fn resume_site(&mut self, site: usize) {
        if let Some(known) = self.away.get_mut(site).and_then(Option::take) {
            self.sites[site] = Some(known);
            self.best = None;
        }
    }

    /// Absorbs one round: `contributions[p]`, or `None` where site p did not answer.
    ///
    /// A round that a site missed has no objective and never counts as converged; what the others
    /// contributed sharpens their curvature. Places of sites that are away are not read.
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
            site.observations.push(consensus);
            site.observations.push(Observation { point, gradient });
            let outdated = site.observations.len().saturating_sub(OBSERVATIONS_MAX);
            site.observations.drain(..outdated);
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
        if sites.is_empty() {
            return Ok(());
        }
        if let Some(spread) = &mut self.spread {
            let told: Vec<_> = sites
                .iter()
                .map(|site| (site.weight, site.observations.as_slice()))
                .collect();
            spread.fit(&best.matrix, &told)?;
            self.second_moments = spread.second_moments();
        }
        let known: Vec<ModelledSite<'_>> = sites
            .iter()
            .map(|site| ModelledSite {
                weight: site.weight,
                gradient: &site.gradient_at_best,
                observations: &site.observations,
            })
            .collect();
        let anchor = Anchor::new(&self.second_moments, &best.matrix);
        let logistic = self.spread.as_ref().map(Spread::logistic);
        let model = Model::new(anchor, &best.matrix, &known, logistic)?;
        let next = model.minimise(self.damping, self.settings.lambda_sparsity);
        let moved = &next - &best.matrix;
        self.predicted = model.fall(&moved) + self.sparsity_term(&best.matrix.view())
            - self.sparsity_term(&next.view());
        self.penalty = PENALTY_SHARE * self.raise * model.largest_base_curvature();
        let centres: Vec<Array2<f64>> = (0..known.len())
            .map(|site| &next + model.gradient(site, &moved) / self.penalty)
            .collect();
        for (site, centre) in self.sites.iter_mut().flatten().zip(centres) {
            site.centre = centre;
        }
        self.consensus = next;
        Ok(())
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
        let features = self.settings.second_moments.features();
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
    let wanted = settings.second_moments.features();
    let columns = match &settings.second_moments {
        SecondMoments::Released(matrix) => matrix.ncols(),
        SecondMoments::Estimated { .. } => wanted,
    };
    if start.nrows() < wanted || columns != wanted {
        let found = start.nrows().min(columns);
        return Err(ConsensusError::FeatureRows { found, wanted });
    }
    if let SecondMoments::Released(matrix) = &settings.second_moments
        && let Some(found) = matrix.iter().find(|value| !value.is_finite())
    {
        return refuse("second_moments", *found, "finite");
    }
    Ok(())
}
