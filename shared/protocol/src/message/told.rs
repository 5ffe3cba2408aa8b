//! What a site tells of its cohort in every method.

use super::{BetweenMoments, ColumnMoments, Summary};

/// The moments of a site.
#[derive(Clone, PartialEq)]
pub struct SiteMoments {
    /// One per feature, in the job's order.
    pub columns: Vec<ColumnMoments>,
    /// Patients and pairs.
    pub summary: Summary,
    /// What the site's means add to the variance between the sites, one a feature; it follows from the columns, and does not
    /// travel beside them.
    pub between: Vec<BetweenMoments>,
}

/// Values of one column by groups of neighbouring cells of its grid; without groups where too few
/// patients have a value.
#[derive(Clone, Default, PartialEq)]
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
    /// 1 where the site takes part in a validation that the job does not insist on, else 0; of a sum, so many sites.
    pub validates: u64,
}
