//! What coordinator and site say to each other when similarities are compared. Metrics and regressions of folds are learnt by the
//! messages of their methods.

use super::settings::Family;
use crate::assessment::{ErrorMeasure, EvaluationCounts};
use crate::message::forest;
use crate::message::regression::Evaluating;
use crate::method::room::{MethodAnswer, Question};
use ndarray::Array2;
use privacy::Disclosure;
use privacy::sums::{Number, Summand};
use privacy::{Content, ErrorSums, Errors};
use std::sync::Arc;

/// The kind of message that tells how well held-out patients are predicted.
const COMPARISON: &str = "comparison";

/// Kinds of message that add up over the sites.
pub(crate) const SUMMED_KINDS: [&str; 1] = [COMPARISON];

/// What the coordinator asks of a site.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Predict the patients of each fold by those of the others.
    Judge(Judging),
}

/// What was learnt without each fold.
#[derive(Debug, Clone, PartialEq)]
pub struct Judging {
    /// W, d x m, one a fold; empty where no metric is compared.
    pub metrics: Arc<Vec<Array2<f64>>>,
    /// One a fold; empty where no regression is compared.
    pub regressions: Arc<Vec<Evaluating>>,
    /// The trees of all sites, and which of them are the site's own; none where no common forest is compared.
    pub forest: Option<forest::Judging>,
    /// Sites whose held-out patients judge.
    pub judges: u32,
}

/// What a site answers.
#[derive(Clone, PartialEq)]
pub enum Answer {
    /// One a family, in the job's order.
    Judged(Vec<FamilyCounts>),
}

/// How well one family predicts held-out patients.
#[derive(Clone, PartialEq)]
pub struct FamilyCounts {
    /// Which.
    pub family: Family,
    /// How errors are judged and released.
    pub measure: ErrorMeasure,
    /// Of classes patients by class and prediction, and of two classes by score; of every outcome what is gained.
    pub counts: EvaluationCounts,
    /// The errors of numbers and survival times; none of classes, and where withheld.
    pub errors: Option<ErrorSums>,
}

impl FamilyCounts {
    /// Patients who are judged, or pairs of them.
    #[must_use]
    pub fn judged(&self) -> u64 {
        match &self.counts.confusion {
            Some(table) => table.iter().flatten().sum(),
            None => self.errors.map_or(0, |errors| errors.total),
        }
    }

    pub(super) fn content(&mut self) -> [Content<'_>; 2] {
        let judged = self.judged();
        let errors = match self.measure {
            ErrorMeasure::Squared => Errors::Summed(&mut self.errors),
            ErrorMeasure::Misclassified | ErrorMeasure::Discordant => {
                Errors::Counted(&mut self.errors)
            }
        };
        [
            Content::Tables(vec![self.counts.content(judged)]),
            Content::Errors(vec![errors]),
        ]
    }
}

impl Question for Request {
    fn answer_kind(&self) -> &'static str {
        match self {
            Self::Judge(_) => COMPARISON,
        }
    }

    fn rounds(&self) -> u64 {
        0
    }

    fn builds_on_preparation(&self) -> bool {
        true
    }

    fn leaves_state(&self) -> bool {
        false
    }

    /// The regressions by which it has them compared, or predicted.
    fn points(&self) -> Vec<&Evaluating> {
        match self {
            Self::Judge(judging) => judging.regressions.iter().collect(),
        }
    }

    /// The metrics under which it has patients compared.
    fn metrics(&self) -> Vec<&Array2<f64>> {
        match self {
            Self::Judge(judging) => judging.metrics.iter().collect(),
        }
    }
}

impl Disclosure for Answer {
    fn kind(&self) -> &'static str {
        match self {
            Self::Judged(_) => COMPARISON,
        }
    }

    fn content(&mut self) -> Vec<Content<'_>> {
        match self {
            Self::Judged(families) => {
                let content = families.iter_mut().flat_map(FamilyCounts::content);
                content.collect()
            }
        }
    }
}

impl MethodAnswer for Answer {
    fn metric(&self) -> Option<&Array2<f64>> {
        None
    }
}

impl Summand for Answer {
    fn numbers(&mut self, visit: &mut dyn FnMut(Number<'_>)) {
        let Self::Judged(families) = self;
        for family in families {
            family.counts.numbers(visit);
            if let Some(errors) = &mut family.errors {
                visit(Number::Count(&mut errors.total));
                visit(Number::Measure(&mut errors.error));
            }
        }
    }
}

impl std::fmt::Debug for FamilyCounts {
    /// Its name only: numbers of a site do not belong in a log.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("FamilyCounts")
            .field("family", &self.family)
            .finish_non_exhaustive()
    }
}
