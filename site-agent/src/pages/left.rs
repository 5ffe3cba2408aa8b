//! What left the hospital: by run, kind and bytes, by a journal that is checked each time.

use super::acts::{Act, To};
use super::{AtDesk, By, Desk};
use crate::books::journal::{self, OfRun};
use crate::config::SiteConfig;
use crate::run::audit;
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use protocol::name::RunId;
use report::{Part, Table};
use service::pages::{Fault, Page, Visitor, problem, token};

/// All runs.
pub(super) async fn all(State(desk): AtDesk, Extension(visitor): By) -> Response {
    desk.work(visitor, |desk, visitor| {
        let config = desk.open()?;
        let body = match journal::is_unwritten(&config.folder) {
            true => nothing(),
            false => listed(&config),
        };
        let page = Page {
            title: "What left",
            way: "/left",
            body,
        };
        Ok(desk.door.page(visitor, page))
    })
    .await
}

fn nothing() -> Markup {
    report::answer(&["Nothing has left this hospital yet.".to_owned()])
}

fn listed(config: &SiteConfig) -> Markup {
    let (runs, head) = match journal::by_run(&config.folder) {
        Ok(found) => found,
        Err(error) => {
            let text = format!(
                "The journal is not what was written, and cannot be believed. {}",
                report::with_causes(&error)
            );
            return problem(&text);
        }
    };
    if runs.is_empty() {
        return nothing();
    }
    let bytes: u64 = runs.iter().map(|one| one.all().1).sum();
    let sentences = [
        format!(
            "Verified: all {} entries of the journal are as they were written. {} bytes left in {} runs.",
            head.entries,
            report::grouped(bytes),
            runs.len()
        ),
        format!(
            "The journal ends at {head}. Keep this elsewhere: it also shows that no entry was cut off the end."
        ),
    ];
    html! {
        (report::answer(&sentences))
        h2 { "By run" }
        table.wide.words {
            caption { "The newest run first. Times are UTC." }
            thead { tr { @for name in ["run", "last message", "kinds", "messages", "bytes"] { th scope="col" { (name) } } } }
            tbody { @for run in &runs { (row(run)) } }
        }
    }
}

fn row(of: &OfRun) -> Markup {
    let (messages, bytes) = of.all();
    let kinds: Vec<&str> = of.kinds.keys().map(String::as_str).collect();
    html! {
        tr {
            th scope="row" {
                @match RunId::new(&of.run) {
                    Ok(run) => a href=(format!("/left/{run}")) { (run) },
                    Err(_) => "no run",
                }
            }
            td data-label="last message" { (to_the_minute(&of.last)) }
            td data-label="kinds" { (kinds.join(", ")) }
            td data-label="messages" { (messages) }
            td data-label="bytes" { (report::grouped(bytes)) }
        }
    }
}

/// A moment as the journal has it, for people.
fn to_the_minute(moment: &str) -> String {
    moment
        .chars()
        .take(16)
        .collect::<String>()
        .replace('T', " ")
}

/// What left in one run.
pub(super) async fn run(
    State(desk): AtDesk,
    Extension(visitor): By,
    Path(run): Path<String>,
) -> Response {
    desk.work(visitor, move |desk, visitor| {
        page(desk, visitor, &run, None)
    })
    .await
}

/// Recomputes every question of a run from the hospital's own copy.
pub(super) async fn verify(
    State(desk): AtDesk,
    Extension(visitor): By,
    Path(run): Path<String>,
) -> Response {
    desk.work(visitor, move |desk, visitor| {
        let config = desk.open()?;
        let run_id = RunId::new(&run)?;
        desk.did(visitor, Act::Verified, To::Run(&run))?;
        let verified = audit::audit(&config, &run_id);
        let verified = verified.map(|audit| audit.to_string());
        let verified = verified.map_err(|error| report::with_causes(&error));
        page(desk, visitor, &run, Some(verified))
    })
    .await
}

fn page(
    desk: &Desk,
    visitor: &Visitor,
    run: &str,
    verified: Option<Result<String, String>>,
) -> Result<Response, Fault> {
    let config = desk.open()?;
    let (runs, _) = journal::by_run(&config.folder)?;
    let found = RunId::new(run)
        .ok()
        .and_then(|run| runs.into_iter().find(|one| one.run == run.as_str()));
    let of = found
        .ok_or_else(|| Fault::absent("Nothing has left this hospital in a run of this name."))?;
    let (messages, bytes) = of.all();
    let bytes = report::grouped(bytes);
    let row = |(kind, (messages, bytes)): (&String, &(u64, u64))| {
        vec![kind.clone(), messages.to_string(), report::grouped(*bytes)]
    };
    let kinds = Table {
        title: "By kind of message".to_owned(),
        caption: "Masked numbers can be read only as the sum over all hospitals. No record of a patient is among them.".to_owned(),
        header: ["kind", "messages", "bytes"].map(str::to_owned).to_vec(),
        rows: of.kinds.iter().map(row).collect(),
    };
    let lead = match &verified {
        None => format!("{messages} messages with {bytes} bytes left in this run."),
        Some(Ok(_)) => format!(
            "Verified: every question of this run follows from its job. {messages} messages with {bytes} bytes left."
        ),
        Some(Err(_)) => "This run is not verified.".to_owned(),
    };
    let status = match &verified {
        Some(Err(_)) => StatusCode::UNPROCESSABLE_ENTITY,
        Some(Ok(_)) | None => StatusCode::OK,
    };
    let body = html! {
        (report::answer(&[lead]))
        @match &verified {
            Some(Ok(text)) => p { (text) },
            Some(Err(text)) => (problem(text)),
            None => {},
        }
        (report::part(&Part::Table(kinds)))
        form.screen method="post" action=(format!("/left/{}/verify", of.run)) {
            (token(visitor))
            p { "The hospital keeps a copy of what it heard. From it every question of the run can be computed again." }
            button type="submit" { "Verify the run" }
        }
        p.screen { a href="/left" { "All runs" } }
    };
    let title = format!("What left in run {}", of.run);
    let page = Page {
        title: &title,
        way: "/left",
        body,
    };
    Ok(desk.door.page_with(status, visitor, page))
}
