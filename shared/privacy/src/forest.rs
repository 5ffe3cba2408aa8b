//! What of a forest may leave: trees, and how well a forest predicts.
//!
//! No terminal node of fewer patients than the minimum leaves. Patients of a class there are counts of a
//! table: small ones are rounded, so that a node of 12 patients, 3 of them ill, leaves as 12 healthy
//! ones. Hazards are events over time at risk in groups of neighbouring event times, each of so many
//! events that none is a small count.

use crate::admission::Refusal;
use crate::cells::{self, is_small};
use crate::policy::Rules;

/// The patients of one terminal node of a tree, by outcome.
pub enum TerminalNode<'message> {
    /// Patients of each class.
    Classes {
        /// Patients of the node.
        patients: u64,
        /// One count a class.
        counts: &'message mut [u64],
    },
    /// The mean outcome of the node's patients.
    Mean {
        /// Patients of the node.
        patients: u64,
    },
    /// Events and time at risk by groups of neighbouring event times.
    Survival {
        /// Patients of the node.
        patients: u64,
        /// Where each group ends, rising.
        ends: &'message mut Vec<u32>,
        /// Events in each.
        events: &'message mut Vec<u64>,
        /// Time at risk in each, summed over patients.
        exposures: &'message mut Vec<f64>,
    },
}

/// How far a model's predictions of the cohort are off, as sums that add up over sites.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorSums {
    /// Patients with a prediction; for survival times comparable pairs of them.
    pub total: u64,
    /// Patients misclassified, the sum of squared errors, or discordant pairs.
    pub error: f64,
}

/// Error sums as a rule sees them; it sets to none what it withholds.
pub enum Errors<'message> {
    /// Both are counts: of patients, or of pairs of them.
    Counted(&'message mut Option<ErrorSums>),
    /// A sum of squares over `total` patients.
    Summed(&'message mut Option<ErrorSums>),
}

/// Rounds the counts of one terminal node, or refuses it.
pub(crate) fn withhold_node(rules: &Rules, node: TerminalNode<'_>) -> Result<(), Refusal> {
    let minimum = rules.terminal_node_min.max(rules.cell_min);
    let patients = match &node {
        TerminalNode::Classes { patients, .. }
        | TerminalNode::Mean { patients }
        | TerminalNode::Survival { patients, .. } => *patients,
    };
    if patients < minimum {
        let text = format!("a tree has a terminal node of fewer than {minimum} patients");
        return Err(Refusal::new("terminal_node_min", text));
    }
    let sum = |counts: &[u64]| {
        counts
            .iter()
            .try_fold(0_u64, |sum, count| sum.checked_add(*count))
    };
    let misfit = || {
        let text = "the counts of a terminal node do not fit its patients";
        Refusal::new("cell_min", text.to_owned())
    };
    match node {
        TerminalNode::Mean { .. } => {}
        TerminalNode::Classes { counts, .. } => {
            if sum(counts) != Some(patients) {
                return Err(misfit());
            }
            cells::adjust(counts, rules.cell_min);
        }
        TerminalNode::Survival {
            ends,
            events,
            exposures,
            ..
        } => {
            let whole = ends.len() == events.len() && ends.len() == exposures.len();
            let rise = ends.is_sorted_by(|before, end| before < end);
            let censored = sum(events).and_then(|events| patients.checked_sub(events));
            match censored {
                Some(censored) if whole && rise => {
                    withhold_hazard(ends, events, exposures, censored, rules.cell_min);
                }
                _ => return Err(misfit()),
            }
        }
    }
    Ok(())
}

/// Joins groups until each has `cell_min` events; a small number of all events is rounded against the
/// censored, and then stands in one group.
fn withhold_hazard(
    ends: &mut Vec<u32>,
    events: &mut Vec<u64>,
    exposures: &mut Vec<f64>,
    censored: u64,
    cell_min: u64,
) {
    let Some(reach) = ends.last().copied() else {
        return;
    };
    let (before, at_risk) = (ends.clone(), std::mem::take(exposures));
    let present: u64 = events.iter().sum();
    if present < cell_min {
        let mut table = [present, censored];
        cells::adjust(&mut table, cell_min);
        (*ends, *events) = (vec![reach], vec![table[0]]);
    } else {
        cells::withhold_groups(ends, events, censored, cell_min, cell_min);
    }
    let mut intervals = before.into_iter().zip(at_risk).peekable();
    for end in ends.iter() {
        let mut exposure = 0.0;
        while let Some((_, own)) = intervals.next_if(|(interval, _)| interval <= end) {
            exposure += own;
        }
        exposures.push(exposure);
    }
}

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
