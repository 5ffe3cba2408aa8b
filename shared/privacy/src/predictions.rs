//! What may leave of how well a model predicts: no small count of right or wrong predictions.

use crate::cells::is_small;
use crate::content::{ErrorSums, Errors, RightCounts};
use crate::rule::Rules;

/// Leaves out whole tables that have a small cell.
pub(crate) fn withhold_tables(rules: &Rules, tables: Vec<&mut Option<Vec<Vec<u64>>>>) {
    for table in tables {
        let mut cells = table.iter().flatten().flatten();
        if cells.any(|cell| is_small(*cell, rules.cell_min)) {
            *table = None;
        }
    }
}

/// Leaves out both counts where one of them is small.
pub(crate) fn withhold_held_out(rules: &Rules, counts: Vec<&mut Option<RightCounts>>) {
    let small = |count: u64| is_small(count, rules.cell_min);
    for counts in counts {
        if counts.is_some_and(|counts| small(counts.right) || small(counts.wrong)) {
            *counts = None;
        }
    }
}

/// Leaves out errors over too few patients, and counts of errors or of their absence that are small.
pub(crate) fn withhold_errors(rules: &Rules, errors: Vec<Errors<'_>>) {
    for errors in errors {
        let (sums, counted) = match errors {
            Errors::Counted(sums) => (sums, true),
            Errors::Summed(sums) => (sums, false),
        };
        if sums.is_some_and(|sums| is_over_few(rules, &sums) || counted && has_few(rules, &sums)) {
            *sums = None;
        }
    }
}

fn is_over_few(rules: &Rules, sums: &ErrorSums) -> bool {
    sums.total < rules.patients_min.max(rules.cell_min)
}

/// Few errors, or few right answers.
#[allow(clippy::cast_precision_loss)] // exact below 2^53
fn has_few(rules: &Rules, sums: &ErrorSums) -> bool {
    let few = |count: f64| count > 0.0 && count < rules.cell_min as f64;
    few(sums.error) || few(sums.total as f64 - sums.error)
}
