//! What coordinator and site say to each other of forests.

use crate::assessment::ASSESSMENT;
use crate::method::regression::message::Evaluating;
use crate::method::room::{MethodAnswer, Question};
use ndarray::Array2;
use privacy::Disclosure;
use privacy::sums::{Number, Summand};
use privacy::{Content, TerminalNode};
pub use similarity::learn::forest::Side;
pub use similarity::learn::forest::trees::table::{
    NodeKind, NodeRule, NodeTable, TerminalTable, TreeTable,
};
use std::sync::Arc;

/// The kind of message that carries trees.
pub const TREES: &str = "trees";

/// Kinds of message that add up over the sites: none.
pub(crate) const SUMMED_KINDS: [&str; 0] = [];

/// What the coordinator asks of a site.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Grow a forest of the site's own, keep it, judge it, write local results.
    GrowOwn,
    /// Grow the site's share of the common forest.
    Grow(Arc<Growing>),
    /// Judge the common forest, write local results.
    Judge(Judging),
}

/// What a site answers.
#[derive(Clone, PartialEq)]
pub enum Answer {
    /// The site's share of the common forest.
    Grown(Trees),
}

/// What a site is to grow of a federated forest.
#[derive(Debug, Clone, PartialEq)]
pub struct Growing {
    /// The site's share of the trees.
    pub trees: u32,
    /// Where each feature may be cut, rising, in the job's order; none of a categorical one.
    pub edges: Vec<Vec<f64>>,
    /// The common event times, rising; none unless the outcome is a survival time.
    pub event_times: Vec<f64>,
    /// The weight of each class in the job's order; none without classes.
    pub class_weights: Vec<f64>,
}

/// The common forest, for a site to judge by its own patients.
#[derive(Debug, Clone, PartialEq)]
pub struct Judging {
    /// Where the site's own trees begin; they are those that it released.
    pub first_tree: u32,
    /// The trees of all sites, in the job's order of sites.
    pub trees: Arc<Trees>,
}

/// Trees over so many features.
#[derive(Debug, Clone, PartialEq)]
pub struct Trees {
    /// Features of the job.
    pub features: u32,
    /// The trees.
    pub trees: Vec<TreeTable>,
}

impl Trees {
    /// Nodes of all trees.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.trees.iter().map(|tree| tree.nodes().len()).sum()
    }

    fn content(&mut self) -> Content<'_> {
        let terminals = self.trees.iter_mut().flat_map(TreeTable::terminals_mut);
        let node = |(patients, table)| terminal(u64::from(patients), table);
        Content::Nodes(terminals.map(node).collect())
    }
}

impl Question for Request {
    fn answer_kind(&self) -> &'static str {
        match self {
            Self::GrowOwn | Self::Judge(_) => ASSESSMENT,
            Self::Grow(_) => TREES,
        }
    }

    /// The rounds that its answer costs.
    fn rounds(&self) -> u64 {
        match self {
            Self::Grow(_) => 1,
            Self::GrowOwn | Self::Judge(_) => 0,
        }
    }

    fn builds_on_preparation(&self) -> bool {
        false
    }

    /// Whether a site that answered it is ready for what comes after.
    fn leaves_state(&self) -> bool {
        match self {
            Self::Grow(_) => true,
            Self::GrowOwn | Self::Judge(_) => false,
        }
    }

    fn points(&self) -> Vec<&Evaluating> {
        Vec::new()
    }

    fn metrics(&self) -> Vec<&Array2<f64>> {
        Vec::new()
    }
}

impl Disclosure for Answer {
    fn kind(&self) -> &'static str {
        match self {
            Self::Grown(_) => TREES,
        }
    }

    fn content(&mut self) -> Vec<Content<'_>> {
        match self {
            Self::Grown(trees) => vec![trees.content()],
        }
    }
}

impl MethodAnswer for Answer {
    fn metric(&self) -> Option<&Array2<f64>> {
        None
    }
}

impl Summand for Answer {
    /// Trees do not add up.
    fn numbers(&mut self, _: &mut dyn FnMut(Number<'_>)) {}
}

/// A terminal node as the release rules see it.
fn terminal(patients: u64, table: &mut TerminalTable) -> TerminalNode<'_> {
    match table {
        TerminalTable::Classes(counts) => TerminalNode::Classes { patients, counts },
        TerminalTable::Mean(_) => TerminalNode::Mean { patients },
        TerminalTable::Survival {
            ends,
            events,
            exposures,
        } => TerminalNode::Survival {
            patients,
            ends,
            events,
            exposures,
        },
    }
}
