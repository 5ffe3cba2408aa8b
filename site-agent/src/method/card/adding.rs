//! What two blocks of patients come to together: every answer is a sum over patients.

use protocol::message::ColumnHistogram;
use protocol::message::card::{Counts, FeatureCounts, GroupCounts, Sums};

/// A sum over patients.
pub(super) trait Adds {
    /// Adds that of other patients.
    fn add(&mut self, own: Self);
}

impl Adds for u64 {
    fn add(&mut self, own: Self) {
        *self += own;
    }
}

impl Adds for f64 {
    fn add(&mut self, own: Self) {
        *self += own;
    }
}

impl<T: Adds> Adds for Vec<T> {
    fn add(&mut self, own: Self) {
        for (all, own) in self.iter_mut().zip(own) {
            all.add(own);
        }
    }
}

impl<T: Adds, const N: usize> Adds for [T; N] {
    fn add(&mut self, own: Self) {
        for (all, own) in self.iter_mut().zip(own) {
            all.add(own);
        }
    }
}

impl Adds for ColumnHistogram {
    fn add(&mut self, own: Self) {
        let Self { ends: _, counts } = own;
        self.counts.add(counts);
    }
}

impl Adds for FeatureCounts {
    fn add(&mut self, own: Self) {
        let Self { levels, missing } = own;
        self.levels.add(levels);
        self.missing.add(missing);
    }
}

impl Adds for GroupCounts {
    fn add(&mut self, own: Self) {
        let Self { patients, features } = own;
        self.patients.add(patients);
        self.features.add(features);
    }
}

impl Adds for Counts {
    fn add(&mut self, own: Self) {
        let Self { groups, parts } = own;
        self.groups.add(groups);
        self.parts.add(parts);
    }
}

impl Adds for Sums {
    fn add(&mut self, own: Self) {
        let Self { features, outcomes } = own;
        self.features.add(features);
        self.outcomes.add(outcomes);
    }
}
