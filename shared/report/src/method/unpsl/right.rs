//! How often a metric is right: by patients whom it was learned without, and by those whom it was learned from.

use crate::quality::{self, Right, Wording, of_hundred_within, seldom_beyond};
use crate::words::{of_hundred, share};
use maud::{Markup, html};
use protocol::assessment::{DISTANCE_RULE, EUCLIDEAN_RULE, PAIRS_RULE};
use protocol::method::unpsl::model::Model;
use protocol::result::RunResult;
use protocol::scores::{self, Judged, PooledTable, Scores};

/// The table of a rule over all sites.
pub(super) fn pooled(result: &RunResult, judged: Judged, rule: &str) -> Option<PooledTable> {
    let tables = scores::pooled_tables(result, judged);
    tables.into_iter().find(|table| table.counts.rule == rule)
}

/// How often the neighbours of a patient name its class, beside what needs no metric: of those held out first.
pub(super) fn accuracy(result: &RunResult, model: &Model, scores: &Scores) -> Markup {
    let held_out = pooled(result, Judged::HeldOut, DISTANCE_RULE);
    html! {
        @match held_out.as_ref().and_then(PooledTable::scores) {
            Some(held_out) => {
                (of_held_out(result, model, &held_out))
                p {
                    "Of the patients that it was learned from (in sample) the nearest name the class of "
                    (of_hundred_within(scores.accuracy.unwrap_or(0.0), seldom_beyond(scores))) " rightly."
                }
            }
            None => { (in_sample(result, model, scores)) }
        }
    }
}

/// Of the folds of a validation.
fn of_held_out(result: &RunResult, model: &Model, scores: &Scores) -> Markup {
    html! {
        p {
            "Of patients whom it was not learned from (held out, " (model.folds) " folds"
            @if (model.judges as usize) < result.sites.len() { ", at " (model.judges) " of " (result.sites.len()) " sites" }
            "), the " (scores.neighbours)
            " most alike at the same site name the class of "
            b { (of_hundred_within(scores.accuracy.unwrap_or(0.0), seldom_beyond(scores))) } " rightly, "
            (scores.wrong) " of " (scores.patients) " wrongly"
            (beside(result, Judged::HeldOut))
            ". Balanced over the classes it is right for " (share(scores.balanced_accuracy))
            @if let Some(area) = scores.auc { "; the area under the curve of the neighbours' share is " (share(Some(area))) }
            "."
            @if !model.selection.is_empty() {
                " Its settings were chosen by the votes of the same patients, which makes this a little too good."
            }
        }
    }
}

/// What the plain distance and the most frequent class are right for.
fn beside(result: &RunResult, judged: Judged) -> Markup {
    let plain = pooled(result, judged, EUCLIDEAN_RULE).and_then(|table| table.scores());
    let counts = pooled(result, judged, DISTANCE_RULE).and_then(|table| table.counts.confusion);
    html! {
        @if let Some(share) = plain.and_then(|plain| plain.accuracy) {
            ", the nearest by plain distance that of " (of_hundred(share))
        }
        @if let Some(share) = counts.as_deref().and_then(scores::majority) {
            "; always naming the most frequent class would be right for " (of_hundred(share))
        }
    }
}

/// Where nobody was held out but for a choice.
#[allow(clippy::cast_precision_loss)] // counts of patients are far below 2^52
fn in_sample(result: &RunResult, model: &Model, scores: &Scores) -> Markup {
    let chosen = model.selection.iter().find(|row| row.chosen);
    html! {
        @if let Some(row) = chosen {
            p {
                "Of patients held out in the cross-validation, the " (row.neighbours) " nearest name the class of "
                b { (of_hundred(row.accuracy())) } " rightly, counted on "
                (of_hundred((row.right + row.wrong) as f64 / result.patients().max(1) as f64)) " patients."
            }
        }
        p {
            "Of the patients that it was learned from (in sample), the " (scores.neighbours)
            " most alike at the same site name the class of "
            b { (of_hundred_within(scores.accuracy.unwrap_or(0.0), seldom_beyond(scores))) } " rightly"
            (beside(result, Judged::Learnt))
            ". New patients will be classed somewhat worse."
        }
    }
}

/// How the wrong ones are counted: of one cohort alone, as they are.
fn steps(result: &RunResult) -> &'static str {
    match result.sites.len() {
        1 => "",
        _ => "Of the sum over the sites, wrong ones are published in tens.",
    }
}

/// How the rules of a metric are named, and whom they judge.
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
            "Each patient is compared with the other patients of the same site (leave one out) and given the \
             class of most of the {neighbours} nearest: by the learned distance, by the learned inner product, and, \
             for comparison, by the plain distance of the same standardised features. Pairs are asked whether the metric \
             says that two patients of a site are alike (s >= b). The metric was learned from these patients, so new \
             patients will be classed somewhat worse. {}",
            steps(result)
        )),
        rule: |rule, _| match rule {
            EUCLIDEAN_RULE => "nearest by plain distance".to_owned(),
            DISTANCE_RULE => "nearest by the metric".to_owned(),
            PAIRS_RULE => "pairs".to_owned(),
            other => format!("nearest by {}", other.replace('_', " ")),
        },
        on: "in sample",
        judged: Judged::Learnt,
    }
}

/// The same of patients whom the metric was learned without.
pub(super) fn held_out_wording(result: &RunResult, model: &Model) -> Wording {
    let all = wording(result);
    let chosen = match model.selection.is_empty() {
        true => "",
        false => {
            " Learning has not seen the patient; the choice of the settings has, for it went by the votes of the same folds, \
             which makes these figures a little too good."
        }
    };
    Wording {
        heading: "How well it does on patients whom it has not seen",
        note: Some(format!(
            "Each site's patients lie in {} folds. Of each fold a metric was learned without its patients, by all sites, with the \
             settings of the whole; then each of them was given the class of most of its nearest among the other patients of \
             its site, and the plain distance was asked on the same folds. Means and standard deviations of the features, which \
             no class enters, are of all patients.{chosen} {}",
            model.folds,
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
