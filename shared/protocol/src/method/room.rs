//! What each method says of itself. No trait here has a default: a method that has nothing to say says so.

use super::asking::Asker;
use super::regression::message::Evaluating;
use super::terms::{Beginning, Needs, Unplaced};
use crate::assessment::Assessment;
use crate::cohort::{
    CohortSpecification, Feature, Grids, Judgements, MissingShare, OutcomeSpecification, Value,
};
use crate::document::Section;
use crate::exchange::{Asking, Closed, Course, Turn};
use crate::failure::Failure;
use crate::limits::VALIDATION_FOLDS;
use crate::message::Answer;
use crate::progress::Ending;
use crate::study::{Parts, Study};
use ndarray::Array2;
use privacy::Disclosure;
use privacy::sums::Summand;
use similarity::numeric::precision::Precision;

/// What surrounds a method's table in a job.
pub(crate) struct Reading<'r> {
    /// None where it could not be read.
    pub(crate) outcome: Option<&'r OutcomeSpecification>,
    pub(crate) features: &'r [Feature],
    /// Sites of the job.
    pub(crate) sites: usize,
    pub(crate) study: Option<&'r Study>,
    pub(crate) judgements: Option<&'r Judgements>,
}

impl Reading<'_> {
    /// The folds of a job that names none.
    pub(crate) fn folds(&self) -> u32 {
        self.study.map_or(VALIDATION_FOLDS, |study| study.folds)
    }
}

/// A method's settings: its table of the job.
pub(crate) trait MethodSettings: Sized {
    /// What runs it at the coordinator.
    type Stages: MethodStages<Settings = Self>;
    /// Whether it is of all outcomes and features of a study, and so allowed by each.
    const IS_OF_ALL: bool;

    /// What it takes of the ended run that it asks by; none of a method that asks by none.
    fn asking() -> Option<Asker>;

    /// Reads the table, and reports what the method needs that outcome or features do not have.
    fn read(root: &mut Section<'_, '_>, at: &Reading<'_>) -> Option<Self>;

    /// The method on sums that are known so finely.
    #[must_use]
    fn precisely(self, precision: Precision) -> Self;

    /// The method on one cohort alone.
    #[must_use]
    fn alone(self) -> Self;

    /// Into which parts it divides the patients of each site.
    fn divides(&self) -> Parts;

    /// What the sites of a study count on grids for all jobs of it, where forests may be common to them or not.
    fn grids_of_all(cohort: &CohortSpecification, common_forests: bool) -> Grids;

    /// What it takes of that for one job.
    fn grids(&self, cohort: &CohortSpecification) -> Grids;

    /// Nothing, in the shape of the largest answers that it has summed: at least one of each kind, where no feature is constant.
    fn largest(&self, cohort: &CohortSpecification) -> Vec<Answer>;

    /// What it needs of a site's policy.
    fn needs(&self) -> Needs;

    /// Begins at the coordinator.
    fn begin(&self, beginning: &Beginning) -> Result<Self::Stages, Failure>;
}

/// A method under way, at the coordinator.
pub(crate) trait MethodStages {
    /// Its table of the job.
    type Settings;
    /// What a run of it leaves.
    type Model;

    /// The settings, with what was chosen.
    fn settings(&self) -> &Self::Settings;

    /// What is asked at present.
    fn asking(&self) -> &dyn Asking;

    /// Takes the answers of a closed exchange.
    fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure>;

    /// What the run leaves, as it stands.
    fn model(&self) -> Self::Model;

    /// What all patients together miss of the features; empty where no moments are pooled.
    fn missing(&self) -> &[MissingShare];

    /// The last word on the model, as a sum over the sites; none before it is there, or where there is none.
    fn assessment(&self) -> Option<&Assessment>;
}

/// What a method asks.
pub(crate) trait Question {
    /// The kind of message that answers it.
    fn answer_kind(&self) -> &'static str;

    /// The rounds that its answer costs.
    fn rounds(&self) -> u64;

    /// Whether the site must have been prepared before.
    fn builds_on_preparation(&self) -> bool;

    /// Whether a site that answered it is ready for what comes after; one that starts again must do it again.
    fn leaves_state(&self) -> bool;

    /// The regressions by which it has something predicted of the patients.
    fn points(&self) -> Vec<&Evaluating>;

    /// The metrics under which it has the patients compared.
    fn metrics(&self) -> Vec<&Array2<f64>>;
}

/// What a site answers to a method: what of it adds up, what it carries of the cohort, and where it was found.
pub(crate) trait MethodAnswer: Disclosure + Summand {
    /// The metric that it was found at, of which it tells the gradient.
    fn metric(&self) -> Option<&Array2<f64>>;
}

/// What a run of a method leaves.
pub(crate) trait MethodModel {
    /// How far its rounds came.
    fn course(&self) -> Course;

    /// Sites whose held-out patients judge it; none where those of all sites do.
    fn judges(&self) -> Option<u32>;

    /// Whether anything was learnt, where sites have `assessed` it or not.
    fn is_learnt(&self, assessed: bool) -> bool;

    /// Withholds of what is the sum over the sites what the default rules demand of one. No hospital has more than `largest` patients.
    fn publish(&mut self, largest: u64);

    /// Where it places patients; none of a method that places nobody.
    fn placing(&self) -> Option<&dyn Placing>;
}

/// What places patients of elsewhere.
pub(crate) trait Placing {
    /// By how many numbers it places a patient of `cohort`; 0 where it places none.
    fn coordinates(&self, cohort: &CohortSpecification) -> usize;

    /// Where it places patients of elsewhere, who have these values in the features of `cohort`.
    ///
    /// # Errors
    /// [`Unplaced`].
    fn place(
        &self,
        cohort: &CohortSpecification,
        patients: &[Vec<Value>],
    ) -> Result<Vec<Vec<f64>>, Unplaced>;
}
