//! What coordinator and site say to each other.
//!
//! A run is a sequence of numbered *exchanges*: the coordinator asks every site of the roster, and
//! each answers once. An exchange is computed once by a site; asked again, the site repeats its
//! stored answer. A patient row has no type here.

mod forest;

use crate::name::RunId;
pub use forest::{
    ErrorMeasure, ErrorSums, FeatureImportance, Growing, Judged, Judging, NodeKind, NodeRule,
    NodeTable, RuleErrors, Side, TerminalTable, TreeTable, Trees,
};
use ndarray::Array2;
pub use privacy::RightCounts;
use privacy::{Column, Content, Disclosure, Notice};
pub use similarity::moments::ColumnMoments;
pub use similarity::quantile::Quartiles;
pub use similarity::unpsl::{PairCounts, SecondMoments, Summary, Totals};

/// From coordinator to site.
#[derive(Debug, Clone, PartialEq)]
pub enum ToSite {
    /// A run begins, or the site came back to it. Saying it twice changes nothing.
    Begin(Begin),
    /// One exchange.
    Ask {
        /// The run.
        run: RunId,
        /// Number of the exchange in the run, from 1.
        exchange: u32,
        /// What is asked.
        request: Request,
    },
    /// The run is over; the site may let go of it.
    End {
        /// The run.
        run: RunId,
        /// One sentence: how it ended.
        ending: String,
    },
}

/// What a run is, as every party hears it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begin {
    /// The run.
    pub run: RunId,
    /// The job as its author wrote it: every party parses the same text.
    pub job: String,
    /// Seed of every named random stream of the run.
    pub seed: u64,
    /// The word of the operator who submitted the job.
    pub warrant: Warrant,
}

/// An operator's signed word for a job, which the coordinator passes on and cannot make. Empty where nobody
/// signed, as where everything is in one process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Warrant {
    /// Chosen by the operator; the run's identity follows from their name and it.
    pub token: String,
    /// The operator's certificate, and those between it and the authority, DER.
    pub chain: Vec<Vec<u8>>,
    /// How the signature was made, as TLS numbers it.
    pub scheme: u16,
    /// The signature over the job's text, its seed and the token.
    pub signature: Vec<u8>,
}

/// From site to coordinator. `A` is `Released<Answer>` at the site and [`Answer`] at the
/// coordinator.
#[derive(Debug, Clone, PartialEq)]
pub enum ToCoordinator<A> {
    /// First on every stream.
    Hello {
        /// Version of the agent.
        version: String,
    },
    /// The answer to one exchange.
    Reply {
        /// The run.
        run: RunId,
        /// The exchange that is answered.
        exchange: u32,
        /// Where the site's journal ends with the answer; none where a site keeps none.
        journal: Option<JournalHead>,
        /// The answer.
        answer: A,
    },
}

/// Where a site's journal ends. The coordinator remembers it, so that a journal that was cut or written anew shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalHead {
    /// Its entries.
    pub entries: u64,
    /// The hash of the last one, 64 hexadecimal digits.
    pub hash: String,
}

/// What the coordinator asks of a site.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Read the cohort, check it against the job and the policy, say whether it fits.
    Describe,
    /// Pooled moments: the site's own, before standardisation.
    Moments,
    /// Histograms of the job's gridded columns, for pooled quartiles or cut points.
    Quantiles,
    /// Standardise with the pooled moments and make ready for rounds.
    Prepare {
        /// Pooled moments of every feature, in the job's order.
        moments: Vec<ColumnMoments>,
        /// Pooled quartiles of every gridded column, in the job's order.
        quartiles: Vec<Quartiles>,
        /// Sums over all sites, that weights are taken from.
        totals: Totals,
    },
    /// The pooled second moments, where correlation is pooled.
    Correlate {
        /// The sum over all sites.
        second_moments: SecondMoments,
    },
    /// One local update (4.21).
    Round(Round),
    /// Classify the patients of each fold by their nearest among the other folds' patients.
    Validate {
        /// Number of the round, from 1; a site does not go by it, and counts it as one.
        number: u32,
        /// W of one candidate, d x m, one a fold that was left out when it was fitted.
        models: Vec<Array2<f64>>,
        /// Numbers of neighbours.
        neighbours: Vec<u32>,
    },
    /// The run's model: evaluate it, write local results.
    Finish {
        /// The consensus W, d x m.
        consensus: Array2<f64>,
        /// Neighbours of the k-NN evaluation.
        neighbours: u32,
    },
    /// Grow a forest of the site's own, keep it, judge it, write local results.
    GrowOwn,
    /// Grow the site's share of the common forest.
    Grow(Growing),
    /// Judge the common forest, write local results.
    Judge(Judging),
}

impl Request {
    /// The kind of message that answers it.
    #[must_use]
    pub fn answer_kind(&self) -> &'static str {
        match self {
            Self::Describe => "description",
            Self::Moments => "moments",
            Self::Quantiles => "quantiles",
            Self::Prepare { .. } => "prepared",
            Self::Correlate { .. } => "correlated",
            Self::Round(_) => "contribution",
            Self::Validate { .. } => "validation",
            Self::Finish { .. } => "finished",
            Self::GrowOwn | Self::Judge(_) => "judgement",
            Self::Grow(_) => "trees",
        }
    }
}

/// One local update (4.21): argmin f_p(V) + penalty/2 ||V - centre||^2, started at `consensus`.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// Number of the round, from 1; a site does not go by it.
    pub number: u32,
    /// The consensus W, d x m.
    pub consensus: Array2<f64>,
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

/// What a site answers.
#[derive(Clone, PartialEq)]
pub enum Answer {
    /// The cohort fits the job.
    Described(Description),
    /// The cohort does not fit; every problem, none with a patient's value.
    Unfit(Vec<Problem>),
    /// The site's policy refuses the job.
    Refused(Refusal),
    /// Something broke at the site.
    Failed(Failure),
    /// The site's moments, in the job's order.
    Moments {
        /// One a feature.
        columns: Vec<ColumnMoments>,
        /// Patients and pairs.
        summary: Summary,
    },
    /// The site's histograms, one a gridded column, in the job's order.
    Quantiles(Vec<ColumnHistogram>),
    /// Ready; with second moments of the standardised patients where correlation is pooled.
    Prepared {
        /// The site's own, or none.
        second_moments: Option<SecondMoments>,
    },
    /// Ready with the pooled correlation.
    Correlated,
    /// A local update.
    Contribution(Contribution),
    /// Held-out patients over all folds that were classified right and wrong, by number of neighbours; none where
    /// withheld.
    Validated(Vec<Option<RightCounts>>),
    /// The last word of the site.
    Finished(Finished),
    /// The site's share of the common forest.
    Grown(Trees),
    /// How well a forest predicts the site's patients: its last word.
    Judged(Judged),
}

/// Values of one column by groups of neighbouring cells of its grid; without groups where too few
/// patients have a value.
#[derive(Clone, Default, PartialEq)]
pub struct ColumnHistogram {
    /// The cell after the last of each group, ascending; the first group begins at cell 0.
    pub ends: Vec<u32>,
    /// Values in each group.
    pub counts: Vec<u64>,
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

/// A site's last word on the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// f_p at the final consensus.
    pub objective: f64,
    /// Leave-one-out nearest-neighbour counts of each rule, where the release rule cleared them.
    pub evaluation: Vec<EvaluationCounts>,
}

/// Counts of right and wrong predictions by one rule.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluationCounts {
    /// The rule: `distance` or `inner_product` of nearest neighbours, or `pairs`; `forest`, or the
    /// proximity of a forest.
    pub rule: String,
    /// Neighbours; 0 for pairs and for a forest's own prediction.
    pub neighbours: u32,
    /// `counts[i][j]`: patients of class i predicted as class j, of pairs 0 dissimilar and 1 similar;
    /// none where withheld.
    pub confusion: Option<Vec<Vec<u64>>>,
}

/// A cohort that fits the job.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// Patients.
    pub patients: u64,
    /// Patients of each class in the job's order; empty where the outcome has no classes.
    pub classes: Vec<u64>,
}

/// Something in a cohort that does not fit the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The column, or empty where the problem is the file's.
    pub column: String,
    /// What was found, never a patient's value.
    pub found: String,
    /// What was wanted.
    pub wanted: String,
}

/// A policy's no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The rule, as site.toml names it.
    pub rule: String,
    /// What was asked and what the rule allows.
    pub text: String,
}

/// A stable code and a sentence on what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// `KDR-` and a word.
    pub code: String,
    /// What happened and what to do, without any patient's value.
    pub text: String,
}

impl Disclosure for Answer {
    fn kind(&self) -> &'static str {
        match self {
            Self::Described(_) => "description",
            Self::Unfit(_) => "problems",
            Self::Refused(_) => "refusal",
            Self::Failed(_) => "failure",
            Self::Moments { .. } => "moments",
            Self::Quantiles(_) => "quantiles",
            Self::Prepared { .. } => "prepared",
            Self::Correlated => "correlated",
            Self::Contribution(_) => "contribution",
            Self::Validated(_) => "validation",
            Self::Finished(_) => "finished",
            Self::Grown(_) => "trees",
            Self::Judged(_) => "judgement",
        }
    }

    fn shape(&self) -> String {
        let matrix = |matrix: &Array2<f64>| format!("{} x {}", matrix.nrows(), matrix.ncols());
        match self {
            Self::Described(description) => format!("1 + {}", description.classes.len()),
            Self::Unfit(problems) => format!("{} problems", problems.len()),
            Self::Refused(_) | Self::Failed(_) => "1 text".to_owned(),
            Self::Moments { columns, .. } => format!("{} features", columns.len()),
            Self::Quantiles(histograms) => {
                let groups: usize = histograms.iter().map(|one| one.counts.len()).sum();
                format!("{} features, {groups} groups", histograms.len())
            }
            Self::Prepared { second_moments } => second_moments
                .as_ref()
                .map_or("empty".to_owned(), |own| matrix(&own.products)),
            Self::Correlated => "empty".to_owned(),
            Self::Contribution(contribution) if contribution.gradient.is_some() => {
                format!("2 x {}", matrix(&contribution.matrix))
            }
            Self::Contribution(contribution) => matrix(&contribution.matrix),
            Self::Validated(counts) => format!("{} tables of 1 x 2", counts.len()),
            Self::Finished(finished) => format!("1 + {} tables", finished.evaluation.len()),
            Self::Grown(trees) => format!("{} trees, {} nodes", trees.trees.len(), trees.nodes()),
            Self::Judged(judged) => format!(
                "{} errors, {} tables, {} importances",
                judged.errors.len(),
                judged.evaluation.len(),
                judged.importance.len()
            ),
        }
    }

    fn content(&mut self) -> Vec<Content<'_>> {
        match self {
            Self::Unfit(_) | Self::Refused(_) | Self::Failed(_) | Self::Correlated => Vec::new(),
            Self::Described(description) => vec![Content::Cohort {
                patients: description.patients,
                classes: &description.classes,
            }],
            Self::Moments { columns, summary } => vec![Content::Columns {
                patients: summary.patients,
                columns: columns.iter_mut().map(disclosed).collect(),
            }],
            Self::Quantiles(histograms) => {
                vec![Content::Histograms(
                    histograms.iter_mut().map(histogram).collect(),
                )]
            }
            Self::Prepared { second_moments } => second_moments
                .iter()
                .map(|_| Content::SecondMoments)
                .collect(),
            Self::Contribution(_) => vec![Content::LocalUpdate],
            Self::Validated(counts) => vec![Content::HeldOut(counts.iter_mut().collect())],
            Self::Finished(finished) => vec![tables(&mut finished.evaluation)],
            Self::Grown(trees) => vec![trees.content()],
            Self::Judged(judged) => judged.content(),
        }
    }
}

impl Notice<Answer> for Vec<Problem> {
    fn into_message(self) -> Answer {
        Answer::Unfit(self)
    }
}

impl Notice<Answer> for Refusal {
    fn into_message(self) -> Answer {
        Answer::Refused(self)
    }
}

impl Notice<Answer> for Failure {
    fn into_message(self) -> Answer {
        Answer::Failed(self)
    }
}

impl From<privacy::Refusal> for Refusal {
    fn from(refusal: privacy::Refusal) -> Self {
        let privacy::Refusal { rule, text } = refusal;
        Self { rule, text }
    }
}

/// Counts of predictions as the release rules see them.
fn tables(evaluation: &mut [EvaluationCounts]) -> Content<'_> {
    Content::Tables(
        evaluation
            .iter_mut()
            .map(|counts| &mut counts.confusion)
            .collect(),
    )
}

/// A feature's moments as the release rules see them.
fn disclosed(moments: &mut ColumnMoments) -> Column<'_> {
    match moments {
        ColumnMoments::Numeric {
            count,
            sum,
            sum_squares,
            missing,
        } => Column::Numeric {
            count,
            sum,
            sum_squares,
            missing,
        },
        ColumnMoments::Categorical { counts, missing } => Column::Categorical { counts, missing },
    }
}

/// A histogram as the release rules see it.
fn histogram(histogram: &mut ColumnHistogram) -> privacy::Histogram<'_> {
    privacy::Histogram {
        ends: &mut histogram.ends,
        counts: &mut histogram.counts,
    }
}

impl std::fmt::Debug for ColumnHistogram {
    /// Its size only: numbers of a site do not belong in a log.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ColumnHistogram")
            .field("groups", &self.counts.len())
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Answer {
    /// The kind only: numbers of a site do not belong in a log.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.kind())
    }
}
