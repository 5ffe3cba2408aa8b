//! Which consensus a run goes by: plain consensus ADMM, or the accelerated one.

use super::failure;
use crate::job::{ConsensusMethod, UnpslSettings};
use crate::message::{Contribution, Failure, SecondMoments, Summary};
use ndarray::{Array2, ArrayView2};
use similarity::admm::{
    self, AcceleratedConsensus, AcceleratedSettings, Consensus, ConsensusSettings, PenaltySettings,
    Residuals,
};
use similarity::unpsl::{Loss, SiteWeights, Totals};

/// Rounds in which the penalty of plain ADMM follows the residuals.
const ADAPTIVE_ROUNDS: u32 = 8;
/// The accelerated consensus decomposes d x d matrices; wider data goes by plain ADMM.
const ACCELERATED_ROWS_MAX: usize = 1_000;

#[derive(Debug, Clone)]
pub(super) enum Solver {
    Plain(Box<Consensus>),
    Accelerated(Box<AcceleratedConsensus>),
}

/// What a round showed.
pub(super) struct Shown {
    pub(super) residuals: Residuals,
    /// The safeguard acted because the objective rose.
    pub(super) safeguarded: bool,
}

impl Solver {
    /// Starts all sites at `start`, d x m; `summaries` has one place a site.
    pub(super) fn start(
        settings: &UnpslSettings,
        start: Array2<f64>,
        summaries: &[Option<Summary>],
        second_moments: Option<&SecondMoments>,
    ) -> Result<Self, Failure> {
        let features = settings.objective.features(&start);
        let fault = |error: String| failure("KDR-UNPSL", error);
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

    /// The consensus to broadcast.
    pub(super) fn consensus(&self) -> &Array2<f64> {
        match self {
            Self::Plain(consensus) => consensus.consensus(),
            Self::Accelerated(consensus) => consensus.consensus(),
        }
    }

    /// The consensus that the run gives, were it to end now.
    pub(super) fn metric(&self) -> &Array2<f64> {
        match self {
            Self::Plain(consensus) => consensus.consensus(),
            Self::Accelerated(consensus) => consensus.best(),
        }
    }

    /// W - U_p; the consensus itself for a site that is away.
    pub(super) fn centre(&self, site: usize) -> Array2<f64> {
        let centre = match self {
            Self::Plain(consensus) => consensus.centre(site),
            Self::Accelerated(consensus) => consensus.centre(site).cloned(),
        };
        centre.unwrap_or_else(|| self.consensus().clone())
    }

    pub(super) fn penalty(&self) -> f64 {
        match self {
            Self::Plain(consensus) => consensus.penalty(),
            Self::Accelerated(consensus) => consensus.penalty(),
        }
    }

    /// Whether sites are to tell their gradient at the consensus.
    pub(super) fn wants_gradient(&self) -> bool {
        matches!(self, Self::Accelerated(_))
    }

    /// lambda_1 ||W||_{2,1}.
    pub(super) fn sparsity_term(&self, matrix: &ArrayView2<f64>) -> f64 {
        match self {
            Self::Plain(consensus) => consensus.sparsity_term(matrix),
            Self::Accelerated(consensus) => consensus.sparsity_term(matrix),
        }
    }

    pub(super) fn takes_part(&self, site: usize) -> bool {
        match self {
            Self::Plain(consensus) => consensus.takes_part(site),
            Self::Accelerated(consensus) => consensus.takes_part(site),
        }
    }

    pub(super) fn suspend_site(&mut self, site: usize) {
        match self {
            Self::Plain(consensus) => consensus.suspend_site(site),
            Self::Accelerated(consensus) => consensus.suspend_site(site),
        }
    }

    pub(super) fn resume_site(&mut self, site: usize) {
        match self {
            Self::Plain(consensus) => consensus.resume_site(site),
            Self::Accelerated(consensus) => consensus.resume_site(site),
        }
    }

    /// Absorbs one round; `objective` is (4.19) at the consensus that was broadcast, where every
    /// site has judged it.
    pub(super) fn absorb(
        &mut self,
        contributions: Vec<Option<Contribution>>,
        objective: Option<f64>,
    ) -> Result<Shown, Failure> {
        let fault = |error: String| failure("KDR-CONTRIBUTION", error);
        match self {
            Self::Plain(consensus) => {
                let matrices: Vec<_> = contributions
                    .into_iter()
                    .map(|own| own.map(|own| own.matrix))
                    .collect();
                let residuals = consensus
                    .absorb(&matrices)
                    .map_err(|error| fault(error.to_string()))?;
                // Only now: the contributions belong to the penalty that they were solved with.
                let safeguarded =
                    objective.is_some_and(|objective| consensus.observe_objective(objective));
                Ok(Shown {
                    residuals,
                    safeguarded,
                })
            }
            Self::Accelerated(consensus) => {
                let mut told = Vec::with_capacity(contributions.len());
                for contribution in contributions {
                    told.push(contribution.map(with_gradient).transpose()?);
                }
                let round = consensus
                    .absorb(&told)
                    .map_err(|error| fault(error.to_string()))?;
                Ok(Shown {
                    residuals: round.residuals,
                    safeguarded: round.safeguarded,
                })
            }
        }
    }
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
            Err(failure("KDR-PROTOCOL", text.to_owned()))
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
