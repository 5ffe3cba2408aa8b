//! What a run of forests leaves to its operator.

use super::assembly::assemble;
use super::message::Trees;
use super::placing::Placer;
use crate::cohort::CohortSpecification;
use crate::cohort::Value;
use crate::exchange::Course;
use crate::method::room::{MethodModel, Placing};
use crate::method::{Unplaced, placed};
use similarity::compare::proximity::places;
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

impl MethodModel for Model {
    fn course(&self) -> Course {
        Course::default()
    }

    fn judges(&self) -> Option<u32> {
        None
    }

    fn is_learnt(&self, assessed: bool) -> bool {
        self.forest.is_some() || assessed
    }

    /// Every number of it is one over all patients, or of a gate of its own.
    fn publish(&mut self, _: u64) {}

    fn placing(&self) -> Option<&dyn Placing> {
        Some(self)
    }
}

impl Placing for Model {
    fn coordinates(&self, cohort: &CohortSpecification) -> usize {
        match self.forest {
            Some(_) => places::coordinates(cohort.features.len()),
            None => 0,
        }
    }

    fn place(
        &self,
        cohort: &CohortSpecification,
        patients: &[Vec<Value>],
    ) -> Result<Vec<Vec<f64>>, Unplaced> {
        let common = self.forest.as_ref().ok_or(Unplaced::Nothing)?;
        let placer = Placer::new(common, cohort).map_err(|_| Unplaced::Nothing)?;
        placed(patients, |patient| placer.place(patient))
    }
}
