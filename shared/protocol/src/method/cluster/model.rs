//! What a run that looks for groups of patients leaves to its operator.

use super::choosing;
pub use super::message::{Mark, Marks};
use crate::cohort::OutcomeKind;
use crate::exchange::Course;
pub use crate::message::neighbours::Alike;
pub use crate::method::neighbours::model::{GridCurve, GridPoint, Interval, Outlook};
use crate::method::room::{MethodModel, Placing};
use ndarray::Array2;
pub use similarity::uses::clusters::Bias;

/// Groups of patients that the sites have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The run that patients were compared by.
    pub run: String,
    /// Patients of all sites.
    pub patients: u64,
    /// Of them those who are in a group of their site, and so in a cluster.
    pub grouped: u64,
    /// Questions that moved the centres.
    pub steps: u32,
    /// Searches, of all groups, that were not over when no more was asked.
    pub unsettled: u32,
    /// By rising number of clusters; none before they are compared.
    pub tried: Vec<Tried>,
    /// The place in `tried` of what is shown; none where no division is stable and several were tried.
    pub shown: Option<u32>,
    /// The centres of what is shown, one row a cluster.
    pub centres: Array2<f64>,
    /// What the patients of each are like; none before that is known.
    pub marks: Vec<Marks>,
}

/// A number of clusters that was tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Tried {
    /// How much of the outcome the clusters leave open; none where that cannot be said.
    pub bias: Option<Bias>,
    /// Of every cluster how well it is found again in samples, the largest cluster first.
    pub stability: Vec<f64>,
    /// How the patients of each fared.
    pub fared: Vec<Alike>,
    /// Whether every cluster is stable.
    pub is_stable: bool,
}

impl Tried {
    /// How the patients of a cluster fared, of an outcome of this kind; none of nobody.
    #[must_use]
    pub fn outlook(&self, cluster: usize, kind: &OutcomeKind) -> Option<Outlook> {
        let mut everybody = Alike::nobody(kind);
        self.fared.iter().for_each(|one| everybody.add(1.0, one));
        self.fared.get(cluster)?.outlook(&everybody, kind)
    }

    /// Clusters.
    #[must_use]
    pub fn clusters(&self) -> usize {
        self.stability.len()
    }
}

impl Model {
    /// What is shown.
    #[must_use]
    pub fn shown(&self) -> Option<&Tried> {
        self.tried.get(self.shown? as usize)
    }

    /// The chance of every stable division that permuted outcomes gain as much over the best of fewer clusters.
    #[must_use]
    pub fn chances(&self, kind: &OutcomeKind) -> Vec<Option<f64>> {
        choosing::gains(&self.tried, kind).0.chances
    }

    /// Whether the outcomes of the clusters that are shown differ beyond chance; none where nothing is shown.
    #[must_use]
    pub fn outcomes_differ(&self, kind: &OutcomeKind) -> Option<bool> {
        let (_, divided) = choosing::gains(&self.tried, kind);
        let left = choosing::left(self.shown()?);
        Some(left.is_some_and(|left| left.differs(divided)))
    }
}

impl MethodModel for Model {
    fn course(&self) -> Course {
        Course::default()
    }

    fn judges(&self) -> Option<u32> {
        None
    }

    fn is_learnt(&self, _: bool) -> bool {
        !self.tried.is_empty()
    }

    /// Every number of it is one over all patients, or of a gate of its own.
    fn publish(&mut self, _: u64) {}

    fn placing(&self) -> Option<&dyn Placing> {
        None
    }
}
