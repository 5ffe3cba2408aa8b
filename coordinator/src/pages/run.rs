//! A run: where it stands, and its report once it has ended.

use super::{AtDesk, By, Desk, cancel, live, run_of};
use crate::driver::Sight;
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use protocol::name::RunId;
use protocol::progress::{Ending, Progress};
use protocol::result::RunResult;
use report::{RunPage, minute};
use service::pages::{Fault, Page, Visitor};
use wire::OperatorCall;

/// `/run/RUN`.
pub(super) async fn show(
    State(desk): AtDesk,
    Extension(visitor): By,
    Path(run): Path<String>,
) -> Response {
    let made = make(&desk, &visitor, &run).await;
    desk.door.made(&visitor, made)
}

async fn make(desk: &Desk, visitor: &Visitor, run: &str) -> Result<Response, Fault> {
    let operator = desk.operator(visitor)?;
    let run = run_of(run)?;
    let progress = desk.watch(&operator, &run).await?.borrow().clone();
    let rounds = |reply| Sight::Rounds(run.clone(), reply);
    let rounds = desk.look(&operator, rounds).await?;
    let goes_on = progress.ending.is_none();
    let body = html! {
        p.identity {
            "Run " (run)
            @if !progress.method.is_empty() { ", " (progress.method) }
            @if let Some(submitted) = progress.times.submitted.and_then(minute) { ", submitted " (submitted) " UTC" }
            @if let Some(began) = progress.times.began.and_then(minute) { ", began " (began) " UTC" }
            @if let Some(ended) = progress.times.ended.and_then(minute) { ", ended " (ended) " UTC" }
            "."
        }
        @if goes_on {
            div.live data-live=(format!("/run/{run}/live")) { (live::state(&progress, &rounds)?) }
            (cancel::form(visitor, &run))
        }
        @if !goes_on { (ended(&progress)) }
    };
    let title = match progress.job.is_empty() {
        true => run.as_str(),
        false => &progress.job,
    };
    let page = Page {
        title,
        way: "/",
        body,
    };
    Ok(desk.door.page(visitor, page))
}

/// How a run ended, and when.
fn how(progress: &Progress) -> String {
    let mut text = report::run_status(progress);
    if let Some(took) = report::lasted(progress) {
        text.push_str(&format!(" after {took}"));
    }
    if progress.course.round > 0 {
        text.push_str(&format!(", round {}", progress.course.round));
    }
    text
}

/// What an ended run has left.
fn ended(progress: &Progress) -> Markup {
    let run = &progress.run;
    let has_report = !matches!(progress.ending, Some(Ending::Failed(_) | Ending::Cancelled));
    html! {
        section.answer aria-label="The answer" {
            p.lead { (report::as_sentence(&how(progress))) }
            @match progress.notes {
                0 => {},
                1 => p { "1 note, in the report." },
                many => p { (many) " notes, in the report." },
            }
        }
        @if let Some(Ending::Failed(failure)) = &progress.ending {
            h2 { "Why it failed (" (failure.code) ")" }
            p { (failure.code.meaning()) "." }
            pre tabindex="0" { (failure.text) }
        }
        @if has_report {
            ul.links {
                li { a href=(format!("/run/{run}/report")) { "Report" } }
                li { a href=(format!("/run/{run}/report.html")) download { "Save the report" } }
            }
            p.note { code { "kindred-coordinator job result " (run) } " fetches all its files." }
        }
    }
}

/// `/run/RUN/report`.
pub(super) async fn report(
    State(desk): AtDesk,
    Extension(visitor): By,
    Path(run): Path<String>,
) -> Response {
    match run_of(&run) {
        Ok(run) => drawn(&desk, &visitor, &run).await,
        Err(fault) => desk.door.made(&visitor, Err(fault)),
    }
}

/// `/run/RUN/report.html`.
pub(super) async fn file(
    State(desk): AtDesk,
    Extension(visitor): By,
    Path(run): Path<String>,
) -> Response {
    let fetched = async { fetch(&desk, &visitor, &run_of(&run)?).await };
    let result = match fetched.await {
        Ok(result) => result,
        Err(fault) => return desk.door.made(&visitor, Err(fault)),
    };
    let make = move || {
        let page = page_of(&result)?;
        let kind = (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned());
        let name = format!("attachment; filename=\"kindred-{}.html\"", result.run);
        let head = [kind, (header::CONTENT_DISPOSITION, name)];
        Ok((head, page.file()).into_response())
    };
    desk.door.work(&visitor, make).await
}

/// The report of a run, as `job result` writes it.
pub(super) async fn drawn(desk: &Desk, visitor: &Visitor, run: &RunId) -> Response {
    let result = match fetch(desk, visitor, run).await {
        Ok(result) => result,
        Err(fault) => return desk.door.made(visitor, Err(fault)),
    };
    let (door, by) = (desk.door.clone(), visitor.clone());
    let make = move || {
        let report = page_of(&result)?;
        let back = format!("/run/{}", result.run);
        let body = html! {
            p.screen { a href=(back) { "The run" } }
            (report.part())
        };
        let page = Page {
            title: &report.title,
            way: "/",
            body,
        };
        Ok(door.page(&by, page))
    };
    desk.door.work(visitor, make).await
}

async fn fetch(desk: &Desk, visitor: &Visitor, run: &RunId) -> Result<RunResult, Fault> {
    let operator = desk.operator(visitor)?;
    let run = run.clone();
    let fetch = |reply| OperatorCall::FetchResult { run, reply };
    desk.ask(&operator, fetch).await
}

fn page_of(result: &RunResult) -> Result<RunPage, Fault> {
    let page = RunPage::of(result)?.filter(|_| result.has_model());
    page.ok_or_else(|| {
        let how = result.ending.status().replace('_', " ");
        Fault::absent(format!("The run {} left no report: {how}.", result.run))
    })
}
