//! The outcome and the features of a run, for machines: names, labels, kinds and units.

use crate::outcome::{GroupEntry, groups};
use protocol::cohort::OutcomeKind;
use protocol::job::Job;
use protocol::result::RunResult;
use serde::Serialize;

/// Which patients a run is about, and what of them.
#[derive(Serialize)]
pub(crate) struct CohortEntry<'j> {
    outcome: OutcomeEntry<'j>,
    /// How many of each group; none where few have one.
    groups: Vec<GroupEntry>,
    features: Vec<FeatureEntry<'j>>,
}

/// The outcome as the study names it; a job without a study names its column.
#[derive(Serialize)]
pub(crate) struct OutcomeEntry<'j> {
    name: &'j str,
    label: &'j str,
    kind: &'static str,
    unit: &'j str,
    /// Of a survival time.
    #[serde(skip_serializing_if = "Option::is_none")]
    horizon: Option<f64>,
    /// Times by which its risk is given.
    #[serde(skip_serializing_if = "<[f64]>::is_empty")]
    horizons: &'j [f64],
}

#[derive(Serialize)]
struct FeatureEntry<'j> {
    name: &'j str,
    label: &'j str,
    kind: &'static str,
    unit: &'j str,
}

impl<'j> CohortEntry<'j> {
    pub(crate) fn new(result: &RunResult, job: &'j Job) -> Self {
        let features = job.cohort.features.iter().map(|feature| FeatureEntry {
            name: &feature.name,
            label: &feature.label,
            kind: feature.kind.name(),
            unit: feature.unit(),
        });
        Self {
            outcome: OutcomeEntry::new(job),
            groups: groups(
                &job.cohort.outcome,
                &result.pooled.classes,
                result.patients(),
            ),
            features: features.collect(),
        }
    }
}

impl<'j> OutcomeEntry<'j> {
    pub(crate) fn new(job: &'j Job) -> Self {
        let own = &job.cohort.outcome;
        let named = job.study_outcome();
        let horizon = own.kind.horizon();
        Self {
            name: named.map_or(&own.column, |named| &named.name),
            label: &own.label,
            kind: match &own.kind {
                OutcomeKind::Binary { .. } => "binary",
                OutcomeKind::Categorical { .. } => "categorical",
                OutcomeKind::Numeric => "numeric",
                OutcomeKind::Survival { .. } => "survival",
            },
            unit: &own.unit,
            horizon: horizon.is_finite().then_some(horizon),
            horizons: own.kind.horizons(),
        }
    }
}
