//! The first page: the operator's studies, runs and hospitals.

use super::{AtDesk, By, Desk};
use crate::driver::{Presence, Sight};
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use protocol::name::SiteName;
use protocol::progress::Progress;
use protocol::study::StudyState;
use report::minute;
use service::pages::{Fault, Page, Visitor};
use std::collections::BTreeMap;
use wire::OperatorCall;

/// Runs that are listed; `job list` has all.
const RUNS_MAX: usize = 50;

/// `/`.
pub(super) async fn show(State(desk): AtDesk, Extension(visitor): By) -> Response {
    let made = make(&desk, &visitor).await;
    desk.door.made(&visitor, made)
}

async fn make(desk: &Desk, visitor: &Visitor) -> Result<Response, Fault> {
    let operator = desk.operator(visitor)?;
    let studies = |reply| OperatorCall::ListStudies { reply };
    let studies = desk.ask(&operator, studies).await?;
    let all = |reply| OperatorCall::List { reply };
    let all = desk.ask(&operator, all).await?;
    let present = desk.look(&operator, Sight::Hospitals).await?;
    let going = all.iter().filter(|run| run.ending.is_none()).count();
    let body = html! {
        section.answer aria-label="The answer" {
            p.lead {
                @match going {
                    0 => "No run is under way.",
                    1 => "1 run is under way or queued.",
                    many => { (many) " runs are under way or queued." },
                }
            }
            p { "You are the operator " (operator.as_str()) "." }
        }
        h2 { "Studies" }
        @if studies.is_empty() {
            p { "No study names you. " code { "kindred-coordinator study propose" } " proposes one." }
        }
        @if !studies.is_empty() {
            ul.choices { @for study in &studies { li { (self::study(study)) } } }
        }
        h2 { "Runs" }
        (runs(&all))
        @if !studies.is_empty() {
            h2 { "Hospitals" }
            (hospitals(&studies, &present))
        }
    };
    let page = Page {
        title: "Studies and runs",
        way: "/",
        body,
    };
    Ok(desk.door.page(visitor, page))
}

fn study(study: &StudyState) -> Markup {
    let awaited: Vec<&str> = study.awaited().map(|one| one.name.as_str()).collect();
    let approved = study.hospitals.len() - awaited.len();
    html! {
        a href=(format!("/study/{}", study.name)) { (study.title) }
        p.note {
            (study.name.as_str()) ": " (study.standing.name()) ", until " (study.until) ". "
            (approved) " of " (study.hospitals.len()) " hospitals have approved it"
            @if !awaited.is_empty() { "; it waits for " (awaited.join(", ")) }
            "."
        }
        @for one in &study.waiting { p.note { (report::waiting_text(one)) "." } }
    }
}

/// Runs, the newest first.
pub(super) fn runs(runs: &[Progress]) -> Markup {
    let shown = &runs[..runs.len().min(RUNS_MAX)];
    html! {
        @if runs.is_empty() { p { "None." } }
        @if !runs.is_empty() {
            table.wide.words {
                caption {
                    "The newest first."
                    @if shown.len() < runs.len() {
                        " " (runs.len() - shown.len()) " older ones are in " code { "kindred-coordinator job list" } "."
                    }
                }
                thead { tr { @for name in ["run", "method", "submitted (UTC)", "status", "round", "took"] { th scope="col" { (name) } } } }
                tbody { @for run in shown { (row(run)) } }
            }
        }
    }
}

fn row(run: &Progress) -> Markup {
    let name = match run.job.is_empty() {
        true => run.run.as_str(),
        false => &run.job,
    };
    html! {
        tr {
            th scope="row" { a href=(format!("/run/{}", run.run)) { (name) } }
            td data-label="method" { (run.method) }
            td data-label="submitted (UTC)" { (run.times.submitted.and_then(minute).unwrap_or_default()) }
            td data-label="status" {
                (report::run_status(run))
                @if let Some(waiting) = report::run_waiting(run).filter(|_| !run.away.is_empty()) { ", " (waiting) }
            }
            td data-label="round" { @if run.course.round > 0 { (run.course.round) } }
            td data-label="took" { (report::lasted(run).unwrap_or_default()) }
        }
    }
}

/// The hospitals of all studies.
fn hospitals(studies: &[StudyState], present: &BTreeMap<SiteName, Presence>) -> Markup {
    let mut of: BTreeMap<&SiteName, Vec<&str>> = BTreeMap::new();
    for study in studies {
        for hospital in &study.hospitals {
            let own = of.entry(&hospital.name).or_default();
            own.push(study.name.as_str());
        }
    }
    html! {
        table.wide.words {
            thead { tr { @for name in ["hospital", "last seen (UTC)", "version", "studies"] { th scope="col" { (name) } } } }
            tbody {
                @for (site, studies) in of {
                    tr {
                        th scope="row" { (site) }
                        (presence(present.get(site)))
                        td data-label="studies" { (studies.join(", ")) }
                    }
                }
            }
        }
    }
}

/// When a hospital was last here, and its version: two cells of a table.
pub(super) fn presence(known: Option<&Presence>) -> Markup {
    html! {
        td data-label="last seen (UTC)" {
            @match known {
                Some(here) if here.connected => span.status.here { "connected" },
                Some(gone) => span.status.away { (minute(gone.since).unwrap_or_default()) },
                None => "not since the coordinator started",
            }
        }
        td data-label="version" { (known.map_or("", |known| known.version.as_str())) }
    }
}
