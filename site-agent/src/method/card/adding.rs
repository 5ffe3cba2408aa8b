//! What two blocks of patients come to together: every answer is a sum over patients.

use protocol::message::ColumnHistogram;
use protocol::message::card::{Counts, FeatureCounts, GroupCounts, Sums};
use std::ops::AddAssign;

fn add<T: AddAssign + Copy>(all: &mut [T], own: &[T]) {
    for (all, own) in all.iter_mut().zip(own) {
        *all += *own;
    }
}

pub(super) fn counts(all: &mut Vec<u64>, own: Vec<u64>) {
    add(all, &own);
}

pub(super) fn histograms(all: &mut Vec<ColumnHistogram>, own: Vec<ColumnHistogram>) {
    for (all, ColumnHistogram { ends: _, counts }) in all.iter_mut().zip(own) {
        add(&mut all.counts, &counts);
    }
}

pub(super) fn groups(all: &mut Counts, own: Counts) {
    let Counts { groups, parts } = own;
    add(&mut all.parts, &parts);
    for (all, GroupCounts { patients, features }) in all.groups.iter_mut().zip(groups) {
        all.patients += patients;
        for (all, FeatureCounts { levels, missing }) in all.features.iter_mut().zip(features) {
            add(&mut all.levels, &levels);
            all.missing += missing;
        }
    }
}

pub(super) fn sums(all: &mut Sums, own: Sums) {
    let Sums { features, outcomes } = own;
    add(all.features.as_flattened_mut(), features.as_flattened());
    for (all, own) in all.outcomes.iter_mut().zip(outcomes) {
        add(all, &own);
    }
}
