//! The doors of one site, as its owner set them.

use crate::admission::{self, Admission};
use crate::facts::JobFacts;
use crate::rule::{InvalidRule, Refusal, Rules};

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

    /// The first door: judges what a job asks, before anything is read or computed.
    ///
    /// # Errors
    /// One [`Refusal`] that names every rule against the job.
    pub fn admit(&self, job: &JobFacts) -> Result<Admission, Refusal> {
        admission::admit(&self.rules, job)
    }

    /// The door before the source is read: judges how many other jobs had a cohort described `today`.
    ///
    /// # Errors
    /// A [`Refusal`] by `descriptions_per_day_max`.
    pub fn describe(&self, today: u64) -> Result<(), Refusal> {
        let maximum = self.rules.descriptions_per_day_max;
        if today < maximum {
            return Ok(());
        }
        let text = format!(
            "other jobs have used up the {maximum} descriptions of a cohort that the site allows a day"
        );
        Err(Refusal::new("descriptions_per_day_max", text))
    }

    /// Every refusal of the job, one per rule; empty where the job would be admitted.
    #[must_use]
    pub fn refusals(&self, job: &JobFacts) -> Vec<Refusal> {
        admission::refusals(&self.rules, job)
    }

    /// One sentence for every rule that protects less than the default does. What is listed as
    /// allowed is no lowering: nothing would run without it.
    #[must_use]
    pub fn lowered(&self) -> Vec<String> {
        let (own, default) = (&self.rules, Rules::default());
        let mut sentences = Vec::new();
        let minima = [
            ("patients_min", own.patients_min, default.patients_min),
            (
                "class_patients_min",
                own.class_patients_min,
                default.class_patients_min,
            ),
            ("cell_min", own.cell_min, default.cell_min),
            (
                "terminal_node_min",
                own.terminal_node_min,
                default.terminal_node_min,
            ),
            (
                "cohort_difference_min",
                own.cohort_difference_min,
                default.cohort_difference_min,
            ),
            ("sites_min", own.sites_min, default.sites_min),
        ];
        for (rule, own, default) in minima {
            if own < default {
                sentences.push(format!("{rule} is {own}, lowered from {default}."));
            }
        }
        for granted in own.permissions.difference(&default.permissions) {
            let rule = granted.name();
            sentences.push(format!("{rule} is true, where it is false unless set."));
        }
        for ((rule, own), (_, default)) in maxima(own).into_iter().zip(maxima(&default)) {
            if own > default {
                sentences.push(format!("{rule} is {own}, raised from {default}."));
            }
        }
        sentences
    }
}

/// Rules that protect less, the larger they are.
fn maxima(rules: &Rules) -> [(&'static str, u64); 5] {
    [
        ("runs_per_cohort_max", rules.runs_per_cohort_max),
        ("rounds_per_cohort_max", rules.rounds_per_cohort_max),
        ("descriptions_per_day_max", rules.descriptions_per_day_max),
        ("queries_per_cohort_max", rules.queries_per_cohort_max),
        ("groupings_per_cohort_max", rules.groupings_per_cohort_max),
    ]
}
