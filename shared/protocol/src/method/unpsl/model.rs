//! What a run of UnPSL leaves to its operator.

use super::placing;
use crate::cohort::{CohortSpecification, Value};
use crate::exchange::{Course, count};
use crate::method::room::{MethodModel, Placing};
use crate::method::{Unplaced, placed};
use ndarray::Array2;
use similarity::learn::unpsl::Form;

/// A metric, and how it was learnt.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// One a closed round.
    pub rounds: Vec<RoundRow>,
    /// Objective at the final consensus.
    pub objective: Option<f64>,
    /// Candidates of the cross-validation; empty where nothing was chosen.
    pub selection: Vec<SelectionRow>,
    /// Folds of the validation; 0 where patients are judged in sample alone.
    pub folds: u32,
    /// Sites whose patients judge it.
    pub judges: u32,
    /// Whether the settings of each fold were chosen without its patients.
    pub nested: bool,
    /// One a row of the metric.
    pub features: Vec<FeatureResult>,
    /// Constant rows that standardisation dropped.
    pub dropped: Vec<String>,
    /// The consensus W, d x m; none where no round closed.
    pub metric: Option<Array2<f64>>,
    /// By how much one round of (4.21) to (4.23) moves the metric, beside its norm, where it was asked for.
    pub certificate: Option<f64>,
}

/// What a result says of a metric that is 0.
const EMPTY_METRIC: &str = "The metric is empty: no feature counts, so that all patients are equally near, and no nearest ones \
     were looked for. A smaller lambda_sparsity keeps more.";

/// What a result says of a metric that is empty or not, whose lambda_1 is the job's, or followed from the data down to this one.
#[must_use]
pub fn sparsity_in_words(is_empty: bool, relative: Option<f64>) -> Option<String> {
    match (is_empty, relative) {
        (true, None) => Some(EMPTY_METRIC.to_owned()),
        (true, Some(least)) => Some(format!(
            "The metric is empty: no feature helps, even at the smallest lambda_sparsity tried ({least:.3e}). All patients are \
             equally near, and no nearest ones were looked for."
        )),
        (false, Some(found)) => Some(format!(
            "The job states no lambda_sparsity: {found:.3e} followed from the data, a share of where no feature would stay."
        )),
        (false, None) => None,
    }
}

impl Model {
    /// Whether there is a metric, and all of it is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let metric = self.metric.as_ref();
        metric.is_some_and(|metric| metric.iter().all(|entry| *entry == 0.0))
    }

    /// How far its rounds came.
    #[must_use]
    pub fn course(&self) -> Course {
        let last = self.rounds.last();
        Course {
            round: count(self.rounds.len()),
            round_limit: 0,
            objective: self.objective,
            left: last.and_then(|row| row.left),
            primal_residual: last.and_then(|row| row.primal_residual),
            dual_residual: last.and_then(|row| row.dual_residual),
        }
    }
}

/// One row of rounds.csv.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundRow {
    /// Number of the round, from 1.
    pub round: u32,
    /// Objective of (4.19) at the round's consensus, where all sites judged it.
    pub objective: Option<f64>,
    /// What the accelerated consensus says was left, beside the objective.
    pub left: Option<f64>,
    /// How far a proximal gradient step of the pooled objective moves its best W, beside the norm of W.
    pub residual: Option<f64>,
    /// Of ADMM: sqrt(sum_p ||W_p - W||^2).
    pub primal_residual: Option<f64>,
    /// Of ADMM: penalty sqrt(P) ||W - W_previous||.
    pub dual_residual: Option<f64>,
    /// Of ADMM: the penalty that the round used.
    pub penalty: Option<f64>,
    /// Of ADMM: ||W|| of the consensus that the round came to.
    pub metric_norm: Option<f64>,
    /// Of ADMM: the norm of the mean of the sites' scaled duals U_p after the round.
    pub dual_norm: Option<f64>,
    /// Seconds since the run began, at the close of the round.
    pub seconds: f64,
}

impl RoundRow {
    /// A round of which nothing else is known yet.
    #[must_use]
    pub fn new(round: u32, seconds: f64) -> Self {
        Self {
            round,
            objective: None,
            left: None,
            residual: None,
            primal_residual: None,
            dual_residual: None,
            penalty: None,
            metric_norm: None,
            dual_norm: None,
            seconds,
        }
    }
}

/// One candidate of the cross-validation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SelectionRow {
    /// What of two patients the pair loss looked at.
    pub form: Form,
    /// lambda_1.
    pub lambda_sparsity: f64,
    /// Rank m.
    pub rank: u32,
    /// Neighbours.
    pub neighbours: u32,
    /// Held-out patients who were classified right, over the sites that released their counts.
    pub right: u64,
    /// Those who were classified wrong.
    pub wrong: u64,
    /// The mean over them of the log loss of their neighbours' smoothed shares: the lowest is chosen.
    pub log_loss: f64,
    /// Whether the run went on with it.
    pub chosen: bool,
}

impl SelectionRow {
    /// The share of held-out patients who were classified right.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
    pub fn accuracy(&self) -> f64 {
        self.right as f64 / (self.right + self.wrong).max(1) as f64
    }
}

/// One row of the metric W.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureResult {
    /// The row's name: the feature, feature=level, or feature=missing.
    pub name: String,
    /// Mean, or median where robust, that standardisation subtracted; of logarithms where they are taken.
    pub mean: f64,
    /// Standard deviation, or interquartile range as one where robust, that it divided by.
    pub scale: f64,
    /// Share of patients, over all sites, whose value is missing.
    pub missing_share: f64,
}

impl MethodModel for Model {
    fn course(&self) -> Course {
        Self::course(self)
    }

    fn judges(&self) -> Option<u32> {
        Some(self.judges)
    }

    fn is_learnt(&self, _: bool) -> bool {
        !self.rounds.is_empty()
    }

    /// Every number of it is one over all patients, or of a gate of its own.
    fn publish(&mut self, _: u64) {}

    fn placing(&self) -> Option<&dyn Placing> {
        Some(self)
    }
}

impl Placing for Model {
    fn coordinates(&self, _: &CohortSpecification) -> usize {
        self.metric.as_ref().map_or(0, |metric| metric.ncols())
    }

    fn place(
        &self,
        cohort: &CohortSpecification,
        patients: &[Vec<Value>],
    ) -> Result<Vec<Vec<f64>>, Unplaced> {
        placed(patients, |patient| placing::place(self, cohort, patient))
    }
}
