//! What of a tree may leave.
//!
//! No terminal node of fewer patients than the minimum leaves. Patients of a class there are counts of a
//! table: small ones are rounded, so that a node of 12 patients, 3 of them ill, leaves as 12 healthy
//! ones. Hazards are events over time at risk in groups of neighbouring event times, each of so many
//! events that none is a small count.

use crate::cells;
use crate::content::TerminalNode;
use crate::rule::{Refusal, Rules};

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
        Refusal::new("cell_min", text)
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
/// censored, and then lies in one group.
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
