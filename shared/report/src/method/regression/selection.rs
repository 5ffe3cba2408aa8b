//! What a backward selection removed.

use super::label;
use crate::words::probability;
use maud::{Markup, html};
use protocol::job::Job;
use protocol::method::regression::model::{Criterion, Model, Selection};

/// How many features are left, in a sentence.
pub(super) fn sentence(job: &Job, model: &Model) -> Markup {
    let all = job.cohort.features.len();
    html! {
        @if let Some(selection) = &model.selection {
            " Of " (all) " features " (all - selection.removed.len().min(all)) " were kept, by " (by(selection)) "."
        }
    }
}

/// Which left, in order.
pub(super) fn table(job: &Job, model: &Model) -> Markup {
    let Some(selection) = &model.selection else {
        return Markup::default();
    };
    let heading = match selection.criterion {
        Criterion::Aic => "AIC without it",
        Criterion::Wald { .. } => "p",
    };
    let told = |value: f64| match selection.criterion {
        Criterion::Aic => format!("{value:.2}"),
        Criterion::Wald { .. } => probability(value),
    };
    html! {
        h2 { "Features that left" }
        p {
            @if selection.removed.is_empty() { "None: all features stay" } @else { "Backward, one by one" }
            " (" (by(selection)) ")."
            @if let Some(stopped) = selection.stopped { " " span.flag { (stopped.remark()) "." } }
        }
        @if !selection.removed.is_empty() {
            table {
                thead {
                    tr { th scope="col" { "feature" } th scope="col" { "coefficients" } th scope="col" { (heading) } }
                }
                @for one in &selection.removed {
                    tr {
                        th scope="row" { (label(job, &one.feature)) } td data-label="coefficients" { (one.degrees) }
                        td data-label=(heading) { (told(one.value)) }
                    }
                }
            }
        }
        p.note {
            "Intervals and p below are those of the model that is left, as if nothing had been chosen by the same patients: they are \
             too sure of the features that stayed."
        }
    }
}

fn by(selection: &Selection) -> String {
    match selection.criterion {
        Criterion::Aic => "Akaike's criterion".to_owned(),
        Criterion::Wald { p } => format!("Wald's test, p at most {p}"),
    }
}
