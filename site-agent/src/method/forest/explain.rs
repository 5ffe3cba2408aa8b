//! What a job of forests would make this site send.

use crate::explain::kinds::{Explained, MessageKind, NUMBER_BYTES, description, of_a_sum, refusal};
use privacy::Rules;
use protocol::cohort::OutcomeKind;
use protocol::job::Job;
use protocol::limits::NODES_MAX;
use protocol::method::forest::settings::{CUTS, EVENT_TIMES, ForestScope, ForestSettings};

/// Bytes of a node at most beside its counts: patients, feature, child and threshold.
const NODE_BYTES: u64 = 24;
/// What is in the way of reading patients off trees that leave.
pub(crate) const BRAKE: &str = "Groups of two forests that differ by one patient: bags follow from the site's own key and the cut \
    points, and a run grows and judges one forest.";

pub(crate) fn explained(rules: &Rules, job: &Job, settings: &ForestSettings) -> Explained {
    const KNOWN: &str = "No noise is added to any number: who knows all patients but one";
    let (brake, open) = match settings.scope {
        ForestScope::Local => (
            "Nothing: no tree leaves.".to_owned(),
            format!("{KNOWN} can work out what is released about that one."),
        ),
        ForestScope::Federated => (
            BRAKE.to_owned(),
            format!("{KNOWN}, or all other sites, can work out the rest."),
        ),
    };
    Explained {
        messages: messages(rules, job, settings),
        brake,
        open,
    }
}

fn messages(rules: &Rules, job: &Job, settings: &ForestSettings) -> Vec<MessageKind> {
    let mut messages = vec![description()];
    if settings.scope == ForestScope::Federated {
        messages.push(trees(rules, job, settings));
    }
    messages.extend([assessment(), refusal()]);
    messages
}

/// The trees that leave for a common forest.
pub(crate) fn trees(rules: &Rules, job: &Job, settings: &ForestSettings) -> MessageKind {
    let minimum = rules.terminal_node_min.max(rules.cell_min.max(1));
    let kind = &job.cohort.outcome.kind;
    let (terminal, withheld) = match kind {
        OutcomeKind::Numeric => (1, format!("no: means over at least {minimum} patients")),
        OutcomeKind::Survival { .. } => (
            3 * (EVENT_TIMES as u64),
            format!(
                "yes: event times are joined until each group has {} events; fewer in all are \
                 rounded to 0 or {0}",
                rules.cell_min
            ),
        ),
        OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } => (
            kind.classes().len() as u64,
            format!(
                "yes: a count of 1 to {} patients of a class is rounded to 0 or {}",
                rules.cell_min.saturating_sub(1),
                rules.cell_min
            ),
        ),
    };
    let node = NODE_BYTES + NUMBER_BYTES * terminal;
    let nodes = NODES_MAX as u64;
    MessageKind {
        kind: "trees",
        purpose: "the site's share of the common forest, which every site gets: splits at pooled cut \
                  points, patients of every node, and of a terminal node its classes, mean or hazard",
        shape: format!(
            "up to {} trees; of n patients at most 2 n / {minimum} - 1 nodes each; up to {CUTS} cut \
             points per feature",
            settings.trees
        ),
        bytes_formula: format!("{node} x {nodes} nodes"),
        bytes: node * nodes,
        times: 1,
        rule: "forests, terminal_node_min, cell_min, rounds".to_owned(),
        withheld: if rules.cell_min == 1 && !matches!(kind, OutcomeKind::Numeric) {
            "no: cell_min is 1".to_owned()
        } else {
            withheld
        },
        worst: format!(
            "For groups of {minimum} patients or more, each described by ranges of a few features: how many there are, and their \
             outcome (classes and events as rounded counts, a number as its exact mean). Each tree is of patients \
             drawn at random by the site's own key; groups of different trees that overlap allow estimates of smaller \
             ones."
        ),
    }
}

fn assessment() -> MessageKind {
    MessageKind {
        kind: "assessment",
        purpose: "errors of the forest and of nearest neighbours on the site's patients, and the \
                  importance of every feature",
        worst: "How often the forest errs on these patients, and by how much it errs more when a feature is shuffled: exact \
                counts, of which errors are published in tens."
            .to_owned(),
        ..of_a_sum()
    }
}
