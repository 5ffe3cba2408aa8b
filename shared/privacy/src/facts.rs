//! What the doors judge, in plain facts: a job, a cohort, and what a run has released of it.

use crate::rule::{Limits, Permission};
use std::collections::BTreeSet;

/// What a job asks of a site, as far as a policy judges it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFacts {
    /// The operator who submitted it, from their certificate.
    pub operator: String,
    /// The method; none for a study's card, which every study has.
    pub method: Option<String>,
    /// The limits of its study; none where it is of no study, or does not count for it.
    pub limits: Option<Limits>,
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
    /// Patients of others with which it compares the cohort; 0 where it asks no such thing.
    pub queries: u64,
}

/// A cross-validation in which a site need not judge, and which a job may do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValidationFacts {
    /// Its folds.
    pub folds: u64,
    /// Folds that are held out at once.
    pub left_out: u64,
    /// Its rounds at most, beside those of the run.
    pub rounds: u64,
}

/// What a site knows of a cohort that it has read.
#[derive(Clone, PartialEq, Eq)]
pub struct CohortFacts {
    /// Patients.
    pub patients: u64,
    /// Patients of each outcome class (for survival: with an event up to the horizon); empty for a number.
    pub classes: Vec<u64>,
    /// Patients in pairs that physicians have judged, or those pairs where they are fewer; none where sums are over no such pairs.
    pub judged: Option<u64>,
    /// What this run has released of the cohort already.
    pub so_far: SoFar,
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

impl CohortFacts {
    /// Patients that sums are over. Minima hold for them.
    pub(crate) fn summed(&self) -> u64 {
        self.judged
            .map_or(self.patients, |judged| judged.min(self.patients))
    }
}

impl std::fmt::Debug for CohortFacts {
    /// Nothing of the cohort: a count below a minimum must not reach a log.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("CohortFacts")
            .finish_non_exhaustive()
    }
}
