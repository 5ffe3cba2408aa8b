//! One study: what it asks, approval, the hospital's data against it, and the hospital's Table 1 beside the study's.

use super::acts::{Act, To};
use super::elsewhere;
use super::studies::budget;
use super::{AtDesk, By, Desk};
use crate::cli::{StudyApprove, StudyFile};
use crate::config::SiteConfig;
use crate::run::driver::now;
use crate::run::local;
use crate::source;
use crate::studies::{self, Approved, Review, proposed};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use protocol::job::Job;
use protocol::progress::Ending;
use protocol::study::{Study, StudyName};
use report::{Part, Table};
use service::pages::{Fault, Form, Page, Visitor, problem, see, token};

/// A study, and the hospital's approval of it where it has given one.
struct Known {
    study: Study,
    approved: Option<Approved>,
}

/// The study of this name: approved, or proposed.
fn known(config: &SiteConfig, name: &str) -> Result<Known, Fault> {
    let absent = || Fault::absent("This hospital knows no study of this name.");
    let name = StudyName::new(name).map_err(|_| absent())?;
    let approved = studies::all(&config.folder, &config.site)?;
    let found = approved.into_iter().find(|one| one.study.name == name);
    if let Some(approved) = found {
        return Ok(Known {
            study: approved.study.clone(),
            approved: Some(approved),
        });
    }
    let waiting = proposed::waiting(config, &[])?;
    let found = waiting.into_iter().find(|study| study.name == name);
    let study = found.ok_or_else(absent)?;
    Ok(Known {
        study,
        approved: None,
    })
}

/// What the study asks.
pub(super) async fn review(
    State(desk): AtDesk,
    Extension(visitor): By,
    Path(name): Path<String>,
) -> Response {
    desk.work(visitor, move |desk, visitor| {
        let config = desk.open()?;
        let known = known(&config, &name)?;
        page(desk, visitor, (&config, &known), None)
    })
    .await
}

/// The page of a study; `wrong` is what is wrong with an approval.
fn page(
    desk: &Desk,
    visitor: &Visitor,
    (config, known): (&SiteConfig, &Known),
    wrong: Option<&str>,
) -> Result<Response, Fault> {
    let Known { study, approved } = known;
    let review = Review {
        study,
        config,
        approved: approved.as_ref(),
    };
    let name = study.name.as_str();
    let left = match approved {
        Some(approved) if !approved.left => studies::budgets(config, Some(name), now())?.pop(),
        Some(_) | None => None,
    };
    let body = html! {
        @if let (Some(wrong), true) = (wrong, approved.is_some()) { (problem(wrong)) }
        section.answer aria-label="The answer" {
            p.lead {
                @match approved {
                    Some(approved) => { "This hospital has approved the study: " (approved.standing(now())) "." },
                    None => "This hospital has not approved the study. Nothing leaves for it.",
                }
            }
            p.screen {
                a href=(format!("/study/{name}/data")) { "The data of this hospital against the study" } ". "
                a href=(format!("/study/{name}/table-1")) { "Table 1 of this hospital and of the study" } "."
            }
        }
        @if let Some(left) = &left { h2 { "What is left" } (budget(left)) }
        h2 { "What it asks" }
        (readable(&review.to_string()))
        @if approved.is_none() { (form(visitor, config, study, wrong)) }
    };
    let status = match wrong {
        Some(_) => StatusCode::UNPROCESSABLE_ENTITY,
        None => StatusCode::OK,
    };
    let page = Page {
        title: &study.title,
        way: "/studies",
        body,
    };
    Ok(desk.door.page_with(status, visitor, page))
}

/// Approval, behind the typed name of the study.
fn form(visitor: &Visitor, config: &SiteConfig, study: &Study, wrong: Option<&str>) -> Markup {
    let name = study.name.as_str();
    let undeclared = source::undeclared_units(&config.source, &study.features);
    html! {
        section.screen id="approve" {
            h2 { "Approve" }
            @if let Some(wrong) = wrong { (problem(wrong)) }
            p {
                "Approval reads the patients once, copies those with an outcome, and signs. Runs of the study are then answered without a \
                 further question. It cannot be taken back, but the hospital can leave the study."
            }
            form method="post" action=(format!("/study/{name}/approve#approve")) autocomplete="off" {
                (token(visitor))
                input type="hidden" name="digest" value=(study.digest());
                @if !undeclared.is_empty() {
                    div.field {
                        input id="units" name="units" type="checkbox" value="yes";
                        label for="units" { "The values of " (undeclared.join(", ")) " are in the study's units. site.toml does not say so." }
                    }
                }
                div.field {
                    label for="typed" { "Type the name of the study, " (name) ", to approve it" }
                    input id="typed" name="typed" type="text" autocomplete="off" required;
                }
                button type="submit" { "Approve the study" }
            }
            p.note { "A consent of another hospital is passed to the command: kindred-site-agent study approve --consent FILE." }
        }
    }
}

/// Approves the study as it was shown.
pub(super) async fn approve(
    State(desk): AtDesk,
    Extension(visitor): By,
    Path(name): Path<String>,
    Extension(form): Extension<Form>,
) -> Response {
    desk.work(visitor, move |desk, visitor| {
        let config = desk.open()?;
        let known = known(&config, &name)?;
        let wrong = |text: &str| page(desk, visitor, (&config, &known), Some(text));
        if known.approved.is_some() {
            return wrong("This hospital has approved the study before.");
        }
        if form.get("typed") != known.study.name.as_str() {
            return wrong("Nothing was approved: the name that was typed is not that of the study.");
        }
        if form.get("digest") != known.study.digest() {
            return wrong("Nothing was approved: the text has changed since you saw it. Please review it as it is now.");
        }
        // What was shown is what is approved, whatever is proposed meanwhile.
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("approved.study.toml");
        wire::private::write(&file, known.study.text.as_bytes())?;
        let asked = StudyApprove {
            of: StudyFile {
                config: desk.config.clone().into(),
                json: false,
                study: file,
            },
            consent: Vec::new(),
            confirm_units: form.has("units"),
        };
        match studies::approve(&asked, now()) {
            Ok(_) => {
                desk.did(visitor, Act::Approved, To::Study(&name))?;
                Ok(see(&format!("/study/{name}#top")))
            }
            Err(error) => wrong(&format!("Nothing was approved. {}", report::with_causes(&error))),
        }
    })
    .await
}

/// The hospital's data against the study, column by column and line by line.
pub(super) async fn data(
    State(desk): AtDesk,
    Extension(visitor): By,
    Path(name): Path<String>,
) -> Response {
    desk.work(visitor, move |desk, visitor| {
        let config = desk.open()?;
        let study = known(&config, &name)?.study;
        let job = Job::parse(&study.card())?;
        let check = source::check(&config.source, &job, config.policy.rules().cell_min);
        let problems = check.problems().problems();
        let lead = match problems.len() {
            0 => "The data fits the study.".to_owned(),
            1 => "The data does not fit the study: 1 problem.".to_owned(),
            many => format!("The data does not fit the study: {many} problems."),
        };
        let undeclared = source::undeclared_units(&config.source, &study.features);
        let mut sentences = vec![lead, format!("{}.", check.counts())];
        if !undeclared.is_empty() {
            sentences.push(format!(
                "site.toml declares no unit for {}.",
                undeclared.join(", ")
            ));
        }
        let columns = Table {
            title: "Columns".to_owned(),
            caption: "As the study reads the source of this hospital today.".to_owned(),
            header: ["column", "kind", "missing", "range or levels"]
                .map(str::to_owned)
                .to_vec(),
            rows: check.table().into_iter().map(|row| row.to_vec()).collect(),
        };
        let body = html! {
            p.note { (study.title) }
            (report::answer(&sentences))
            @if !problems.is_empty() {
                h2 { "To correct" }
                ul { @for one in problems { li { (one.to_string()) } } }
            }
            @if !check.remarks().is_empty() {
                h2 { "To review" }
                p { "A run goes on by the hospital's own rule." }
                ul { @for one in check.remarks() { li { (one.to_string()) } } }
            }
            (report::part(&Part::Table(columns)))
            p.screen { a href=(format!("/study/{name}")) { "The study" } }
        };
        let page = Page {
            title: "The data against the study",
            way: "/studies",
            body,
        };
        Ok(desk.door.page(visitor, page))
    })
    .await
}

/// The hospital's Table 1, then the study's.
pub(super) async fn table_1(
    State(desk): AtDesk,
    Extension(visitor): By,
    Path(name): Path<String>,
) -> Response {
    desk.work(visitor, move |desk, visitor| {
        let config = desk.open()?;
        let Known { study, approved } = known(&config, &name)?;
        let own = local::card(&config.source, &study)?;
        let own = match &own.ending {
            Ending::Failed(failure) => problem(&failure.text),
            Ending::Converged | Ending::RoundLimit | Ending::Completed | Ending::Cancelled => {
                report::found(&own)?.unwrap_or_default()
            }
        };
        let runs = approved.as_ref().map(Approved::openings).transpose()?.unwrap_or_default();
        let pooled = elsewhere::card(&config, &runs);
        let body = html! {
            p.note { (study.title) }
            p { "The hospital's table is of its source as it is today. The study's card was made when the study opened." }
            div.beside {
                section aria-labelledby="own" { h2 id="own" { "This hospital" } (own) }
                section aria-labelledby="pooled" {
                    h2 id="pooled" { "All hospitals" }
                    @match pooled {
                        Ok(Some(card)) => (card),
                        Ok(None) => p { "The study has not opened yet, so it has no card." },
                        Err(why) => p { (why) },
                    }
                }
            }
            p.screen { a href=(format!("/study/{name}")) { "The study" } }
        };
        let page = Page {
            title: "Table 1 of this hospital and of the study",
            way: "/studies",
            body,
        };
        Ok(desk.door.page(visitor, page))
    })
    .await
}

/// What a command prints, as a page: what is indented becomes a list below the line before.
fn readable(text: &str) -> Markup {
    let mut blocks: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("  "), blocks.last_mut()) {
            (Some(item), Some((_, items))) => items.push(item),
            (Some(item), None) => blocks.push((Vec::new(), vec![item])),
            (None, _) if line.is_empty() => blocks.push(Default::default()),
            (None, Some((lines, items))) if items.is_empty() => lines.push(line),
            (None, _) => blocks.push((vec![line], Vec::new())),
        }
    }
    html! {
        @for (lines, items) in blocks {
            @for line in lines { p { (line) } }
            @if !items.is_empty() { ul { @for item in items { li { (item) } } } }
        }
    }
}
