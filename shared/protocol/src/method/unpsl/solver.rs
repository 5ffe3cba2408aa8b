//! Which consensus a run goes by: plain consensus ADMM, or the accelerated one.

use super::message::Contribution;
use super::settings::{ConsensusMethod, UnpslSettings};
use crate::failure::{Code, Failure};
use crate::message::{SecondMoments, Summary};
use ndarray::{Array2, ArrayView2};
use similarity::learn::unpsl::{Loss, SiteWeights, Totals};
use similarity::numeric::admm::{
    self, AcceleratedConsensus, AcceleratedSettings, Consensus, ConsensusSettings, PenaltySettings,
    Residuals,
};

/// Rounds in which the penalty of plain ADMM follows the residuals.
const ADAPTIVE_ROUNDS: u32 = 8;
/// The accelerated consensus decomposes d x d matrices; wider data goes by plain ADMM.
const ACCELERATED_ROWS_MAX: usize = 1_000;

#[derive(Debug, Clone)]
pub(super) enum Solver {
    Plain(Box<Consensus>),
    Accelerated(Box<AcceleratedConsensus>),
}

/// What came of a round.
pub(super) struct RoundOutcome {
    pub(super) residuals: Residuals,
    /// The safeguard acted because the objective rose.
    pub(super) safeguarded: bool,
}

impl Solver {
    /// Starts all sites at `start`, d x m; `summaries` has one place per site.
    pub(super) fn start(
        settings: &UnpslSettings,
        start: Array2<f64>,
        summaries: &[Option<Summary>],
        second_moments: Option<&SecondMoments>,
    ) -> Result<Self, Failure> {
        let features = settings.objective.features(&start);
        let fault = |error: String| Failure::new(Code::Unpsl, error);
        let known: Vec<Summary> = summaries.iter().flatten().copied().collect();
        let totals = Totals::of(&known);
        let penalty_start = settings.penalty.unwrap_or_else(|| {
            settings
                .objective
                .penalty_start(totals.sites, totals.pairs.total())
        });
        if settings.consensus == ConsensusMethod::Accelerated && features <= ACCELERATED_ROWS_MAX {
            let accelerated = AcceleratedSettings {
                lambda_sparsity: settings.objective.lambda_sparsity,
                penalty_start,
                second_moments: correlations(features, second_moments),
                pair_weights: pair_weights(settings, summaries, &totals),
                tolerance_absolute: settings.tolerance_absolute,
                tolerance_relative: settings.tolerance_relative,
            };
            let consensus = AcceleratedConsensus::new(start, accelerated)
                .map_err(|error| fault(error.to_string()))?;
            return Ok(Self::Accelerated(Box::new(consensus)));
        }
        let plain = ConsensusSettings {
            lambda_sparsity: settings.objective.lambda_sparsity,
            feature_rows: features,
            relaxation: settings.relaxation,
            penalty: PenaltySettings {
                start: penalty_start,
                adaptive_rounds: ADAPTIVE_ROUNDS,
            },
            tolerance_absolute: settings.tolerance_absolute,
            tolerance_relative: settings.tolerance_relative,
        };
        let consensus = Consensus::new(start, summaries.len(), plain)
            .map_err(|error| fault(error.to_string()))?;
        Ok(Self::Plain(Box::new(consensus)))
    }

    /// The step that the run goes by.
    pub(super) fn step(&self) -> &dyn ConsensusStep {
        match self {
            Self::Plain(consensus) => consensus.as_ref(),
            Self::Accelerated(consensus) => consensus.as_ref(),
        }
    }

    /// The same, to move on.
    pub(super) fn step_mut(&mut self) -> &mut dyn ConsensusStep {
        match self {
            Self::Plain(consensus) => consensus.as_mut(),
            Self::Accelerated(consensus) => consensus.as_mut(),
        }
    }

    /// W - U_p; the consensus itself for a site that is away.
    pub(super) fn centre(&self, site: usize) -> Array2<f64> {
        let step = self.step();
        step.centre_of(site)
            .unwrap_or_else(|| step.consensus().clone())
    }
}

/// The coordinator's step of a round: (4.22) and (4.23), or what stands in their place.
pub(super) trait ConsensusStep {
    /// The consensus to broadcast.
    fn consensus(&self) -> &Array2<f64>;
    /// The consensus that the run gives, were it to end now.
    fn metric(&self) -> &Array2<f64>;
    /// W - U_p of a site that takes part.
    fn centre_of(&self, site: usize) -> Option<Array2<f64>>;
    /// The penalty rho of the next round.
    fn penalty(&self) -> f64;
    /// Whether sites are to tell their gradient at the consensus.
    fn wants_gradient(&self) -> bool;
    /// lambda_1 ||W||_{2,1}.
    fn sparsity_term(&self, matrix: &ArrayView2<f64>) -> f64;
    /// Whether a site counts in the consensus.
    fn takes_part(&self, site: usize) -> bool;
    /// A site is away: the consensus goes on without it.
    fn suspend_site(&mut self, site: usize);
    /// It is back.
    fn resume_site(&mut self, site: usize);
    /// Absorbs one round; `objective` is (4.19) at the consensus that was broadcast, where every
    /// site has judged it.
    fn absorb(
        &mut self,
        contributions: Vec<Option<Contribution>>,
        objective: Option<f64>,
    ) -> Result<RoundOutcome, Failure>;
}

impl ConsensusStep for Consensus {
    fn consensus(&self) -> &Array2<f64> {
        self.consensus()
    }

    fn metric(&self) -> &Array2<f64> {
        self.consensus()
    }

    fn centre_of(&self, site: usize) -> Option<Array2<f64>> {
        self.centre(site)
    }

    fn penalty(&self) -> f64 {
        self.penalty()
    }

    fn wants_gradient(&self) -> bool {
        false
    }

    fn sparsity_term(&self, matrix: &ArrayView2<f64>) -> f64 {
        self.sparsity_term(matrix)
    }

    fn takes_part(&self, site: usize) -> bool {
        self.takes_part(site)
    }

    fn suspend_site(&mut self, site: usize) {
        self.suspend_site(site);
    }

    fn resume_site(&mut self, site: usize) {
        self.resume_site(site);
    }

    fn absorb(
        &mut self,
        contributions: Vec<Option<Contribution>>,
        objective: Option<f64>,
    ) -> Result<RoundOutcome, Failure> {
        let matrices: Vec<_> = contributions
            .into_iter()
            .map(|own| own.map(|own| own.matrix))
            .collect();
        let residuals = self.absorb(&matrices).map_err(unusable)?;
        // Only now: the contributions belong to the penalty that they were solved with.
        let safeguarded = objective.is_some_and(|objective| self.observe_objective(objective));
        Ok(RoundOutcome {
            residuals,
            safeguarded,
        })
    }
}

impl ConsensusStep for AcceleratedConsensus {
    fn consensus(&self) -> &Array2<f64> {
        self.consensus()
    }

    fn metric(&self) -> &Array2<f64> {
        self.best()
    }

    fn centre_of(&self, site: usize) -> Option<Array2<f64>> {
        self.centre(site).cloned()
    }

    fn penalty(&self) -> f64 {
        self.penalty()
    }

    fn wants_gradient(&self) -> bool {
        true
    }

    fn sparsity_term(&self, matrix: &ArrayView2<f64>) -> f64 {
        self.sparsity_term(matrix)
    }

    fn takes_part(&self, site: usize) -> bool {
        self.takes_part(site)
    }

    fn suspend_site(&mut self, site: usize) {
        self.suspend_site(site);
    }

    fn resume_site(&mut self, site: usize) {
        self.resume_site(site);
    }

    fn absorb(
        &mut self,
        contributions: Vec<Option<Contribution>>,
        _: Option<f64>,
    ) -> Result<RoundOutcome, Failure> {
        let mut told = Vec::with_capacity(contributions.len());
        for contribution in contributions {
            told.push(contribution.map(with_gradient).transpose()?);
        }
        let round = self.absorb(&told).map_err(unusable)?;
        Ok(RoundOutcome {
            residuals: round.residuals,
            safeguarded: round.safeguarded,
        })
    }
}

fn unusable(error: impl std::error::Error) -> Failure {
    Failure::new(Code::Contribution, error.to_string())
}

fn with_gradient(contribution: Contribution) -> Result<admm::Contribution, Failure> {
    let Contribution {
        matrix,
        objective,
        gradient,
        ..
    } = contribution;
    match gradient {
        Some(gradient_at_consensus) => Ok(admm::Contribution {
            matrix,
            gradient_at_consensus,
            objective_at_consensus: objective,
        }),
        None => {
            let text = "a contribution came without the gradient that the round asked for";
            Err(Failure::new(Code::Protocol, text))
        }
    }
}

/// The pooled correlations, where the job has them released anyway; else the consensus estimates them
/// from the gradients of the rounds, which costs a few rounds and asks nothing more of the sites.
fn correlations(features: usize, second_moments: Option<&SecondMoments>) -> admm::SecondMoments {
    match second_moments {
        #[allow(clippy::cast_precision_loss)] // patients are far below 2^52
        Some(pooled) => {
            admm::SecondMoments::Released(&pooled.products / pooled.patients.max(1) as f64)
        }
        None => admm::SecondMoments::Estimated { features },
    }
}

/// How much each site weighs in the objective. A site without a summary takes no part; its weight
/// only has to be positive.
#[allow(clippy::cast_precision_loss)] // patients and pairs are far below 2^52
fn pair_weights(
    settings: &UnpslSettings,
    summaries: &[Option<Summary>],
    totals: &Totals,
) -> Vec<f64> {
    let weight = |summary: &Summary| {
        let pairs = summary.pairs.total().max(1) as f64;
        match (settings.objective.loss, settings.objective.site_weights) {
            (Loss::Sum, _) => pairs,
            (Loss::Mean, SiteWeights::Pairs) => pairs / totals.pairs.total().max(1) as f64,
            (Loss::Mean, SiteWeights::Patients) => {
                summary.patients.max(1) as f64 / totals.patients.max(1) as f64
            }
            (Loss::Mean, SiteWeights::Equal) => 1.0 / totals.sites.max(1) as f64,
        }
    };
    summaries
        .iter()
        .map(|summary| summary.as_ref().map_or(1.0, weight))
        .collect()
}
