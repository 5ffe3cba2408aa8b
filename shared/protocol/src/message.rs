//! What coordinator and site say to each other.
//!
//! A run is a sequence of numbered *exchanges*: the coordinator asks every site of the roster, and
//! each answers once. An exchange is computed once by a site; asked again, the site repeats its
//! stored answer. A patient row has no type here.

mod begin;
mod checked;
mod common;
mod conversation;
mod description;
mod disclosed;
mod preparing;

use crate::assessment::{ASSESSMENT, Assessment};
use crate::failure::{Code, Failure, Problem, Refusal};
use crate::method;
use crate::method::room::{MethodAnswer, Question};
use crate::sums::second_moments;
pub use begin::{Begin, Warrant};
pub use checked::{Closed, Encapsulations, Introduction, Record, summed_kind, summed_kinds};
use common::Common;
pub use conversation::{Ask, JournalHead, Reply, ToCoordinator, ToSite, Waiting};
pub use description::{ColumnHistogram, Description, SiteMoments};
use disclosed::{column, histogram};
use ndarray::Array2;
pub use preparing::Preparing;
use privacy::sums::{Number, Summand, WORD_BYTES, shape};
use privacy::{Content, Covered, Disclosure};
pub use similarity::cohort::moments::ColumnMoments;
pub use similarity::cohort::quantile::Quartiles;
pub use similarity::cohort::spline::{Curve, CurveScale};
pub use similarity::learn::unpsl::{PairCounts, SecondMoments, Summary, Totals};
use std::sync::Arc;

/// The kind of message by which a site joins a run of sums.
const INTRODUCTION: &str = "introduction";
const ENCAPSULATIONS: &str = "encapsulations";
/// The kind of message that describes a cohort.
const DESCRIPTION: &str = "description";
/// The kind of message that carries moments.
pub(crate) const MOMENTS: &str = "moments";
/// The kind of message that carries histograms.
pub(crate) const QUANTILES: &str = "quantiles";
/// The kind of message that says how far a site's means are from those of all.
pub(crate) const SPREAD: &str = "spread";
/// The kind of message that says that a site is prepared.
pub const PREPARED: &str = "prepared";
/// The kind of message that says that a site has the pooled correlation.
pub(crate) const CORRELATED: &str = "correlated";

/// A request that is not one of the method that was given it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherRequest;

macro_rules! messages {
    ($($Name:ident $room:ident,)*) => {
        $(pub use method::$room::message as $room;)*

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
            /// What the site's means add to the variance between the sites, of each row that the pooled moments standardise.
            Spread(Arc<Preparing>),
            /// Standardise with the pooled moments and make ready for rounds.
            Prepare(Arc<Preparing>),
            /// The pooled second moments, where correlation is pooled: the sum over all sites.
            Correlate(Arc<SecondMoments>),
            $(#[doc = concat!("Of `", stringify!($room), "` alone.")] $Name(method::$room::Request),)*
        }

        /// What a site answers.
        #[derive(Clone, PartialEq)]
        pub enum Answer {
            /// The cohort fits the job, and these are the site's keys.
            Introduced(Introduction),
            /// A secret for each later site, which that site alone can read.
            Encapsulated(Encapsulations),
            /// The SHA-256 of an answer, as it travelled: what stands for it in a closed exchange of which every site receives the sum.
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
            /// The site's histograms of those who have an outcome, one per grid, in the order of [`Grids`](crate::cohort::Grids).
            Quantiles(Vec<ColumnHistogram>),
            /// What the site's means add to the variance between the sites, one a row.
            Spread(Vec<f64>),
            /// Ready; with the site's own second moments of the standardised patients where correlation is pooled.
            Prepared(Option<SecondMoments>),
            /// Ready with the pooled correlation.
            Correlated,
            /// The last word of the site on the model.
            Assessed(Assessment),
            $(#[doc = concat!("Of `", stringify!($room), "` alone.")] $Name(method::$room::Answer),)*
        }

        $(impl<'r> TryFrom<&'r Request> for &'r method::$room::Request {
            type Error = OtherRequest;

            fn try_from(request: &'r Request) -> Result<Self, OtherRequest> {
                match request {
                    Request::$Name(own) => Ok(own),
                    // The one place that knows of requests which are not a method's own.
                    _ => Err(OtherRequest),
                }
            }
        })*

        impl Request {
            fn question(&self) -> &dyn Question {
                match self {
                    Self::Introduce => &Common::Introduce,
                    Self::Encapsulate => &Common::Encapsulate,
                    Self::Describe => &Common::Describe,
                    Self::Moments => &Common::Moments,
                    Self::Spread(_) => &Common::Spread,
                    Self::Prepare(_) => &Common::Prepare,
                    Self::Correlate(_) => &Common::Correlate,
                    $(Self::$Name(request) => request,)*
                }
            }
        }

        impl Answer {
            /// What a method answers; none of what is an answer in every run.
            fn of_method(&self) -> Option<&dyn MethodAnswer> {
                match self {
                    $(Self::$Name(answer) => Some(answer),)*
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
                    | Self::Spread(_)
                    | Self::Prepared(_)
                    | Self::Correlated
                    | Self::Assessed(_) => None,
                }
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
                    | Self::Spread(_)
                    | Self::Prepared(_)
                    | Self::Correlated
                    | Self::Assessed(_)
                    $(| Self::$Name(_))* => Vec::new(),
                }
            }
        }

        impl Answer {
            /// The shape in words, as the journal keeps it: no number of it is a patient's.
            #[must_use]
            pub fn shape(&mut self) -> String {
                match self {
                    Self::Introduced(_) => "3 keys, 1 number".to_owned(),
                    Self::Encapsulated(found) => format!("{} ciphertexts", found.count()),
                    Self::Digest(digest) => format!("{} bytes", digest.len()),
                    Self::Covered(covered) => {
                        let words = covered.words.as_slice().len();
                        format!("{words} words of {WORD_BYTES} bytes, covered")
                    }
                    Self::Unfit(problems) => format!("{} problems", problems.len()),
                    Self::Refused(_) | Self::Failed(_) => "1 text".to_owned(),
                    Self::Prepared(None) | Self::Correlated => "empty".to_owned(),
                    Self::Described(_)
                    | Self::Moments(_)
                    | Self::Quantiles(_)
                    | Self::Spread(_)
                    | Self::Prepared(Some(_))
                    | Self::Assessed(_)
                    $(| Self::$Name(_))* => shape_of(self),
                }
            }
        }

        impl Summand for Answer {
            fn numbers(&mut self, visit: &mut dyn FnMut(Number<'_>)) {
                match self {
                    Self::Described(description) => description.numbers(visit),
                    Self::Moments(moments) => moments.numbers(visit),
                    Self::Quantiles(histograms) => histograms.iter_mut().for_each(|one| one.numbers(visit)),
                    Self::Spread(between) => between.iter_mut().for_each(|one| visit(Number::Real(one))),
                    Self::Prepared(Some(moments)) => second_moments(moments, visit),
                    Self::Assessed(assessment) => assessment.numbers(visit),
                    $(Self::$Name(answer) => answer.numbers(visit),)*
                    Self::Introduced(_)
                    | Self::Encapsulated(_)
                    | Self::Digest(_)
                    | Self::Covered(_)
                    | Self::Unfit(_)
                    | Self::Refused(_)
                    | Self::Failed(_)
                    | Self::Prepared(None)
                    | Self::Correlated => {}
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
                    Self::Spread(_) => SPREAD,
                    Self::Prepared(_) => PREPARED,
                    Self::Correlated => CORRELATED,
                    Self::Assessed(_) => ASSESSMENT,
                    $(Self::$Name(answer) => answer.kind(),)*
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
                    Self::Moments(SiteMoments { columns, summary }) => vec![Content::Columns {
                        patients: summary.patients,
                        columns: columns.iter_mut().map(column).collect(),
                    }],
                    Self::Quantiles(histograms) => {
                        vec![Content::Histograms(
                            histograms.iter_mut().map(histogram).collect(),
                        )]
                    }
                    Self::Spread(_) | Self::Prepared(Some(_)) => vec![Content::SecondMoments],
                    Self::Assessed(assessment) => assessment.content(),
                    $(Self::$Name(answer) => answer.content(),)*
                }
            }
        }
    };
}

crate::methods!(messages);

/// The terminal nodes of trees, and the numbers of what adds up.
fn shape_of(answer: &mut Answer) -> String {
    if let [Content::Nodes(nodes)] = answer.content().as_slice() {
        return format!("{} terminal nodes", nodes.len());
    }
    shape(answer)
}

impl Request {
    /// The kind of message that answers it.
    #[must_use]
    pub fn answer_kind(&self) -> &'static str {
        self.question().answer_kind()
    }

    /// The rounds that its answer costs.
    #[must_use]
    pub fn rounds(&self) -> u64 {
        self.question().rounds()
    }

    /// Whether the site must have been prepared before.
    #[must_use]
    pub fn builds_on_preparation(&self) -> bool {
        self.question().builds_on_preparation()
    }

    /// Whether a site that answered it is ready for what comes after; one that starts again must do it again.
    #[must_use]
    pub fn leaves_state(&self) -> bool {
        self.question().leaves_state()
    }

    /// The regressions by which it has something predicted of the patients.
    #[must_use]
    pub fn points(&self) -> Vec<&regression::Evaluating> {
        self.question().points()
    }

    /// The metrics under which it has the patients compared.
    #[must_use]
    pub fn metrics(&self) -> Vec<&Array2<f64>> {
        self.question().metrics()
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
        self.of_method().and_then(MethodAnswer::metric)
    }

    /// Whether it says why there is no answer.
    #[must_use]
    pub fn is_reason(&self) -> bool {
        matches!(self, Self::Unfit(_) | Self::Refused(_) | Self::Failed(_))
    }
}

impl std::fmt::Debug for Answer {
    /// The kind only: numbers of a site do not belong in a log.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.kind())
    }
}
