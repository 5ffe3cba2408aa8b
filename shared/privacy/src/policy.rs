//! The doors of one site, as its owner set them.

use crate::admission::{self, Admission};
use crate::facts::JobFacts;
use crate::rule::{InvalidRule, Limits, Refusal, Rules};

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
        // A rule that is not named here does not compile.
        let Rules {
            operators: _,
            methods: _,
            patients_min,
            class_patients_min,
            cell_min,
            terminal_node_min,
            sites_min,
            permissions,
            ceilings,
            outcome_epsilon_max,
        } = &self.rules;
        let mut sentences = Vec::new();
        let minima = [
            ("patients_min", *patients_min, default.patients_min),
            (
                "class_patients_min",
                *class_patients_min,
                default.class_patients_min,
            ),
            ("cell_min", *cell_min, default.cell_min),
            (
                "terminal_node_min",
                *terminal_node_min,
                default.terminal_node_min,
            ),
            ("sites_min", *sites_min, default.sites_min),
        ];
        for (rule, own, default) in minima {
            if own < default {
                sentences.push(format!("{rule} is {own}, lowered from {default}."));
            }
        }
        for granted in permissions.difference(&default.permissions) {
            let rule = granted.name();
            sentences.push(format!("{rule} is true, where it is false unless set."));
        }
        let raised = ceilings.beyond(&default.ceilings);
        sentences.extend(raised.map(|one| {
            format!(
                "{} is {}, raised from {}.",
                one.ceiling, one.asked, one.most
            )
        }));
        if *outcome_epsilon_max > default.outcome_epsilon_max {
            sentences.push(format!(
                "outcome_epsilon_max is {outcome_epsilon_max}, raised from {}.",
                default.outcome_epsilon_max
            ));
        }
        sentences
    }
}
