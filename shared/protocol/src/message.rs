//! What coordinator and site say to each other.
//!
//! A run is a sequence of numbered *exchanges*: the coordinator asks every site of the roster, and
//! each answers once. An exchange is computed once by a site; asked again, the site repeats its
//! stored answer. A patient row has no type here.

mod begin;
mod checked;
mod conversation;
mod disclosed;
mod preparing;
mod told;

use crate::assessment::{ASSESSMENT, Assessment};
use crate::failure::{Code, Failure, Problem, Refusal};
pub use crate::method::card::message as card;
pub use crate::method::cluster::message as cluster;
pub use crate::method::compare::message as compare;
pub use crate::method::forest::message as forest;
pub use crate::method::neighbours::message as neighbours;
pub use crate::method::regression::message as regression;
pub use crate::method::unpsl::message as unpsl;
pub use begin::{Begin, Warrant};
pub use checked::{Closed, Encapsulations, Introduction, summed_kind};
pub use conversation::{Ask, JournalHead, Reply, ToCoordinator, ToSite, Waiting};
use disclosed::{column, histogram};
use ndarray::Array2;
pub use preparing::Preparing;
use privacy::sums::{Summand, WORD_BYTES};
use privacy::{Content, Covered, Disclosure};
pub use similarity::cohort::moments::{BetweenMoments, ColumnMoments};
pub use similarity::cohort::quantile::Quartiles;
pub use similarity::cohort::spline::{Curve, CurveScale};
pub use similarity::learn::unpsl::{PairCounts, SecondMoments, Summary, Totals};
use std::sync::Arc;
pub use told::{ColumnHistogram, Description, SiteMoments};

/// The kind of message by which a site joins a run of sums.
const INTRODUCTION: &str = "introduction";
const ENCAPSULATIONS: &str = "encapsulations";
/// The kind of message that describes a cohort.
const DESCRIPTION: &str = "description";
/// The kind of message that carries moments.
pub(crate) const MOMENTS: &str = "moments";
/// The kind of message that carries histograms.
pub(crate) const QUANTILES: &str = "quantiles";
/// The kind of message that says that a site is prepared.
pub const PREPARED: &str = "prepared";
/// The kind of message that says that a site has the pooled correlation.
pub(crate) const CORRELATED: &str = "correlated";

/// What the coordinator asks of a site.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Judge the job and the cohort, and say by which keys the site is known in the run.
    Introduce,
    /// Encapsulate a secret for every later site that has introduced itself.
    Encapsulate,
    /// Read the cohort, check it against the job and the policy, say whether it fits.
    Describe,
    /// Pooled moments: the site's own, before standardisation.
    Moments,
    /// Histograms of what the job counts on grids, for pooled quartiles or cut points.
    Quantiles,
    /// Standardise with the pooled moments and make ready for rounds.
    Prepare(Arc<Preparing>),
    /// The pooled second moments, where correlation is pooled: the sum over all sites.
    Correlate(Arc<SecondMoments>),
    /// Of UnPSL alone.
    Unpsl(unpsl::Request),
    /// Of forests alone.
    Forest(forest::Request),
    /// Of regressions alone.
    Regression(regression::Request),
    /// Of questions about who is alike alone.
    Neighbours(neighbours::Request),
    /// Of groups of patients that the sites have in common alone.
    Cluster(cluster::Request),
    /// Of comparisons of similarities alone.
    Compare(compare::Request),
    /// Of the card of a study alone.
    Card(card::Request),
}

/// What a site answers.
#[derive(Clone, PartialEq)]
pub enum Answer {
    /// The cohort fits the job, and these are the site's keys.
    Introduced(Introduction),
    /// A secret for each later site, which that site alone can read.
    Encapsulated(Encapsulations),
    /// The SHA-256 of an answer, as it travelled: what stands for it in a closed exchange that every site hears the sum of.
    Digest([u8; 32]),
    /// What adds up over the sites, and can be read in the sum alone.
    Covered(Covered),
    /// The cohort fits the job.
    Described(Description),
    /// The cohort does not fit; every problem, none with a patient's value.
    Unfit(Vec<Problem>),
    /// The site's policy refuses the job.
    Refused(Refusal),
    /// Something broke at the site.
    Failed(Failure),
    /// The site's moments.
    Moments(SiteMoments),
    /// The site's histograms, one per grid, in the order of [`Grids`](crate::cohort::Grids).
    Quantiles(Vec<ColumnHistogram>),
    /// Ready; with the site's own second moments of the standardised patients where correlation is pooled.
    Prepared(Option<SecondMoments>),
    /// Ready with the pooled correlation.
    Correlated,
    /// The last word of the site on the model.
    Assessed(Assessment),
    /// Of UnPSL alone.
    Unpsl(unpsl::Answer),
    /// Of forests alone.
    Forest(forest::Answer),
    /// Of regressions alone.
    Regression(regression::Answer),
    /// Of questions about who is alike alone.
    Neighbours(neighbours::Answer),
    /// Of groups of patients that the sites have in common alone.
    Cluster(cluster::Answer),
    /// Of comparisons of similarities alone.
    Compare(compare::Answer),
    /// Of the card of a study alone.
    Card(card::Answer),
}

impl Request {
    /// The kind of message that answers it.
    #[must_use]
    pub fn answer_kind(&self) -> &'static str {
        match self {
            Self::Introduce => INTRODUCTION,
            Self::Encapsulate => ENCAPSULATIONS,
            Self::Describe => DESCRIPTION,
            Self::Moments => MOMENTS,
            Self::Quantiles => QUANTILES,
            Self::Prepare(_) => PREPARED,
            Self::Correlate(_) => CORRELATED,
            Self::Unpsl(request) => request.answer_kind(),
            Self::Forest(request) => request.answer_kind(),
            Self::Regression(request) => request.answer_kind(),
            Self::Neighbours(request) => request.answer_kind(),
            Self::Cluster(request) => request.answer_kind(),
            Self::Compare(request) => request.answer_kind(),
            Self::Card(request) => request.answer_kind(),
        }
    }

    /// The rounds that its answer costs.
    #[must_use]
    pub fn rounds(&self) -> u64 {
        match self {
            Self::Introduce
            | Self::Encapsulate
            | Self::Describe
            | Self::Moments
            | Self::Quantiles
            | Self::Prepare(_)
            | Self::Correlate(_)
            | Self::Neighbours(_)
            | Self::Cluster(_)
            | Self::Compare(_)
            | Self::Card(_) => 0,
            Self::Unpsl(request) => request.rounds(),
            Self::Forest(request) => request.rounds(),
            Self::Regression(request) => request.rounds(),
        }
    }

    /// Whether the site must have been prepared before.
    #[must_use]
    pub fn builds_on_preparation(&self) -> bool {
        match self {
            Self::Correlate(_) | Self::Unpsl(_) | Self::Regression(_) | Self::Compare(_) => true,
            Self::Introduce
            | Self::Encapsulate
            | Self::Describe
            | Self::Moments
            | Self::Quantiles
            | Self::Prepare(_)
            | Self::Neighbours(_)
            | Self::Cluster(_)
            | Self::Card(_)
            | Self::Forest(_) => false,
        }
    }

    /// Whether a site that answered it is ready for what comes after; one that starts again must do it again.
    #[must_use]
    pub fn leaves_state(&self) -> bool {
        match self {
            Self::Introduce | Self::Prepare(_) | Self::Correlate(_) => true,
            Self::Encapsulate
            | Self::Describe
            | Self::Moments
            | Self::Quantiles
            | Self::Regression(_)
            | Self::Neighbours(_)
            | Self::Cluster(_)
            | Self::Compare(_)
            | Self::Card(_) => false,
            Self::Unpsl(request) => request.leaves_state(),
            Self::Forest(request) => request.leaves_state(),
        }
    }

    /// The regressions by which it has something predicted of the patients.
    #[must_use]
    pub fn points(&self) -> Vec<&regression::Evaluating> {
        match self {
            Self::Regression(request) => vec![request.point()],
            Self::Compare(request) => request.points(),
            Self::Introduce
            | Self::Encapsulate
            | Self::Describe
            | Self::Moments
            | Self::Quantiles
            | Self::Prepare(_)
            | Self::Correlate(_)
            | Self::Unpsl(_)
            | Self::Forest(_)
            | Self::Neighbours(_)
            | Self::Cluster(_)
            | Self::Card(_) => Vec::new(),
        }
    }

    /// The metrics under which it has the patients compared.
    #[must_use]
    pub fn metrics(&self) -> Vec<&Array2<f64>> {
        match self {
            Self::Unpsl(request) => request.metrics(),
            Self::Compare(request) => request.metrics(),
            Self::Introduce
            | Self::Encapsulate
            | Self::Describe
            | Self::Moments
            | Self::Quantiles
            | Self::Prepare(_)
            | Self::Correlate(_)
            | Self::Forest(_)
            | Self::Regression(_)
            | Self::Neighbours(_)
            | Self::Cluster(_)
            | Self::Card(_) => Vec::new(),
        }
    }
}

impl Answer {
    /// The kind of message in one word, as the site's journal names it.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        self.kind()
    }

    /// The metric that it was found at, of which it tells the gradient.
    #[must_use]
    pub fn metric(&self) -> Option<&Array2<f64>> {
        match self {
            Self::Unpsl(answer) => answer.metric(),
            Self::Introduced(_)
            | Self::Encapsulated(_)
            | Self::Digest(_)
            | Self::Covered(_)
            | Self::Described(_)
            | Self::Unfit(_)
            | Self::Refused(_)
            | Self::Failed(_)
            | Self::Moments(_)
            | Self::Quantiles(_)
            | Self::Prepared(_)
            | Self::Correlated
            | Self::Assessed(_)
            | Self::Forest(_)
            | Self::Regression(_)
            | Self::Neighbours(_)
            | Self::Cluster(_)
            | Self::Compare(_)
            | Self::Card(_) => None,
        }
    }

    /// What adds up over the sites of an answer that only a method has; none where it does not.
    pub(crate) fn of_method(&mut self) -> Option<&mut dyn Summand> {
        match self {
            Self::Unpsl(answer) => Some(answer),
            Self::Regression(answer) => Some(answer),
            Self::Neighbours(answer) => Some(answer),
            Self::Cluster(answer) => Some(answer),
            Self::Compare(answer) => Some(answer),
            Self::Card(answer) => Some(answer),
            Self::Forest(_) => None,
            Self::Introduced(_)
            | Self::Encapsulated(_)
            | Self::Digest(_)
            | Self::Covered(_)
            | Self::Described(_)
            | Self::Unfit(_)
            | Self::Refused(_)
            | Self::Failed(_)
            | Self::Moments(_)
            | Self::Quantiles(_)
            | Self::Prepared(_)
            | Self::Correlated
            | Self::Assessed(_) => None,
        }
    }

    /// Whether it says why there is no answer.
    #[must_use]
    pub fn is_reason(&self) -> bool {
        matches!(self, Self::Unfit(_) | Self::Refused(_) | Self::Failed(_))
    }

    /// Why there is no answer, each reason by itself; none where there is one.
    #[must_use]
    pub fn reasons(&self) -> Vec<Failure> {
        match self {
            Self::Unfit(problems) => problems
                .iter()
                .map(|problem| Failure::new(Code::Cohort, problem.to_string()))
                .collect(),
            Self::Refused(refusal) => vec![Failure::new(Code::Policy, refusal.to_string())],
            Self::Failed(failure) => vec![failure.clone()],
            Self::Introduced(_)
            | Self::Encapsulated(_)
            | Self::Digest(_)
            | Self::Covered(_)
            | Self::Described(_)
            | Self::Moments(_)
            | Self::Quantiles(_)
            | Self::Prepared(_)
            | Self::Correlated
            | Self::Assessed(_)
            | Self::Unpsl(_)
            | Self::Forest(_)
            | Self::Regression(_)
            | Self::Neighbours(_)
            | Self::Cluster(_)
            | Self::Compare(_)
            | Self::Card(_) => Vec::new(),
        }
    }
}

impl Disclosure for Answer {
    fn kind(&self) -> &'static str {
        match self {
            Self::Introduced(_) => INTRODUCTION,
            Self::Encapsulated(_) => ENCAPSULATIONS,
            Self::Digest(_) => "digest",
            Self::Covered(covered) => covered.kind,
            Self::Described(_) => DESCRIPTION,
            Self::Unfit(_) => "problems",
            Self::Refused(_) => "refusal",
            Self::Failed(_) => "failure",
            Self::Moments(_) => MOMENTS,
            Self::Quantiles(_) => QUANTILES,
            Self::Prepared(_) => PREPARED,
            Self::Correlated => CORRELATED,
            Self::Assessed(_) => ASSESSMENT,
            Self::Unpsl(answer) => answer.kind(),
            Self::Forest(answer) => answer.kind(),
            Self::Regression(answer) => answer.kind(),
            Self::Neighbours(answer) => answer.kind(),
            Self::Cluster(answer) => answer.kind(),
            Self::Compare(answer) => answer.kind(),
            Self::Card(answer) => answer.kind(),
        }
    }

    fn shape(&self) -> String {
        let matrix = |matrix: &Array2<f64>| format!("{} x {}", matrix.nrows(), matrix.ncols());
        match self {
            Self::Introduced(_) => "3 keys, 1 number".to_owned(),
            Self::Encapsulated(found) => format!("{} ciphertexts", found.told()),
            Self::Digest(digest) => format!("{} bytes", digest.len()),
            Self::Covered(covered) => {
                let words = covered.words.as_slice().len();
                format!("{words} words of {WORD_BYTES} bytes, covered")
            }
            Self::Described(description) => format!("2 + {}", description.classes.len()),
            Self::Unfit(problems) => format!("{} problems", problems.len()),
            Self::Refused(_) | Self::Failed(_) => "1 text".to_owned(),
            Self::Moments(moments) => format!("{} features", moments.columns.len()),
            Self::Quantiles(histograms) => {
                let groups: usize = histograms.iter().map(|one| one.counts.len()).sum();
                format!("{} features, {groups} groups", histograms.len())
            }
            Self::Prepared(Some(second_moments)) => matrix(&second_moments.products),
            Self::Prepared(None) | Self::Correlated => "empty".to_owned(),
            Self::Assessed(assessment) => assessment.shape(),
            Self::Unpsl(answer) => answer.shape(),
            Self::Forest(answer) => answer.shape(),
            Self::Regression(answer) => answer.shape(),
            Self::Neighbours(answer) => answer.shape(),
            Self::Cluster(answer) => answer.shape(),
            Self::Compare(answer) => answer.shape(),
            Self::Card(answer) => answer.shape(),
        }
    }

    fn content(&mut self) -> Vec<Content<'_>> {
        match self {
            Self::Covered(_) => vec![Content::Covered],
            Self::Introduced(_)
            | Self::Encapsulated(_)
            | Self::Digest(_)
            | Self::Unfit(_)
            | Self::Refused(_)
            | Self::Failed(_)
            | Self::Prepared(None)
            | Self::Correlated => Vec::new(),
            Self::Described(description) => vec![Content::Cohort {
                patients: description.patients,
                classes: &description.classes,
            }],
            Self::Moments(SiteMoments {
                columns, summary, ..
            }) => vec![Content::Columns {
                patients: summary.patients,
                columns: columns.iter_mut().map(column).collect(),
            }],
            Self::Quantiles(histograms) => {
                vec![Content::Histograms(
                    histograms.iter_mut().map(histogram).collect(),
                )]
            }
            Self::Prepared(Some(_)) => vec![Content::SecondMoments],
            Self::Assessed(assessment) => assessment.content(),
            Self::Unpsl(answer) => answer.content(),
            Self::Forest(answer) => answer.content(),
            Self::Regression(answer) => answer.content(),
            Self::Neighbours(answer) => answer.content(),
            Self::Cluster(answer) => answer.content(),
            Self::Compare(answer) => answer.content(),
            Self::Card(answer) => answer.content(),
        }
    }
}

impl std::fmt::Debug for Answer {
    /// The kind only: numbers of a site do not belong in a log.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.kind())
    }
}
