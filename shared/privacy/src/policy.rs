//! The doors of one site, as its owner set them.

use crate::admission::{self, Admission};
use crate::facts::JobFacts;
use crate::rule::{InvalidRule, Limits, Minimum, Refusal, Rules};

/// The rules of a site, checked. Closed by default.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Policy {
    rules: Rules,
}

impl Policy {
    /// Takes `rules` as the policy of a site.
    ///
    /// # Errors
    /// Every [`InvalidRule`], where a rule cannot be meant.
    pub fn new(rules: Rules) -> Result<Self, Vec<InvalidRule>> {
        let invalid = rules.invalid();
        if invalid.is_empty() {
            Ok(Self { rules })
        } else {
            Err(invalid)
        }
    }

    /// The rules.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The first door: judges what a job asks, before anything is read or computed. `used` is what other runs of its study have used
    /// of the limits; its `metrics_for_groups` are those other than the job's own.
    ///
    /// # Errors
    /// One [`Refusal`] that names every rule against the job.
    pub fn admit(&self, job: &JobFacts, used: &Limits) -> Result<Admission, Refusal> {
        admission::admit(&self.rules, job, used)
    }

    /// Every refusal of the job, one per rule; empty where the job would be admitted.
    #[must_use]
    pub fn refusals(&self, job: &JobFacts, used: &Limits) -> Vec<Refusal> {
        admission::refusals(&self.rules, job, used)
    }

    /// One sentence for every rule that protects less than the default does. What is listed as
    /// allowed is no lowering: nothing would run without it.
    #[must_use]
    pub fn lowered(&self) -> Vec<String> {
        let default = Rules::default();
        let mut sentences = Vec::new();
        for (minimum, own) in self.rules.minima() {
            let Minimum { rule, default, .. } = minimum;
            if own < default {
                sentences.push(format!("{rule} is {own}, lowered from {default}."));
            }
        }
        for granted in (self.rules.permissions).difference(&default.permissions) {
            let rule = granted.name();
            sentences.push(format!("{rule} is true, where it is false unless set."));
        }
        let raised = self.rules.ceilings.beyond(&default.ceilings);
        sentences.extend(raised.map(|one| {
            format!(
                "{} is {}, raised from {}.",
                one.ceiling, one.asked, one.most
            )
        }));
        sentences
    }
}
