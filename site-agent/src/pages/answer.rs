//! An answer: how similar patients fared, how sure that is, who they are and why, and what a changed value would change.

use super::acts::{Act, To};
use super::elsewhere;
use super::fields::{self, Filled};
use super::runs;
use super::shelf::Question;
use super::{AtDesk, By, Desk};
use crate::cases::bedside::{Answered, Bedside, Gist};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use protocol::cohort::{Feature, Value};
use report::{Part, Table};
use service::pages::{Fault, Page, Visitor, token};
use std::sync::Arc;

/// The answer.
pub(super) async fn show(
    State(desk): AtDesk,
    Extension(visitor): By,
    Path(id): Path<String>,
) -> Response {
    desk.work(visitor, move |desk, visitor| {
        let question = desk.question(visitor, &id)?;
        page(desk, visitor, (&id, &question), None)
    })
    .await
}

/// The similar patients as a table.
pub(super) async fn csv(
    State(desk): AtDesk,
    Extension(visitor): By,
    Path(id): Path<String>,
) -> Response {
    desk.work(visitor, move |desk, visitor| {
        let question = desk.question(visitor, &id)?;
        let run = runs::known(desk, &question.run)?;
        let answered = desk
            .bedside(&run, question.by)?
            .answer(&question.who, question.k)?;
        desk.did(visitor, Act::Fetched, To::Run(&question.run))?;
        let headers = [
            (header::CONTENT_TYPE, "text/csv; charset=utf-8"),
            (
                header::CONTENT_DISPOSITION,
                "attachment; filename=\"similar.csv\"",
            ),
        ];
        Ok((headers, answered.csv).into_response())
    })
    .await
}

/// The page of an answer; `filled` is a what-if that cannot be used.
pub(super) fn page(
    desk: &Desk,
    visitor: &Visitor,
    (id, question): (&str, &Question),
    filled: Option<&Filled>,
) -> Result<Response, Fault> {
    let run = runs::known(desk, &question.run)?;
    let bedside = desk.bedside(&run, question.by)?;
    let answered = bedside.answer(&question.who, question.k)?;
    let changes = match &question.before {
        Some(before) => Some(changes(&bedside, before, question.k, &answered)?),
        None => None,
    };
    let features = &run.job.cohort.features;
    let body = html! {
        (report::answer(&answered.answer))
        @if let Some(changes) = changes { (report::part(&Part::Table(changes))) }
        @for part in &answered.outcomes { (report::part(part)) }
        h2 { "How sure this is" }
        ul { @for sentence in &answered.sure { li { (sentence) } } }
        @for part in answered.calibration.iter().chain(&answered.reasons) { (report::part(part)) }
        (elsewhere::section(desk, visitor, (id, question), &run))
        (what_if(visitor, id, features, &answered.values, filled))
        h2 { "How this was made" }
        p { "Compared by " (runs::in_words(question.by)) ". Run " (run.run) ", method " (run.job.method.name()) "." }
        @if let Some(read) = report::moment(bedside.read()) {
            p { "Patients were read at " (read.split('.').next().unwrap_or(&read).trim_end_matches('Z')) " UTC; after ten minutes they are read again." }
        }
        ul { @for note in &answered.notes { li { (note) } } }
        p.screen {
            a href=(format!("/answer/{id}/similar.csv")) { "The similar patients as a table (CSV)" }
            ". To keep this page, print it; it is kept here for half an hour only. "
            a href=(format!("/run/{}", run.run)) { "Ask about another patient" }
        }
    };
    let is_wrong = filled.is_some();
    let status = match is_wrong {
        true => StatusCode::UNPROCESSABLE_ENTITY,
        false => StatusCode::OK,
    };
    let page = Page {
        title: &answered.title,
        way: "/",
        body,
    };
    Ok(desk.door.page_with(status, visitor, page))
}

/// What changed, and what changed by it.
fn changes(
    bedside: &Arc<Bedside>,
    before: &crate::cases::bedside::Who,
    k: usize,
    after: &Answered,
) -> Result<Table, Fault> {
    let before = bedside.answer(before, k)?;
    let mut rows: Vec<Vec<String>> = bedside
        .changed(&before.values, &after.values)?
        .into_iter()
        .map(|row| row.to_vec())
        .collect();
    let (one, other): (&Gist, &Gist) = (&before.gist, &after.gist);
    let row = |name: &str, of: fn(&Gist) -> &String| {
        vec![name.to_owned(), of(one).clone(), of(other).clone()]
    };
    rows.push(row("outcome of the similar", |gist| &gist.outcomes));
    rows.push(row("predicted", |gist| &gist.predicted));
    rows.push(row("how unusual", |gist| &gist.unusual));
    let same = other
        .similar
        .iter()
        .filter(|row| one.similar.contains(row))
        .count();
    let all = other.similar.len();
    let kept = format!("{same} of {all} are the same patients");
    rows.push(vec![
        "similar patients".to_owned(),
        one.similar.len().to_string(),
        kept,
    ]);
    Ok(Table {
        title: "What changes".to_owned(),
        caption: "The patient as first asked about, and with the changed values. A model has learned what goes together, not what a \
                  treatment would change."
            .to_owned(),
        header: ["what", "before", "after"].map(str::to_owned).to_vec(),
        rows,
    })
}

/// A form of all values, to change some.
fn what_if(
    visitor: &Visitor,
    id: &str,
    features: &[Feature],
    values: &[Value],
    filled: Option<&Filled>,
) -> Markup {
    let own = || features.iter().zip(values);
    let texts: Vec<String> = match filled {
        Some(filled) => filled.texts.clone(),
        None => own()
            .map(|(feature, value)| fields::text_of(feature, *value))
            .collect(),
    };
    let problems = filled.map_or(&[][..], |filled| &filled.problems);
    let is_wrong = problems.iter().any(Option::is_some);
    html! {
        section.screen id="what-if" {
            h2 { "What if" }
            (fields::wrong(features, problems))
            details open[is_wrong] {
                summary { "Change a value and see what changes" }
                form method="post" action=(format!("/answer/{id}/what-if#what-if")) autocomplete="off" {
                    (token(visitor))
                    (fields::fields(features, &texts, problems))
                    button type="submit" { "See what changes" }
                }
            }
        }
    }
}
