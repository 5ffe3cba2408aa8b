//! The rules of one site, as its owner wrote them.

use crate::admission::{self, Admission, JobFacts, Refusal};
use std::collections::BTreeSet;
use std::fmt;

/// The name that stands for all, where the owner writes it explicitly.
const EVERYTHING: &str = "*";

/// Which names a rule allows. Nothing is allowed until it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// These, and no other; none where the list is empty.
    Listed(BTreeSet<String>),
    /// Every name: the owner wrote `"*"`.
    Everything,
}

/// Every rule of a site, each named as `[policy]` of site.toml spells it. The default is closed:
/// the lists are empty, the minima those of the project.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// Operators who may submit jobs.
    pub operators: Allowed,
    /// Methods that may run.
    pub methods: Allowed,
    /// Columns that may be an outcome, or part of one.
    pub outcomes: Allowed,
    /// Features that may be used.
    pub features: Allowed,
    /// Patients in a cohort, and behind every released sum, at least.
    pub patients_min: u64,
    /// Patients in each outcome class, at least.
    pub class_patients_min: u64,
    /// A count of 1 to `cell_min - 1` patients is withheld.
    pub cell_min: u64,
    /// Patients in a terminal node of a released tree, at least.
    pub terminal_node_min: u64,
    /// Sites of which a job must require answers, at least: what is pooled over fewer is nearly one site's own.
    pub sites_min: u64,
    /// Whether the d x d second moments of the patients may be learnt: rounds of UnPSL tell them, and
    /// `correlation = "pooled"` sends them.
    pub second_moments: bool,
    /// Whether the trees of a forest may leave (`scope = "federated"`).
    pub forests: bool,
    /// Runs on one cohort, at most.
    pub runs_per_cohort_max: u64,
    /// Rounds on one cohort over all runs, at most.
    pub rounds_per_cohort_max: u64,
    /// A cohort must be the same as an earlier one, or differ from it by at least so many patients.
    pub cohort_difference_min: u64,
    /// Jobs of one operator that may have a cohort read and described in a day, at most.
    pub descriptions_per_day_max: u64,
    /// Mean similarity of a patient with itself, ||W'x||^2, at most: a metric of larger ones parts
    /// patients by steps, whose jumps tell of single ones.
    pub similarity_max: f64,
}

/// The rules of a site, checked. Closed by default.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Policy {
    rules: Rules,
}

/// A rule that no site can mean.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: found {found}, wanted {wanted}")]
pub struct InvalidRule {
    /// The rule, as site.toml names it.
    pub rule: &'static str,
    /// What it was set to.
    pub found: String,
    /// What it may be.
    pub wanted: &'static str,
}

impl Allowed {
    /// Nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Self::Listed(BTreeSet::new())
    }

    /// The names of a list; `"*"` among them allows every name.
    pub fn listed<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        let names: BTreeSet<String> = names.into_iter().map(Into::into).collect();
        if names.contains(EVERYTHING) {
            Self::Everything
        } else {
            Self::Listed(names)
        }
    }

    /// True where `name` is allowed.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        match self {
            Self::Listed(names) => names.contains(name),
            Self::Everything => true,
        }
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everything => formatter.write_str("all"),
            Self::Listed(names) if names.is_empty() => {
                formatter.write_str("none, as none is listed")
            }
            Self::Listed(names) => {
                let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
                formatter.write_str(&names.join(", "))
            }
        }
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            operators: Allowed::nothing(),
            methods: Allowed::nothing(),
            outcomes: Allowed::nothing(),
            features: Allowed::nothing(),
            patients_min: 10,
            class_patients_min: 10,
            cell_min: 10,
            terminal_node_min: 10,
            sites_min: 3,
            second_moments: false,
            forests: false,
            runs_per_cohort_max: 20,
            rounds_per_cohort_max: 2_000,
            cohort_difference_min: 10,
            descriptions_per_day_max: 50,
            similarity_max: 100.0,
        }
    }
}

impl Policy {
    /// Takes `rules` as the policy of a site.
    ///
    /// # Errors
    /// Every [`InvalidRule`], where a rule cannot be meant.
    pub fn new(rules: Rules) -> Result<Self, Vec<InvalidRule>> {
        const POSITIVE: &str = "a whole number of 1 or more";
        let minima = [
            ("patients_min", rules.patients_min),
            ("cell_min", rules.cell_min),
            ("terminal_node_min", rules.terminal_node_min),
            ("cohort_difference_min", rules.cohort_difference_min),
            ("sites_min", rules.sites_min),
        ];
        let mut invalid: Vec<InvalidRule> = minima
            .into_iter()
            .filter(|(_, minimum)| *minimum == 0)
            .map(|(rule, minimum)| InvalidRule {
                rule,
                found: minimum.to_string(),
                wanted: POSITIVE,
            })
            .collect();
        let similarity = rules.similarity_max;
        if !similarity.is_finite() || similarity <= 0.0 {
            invalid.push(InvalidRule {
                rule: "similarity_max",
                found: similarity.to_string(),
                wanted: "a number above 0",
            });
        }
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
        admission::admit(self, job)
    }

    /// The door before the source is read: judges how many other jobs of one operator had a cohort described `today`.
    ///
    /// # Errors
    /// A [`Refusal`] by `descriptions_per_day_max`.
    pub fn describe(&self, today: u64) -> Result<(), Refusal> {
        let maximum = self.rules.descriptions_per_day_max;
        if today < maximum {
            return Ok(());
        }
        let text = format!(
            "other jobs of this operator have used up the {maximum} descriptions of a cohort that the site allows each operator \
             a day"
        );
        Err(Refusal::new("descriptions_per_day_max", text))
    }

    /// Every rule against the job, one a rule; empty where the job would be admitted.
    #[must_use]
    pub fn refusals(&self, job: &JobFacts) -> Vec<Refusal> {
        admission::refusals(self, job)
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
        for (rule, own) in [
            ("second_moments", own.second_moments),
            ("forests", own.forests),
        ] {
            if own {
                sentences.push(format!("{rule} is true, where it is false unless set."));
            }
        }
        let maxima = [
            (
                "runs_per_cohort_max",
                own.runs_per_cohort_max,
                default.runs_per_cohort_max,
            ),
            (
                "rounds_per_cohort_max",
                own.rounds_per_cohort_max,
                default.rounds_per_cohort_max,
            ),
            (
                "descriptions_per_day_max",
                own.descriptions_per_day_max,
                default.descriptions_per_day_max,
            ),
        ];
        for (rule, own, default) in maxima {
            if own > default {
                sentences.push(format!("{rule} is {own}, raised from {default}."));
            }
        }
        let (similarity, default) = (own.similarity_max, default.similarity_max);
        if similarity > default {
            sentences.push(format!(
                "similarity_max is {similarity}, raised from {default}."
            ));
        }
        sentences
    }
}
