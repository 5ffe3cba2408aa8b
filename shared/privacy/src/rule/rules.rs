//! Every rule of a site, with its default.

use super::allowed::Allowed;
use super::limits::Limits;
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
    /// The limits of a study, at most.
    pub ceilings: Limits,
    /// A study's `outcome_epsilon` at most: how much noise hides each patient's outcome in what is told of groups.
    pub outcome_epsilon_max: f64,
}

/// The usual `outcome_epsilon` of a study, and a site's usual ceiling for it.
pub const OUTCOME_EPSILON: f64 = 1.0;
/// No site can mean a greater one.
const OUTCOME_EPSILON_END: f64 = 10.0;

/// Which ones can be.
pub const OUTCOME_EPSILON_WANTED: &str = "a number above 0, at most 10";

/// Whether so much noise can be meant.
#[must_use]
pub fn is_outcome_epsilon(epsilon: f64) -> bool {
    epsilon > 0.0 && epsilon <= OUTCOME_EPSILON_END
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
            patients_min: 10,
            class_patients_min: 10,
            cell_min: 10,
            terminal_node_min: 10,
            sites_min: 3,
            permissions: BTreeSet::new(),
            ceilings: Limits {
                runs: 100,
                rounds: 5_000,
                queries: 1_000,
                metrics_for_groups: 1,
            },
            outcome_epsilon_max: OUTCOME_EPSILON,
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
            ("sites_min", self.sites_min),
        ];
        let minima = minima.into_iter().filter(|(_, minimum)| *minimum == 0);
        let minima = minima.map(|(rule, minimum)| InvalidRule {
            rule,
            found: minimum.to_string(),
            wanted: "a whole number of 1 or more",
        });
        let epsilon = (!is_outcome_epsilon(self.outcome_epsilon_max)).then(|| InvalidRule {
            rule: "outcome_epsilon_max",
            found: self.outcome_epsilon_max.to_string(),
            wanted: OUTCOME_EPSILON_WANTED,
        });
        minima.chain(epsilon).collect()
    }
}
