//! What patients can be compared by: the runs that have left something here, and the forms of one of them.

use super::fields;
use super::{AtDesk, By, Desk};
use crate::cases::bedside::Bedside;
use crate::cases::left::{self, LeftRun};
use crate::cli::By as Distance;
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use clap::ValueEnum;
use maud::{Markup, html};
use protocol::job::Job;
use service::pages::{Fault, Form, Page, Visitor, problem, token};
use std::sync::Arc;

/// Similar patients, where nobody says how many.
const SIMILAR: usize = 10;
/// More at once are no page.
const SIMILAR_MAX: usize = 100;

/// The runs.
pub(super) async fn all(State(desk): AtDesk, Extension(visitor): By) -> Response {
    desk.work(visitor, |desk, visitor| {
        let runs = left::all(&desk.open()?);
        let body = html! {
            p { "Find patients of this hospital who are similar to one patient, and see how they fared. Nothing leaves the hospital." }
            @if runs.is_empty() {
                p { "No run has left anything to compare by yet. A run of an approved study does, once it has ended." }
            } @else {
                h2 { "Compare by" }
                ul.choices { @for run in &runs { li { (listed(run)) } } }
            }
        };
        let page = Page {
            title: "Patients like this one",
            way: "/",
            body,
        };
        Ok(desk.door.page(visitor, page))
    })
    .await
}

/// A run in two lines: what it is about, then how it was learned.
fn listed(run: &LeftRun) -> Markup {
    let LeftRun { job, run: id, .. } = run;
    html! {
        a href=(format!("/run/{id}")) { (title_of(job)) ": " (job.cohort.outcome.label_with_unit()) }
        p.note {
            (job.name) ", " (job.cohort.features.len()) " features"
            @if let Some(day) = day_of(run) { ", " (day) }
            ", run " (id)
        }
    }
}

/// What a job is about, in the words of its study.
fn title_of(job: &Job) -> &str {
    match &job.study {
        Some(study) => &study.title,
        None => &job.name,
    }
}

fn day_of(run: &LeftRun) -> Option<String> {
    let since = run.left.duration_since(std::time::UNIX_EPOCH).ok()?;
    let at = protocol::time::Timestamp(u64::try_from(since.as_millis()).ok()?);
    report::moment(at)?.split('T').next().map(str::to_owned)
}

/// The forms of one run.
pub(super) async fn one(
    State(desk): AtDesk,
    Extension(visitor): By,
    Path(run): Path<String>,
) -> Response {
    desk.work(visitor, move |desk, visitor| {
        let run = known(desk, &run)?;
        Ok(forms(desk, visitor, &run, &Forms::default()))
    })
    .await
}

/// The run of this name.
pub(super) fn known(desk: &Desk, run: &str) -> Result<LeftRun, Fault> {
    let found = left::one(&desk.open()?, run);
    found.ok_or_else(|| Fault::absent("No run of this name has left anything to compare by here."))
}

/// What was written into the forms of a run, and what is wrong with it.
#[derive(Default)]
pub(super) struct Forms {
    pub(super) by: Option<Distance>,
    pub(super) k: String,
    pub(super) patient: String,
    pub(super) texts: Vec<String>,
    pub(super) problems: Vec<Option<String>>,
    /// What is wrong beyond one field.
    pub(super) problem: Option<String>,
}

impl Forms {
    /// As one of them was sent.
    pub(super) fn sent(form: &Form) -> Self {
        Self {
            by: Distance::from_str(form.get("by"), false).ok(),
            k: form.get("k").to_owned(),
            patient: form.get("patient").to_owned(),
            ..Self::default()
        }
    }
}

/// A page with both forms.
pub(super) fn forms(desk: &Desk, visitor: &Visitor, run: &LeftRun, forms: &Forms) -> Response {
    let Forms {
        patient,
        texts,
        problems,
        problem: wrong,
        ..
    } = forms;
    let job = &run.job;
    let body = html! {
        @if let Some(wrong) = wrong { (problem(wrong)) }
        (fields::wrong(&job.cohort.features, problems))
        p.note { (title_of(job)) }
        p.note { "Outcome: " (job.cohort.outcome.label_with_unit()) ". Method " (job.method.name()) ", run " (run.run) "." }
        h2 { "A patient of this hospital" }
        form method="post" action=(format!("/run/{}/find", run.run)) autocomplete="off" {
            (token(visitor))
            div.field {
                label for="patient" { "Identifier" }
                input id="patient" name="patient" type="text" autocomplete="off" value=(patient) required;
            }
            (choices(run, forms, "find"))
            button type="submit" { "Find similar patients" }
        }
        h2 { "Another patient" }
        form method="post" action=(format!("/run/{}/new", run.run)) autocomplete="off" {
            (token(visitor))
            p { "Leave empty what is not known." }
            (fields::fields(&job.cohort.features, texts, problems))
            (choices(run, forms, "new"))
            button type="submit" { "Find similar patients" }
        }
    };
    let is_wrong = wrong.is_some() || problems.iter().any(Option::is_some);
    let status = match is_wrong {
        true => StatusCode::UNPROCESSABLE_ENTITY,
        false => StatusCode::OK,
    };
    let title = format!("Patients like this one: {}", job.cohort.outcome.label);
    let page = Page {
        title: &title,
        way: "/",
        body,
    };
    desk.door.page_with(status, visitor, page)
}

/// By what is compared, and how many are wanted.
fn choices(run: &LeftRun, forms: &Forms, form: &str) -> Markup {
    let by = forms.by.unwrap_or(Distance::Run);
    let wanted = match forms.k.as_str() {
        "" => SIMILAR.to_string(),
        written => written.to_owned(),
    };
    let (how, many) = (format!("{form}-by"), format!("{form}-k"));
    let all = Distance::value_variants().iter().filter(|one| match one {
        Distance::Personal => run.has_personal,
        Distance::Run
        | Distance::Regression
        | Distance::Anchored
        | Distance::Euclidean
        | Distance::Manhattan
        | Distance::Cosine
        | Distance::Mahalanobis
        | Distance::Gower => true,
    });
    html! {
        div.fields {
            div.field {
                label for=(how) { "Compare by" }
                select id=(how) name="by" {
                    @for one in all {
                        option value=(word(*one)) selected[*one == by] { (in_words(*one)) }
                    }
                }
            }
            div.field {
                label for=(many) { "Similar patients" }
                input id=(many) name="k" type="text" inputmode="numeric" autocomplete="off" value=(wanted);
            }
        }
    }
}

/// A distance as the command line names it.
fn word(by: Distance) -> String {
    let value = by.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// The same as people read it.
pub(super) fn in_words(by: Distance) -> &'static str {
    match by {
        Distance::Run => "what the run learned",
        Distance::Personal => "the hospital's own metric",
        Distance::Regression => "a regression of this hospital",
        Distance::Anchored => "predicted risk and its reasons",
        Distance::Euclidean => "Euclidean distance",
        Distance::Manhattan => "Manhattan distance",
        Distance::Cosine => "cosine distance",
        Distance::Mahalanobis => "Mahalanobis distance",
        Distance::Gower => "Gower's distance",
    }
}

/// By what, and how many: as the form says.
pub(super) fn chosen(by: &str, k: &str) -> Result<(Distance, usize), String> {
    let by = Distance::from_str(by, false)
        .map_err(|_| "What to compare by is not one of the list.".to_owned())?;
    let k = k
        .parse::<usize>()
        .ok()
        .filter(|k| (1..=SIMILAR_MAX).contains(k));
    let k = k.ok_or_else(|| format!("Wanted 1 to {SIMILAR_MAX} similar patients."))?;
    Ok((by, k))
}

impl Desk {
    /// A run with its patients.
    pub(super) fn bedside(&self, run: &LeftRun, by: Distance) -> Result<Arc<Bedside>, Fault> {
        Ok(self.bedsides.get(&self.config, run.run.as_str(), by)?)
    }
}
