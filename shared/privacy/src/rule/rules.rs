//! Every rule of a site, with its default.

use super::allowed::Allowed;
use super::limits::Limits;
use super::permission::Permission;
use std::collections::BTreeSet;

/// Makes the rules of one table of minima: what each protects, its name as `[policy]` of site.toml spells it, its default, and the
/// least that can be meant.
macro_rules! rules {
    ($(#[doc = $doc:literal] $rule:ident = $default:literal, at least $least:literal;)*) => {
        /// Every rule of a site, each named as `[policy]` of site.toml spells it. The default is closed: the lists are empty, nothing
        /// is permitted, the minima are those of the project.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Rules {
            /// Operators who may submit jobs.
            pub operators: Allowed,
            /// Methods that may run.
            pub methods: Allowed,
            $(#[doc = $doc] pub $rule: u64,)*
            /// What may be asked for beyond the usual messages, each a key of its own.
            pub permissions: BTreeSet<Permission>,
            /// The limits of a study, at most.
            pub ceilings: Limits,
        }

        impl Rules {
            /// What each minimum is set to.
            #[must_use]
            pub fn minima(&self) -> Vec<(Minimum, u64)> {
                vec![$((Minimum { rule: stringify!($rule), default: $default, least: $least }, self.$rule)),*]
            }

            /// The same with each minimum as `set` says.
            #[must_use]
            pub fn with_minima(self, mut set: impl FnMut(Minimum) -> u64) -> Self {
                let own = self.minima().into_iter();
                let mut own = own.map(|(minimum, _)| set(minimum));
                Self {
                    $($rule: own.next().unwrap_or(self.$rule),)*
                    ..self
                }
            }
        }

        impl Default for Rules {
            fn default() -> Self {
                Self {
                    operators: Allowed::nothing(),
                    methods: Allowed::nothing(),
                    $($rule: $default,)*
                    permissions: BTreeSet::new(),
                    ceilings: Limits {
                        runs: 100,
                        rounds: 5_000,
                        queries: 1_000,
                        metrics_for_groups: 1,
                    },
                }
            }
        }
    };
}

rules! {
    #[doc = "Patients in a cohort, and behind every released sum, at least."]
    patients_min = 10, at least 1;
    #[doc = "Patients in each outcome class, at least."]
    class_patients_min = 10, at least 0;
    #[doc = "A count of 1 to `cell_min - 1` patients is withheld."]
    cell_min = 10, at least 1;
    #[doc = "Patients in a terminal node of a released tree, at least."]
    terminal_node_min = 10, at least 1;
    #[doc = "Sites of a job, at least: what is pooled over fewer is nearly one site's own."]
    sites_min = 3, at least 1;
}

/// A minimum that a site may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Minimum {
    /// The rule, as site.toml names it.
    pub rule: &'static str,
    /// What it is unless set.
    pub default: u64,
    /// The least that can be meant.
    pub least: u64,
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

impl Rules {
    /// Every rule that cannot be meant.
    pub(crate) fn invalid(&self) -> Vec<InvalidRule> {
        let minima = self.minima().into_iter();
        minima
            .filter(|(minimum, own)| *own < minimum.least)
            .map(|(minimum, own)| InvalidRule {
                rule: minimum.rule,
                found: own.to_string(),
                wanted: "a whole number of 1 or more",
            })
            .collect()
    }
}
