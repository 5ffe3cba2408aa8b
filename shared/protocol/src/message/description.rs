//! What a site tells of its cohort in every method.

use super::{ColumnMoments, Summary};
use privacy::{HeldOut, JUDGES_MIN};

/// The moments of a site.
#[derive(Clone, PartialEq)]
pub struct SiteMoments {
    /// One per feature, in the job's order.
    pub columns: Vec<ColumnMoments>,
    /// Patients and pairs.
    pub summary: Summary,
}

/// Values of one column by groups of neighbouring cells of its grid; without groups where too few
/// patients have a value.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ColumnHistogram {
    /// The cell after the last of each group, ascending; the first group begins at cell 0.
    pub ends: Vec<u32>,
    /// Values in each group.
    pub counts: Vec<u64>,
}

/// A cohort that fits the job.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// Patients.
    pub patients: u64,
    /// Patients of each class in the job's order; empty where the outcome has no classes.
    pub classes: Vec<u64>,
    /// 1 where the site learns what a validation learns without a fold, in which it need not judge, else 0; of a sum, so many sites.
    pub learns: u64,
    /// The same where its held-out patients judge if those of all sites do.
    pub validates: u64,
    /// The same where they judge if those of some sites do.
    pub judges: u64,
}

impl Description {
    /// What the cohort does in a validation.
    #[must_use]
    pub fn holding_out(self, held_out: HeldOut) -> Self {
        let does = |least: HeldOut| u64::from(held_out >= least);
        Self {
            learns: does(HeldOut::Learns),
            validates: does(HeldOut::JudgesWithAll),
            judges: does(HeldOut::Judges),
            ..self
        }
    }

    /// Of the sum over so many sites those whose held-out patients judge; none where a site does not learn without a fold, or too few
    /// would judge.
    #[must_use]
    pub fn judging(&self, sites: u64) -> Option<u64> {
        let judges = match self.validates == sites {
            true => sites,
            false => self.judges,
        };
        let is_enough = judges == sites || judges >= JUDGES_MIN;
        (self.learns == sites && is_enough).then_some(judges)
    }
}
