//! How often a metric is right: for held-out patients, and for those of its training.

use crate::quality::{self, Leading, Right, Wording};
use crate::words::share;
use maud::{Markup, html};
use protocol::assessment::{DISTANCE_RULE, EUCLIDEAN_RULE, EvaluationCounts, PAIRS_RULE};
use protocol::job::Job;
use protocol::method::unpsl::model::Model;
use protocol::result::RunResult;
use protocol::scores::{self, Judged, PooledTable, Scores};

/// The table of a rule over all sites.
pub(super) fn pooled(result: &RunResult, judged: Judged, rule: &str) -> Option<PooledTable> {
    let tables = scores::pooled_tables(result, judged);
    tables.into_iter().find(|table| table.counts.rule == rule)
}

/// How well the neighbours of a patient predict it, compared with those by Euclidean distance: of those held out where there are some.
pub(super) fn worth(result: &RunResult, job: &Job, model: &Model) -> Markup {
    let judged = match pooled(result, Judged::HeldOut, DISTANCE_RULE) {
        Some(_) => Judged::HeldOut,
        None => Judged::Learnt,
    };
    let (on, note) = match judged {
        Judged::HeldOut if (model.judges as usize) < result.sites.len() => (
            format!(
                "on held-out patients at {} of {} sites",
                model.judges,
                result.sites.len()
            ),
            "",
        ),
        Judged::HeldOut => ("on held-out patients".to_owned(), ""),
        Judged::Learnt => (
            "in sample".to_owned(),
            " The metric was learned from these patients, so new ones will be predicted worse.",
        ),
    };
    let chosen = match judged {
        Judged::HeldOut => chosen_by(model),
        Judged::Learnt => "",
    };
    let figures = quality::leading(
        result,
        job,
        &Leading {
            judged,
            rule: DISTANCE_RULE,
            other: Some((EUCLIDEAN_RULE, "Euclidean distance")),
            on: &on,
            concludes: judged == Judged::HeldOut,
        },
    );
    html! {
        @match figures.split_first() {
            Some((first, rest)) => { p { b { (first) } " " (rest.join(" ")) (note) (chosen) } }
            None => { p { "How well it predicts is unknown: too few patients are judged." } }
        }
        (of_pairs(result))
    }
}

/// The counts of judged pairs of held-out patients; none where the metric is not learned from such pairs.
fn held_out_pairs(result: &RunResult) -> Option<&EvaluationCounts> {
    let mut all = result
        .pooled
        .assessment
        .iter()
        .flat_map(|all| &all.validation);
    all.find(|counts| counts.rule == PAIRS_RULE)
}

/// Which folds chose the settings of a validation.
fn chosen_by(model: &Model) -> &'static str {
    match (model.selection.is_empty(), model.nested) {
        (true, _) => "",
        (false, true) => {
            " The settings of each fold were chosen by the other folds alone (nested cross-validation)."
        }
        (false, false) => {
            " The settings were chosen by the same folds, so these figures are slightly optimistic."
        }
    }
}

/// Judged pairs whose two patients are held out together.
fn of_pairs(result: &RunResult) -> Markup {
    let scores = |counts| scores::of_counts(counts).unwrap_or_default();
    html! {
        @match held_out_pairs(result).map(scores) {
            Some(Scores { auc: Some(area), patients, .. }) => {
                p {
                    "On " (patients) " judged pairs of two patients held out in one fold, "
                    b { "AUC is " (share(Some(area))) }
                    ": so often does a similar pair score above a dissimilar one."
                }
            }
            Some(_) => { p { "Too few judged pairs fall in one fold to say how the metric does on held-out pairs." } }
            None => {}
        }
    }
}

/// How the wrong ones are counted: of one cohort alone, as they are.
fn steps(result: &RunResult) -> &'static str {
    match result.sites.len() {
        1 => "",
        _ => "Error counts are sums over the sites, published in tens.",
    }
}

/// How the rules of a metric are named, and which patients they judge.
pub(super) fn wording(result: &RunResult) -> Wording {
    // Pairs have none.
    let counts = result
        .pooled
        .assessment
        .iter()
        .flat_map(|all| &all.evaluation);
    let neighbours = counts.map(|counts| counts.neighbours).max().unwrap_or(0);
    Wording {
        heading: "How well it does, in sample",
        note: Some(format!(
            "The {neighbours} nearest other patients of the same site vote for each patient's class (leave one out). \
             They are nearest by the learned distance, by the learned inner product, and by Euclidean distance of the \
             same standardised features. Pairs show whether the metric calls two patients of a site similar (s >= b). \
             The metric was learned from these patients, so new ones will be classified somewhat worse. {}",
            steps(result)
        )),
        rule: |rule, _| match rule {
            EUCLIDEAN_RULE => "nearest by Euclidean distance".to_owned(),
            DISTANCE_RULE => "nearest by the metric".to_owned(),
            PAIRS_RULE => "pairs".to_owned(),
            other => format!("nearest by {}", other.replace('_', " ")),
        },
        on: "in sample",
        judged: Judged::Learnt,
    }
}

/// The same of held-out patients.
pub(super) fn held_out_wording(result: &RunResult, model: &Model) -> Wording {
    let all = wording(result);
    let pairs = match held_out_pairs(result) {
        Some(_) => " Pairs are judged ones of two patients of one fold.",
        None => "",
    };
    Wording {
        heading: "How well it does on held-out patients",
        note: Some(format!(
            "Each site's patients lie in {} folds. For each fold all sites learned a metric without its patients, with the \
             same settings. Then the nearest other patients of its site voted for the class of each patient of the fold. \
             Euclidean distance was judged on the same folds. Means and standard deviations are of all patients; no \
             class enters them.{pairs}{} {}",
            model.folds,
            chosen_by(model),
            steps(result),
        )),
        on: "held out",
        judged: Judged::HeldOut,
        ..all
    }
}

/// What is right: of held-out patients where there are some, then of those that the metric was learned from.
pub(super) fn glance(result: &RunResult, model: &Model) -> Markup {
    let order = [DISTANCE_RULE, EUCLIDEAN_RULE];
    let held_out = quality::rights(result, &held_out_wording(result, model), &order);
    if !held_out.is_empty() {
        return quality::at_a_glance(result, &wording(result), held_out, &[DISTANCE_RULE]);
    }
    let chosen = model.selection.iter().find(|row| row.chosen);
    let held_out = chosen.map(|row| Right {
        by: format!(
            "{} nearest by the metric (held out, cross-validation)",
            row.neighbours
        ),
        share: row.accuracy(),
        within: 0.0,
    });
    quality::at_a_glance(
        result,
        &wording(result),
        held_out.into_iter().collect(),
        &order,
    )
}
