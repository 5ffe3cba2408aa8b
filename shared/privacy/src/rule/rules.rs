//! Every rule of a site, with its default.

use super::allowed::Allowed;
use super::permission::Permission;
use std::collections::BTreeSet;

/// Every rule of a site, each named as `[policy]` of site.toml spells it. The default is closed:
/// the lists are empty, nothing is permitted, the minima are those of the project.
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
    /// Sites of a job, at least: what is pooled over fewer is nearly one site's own.
    pub sites_min: u64,
    /// What may be asked for beyond the usual messages, each a key of its own.
    pub permissions: BTreeSet<Permission>,
    /// Runs on one cohort, at most.
    pub runs_per_cohort_max: u64,
    /// Rounds on one cohort over all runs, at most.
    pub rounds_per_cohort_max: u64,
    /// A cohort must be the same as an earlier one, or differ from it by at least so many patients.
    pub cohort_difference_min: u64,
    /// Patients of others of whom it may be asked who in one cohort is alike, over all runs.
    pub queries_per_cohort_max: u64,
    /// Learned runs by which one cohort may be parted into the groups that such answers are made of.
    pub groupings_per_cohort_max: u64,
    /// Jobs of one operator that may have a cohort read and described in a day, at most.
    pub descriptions_per_day_max: u64,
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
            permissions: BTreeSet::new(),
            runs_per_cohort_max: 20,
            rounds_per_cohort_max: 2_000,
            cohort_difference_min: 10,
            queries_per_cohort_max: 1_000,
            groupings_per_cohort_max: 1,
            descriptions_per_day_max: 50,
        }
    }
}

impl Rules {
    /// Every rule that cannot be meant.
    pub(crate) fn invalid(&self) -> Vec<InvalidRule> {
        let minima = [
            ("patients_min", self.patients_min),
            ("cell_min", self.cell_min),
            ("terminal_node_min", self.terminal_node_min),
            ("cohort_difference_min", self.cohort_difference_min),
            ("sites_min", self.sites_min),
        ];
        minima
            .into_iter()
            .filter(|(_, minimum)| *minimum == 0)
            .map(|(rule, minimum)| InvalidRule {
                rule,
                found: minimum.to_string(),
                wanted: "a whole number of 1 or more",
            })
            .collect()
    }
}
