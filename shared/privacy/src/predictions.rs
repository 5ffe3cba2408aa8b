//! What may leave of how well a model predicts: no small count of right or wrong predictions.

use crate::cells::is_small;
use crate::content::{ErrorSums, Errors};
use crate::rule::Rules;

/// Leaves out errors over too few patients, and counts of errors or of their absence that are small.
pub(crate) fn withhold_errors(rules: &Rules, errors: Errors<'_>) {
    let few = |total: u64| total < rules.patients_min.max(rules.cell_min);
    #[allow(clippy::cast_precision_loss)] // exact below 2^53
    let small = |count: f64| count > 0.0 && count < rules.cell_min as f64;
    #[allow(clippy::cast_precision_loss)] // exact below 2^53
    let told = |sums: &ErrorSums| small(sums.error) || small(sums.total as f64 - sums.error);
    let (sums, withheld) = match errors {
        Errors::Counted(sums) => {
            let withheld = sums.is_some_and(|sums| few(sums.total) || told(&sums));
            (sums, withheld)
        }
        Errors::Summed(sums) => {
            let withheld = sums.is_some_and(|sums| few(sums.total));
            (sums, withheld)
        }
    };
    if withheld {
        *sums = None;
    }
}

/// Whether a table of patients has a small cell.
pub(crate) fn has_small_cell(table: &Option<Vec<Vec<u64>>>, cell_min: u64) -> bool {
    let mut cells = table.iter().flatten().flatten();
    cells.any(|cell| is_small(*cell, cell_min))
}
