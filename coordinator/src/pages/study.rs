//! A study: its text, who has approved it, its runs, and its card.

use super::{AtDesk, By, Desk, home, run};
use crate::driver::{OwnStudy, Presence, Sight};
use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use protocol::name::{OperatorName, SiteName};
use protocol::study::{HospitalState, Standing, Study, StudyName, StudyState};
use report::minute;
use service::pages::{Fault, Page, Visitor};
use std::collections::BTreeMap;
use wire::OperatorCall;

/// `/study/NAME`.
pub(super) async fn show(
    State(desk): AtDesk,
    Extension(visitor): By,
    Path(name): Path<String>,
) -> Response {
    let made = make(&desk, &visitor, &name).await;
    desk.door.made(&visitor, made)
}

/// `/study/NAME/card`.
pub(super) async fn card(
    State(desk): AtDesk,
    Extension(visitor): By,
    Path(name): Path<String>,
) -> Response {
    let found = async {
        let operator = desk.operator(&visitor)?;
        state(&desk, &operator, &name).await
    };
    match found.await {
        Ok(state) => run::drawn(&desk, &visitor, &state.run).await,
        Err(fault) => desk.door.made(&visitor, Err(fault)),
    }
}

/// A study that names the operator, as `study show` finds it.
async fn state(desk: &Desk, operator: &OperatorName, name: &str) -> Result<StudyState, Fault> {
    let all = |reply| OperatorCall::ListStudies { reply };
    let all = desk.ask(operator, all).await?;
    let found = all.into_iter().find(|one| one.name.as_str() == name);
    found.ok_or_else(absent)
}

/// The study of this name, where it names the operator, and their runs of it.
pub(super) async fn own(
    desk: &Desk,
    operator: &OperatorName,
    name: &str,
) -> Result<OwnStudy, Fault> {
    let name = StudyName::new(name).map_err(|_| absent())?;
    desk.look(operator, |reply| Sight::Study(name, reply)).await
}

fn absent() -> Fault {
    Fault::absent("No study of this name names you.")
}

async fn make(desk: &Desk, visitor: &Visitor, name: &str) -> Result<Response, Fault> {
    let operator = desk.operator(visitor)?;
    let state = state(desk, &operator, name).await?;
    let OwnStudy { study, runs: own } = own(desk, &operator, name).await?;
    let present = desk.look(&operator, Sight::Hospitals).await?;
    let all = |reply| OperatorCall::List { reply };
    let mut runs = desk.ask(&operator, all).await?;
    runs.retain(|run| own.contains(&run.run));
    let awaited: Vec<&str> = state.awaited().map(|one| one.name.as_str()).collect();
    let is_open = matches!(state.standing, Standing::Open);
    let body = html! {
        section.answer aria-label="The answer" {
            p.lead {
                (state.name.as_str()) ": " (state.standing.name())
                @if !awaited.is_empty() { ", waiting for the approval of " (awaited.join(", ")) }
                "."
            }
            @for one in &state.waiting { p { (report::waiting_text(one)) "." } }
            p { (study.purpose) }
        }
        ul.links {
            li { a href=(format!("/study/{name}/card")) { "Card: Table 1" } }
            @if is_open { li { a href=(format!("/study/{name}/job")) { "Write a job" } } }
        }
        h2 { "Hospitals" }
        (hospitals(&state.hospitals, &present))
        h2 { "Your runs" }
        (home::runs(&runs))
        h2 { "Limits" }
        (limits(&study))
        h2 { "As its hospitals approve it" }
        p.note { "Until " (state.until) ", digest sha256:" (state.digest) "." }
        pre.text { (study.text) }
    };
    let page = Page {
        title: &state.title,
        way: "/",
        body,
    };
    Ok(desk.door.page(visitor, page))
}

fn hospitals(hospitals: &[HospitalState], present: &BTreeMap<SiteName, Presence>) -> Markup {
    let names = [
        "hospital",
        "approved (UTC)",
        "patients",
        "last seen (UTC)",
        "version",
    ];
    html! {
        table.wide.words {
            thead { tr { @for name in names { th scope="col" { (name) } } } }
            tbody {
                @for one in hospitals {
                    tr {
                        th scope="row" { (one.name) }
                        td data-label="approved (UTC)" {
                            @match &one.approval {
                                Some(approval) => (minute(approval.approved).unwrap_or_default()),
                                None => "not yet",
                            }
                        }
                        td data-label="patients" {
                            @if let Some(approval) = &one.approval { "at most " (approval.patients_at_most) }
                        }
                        (home::presence(present.get(&one.name)))
                    }
                }
            }
        }
    }
}

/// What every hospital allows; how much of it is used, each counts for itself.
fn limits(study: &Study) -> Markup {
    let limits = &study.limits;
    let rows = [
        ("runs", limits.runs),
        ("rounds of all runs", limits.rounds),
        ("queries", limits.queries),
        (
            "learned runs by which patients are grouped",
            limits.metrics_for_groups,
        ),
    ];
    html! {
        table {
            caption { "What each hospital allows all runs together. It counts for itself what is used." }
            tbody { @for (name, most) in rows { tr { th scope="row" { (name) } td { (most) } } } }
        }
    }
}
