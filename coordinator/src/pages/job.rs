//! A job that is written in a browser: checked as it is typed, as `job check` checks it, and saved with its study.
//!
//! It is submitted by its operator's command, because their key signs it.

use super::{AtDesk, By, Desk, study};
use crate::operator::Checked;
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use maud::{Markup, html};
use protocol::job::Job;
use protocol::name::OperatorName;
use protocol::study::{Study, named, split};
use service::pages::{Fault, Form, Page, Visitor, token};

/// The field with the job.
const JOB: &str = "job";

/// A job as it was found: with its study where one is known, and what is wrong with it.
struct Found {
    text: String,
    job: Result<Job, String>,
    /// The study that the coordinator has added.
    added: Option<String>,
}

/// `/job`.
pub(super) async fn empty(State(desk): AtDesk, Extension(visitor): By) -> Response {
    let body = form(&visitor, "", &html! {});
    page(&desk, &visitor, StatusCode::OK, body)
}

/// `/study/NAME/job`: a job of the study, to go on with.
pub(super) async fn of_study(
    State(desk): AtDesk,
    Extension(visitor): By,
    Path(name): Path<String>,
) -> Response {
    let begun = async {
        let operator = desk.operator(&visitor)?;
        let own = study::own(&desk, &operator, &name).await?;
        let text = draft(&own.study);
        let found = checked(&desk, &operator, &text).await;
        Ok::<_, Fault>(form(&visitor, &text, &shown(&found)))
    };
    match begun.await {
        Ok(body) => page(&desk, &visitor, StatusCode::OK, body),
        Err(fault) => desk.door.made(&visitor, Err(fault)),
    }
}

/// The first lines of a job of a study.
fn draft(study: &Study) -> String {
    let (name, title) = (study.name.as_str(), study.title.replace(['\n', '\r'], " "));
    let method = study.methods.first().map_or("", String::as_str);
    let outcome = study.outcomes.first().map_or("", |one| one.name.as_str());
    format!(
        "# {title}\nname = \"{name}-1\"\nmethod = {method:?}\nstudy = \"{name}\"\noutcome = {outcome:?}\n\n[{method}]\n"
    )
}

/// `/job`, from its button.
pub(super) async fn check(
    State(desk): AtDesk,
    Extension(visitor): By,
    Extension(sent): Extension<Form>,
) -> Response {
    let text = sent.text(JOB);
    match sought(&desk, &visitor, &text).await {
        Ok(found) => {
            let status = match found.job {
                Ok(_) => StatusCode::OK,
                Err(_) => StatusCode::UNPROCESSABLE_ENTITY,
            };
            page(
                &desk,
                &visitor,
                status,
                form(&visitor, &text, &shown(&found)),
            )
        }
        Err(fault) => desk.door.made(&visitor, Err(fault)),
    }
}

/// `/job/check`: what is found alone, while it is typed.
pub(super) async fn found(
    State(desk): AtDesk,
    Extension(visitor): By,
    Extension(sent): Extension<Form>,
) -> Response {
    match sought(&desk, &visitor, &sent.text(JOB)).await {
        Ok(found) => Html(shown(&found).into_string()).into_response(),
        Err(fault) => desk.door.made(&visitor, Err(fault)),
    }
}

/// `/job/file`: the job with its study, as `job submit` takes it.
pub(super) async fn file(
    State(desk): AtDesk,
    Extension(visitor): By,
    Extension(sent): Extension<Form>,
) -> Response {
    let made = sought(&desk, &visitor, &sent.text(JOB)).await;
    let made = made.and_then(|found| match found.job {
        Ok(_) => {
            let head = [
                (header::CONTENT_TYPE, "application/toml; charset=utf-8"),
                (
                    header::CONTENT_DISPOSITION,
                    "attachment; filename=\"job.toml\"",
                ),
            ];
            Ok((head, found.text).into_response())
        }
        Err(problems) => Err(Fault::input(problems)),
    });
    desk.door.made(&visitor, made)
}

async fn sought(desk: &Desk, visitor: &Visitor, text: &str) -> Result<Found, Fault> {
    let operator = desk.operator(visitor)?;
    Ok(checked(desk, &operator, text).await)
}

/// A job and what is wrong with it. Where it names a study of the operator, by its name or a file of that name, and has no text of one, it
/// is checked with the study as its hospitals approve it.
async fn checked(desk: &Desk, operator: &OperatorName, text: &str) -> Found {
    let (_, travels) = split(text);
    let word = named(text).filter(|_| travels.is_none());
    let name = word.as_deref().map(|word| {
        let file = word.rsplit('/').next().unwrap_or(word);
        file.split('.').next().unwrap_or(file).to_owned()
    });
    let known = match &name {
        Some(name) => study::own(desk, operator, name).await.ok(),
        None => None,
    };
    let (text, added) = match known {
        Some(own) => (own.study.join(text), name),
        None => (text.to_owned(), None),
    };
    let whole = text.clone();
    let parsed = tokio::task::spawn_blocking(move || Job::parse(&whole)).await;
    let job = match parsed {
        Ok(parsed) => parsed.map_err(|problems| problems.to_string()),
        Err(_) => Err("the job cannot be read: a fault of Kindred; the log names the place".into()),
    };
    Found { text, job, added }
}

/// What was found.
fn shown(found: &Found) -> Markup {
    match &found.job {
        Err(problems) => html! {
            p.wrong { "This cannot be submitted:" }
            ul.problems { @for line in problems.lines() { li { (line) } } }
        },
        Ok(job) => html! {
            section.answer aria-label="The answer" {
                p.lead { "The job can be read." }
                @for line in Checked::of(job).to_string().lines() { p { (line) } }
                @if let Some(study) = &found.added { p { "Checked with the study " (study) " as its hospitals approve it." } }
            }
        },
    }
}

/// The job, with its buttons, and what was found of it.
fn form(visitor: &Visitor, text: &str, found: &Markup) -> Markup {
    html! {
        form method="post" action="/job" data-check="/job/check" {
            (token(visitor))
            p.field {
                label for=(JOB) { "The job" }
                // A browser takes the first line end away.
                textarea name=(JOB) id=(JOB) spellcheck="false" autocomplete="off" autocapitalize="off" { "\n" (text) }
            }
            button { "Check" } " "
            button formaction="/job/file" { "Save with its study" }
        }
        div id="found" role="status" { (found) }
        p.note {
            "Your key signs a job, and never comes here. Save the job, then submit it: "
            code { "kindred-coordinator job submit job.toml" }
        }
    }
}

fn page(desk: &Desk, visitor: &Visitor, status: StatusCode, body: Markup) -> Response {
    let page = Page {
        title: "Check a job",
        way: "/job",
        body,
    };
    desk.door.page_with(status, visitor, page)
}
