//! What a policy judges of a job.

use crate::job::{Job, Method, OutcomeKind};
use privacy::JobFacts;
use similarity::unpsl::CorrelationScope;

impl Job {
    /// The facts of this job, submitted by `operator`, that a site's policy judges.
    #[must_use]
    pub fn facts(&self, operator: &str) -> JobFacts {
        let Method::Unpsl(settings) = &self.method;
        let mut outcomes = vec![self.outcome.column.clone()];
        if let OutcomeKind::Survival { event, .. } = &self.outcome.kind {
            outcomes.push(event.clone());
        }
        JobFacts {
            operator: operator.to_owned(),
            method: self.method.name().to_owned(),
            outcomes,
            features: self
                .features
                .iter()
                .map(|feature| feature.name.clone())
                .collect(),
            second_moments: settings.objective.correlation == CorrelationScope::Pooled,
            round_limit: settings.rounds(),
            folds: settings
                .selection
                .as_ref()
                .map_or(1, |selection| u64::from(selection.folds)),
        }
    }
}

impl Method {
    /// The method's name, as job files and policies spell it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unpsl(_) => "unpsl",
        }
    }
}
