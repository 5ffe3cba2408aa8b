//! Where what a run has learnt places patients of elsewhere.

use super::terms::{self, Placing};
use super::{Model, Unplaced, forest, regression, unpsl};
use crate::cohort::{CohortSpecification, Value};
use similarity::compare::proximity::places;

impl Model {
    /// By how many numbers it places a patient of `cohort`.
    ///
    /// # Errors
    /// [`Unplaced::Nothing`].
    pub fn coordinates(&self, cohort: &CohortSpecification) -> Result<usize, Unplaced> {
        let coordinates = match self {
            Self::Unpsl(model) => model.metric.as_ref().map_or(0, |metric| metric.ncols()),
            // One a feature, straight or curved.
            Self::Regression(model) if !model.coefficients.is_empty() => cohort.features.len(),
            Self::Forest(model) if model.forest.is_some() => {
                places::coordinates(cohort.features.len())
            }
            Self::Regression(_)
            | Self::Forest(_)
            | Self::Neighbours(_)
            | Self::Cluster(_)
            | Self::Compare(_)
            | Self::Card(_) => 0,
        };
        match coordinates {
            0 => Err(Unplaced::Nothing),
            coordinates => Ok(coordinates),
        }
    }

    /// Where it places patients of elsewhere, who have these values in the features of `cohort`.
    ///
    /// # Errors
    /// [`Unplaced`].
    pub fn place(
        &self,
        cohort: &CohortSpecification,
        patients: &[Vec<Value>],
    ) -> Result<Vec<Vec<f64>>, Unplaced> {
        if !self.is_learnt(false) {
            return Err(Unplaced::Nothing);
        }
        let place: Box<Placing<'_>> = match self {
            Self::Unpsl(model) => Box::new(|patient| unpsl::placing::place(model, cohort, patient)),
            // A curve is told by its knots, and patients of elsewhere are placed by straight lines alone.
            Self::Regression(model) if model.splines.is_empty() => {
                Box::new(|patient| regression::placing::place(model, cohort, patient))
            }
            Self::Forest(model) => {
                let common = model.forest.as_ref().ok_or(Unplaced::Nothing)?;
                let placer = forest::placing::Placer::new(common, cohort);
                let placer = placer.map_err(|_| Unplaced::Nothing)?;
                Box::new(move |patient| placer.place(patient))
            }
            Self::Regression(_)
            | Self::Neighbours(_)
            | Self::Cluster(_)
            | Self::Compare(_)
            | Self::Card(_) => return Err(Unplaced::Nothing),
        };
        terms::placed(patients, &*place)
    }
}
