//! What a job of forests would make this site send.

use super::{MessageKind, NUMBER_BYTES, Sizes, counts, description, quantiles, refusal};
use privacy::Rules;
use protocol::job::{CUTS, ForestScope, ForestSettings, Job, OutcomeKind};
use protocol::limits::NODES_MAX;

/// Error rules: the forest's own prediction and that of neighbours.
const RULES: u64 = 2;
/// Bytes of a node at most beside its counts: patients, feature, child and threshold.
const NODE_BYTES: u64 = 24;

pub(super) fn messages(rules: &Rules, job: &Job, settings: &ForestSettings) -> Vec<MessageKind> {
    let sizes = Sizes::of_outcome(job);
    let mut messages = vec![description(&sizes)];
    if settings.scope == ForestScope::Federated {
        messages.extend(quantiles(rules, job));
        messages.push(trees(rules, job, settings, &sizes));
    }
    messages.push(judgement(rules, job, settings, &sizes));
    messages.push(refusal());
    messages
}

fn trees(rules: &Rules, job: &Job, settings: &ForestSettings, sizes: &Sizes) -> MessageKind {
    let minimum = rules.terminal_node_min.max(rules.cell_min);
    let (terminal, withheld) = match &job.outcome.kind {
        OutcomeKind::Numeric => (1, format!("no: means over at least {minimum} patients")),
        OutcomeKind::Survival { .. } => (
            3 * (protocol::job::EVENT_TIMES as u64),
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
             points a feature",
            settings.trees
        ),
        bytes_formula: format!("{node} x {nodes} nodes"),
        bytes: node * nodes,
        times: 1,
        rule: "forests, terminal_node_min, cell_min, rounds_per_cohort_max",
        withheld: if rules.cell_min == 1 && !matches!(job.outcome.kind, OutcomeKind::Numeric) {
            "no: cell_min is 1".to_owned()
        } else {
            withheld
        },
    }
}

fn judgement(rules: &Rules, job: &Job, settings: &ForestSettings, sizes: &Sizes) -> MessageKind {
    let cells = sizes.classes * sizes.classes;
    let features = match settings.importance {
        true => job.features.len() as u64,
        false => 0,
    };
    let tables = match sizes.classes {
        0 => String::new(),
        classes => format!(", {RULES} tables of {classes} x {classes}"),
    };
    let importance = match features {
        0 => String::new(),
        features => format!(", {features} x 2 importances"),
    };
    MessageKind {
        kind: "judgement",
        purpose: "errors of the forest and of nearest neighbours on the site's patients, and the \
                  importance of every feature",
        shape: format!("{RULES} x 2 sums{tables}{importance}"),
        bytes_formula: format!("{NUMBER_BYTES} x ({RULES} x (2 + {cells}) + 2 x {features})"),
        bytes: NUMBER_BYTES * (RULES * (2 + cells) + 2 * features),
        times: 1,
        rule: "patients_min, cell_min",
        withheld: counts(
            rules,
            "sums over too few patients, of few errors or few right answers are left out, and a table \
             with a small cell whole",
        ),
    }
}
