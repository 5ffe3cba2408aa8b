//! What a job of forests would make this site send.

use crate::explain::kinds::{
    MessageKind, NUMBER_BYTES, Sizes, Told, counts, description, of_a_sum, on_the_grid, refusal,
};
use privacy::Rules;
use protocol::assessment::SHARE_BINS;
use protocol::cohort::OutcomeKind;
use protocol::job::Job;
use protocol::limits::NODES_MAX;
use protocol::method::forest::settings::{CUTS, EVENT_TIMES, ForestScope, ForestSettings};

/// Error rules: the forest's own prediction and that of neighbours.
const RULES: u64 = 2;
/// Bytes of a node at most beside its counts: patients, feature, child and threshold.
const NODE_BYTES: u64 = 24;
/// What is in the way of reading patients off trees that leave.
pub(crate) const BRAKE: &str = "Groups of two forests that differ by one patient: bags follow from the site's own key and the cut \
    points, and a run grows and judges one forest.";

pub(crate) fn explained(rules: &Rules, job: &Job, settings: &ForestSettings) -> Told {
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
    Told {
        messages: messages(rules, job, settings),
        brake,
        open,
    }
}

fn messages(rules: &Rules, job: &Job, settings: &ForestSettings) -> Vec<MessageKind> {
    let sizes = Sizes::of_outcome(job);
    let mut messages = vec![description(&sizes)];
    if settings.scope == ForestScope::Federated {
        messages.push(trees(rules, job, settings));
    }
    messages.push(assessment(rules, job, settings, &sizes));
    messages.push(refusal());
    messages
}

/// The trees that leave for a common forest.
pub(crate) fn trees(rules: &Rules, job: &Job, settings: &ForestSettings) -> MessageKind {
    let sizes = Sizes::of_outcome(job);
    let minimum = rules.terminal_node_min.max(rules.cell_min.max(1));
    let (terminal, withheld) = match &job.cohort.outcome.kind {
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
            sizes.classes,
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
        rule: "forests, terminal_node_min, cell_min, rounds",
        withheld: if rules.cell_min == 1 && !matches!(job.cohort.outcome.kind, OutcomeKind::Numeric)
        {
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

fn assessment(rules: &Rules, job: &Job, settings: &ForestSettings, sizes: &Sizes) -> MessageKind {
    let features = match settings.importance {
        true => job.cohort.features.len() as u64,
        false => 0,
    };
    let tables = match sizes.classes {
        0 => String::new(),
        2 => format!(", {RULES} tables of 2 x 2, 1 of 2 x {SHARE_BINS}"),
        classes => format!(", {RULES} tables of {classes} x {classes}"),
    };
    let importance = match features {
        0 => String::new(),
        features => format!(", {features} x 2 importances"),
    };
    MessageKind {
        kind: "assessment",
        purpose: "errors of the forest and of nearest neighbours on the site's patients, and the \
                  importance of every feature",
        shape: format!("{RULES} x 2 sums{tables}{importance}"),
        rule: "patients_min, cell_min",
        withheld: match job.cohort.outcome.kind {
            OutcomeKind::Numeric => counts(rules, "sums over too few patients are omitted"),
            _ => on_the_grid(rules),
        },
        worst: format!(
            "How often the forest errs on this site's patients, each count of errors within {} of the truth; and by how \
             much it errs more when a feature is shuffled, exactly.",
            rules.cell_min.max(1)
        ),
        ..of_a_sum()
    }
}
