//! What coordinator and site say to each other in a run of UnPSL.

use crate::assessment::ASSESSMENT;
use ndarray::Array2;
use privacy::{Content, RightCounts};
use std::sync::Arc;

/// The kind of message that carries a local update.
const CONTRIBUTION: &str = "contribution";
/// The kind of message that carries counts of held-out patients.
const VALIDATION: &str = "validation";

/// What the coordinator asks of a site.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// One local update (4.21).
    Round(Round),
    /// Classify the patients of each fold by their nearest among the other folds' patients.
    Validate(Validating),
    /// The run's model: evaluate it, write local results.
    Finish(Finishing),
}

/// One local update (4.21): argmin f_p(V) + penalty/2 ||V - centre||^2, started at `consensus`.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// The consensus W, d x m.
    pub consensus: Arc<Array2<f64>>,
    /// W - U_p, d x m.
    pub centre: Array2<f64>,
    /// The ADMM penalty rho.
    pub penalty: f64,
    /// Relative gradient tolerance of the local solver.
    pub tolerance: f64,
    /// Whether the contribution is to carry the gradient at the consensus.
    pub gradient: bool,
    /// The fold of the cross-validation that is left out, from 0; none where all patients take part.
    pub fold: Option<u32>,
}

/// One candidate of a cross-validation, to be judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Validating {
    /// W of the candidate, d x m, one a fold that was left out when it was fitted.
    pub models: Arc<Vec<Array2<f64>>>,
    /// Numbers of neighbours.
    pub neighbours: Vec<u32>,
}

/// The run's model.
#[derive(Debug, Clone, PartialEq)]
pub struct Finishing {
    /// The consensus W, d x m.
    pub consensus: Arc<Array2<f64>>,
    /// Neighbours of the k-NN evaluation.
    pub neighbours: u32,
}

/// What a site answers.
#[derive(Clone, PartialEq)]
pub enum Answer {
    /// A local update.
    Contribution(Contribution),
    /// Held-out patients over all folds, one pair of counts per number of neighbours; none where withheld.
    Validated(Vec<Option<RightCounts>>),
}

/// What a site contributes in a round.
#[derive(Clone, PartialEq)]
pub struct Contribution {
    /// W_p, d x m.
    pub matrix: Array2<f64>,
    /// f_p at the consensus that was broadcast: the site's term of (4.19) without the row sparsity.
    pub objective: f64,
    /// Iterations of the local solver.
    pub iterations: u32,
    /// The gradient of f_p at the consensus, d x m, where the round asked for it.
    pub gradient: Option<Array2<f64>>,
}

impl Request {
    /// The kind of message that answers it.
    pub(crate) fn answer_kind(&self) -> &'static str {
        match self {
            Self::Round(_) => CONTRIBUTION,
            Self::Validate(_) => VALIDATION,
            Self::Finish(_) => ASSESSMENT,
        }
    }

    /// Whether its answer is a round of the budget of a cohort.
    pub(crate) fn is_round(&self) -> bool {
        match self {
            Self::Round(_) | Self::Validate(_) => true,
            Self::Finish(_) => false,
        }
    }

    /// Whether the job may ask several of its kind.
    pub(crate) fn repeats(&self) -> bool {
        match self {
            Self::Round(_) | Self::Validate(_) => true,
            Self::Finish(_) => false,
        }
    }

    /// The metrics under which the question has the patients compared. A round's centre is none of them: it is where the
    /// local update is drawn to, and honest ones are far out; where the update comes to is judged before it leaves.
    #[must_use]
    pub fn metrics(&self) -> Vec<&Array2<f64>> {
        match self {
            Self::Round(round) => vec![&round.consensus],
            Self::Validate(validating) => validating.models.iter().collect(),
            Self::Finish(finishing) => vec![&finishing.consensus],
        }
    }
}

impl Answer {
    /// The metric that the answer was found at; it tells the gradient there.
    #[must_use]
    pub fn metric(&self) -> Option<&Array2<f64>> {
        match self {
            Self::Contribution(contribution) => Some(&contribution.matrix),
            Self::Validated(_) => None,
        }
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Contribution(_) => CONTRIBUTION,
            Self::Validated(_) => VALIDATION,
        }
    }

    pub(crate) fn shape(&self) -> String {
        match self {
            Self::Contribution(Contribution {
                matrix, gradient, ..
            }) => {
                let times = if gradient.is_some() { "2 x " } else { "" };
                format!("{times}{} x {}", matrix.nrows(), matrix.ncols())
            }
            Self::Validated(counts) => format!("{} tables of 1 x 2", counts.len()),
        }
    }

    pub(crate) fn content(&mut self) -> Vec<Content<'_>> {
        match self {
            Self::Contribution(_) => vec![Content::LocalUpdate],
            Self::Validated(counts) => vec![Content::HeldOut(counts.iter_mut().collect())],
        }
    }
}
