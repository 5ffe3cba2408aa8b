//! The groups that an outcome of a study parts its patients into.

use super::StudyOutcome;
use crate::cohort::OutcomeKind;

impl StudyOutcome {
    /// The names of its groups, in order: its classes; of a survival time who has an event and who was censored; of a number
    /// whoever has one.
    #[must_use]
    pub fn groups(&self) -> Vec<String> {
        match &self.specification.kind {
            OutcomeKind::Survival { .. } => vec!["event".to_owned(), "censored".to_owned()],
            OutcomeKind::Numeric => vec!["all".to_owned()],
            kind @ (OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. }) => kind.classes(),
        }
    }

    /// What people read for one of its groups.
    #[must_use]
    pub fn group_label<'o>(&'o self, group: &'o str) -> &'o str {
        self.level_labels.get(group).map_or(group, String::as_str)
    }
}
