//! The studies that the hospital has approved, those that wait for its approval, and its certificate.

use super::{AtDesk, By, Desk};
use crate::config::SiteConfig;
use crate::run::driver::now;
use crate::studies::{self, Approved, Budget};
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use protocol::study::Study;
use service::pages::{Fault, Page, Visitor};

/// The studies.
pub(super) async fn all(State(desk): AtDesk, Extension(visitor): By) -> Response {
    desk.work(visitor, |desk, visitor| show(desk, visitor))
        .await
}

fn show(desk: &Desk, visitor: &Visitor) -> Result<Response, Fault> {
    let config = desk.open()?;
    let approved = studies::all(&config.folder, &config.site)?;
    let waiting = studies::proposed::waiting(&config, &approved)?;
    let budgets = studies::budgets(&config, None, now())?;
    let body = html! {
        section.answer aria-label="The answer" {
            p.lead {
                @match waiting.len() {
                    0 => "No study waits for this hospital's approval.",
                    1 => "1 study waits for this hospital's approval.",
                    many => { (many) " studies wait for this hospital's approval." },
                }
            }
        }
        @if !waiting.is_empty() {
            h2 { "Proposed" }
            ul.choices { @for study in &waiting { li { (proposed(study)) } } }
        }
        @if !approved.is_empty() { h2 { "Approved" } }
        @for (study, left) in approved.iter().zip(&budgets) { (signed(study, left)) }
        h2 { "Certificate" }
        (certificate(&config))
    };
    let page = Page {
        title: "Studies",
        way: "/studies",
        body,
    };
    Ok(desk.door.page(visitor, page))
}

fn proposed(study: &Study) -> Markup {
    html! {
        a href=(format!("/study/{}", study.name)) { (study.title) }
        p.note { (study.name.as_str()) ", until " (study.until) ", " (study.hospitals.len()) " hospitals. Review it before you approve it." }
    }
}

fn signed(one: &Approved, left: &Budget) -> Markup {
    let approval = &one.signed.approval;
    html! {
        section {
            h3 { a href=(format!("/study/{}", one.study.name)) { (one.study.title) } }
            p { (one.study.name.as_str()) ": " (one.standing(now())) ". At most " (approval.patients_at_most) " patients." }
            @for sentence in one.left_out_here() { p { (sentence) "." } }
            (budget(left))
        }
    }
}

/// How much of a study's limits is used and left.
pub(super) fn budget(left: &Budget) -> Markup {
    html! {
        table.wide {
            caption { "What the runs of the study may still ask of this hospital." }
            thead { tr { @for name in ["limit", "allowed", "used", "left"] { th scope="col" { (name) } } } }
            tbody {
                @for [limit, allowed, used, left] in left.rows() {
                    tr {
                        th scope="row" { (limit.replace('_', " ")) }
                        td data-label="allowed" { (allowed) }
                        td data-label="used" { (used) }
                        td data-label="left" { (left) }
                    }
                }
            }
        }
        p.note { (left.outcome_epsilon()) }
    }
}

/// Until when the site's certificate holds, and by what studies name it.
fn certificate(config: &SiteConfig) -> Markup {
    let until = wire::certificates::valid_until(&config.tls.certificate);
    html! {
        @match until {
            Ok(until) => p { "Valid until " (time::OffsetDateTime::from(until).date()) "." },
            Err(error) => p { (report::with_causes(&error)) },
        }
        @match wire::fingerprint(&config.tls) {
            Ok(fingerprint) => p.note { "Studies name this hospital by the fingerprint " (fingerprint) "." },
            Err(error) => p.note { (report::with_causes(&error)) },
        }
    }
}
