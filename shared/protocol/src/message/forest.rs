//! What coordinator and site say to each other of forests.

use super::EvaluationCounts;
pub use privacy::ErrorSums;
use privacy::{Content, Errors, TerminalNode};
pub use similarity::forest::Side;
pub use similarity::forest::table::{NodeKind, NodeRule, NodeTable, TerminalTable, TreeTable};
use std::sync::Arc;

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

/// How well a forest predicts the patients of a site.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The forest's own error, and that of nearest neighbours by its proximity.
    pub errors: Vec<RuleErrors>,
    /// The same as tables by class; none where the outcome has no classes.
    pub evaluation: Vec<EvaluationCounts>,
    /// One a feature in the job's order; none where the job asks for none.
    pub importance: Vec<FeatureImportance>,
}

/// The errors of one rule of prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleErrors {
    /// `forest`, or the proximity that neighbours are found by.
    pub rule: String,
    /// Neighbours; 0 for the forest.
    pub neighbours: u32,
    /// What is summed.
    pub measure: ErrorMeasure,
    /// The sums; none where withheld.
    pub sums: Option<ErrorSums>,
}

/// What an error counts or sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorMeasure {
    /// Patients misclassified, over patients.
    Misclassified,
    /// Squared errors, over patients: the mean squared error.
    Squared,
    /// Discordant pairs, over comparable ones: 1 - C.
    Discordant,
}

/// How much worse a forest predicts when one feature's values are permuted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FeatureImportance {
    /// Mean rise of the error over trees.
    pub mean: f64,
    /// Standard error of that mean over trees.
    pub standard_error: f64,
}

impl ErrorMeasure {
    /// Its name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Misclassified => "misclassified",
            Self::Squared => "mean_squared_error",
            Self::Discordant => "discordance",
        }
    }
}

impl Trees {
    /// Nodes of all trees.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.trees.iter().map(|tree| tree.nodes().len()).sum()
    }

    pub(super) fn content(&mut self) -> Content<'_> {
        let terminals = self.trees.iter_mut().flat_map(TreeTable::terminals_mut);
        let node = |(patients, table)| terminal(u64::from(patients), table);
        Content::Nodes(terminals.map(node).collect())
    }
}

impl Judged {
    pub(super) fn content(&mut self) -> Vec<Content<'_>> {
        let errors = self.errors.iter_mut().map(|errors| match errors.measure {
            ErrorMeasure::Squared => Errors::Summed(&mut errors.sums),
            ErrorMeasure::Misclassified | ErrorMeasure::Discordant => {
                Errors::Counted(&mut errors.sums)
            }
        });
        vec![
            super::tables(&mut self.evaluation),
            Content::Errors(errors.collect()),
        ]
    }
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
