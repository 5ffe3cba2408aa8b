//! On what terms every method begins, and what it may say instead of a place.

use crate::cohort::{CohortSpecification, Value};
use crate::message::{ColumnHistogram, Description};
use privacy::{Permission, ValidationFacts};
use similarity::learn::unpsl::Totals;
use similarity::numeric::seed::Seed;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a run asks of a site's policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needs {
    /// Beside what every run may tell.
    pub permissions: BTreeSet<Permission>,
    /// Rounds at most.
    pub rounds: u64,
    /// Folds of a cross-validation, whose rounds each leave one out; 1 where there is none.
    pub folds: u64,
    /// A validation without which the run goes on where a site's rules do not let it be.
    pub validation: Option<ValidationFacts>,
    /// Patients of others, and centres of clusters, about which it asks who is alike.
    pub queries: u64,
}

impl Needs {
    /// What every run may do anyway.
    pub(crate) fn nothing() -> Self {
        Self {
            permissions: BTreeSet::new(),
            rounds: 0,
            folds: 1,
            validation: None,
            queries: 0,
        }
    }
}

/// What a method begins with, once all sites have described their cohorts.
#[derive(Debug, Clone)]
pub(crate) struct Beginning {
    pub(crate) cohort: Arc<CohortSpecification>,
    pub(crate) seed: Seed,
    /// Sites of the run.
    pub(crate) sites: usize,
    /// Patients of the site that has most, as it approved them; 0 of a run in one process. One hospital may have made them all up.
    pub(crate) largest: u64,
    /// Who the patients of all of them are.
    pub(crate) description: Description,
    /// What they come to on the job's grids.
    pub(crate) counts: Arc<Vec<ColumnHistogram>>,
}

/// Which sites judge held-out patients, where not all do.
pub(crate) fn judges_in_words(judges: u64, sites: u64) -> Option<String> {
    (judges < sites).then(|| {
        format!(
            "Held-out patients of {judges} of {sites} sites are judged. The others have too few to judge by folds; what was learned was \
             learned from their patients as well."
        )
    })
}

/// What is said where neighbours do not judge all patients.
pub(crate) fn drawn_in_words(totals: &Totals) -> Option<String> {
    let count = totals.judged_one_in();
    (count > 1).then(|| {
        format!(
            "Neighbours judge one patient in {count}, drawn at random by each site: all would take {count} times as long."
        )
    })
}

/// Patients of elsewhere who have no place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unplaced {
    /// The run has learned nothing by whose vectors patients are compared.
    #[error(
        "the run has no metric, no weights and no common forest to compare patients of elsewhere by; wanted a run of {:?}, {:?} or {:?} \
         (scope = \"federated\") that has learned one",
        "unpsl",
        "regression",
        "forest"
    )]
    Nothing,
    /// The run is no regression.
    #[error(
        "only a regression has a risk at which a distance can be anchored; wanted a run of {:?}, or no anchor",
        "regression"
    )]
    Anchor,
    /// A value is wanted, by the number of the patient from 0 and the feature.
    #[error("values are missing and nothing imputes them")]
    Missing(Vec<(usize, String)>),
}

/// Where all patients of elsewhere are. `place` says where one is, or the features of which a value is wanted.
pub(crate) fn placed(
    patients: &[Vec<Value>],
    place: impl Fn(&[Value]) -> Result<Vec<f64>, Vec<String>>,
) -> Result<Vec<Vec<f64>>, Unplaced> {
    let (mut placed, mut missing) = (Vec::new(), Vec::new());
    for (row, patient) in patients.iter().enumerate() {
        match place(patient) {
            Ok(vector) => placed.push(vector),
            Err(features) => missing.extend(features.into_iter().map(|one| (row, one))),
        }
    }
    let is_nowhere = |vector: &Vec<f64>| vector.is_empty();
    match missing.is_empty() {
        true if placed.iter().any(is_nowhere) => Err(Unplaced::Nothing),
        true => Ok(placed),
        false => Err(Unplaced::Missing(missing)),
    }
}
