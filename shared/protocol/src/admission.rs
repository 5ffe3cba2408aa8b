//! What a policy judges of a job.

use crate::job::{ForestScope, Job, Method, OutcomeKind};
use privacy::{JobFacts, Permission};

impl Job {
    /// The facts of this job, submitted by `operator`, that a site's policy judges.
    #[must_use]
    pub fn facts(&self, operator: &str) -> JobFacts {
        let (permission, round_limit, folds) = match &self.method {
            // Rounds tell the second moments, also where the job pools no correlation: where all similarities are near 0, a
            // gradient is linear in them.
            Method::Unpsl(settings) => (
                Some(Permission::SecondMoments),
                settings.rounds(),
                settings
                    .selection
                    .as_ref()
                    .map_or(1, |selection| u64::from(selection.folds)),
            ),
            // Trees that leave are a round; a forest that stays asks for none.
            Method::Forest(settings) => {
                let federated = settings.scope == ForestScope::Federated;
                let permission = federated.then_some(Permission::Forests);
                (permission, u64::from(federated), 1)
            }
        };
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
            sites_min: self.sites_min as u64,
            permissions: permission.into_iter().collect(),
            round_limit,
            folds,
        }
    }
}

impl Method {
    /// The method's name, as job files and policies spell it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unpsl(_) => "unpsl",
            Self::Forest(_) => "forest",
        }
    }
}
