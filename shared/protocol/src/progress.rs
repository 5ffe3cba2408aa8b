//! What an operator sees of a run, while it goes and when it has ended.

use crate::message::{EvaluationCounts, FeatureImportance, RuleErrors, Trees};
use crate::name::RunId;
use ndarray::Array2;
use std::sync::Arc;

/// Where a run stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The run.
    pub run: RunId,
    /// What is going on, in the glossary's words.
    pub phase: String,
    /// The last closed round, 0 before the first.
    pub round: u32,
    /// Rounds at most.
    pub round_limit: u32,
    /// Objective of the last consensus that all sites have judged.
    pub objective: Option<f64>,
    /// Primal residual of the last round.
    pub primal_residual: Option<f64>,
    /// Dual residual of the last round.
    pub dual_residual: Option<f64>,
    /// Sites connected now.
    pub sites_connected: u32,
    /// Sites of the job.
    pub sites: u32,
    /// The names of the sites that are waited for.
    pub waiting_for: Vec<String>,
    /// Seconds until the present wait ends by its deadline.
    pub deadline_seconds: f64,
    /// Set once the run has ended.
    pub ending: Option<Ending>,
}

/// How a run ended. Stopping is a status; failing is an error with a reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// Both residuals fell below their tolerances.
    Converged,
    /// All that the job asks for is done, by a method that has no rounds to converge in.
    Completed,
    /// The round limit was reached first.
    RoundLimit,
    /// An operator cancelled.
    Cancelled,
    /// It could not go on.
    Failed {
        /// `KDR-` and a word.
        code: String,
        /// What happened, where, and what to do.
        text: String,
    },
}

impl Ending {
    /// The word of result.json.
    #[must_use]
    pub fn status(&self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::Completed => "completed",
            Self::RoundLimit => "round_limit",
            Self::Cancelled => "cancelled",
            Self::Failed { .. } => "failed",
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
    /// sqrt(sum_p ||W_p - W||^2).
    pub primal_residual: f64,
    /// penalty sqrt(P) ||W - W_previous||.
    pub dual_residual: f64,
    /// The penalty that the round used.
    pub penalty: f64,
    /// Seconds since the run began, at the close of the round.
    pub seconds: f64,
    /// Sites that answered.
    pub sites_answered: u32,
}

/// One candidate of the cross-validation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SelectionRow {
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
    /// Whether the run went on with it.
    pub chosen: bool,
}

/// One site in the result.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteResult {
    /// Its name.
    pub name: String,
    /// Patients of its cohort, 0 where it never said.
    pub patients: u64,
    /// Pairs it used.
    pub pairs: u64,
    /// Bytes that the site sent, as encoded frames.
    pub bytes_sent: u64,
    /// Bytes that the site received, as encoded frames.
    pub bytes_received: u64,
    /// Rounds that closed without it.
    pub rounds_missed: u32,
    /// Its evaluation counts.
    pub evaluation: Vec<EvaluationCounts>,
    /// Features with missing values here, by its released counts; at most
    /// [`MISSING_SHARES_MAX`](crate::limits::MISSING_SHARES_MAX), those that miss most.
    pub missing: Vec<MissingShare>,
    /// Errors of a forest and of its neighbours.
    pub errors: Vec<RuleErrors>,
    /// Permutation importance of the job's features in their order; none where not computed.
    pub importance: Vec<FeatureImportance>,
    /// Trees of the common forest that the site grew.
    pub trees: u32,
}

/// A forest of the trees of several sites.
#[derive(Debug, Clone, PartialEq)]
pub struct CommonForest {
    /// The trees.
    pub trees: Arc<Trees>,
    /// The common event times; none unless the outcome is a survival time.
    pub event_times: Vec<f64>,
    /// The weight of each class; none without classes.
    pub class_weights: Vec<f64>,
}

/// How much of a feature a site misses.
#[derive(Debug, Clone, PartialEq)]
pub struct MissingShare {
    /// The feature.
    pub feature: String,
    /// Missing values over patients, above 0, at most 1.
    pub share: f64,
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

/// All that a run leaves to its operator.
#[derive(Debug, Clone, PartialEq)]
pub struct RunResult {
    /// The run.
    pub run: RunId,
    /// The job as it was written.
    pub job: String,
    /// Its seed.
    pub seed: u64,
    /// Version of the coordinator.
    pub version: String,
    /// How it ended.
    pub ending: Ending,
    /// One a closed round.
    pub rounds: Vec<RoundRow>,
    /// Objective at the final consensus.
    pub objective: Option<f64>,
    /// Seconds from begin to end.
    pub seconds: f64,
    /// One a site of the job.
    pub sites: Vec<SiteResult>,
    /// Candidates of the cross-validation; empty where nothing was chosen.
    pub selection: Vec<SelectionRow>,
    /// One a row of the metric.
    pub features: Vec<FeatureResult>,
    /// Constant rows that standardisation dropped.
    pub dropped: Vec<String>,
    /// The consensus W, d x m; none where no round closed.
    pub metric: Option<Array2<f64>>,
    /// The common forest; none where no method or scope gives one.
    pub forest: Option<CommonForest>,
    /// Sentences that the report must say: stragglers, safeguards, lowered rules.
    pub notes: Vec<String>,
}

impl RunResult {
    /// Whether the run leaves anything: a round closed, or a forest was judged.
    #[must_use]
    pub fn has_model(&self) -> bool {
        let judged = self.sites.iter().any(|site| !site.errors.is_empty());
        !self.rounds.is_empty() || self.forest.is_some() || judged
    }
}
