//! What the doors judge, in plain facts: a job, a cohort, and what a run has released of it.

use crate::rule::Permission;
use std::collections::BTreeSet;

/// What a job asks of a site, as far as a policy judges it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFacts {
    /// The operator who submitted it, from their certificate.
    pub operator: String,
    /// The method; none where approving the study was the site's consent to it.
    pub method: Option<String>,
    /// The columns of the outcome; two for survival. None of a study's, which the site has approved.
    pub outcomes: Vec<String>,
    /// The features. None of a study's.
    pub features: Vec<String>,
    /// Its sites, every one of which answers every question.
    pub sites: u64,
    /// What it asks for beyond the usual messages.
    pub permissions: BTreeSet<Permission>,
    /// Rounds of the run at most.
    pub round_limit: u64,
    /// Folds of a cross-validation, whose rounds each leave one out; 1 where there is none.
    pub folds: u64,
    /// A validation that it does without where a site's rules do not let it be; none where it asks for none such.
    pub validation: Option<ValidationFacts>,
    /// Patients of others about whom it asks who in the cohort is alike; 0 where it asks no such thing.
    pub queries: u64,
}

/// A cross-validation in which a site need not judge, and which a job may do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValidationFacts {
    /// Its folds.
    pub folds: u64,
    /// Its rounds at most, beside those of the run.
    pub rounds: u64,
}

/// What a site knows of a cohort that it has read, and of earlier runs on it.
#[derive(Clone, PartialEq, Eq)]
pub struct CohortFacts {
    /// Patients.
    pub patients: u64,
    /// Patients of each outcome class (for survival: with an event up to the horizon); empty for a number.
    pub classes: Vec<u64>,
    /// Other runs so far that released anything of the same cohort but its size.
    pub runs_before: u64,
    /// Rounds of those other runs.
    pub rounds_before: u64,
    /// What this run has released of the cohort already.
    pub so_far: SoFar,
    /// The smallest number of patients by which the cohort differs from another one that was
    /// released earlier; none where there is no other.
    pub difference: Option<u64>,
    /// Patients of others about whom other runs have asked who in the cohort is alike.
    pub queries_before: u64,
    /// Other learned runs than the one that a job asks by, by which the cohort has been parted into groups.
    pub groupings_before: u64,
}

/// What a run has released of a cohort, by the site's own books.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SoFar {
    /// Rounds.
    pub rounds: u64,
    /// Kinds of message.
    pub kinds: BTreeSet<String>,
    /// A brake has shut the run's gate.
    pub shut: bool,
}

impl std::fmt::Debug for CohortFacts {
    /// Nothing of the cohort: a count below a minimum must not reach a log.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("CohortFacts")
            .finish_non_exhaustive()
    }
}
