//! What coordinator and site say to each other in a run of regression. Every answer is a sum over patients.

use crate::assessment::ASSESSMENT;
use ndarray::Array2;
use privacy::Content;
use privacy::sums::{Number, Summand};
pub use similarity::learn::regression::cox::{RiskSets, Weights};
pub use similarity::learn::regression::hazards::POWERS;
pub use similarity::learn::regression::sums::Sums;
use std::sync::Arc;

/// The kind of message that carries a log-likelihood and its derivatives.
const LIKELIHOOD: &str = "likelihood";
/// The kind of message that carries sums of risk sets.
pub(crate) const RISK_SETS: &str = "risk_sets";
/// The kind of message that carries weighted products of columns.
const PRODUCTS: &str = "products";

/// Kinds of message that add up over the sites: all, and of all the sum alone is used.
pub(crate) const SUMMED_KINDS: [&str; 3] = [LIKELIHOOD, RISK_SETS, PRODUCTS];

/// What the coordinator asks of a site.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// The log-likelihood and its derivatives at some coefficients; of a survival time the sums of every risk set.
    Evaluate(Evaluating),
    /// X' diag(w) X at some coefficients, w following from each of some weights of the cells.
    Weigh(Weighing),
    /// The run's model: evaluate it, write local results.
    Finish(Evaluating),
}

/// What is fitted.
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    /// Rows of the standardised matrix, ascending.
    pub rows: Vec<u32>,
    /// Cells of follow-up, by the steps of the grid of events that they end before, rising; none unless the outcome is a survival
    /// time.
    pub ends: Vec<u32>,
    /// The fold of a cross-validation that is left out, from 0; none where all patients take part.
    pub fold: Option<u32>,
}

/// Coefficients at which something is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluating {
    /// What is fitted.
    pub design: Arc<Design>,
    /// One a row, after the constant where there is one.
    pub at: Arc<Vec<f64>>,
}

/// Weighted products that are wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Weighing {
    /// Where.
    pub point: Evaluating,
    /// By which weights of the cells.
    pub weights: Arc<Vec<Weights>>,
}

/// What a site answers.
#[derive(Clone, PartialEq)]
pub enum Answer {
    /// A log-likelihood, its gradient and its information.
    Likelihood(Sums),
    /// Patients, and the sums of every cell.
    RiskSets {
        /// Patients.
        patients: u64,
        /// S0, S1, E0, E1.
        sets: RiskSets,
    },
    /// X' diag(w) X, one for each of the weights.
    Products(Vec<Array2<f64>>),
}

impl Request {
    /// The kind of message that answers it; `cox` says of which kind an evaluation is.
    pub(crate) fn answer_kind(&self) -> &'static str {
        match self {
            Self::Evaluate(asked) if asked.design.ends.is_empty() => LIKELIHOOD,
            Self::Evaluate(_) => RISK_SETS,
            Self::Weigh(_) => PRODUCTS,
            Self::Finish(_) => ASSESSMENT,
        }
    }

    /// The rounds of a cohort's budget that its answer costs.
    pub(crate) fn rounds(&self) -> u64 {
        match self {
            Self::Evaluate(_) | Self::Weigh(_) => 1,
            Self::Finish(_) => 0,
        }
    }

    /// Whether the job may ask several of its kind.
    pub(crate) fn repeats(&self) -> bool {
        match self {
            Self::Evaluate(_) | Self::Weigh(_) => true,
            Self::Finish(_) => false,
        }
    }
}

impl Answer {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Likelihood(_) => LIKELIHOOD,
            Self::RiskSets { .. } => RISK_SETS,
            Self::Products(_) => PRODUCTS,
        }
    }

    pub(crate) fn shape(&self) -> String {
        let matrix = |matrix: &Array2<f64>| format!("{} x {}", matrix.nrows(), matrix.ncols());
        match self {
            Self::Likelihood(sums) => format!("2 + {0} + {0} x {0}", sums.gradient.len()),
            Self::RiskSets { sets, .. } => format!("1 + 2 x {}", matrix(&sets.at_risk)),
            Self::Products(products) => {
                let shape = products.first().map(matrix).unwrap_or_default();
                format!("{} x {shape}", products.len())
            }
        }
    }

    pub(crate) fn content(&mut self) -> Vec<Content<'_>> {
        match self {
            Self::Likelihood(sums) => vec![
                Content::LocalUpdate,
                Content::Coefficients(sums.gradient.len() as u64),
            ],
            Self::RiskSets { .. } | Self::Products(_) => vec![Content::LocalUpdate],
        }
    }
}

impl Summand for Answer {
    fn numbers(&mut self, visit: &mut dyn FnMut(Number<'_>)) {
        match self {
            Self::Likelihood(sums) => {
                visit(Number::Count(&mut sums.patients));
                // In units of the outcome.
                visit(Number::Measure(&mut sums.log_likelihood));
                let gradient = sums.gradient.iter_mut();
                gradient.for_each(|one| visit(Number::Measure(one)));
                crate::sums::lower_triangle(&mut sums.information, visit);
            }
            Self::RiskSets { patients, sets } => {
                visit(Number::Count(patients));
                let sums = sets.at_risk.iter_mut().chain(&mut sets.with_event);
                sums.for_each(|one| visit(Number::Real(one)));
            }
            Self::Products(products) => {
                for product in products {
                    crate::sums::lower_triangle(product, visit);
                }
            }
        }
    }
}
