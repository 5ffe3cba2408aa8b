//! What a run of forests leaves to its operator.

use super::assembly::assemble;
use super::message::Trees;
use crate::cohort::CohortSpecification;
use similarity::learn::forest::Forest;
use similarity::learn::forest::trees::format::FormatError;
use std::sync::Arc;

/// The common forest, where there is one.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The forest; none where every site has one of its own, or no trees came.
    pub forest: Option<CommonForest>,
    /// Trees of the common forest that each site grew.
    pub trees: Vec<u32>,
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

impl CommonForest {
    /// The forest.
    ///
    /// # Errors
    /// [`FormatError`] where it is not a forest of such a cohort.
    pub fn assembled(&self, cohort: &CohortSpecification) -> Result<Forest, FormatError> {
        let trees = &self.trees.trees;
        assemble(cohort, &self.event_times, &self.class_weights, trees)
    }

    /// The same as a file (`similarity::learn::forest::trees::format`).
    ///
    /// # Errors
    /// [`FormatError`] where it is not a forest of such a cohort.
    pub fn to_bytes(&self, cohort: &CohortSpecification) -> Result<Vec<u8>, FormatError> {
        Ok(self.assembled(cohort)?.to_bytes())
    }
}
