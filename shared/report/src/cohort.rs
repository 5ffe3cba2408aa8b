//! The outcome and the features of a run, for machines: names, labels, kinds and units.

use protocol::cohort::OutcomeKind;
use protocol::job::Job;
use serde::Serialize;

/// Which patients a run is about, and what of them.
#[derive(Serialize)]
pub(crate) struct CohortEntry<'j> {
    outcome: OutcomeEntry<'j>,
    features: Vec<FeatureEntry<'j>>,
}

#[derive(Serialize)]
struct OutcomeEntry<'j> {
    name: &'j str,
    label: &'j str,
    kind: &'static str,
    unit: &'j str,
    /// Of a survival time.
    #[serde(skip_serializing_if = "Option::is_none")]
    horizon: Option<f64>,
}

#[derive(Serialize)]
struct FeatureEntry<'j> {
    name: &'j str,
    label: &'j str,
    kind: &'static str,
    unit: &'j str,
}

impl<'j> CohortEntry<'j> {
    pub(crate) fn new(job: &'j Job) -> Self {
        let features = job.cohort.features.iter().map(|feature| FeatureEntry {
            name: &feature.name,
            label: &feature.label,
            kind: feature.kind.name(),
            unit: feature.unit(),
        });
        Self {
            outcome: outcome(job),
            features: features.collect(),
        }
    }
}

/// As the study names it; a job without a study names its column.
fn outcome(job: &Job) -> OutcomeEntry<'_> {
    let own = &job.cohort.outcome;
    let column = own.column.as_str();
    let (name, label, unit) = match job.study_outcome() {
        Some(named) => (
            named.name.as_str(),
            named.label.as_str(),
            named.unit.as_str(),
        ),
        None => (column, column, ""),
    };
    let horizon = own.kind.horizon();
    OutcomeEntry {
        name,
        label,
        kind: match &own.kind {
            OutcomeKind::Binary { .. } => "binary",
            OutcomeKind::Categorical { .. } => "categorical",
            OutcomeKind::Numeric => "numeric",
            OutcomeKind::Survival { .. } => "survival",
        },
        unit,
        horizon: horizon.is_finite().then_some(horizon),
    }
}
