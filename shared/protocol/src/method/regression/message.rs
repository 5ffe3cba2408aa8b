//! What coordinator and site say to each other in a run of regression. Every answer is a sum over patients.

use crate::assessment::ASSESSMENT;
use crate::method::room::{MethodAnswer, Question};
use ndarray::Array2;
use privacy::sums::{Number, Summand};
use privacy::{Content, Disclosure};
pub use similarity::learn::regression::absolute::{CommonBaseline, Sureness};
pub use similarity::learn::regression::sums::Sums;
use std::sync::Arc;

/// The kind of message that carries a log-likelihood and its derivatives.
pub(crate) const LIKELIHOOD: &str = "likelihood";
/// The kind of message that carries the events and the time of cells, and who is followed there.
const CELLS: &str = "cells";
/// The kind of message that carries what a test of proportional hazards looks at.
const PROPORTIONALITY: &str = "proportionality";

/// Kinds of message that add up over the sites: all, and of all the sum alone is used.
pub(crate) const SUMMED_KINDS: [&str; 3] = [LIKELIHOOD, CELLS, PROPORTIONALITY];

/// What the coordinator asks of a site.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// The log-likelihood and its derivatives at some coefficients.
    Evaluate(Evaluating),
    /// The same of a survival time with every column twice: as it is, and times the time of the event, or of the cell's middle, as a share of
    /// the horizon, with a coefficient of 0. A score test of proportional hazards looks at it.
    Test(Evaluating),
    /// The run's model: evaluate it, write local results.
    Finish(Finishing),
}

/// The last word on a regression.
#[derive(Debug, Clone, PartialEq)]
pub struct Finishing {
    /// The fit.
    pub point: Evaluating,
    /// The coefficients that weigh a distance, as many; none where they are those of the fit.
    pub weights: Option<Arc<Vec<f64>>>,
    /// What makes the risk of any patient; none but of a common baseline.
    pub common: Option<Arc<CommonBaseline>>,
}

/// What is fitted.
#[derive(Debug, Clone, PartialEq)]
pub struct Design {
    /// Cells of a common baseline hazard, ascending; none of another regression.
    pub cells: Vec<u32>,
    /// Rows of the standardised matrix, ascending; none where cells alone are counted.
    pub rows: Vec<u32>,
    /// The fold of a cross-validation that is held out, from 0; none where all patients take part.
    pub fold: Option<u32>,
}

/// Coefficients at which something is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluating {
    /// What is fitted.
    pub design: Arc<Design>,
    /// One a row, after the constant where there is one, or a log hazard a cell.
    pub at: Arc<Vec<f64>>,
}

/// What a site answers.
#[derive(Clone, PartialEq)]
pub enum Answer {
    /// A log-likelihood, its gradient and its information.
    Likelihood(Sums),
    /// The same of the cells of a common baseline alone, and patients who are followed in each.
    Cells {
        /// Without any column.
        sums: Sums,
        /// On average, of each site at most so many as its settings say.
        counted: Vec<u64>,
    },
    /// The same with every column twice.
    Proportionality(Sums),
}

impl Design {
    /// Whether the cells of a common baseline are counted, and nothing else is asked.
    #[must_use]
    pub fn counts_cells(&self) -> bool {
        self.rows.is_empty() && !self.cells.is_empty()
    }
}

impl Request {
    /// Where something is wanted.
    pub(crate) fn point(&self) -> &Evaluating {
        match self {
            Self::Evaluate(point) | Self::Test(point) => point,
            Self::Finish(finishing) => &finishing.point,
        }
    }
}

impl Question for Request {
    fn answer_kind(&self) -> &'static str {
        match self {
            Self::Evaluate(point) if point.design.counts_cells() => CELLS,
            Self::Evaluate(_) => LIKELIHOOD,
            Self::Test(_) => PROPORTIONALITY,
            Self::Finish(_) => ASSESSMENT,
        }
    }

    /// The rounds that its answer costs.
    fn rounds(&self) -> u64 {
        match self {
            Self::Evaluate(_) | Self::Test(_) => 1,
            Self::Finish(_) => 0,
        }
    }

    fn builds_on_preparation(&self) -> bool {
        true
    }

    fn leaves_state(&self) -> bool {
        false
    }

    fn points(&self) -> Vec<&Evaluating> {
        vec![self.point()]
    }

    fn metrics(&self) -> Vec<&Array2<f64>> {
        Vec::new()
    }
}

impl Disclosure for Answer {
    fn kind(&self) -> &'static str {
        match self {
            Self::Likelihood(_) => LIKELIHOOD,
            Self::Cells { .. } => CELLS,
            Self::Proportionality(_) => PROPORTIONALITY,
        }
    }

    fn content(&mut self) -> Vec<Content<'_>> {
        match self {
            Self::Likelihood(_) | Self::Cells { .. } | Self::Proportionality(_) => {
                vec![Content::LocalUpdate]
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
        let (sums, counted) = match self {
            Self::Likelihood(sums) | Self::Proportionality(sums) => (sums, &mut [][..]),
            Self::Cells { sums, counted } => (sums, &mut counted[..]),
        };
        visit(Number::Count(&mut sums.patients));
        visit(Number::Count(&mut sums.events));
        // In units of the outcome.
        visit(Number::Measure(&mut sums.log_likelihood));
        let gradient = sums.gradient.iter_mut();
        gradient.for_each(|one| visit(Number::Measure(one)));
        crate::sums::lower_triangle(&mut sums.information, visit);
        counted.iter_mut().for_each(|one| visit(Number::Count(one)));
    }
}
