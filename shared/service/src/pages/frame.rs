//! What every page has: its head, the ways to the others, and what it is not.

use super::Door;
use super::guard::{TOKEN, Visitor};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use maud::{DOCTYPE, Markup, html};

pub(super) const STYLE_PATH: &str = "/page.css";
pub(super) const SCRIPT_PATH: &str = "/page.js";
pub(super) const ICON_PATH: &str = "/favicon.ico";

/// What pages have besides a report's style.
pub(super) const STYLE: &str = include_str!("pages.css");

/// It stands on every page.
const NO_DEVICE: &str = "Kindred is research software. It is not a medical device, and nothing on this page may decide the care of a \
    patient.";

/// What all pages of a program have in common.
#[derive(Debug, Clone)]
pub struct Frame {
    /// Whose pages they are, on their first line.
    pub of: String,
    /// The pages that every page leads to, by path and name.
    pub ways: &'static [(&'static str, &'static str)],
    /// The program's own style, after that of all pages.
    pub style: &'static str,
    /// The program's own script, where it has one; pages do without it as well.
    pub script: Option<&'static str>,
    /// The sentence for a browser that is not let in: where the address is.
    pub closed: &'static str,
}

/// A page.
#[derive(Debug)]
pub struct Page<'p> {
    /// Its heading.
    pub title: &'p str,
    /// The way that it belongs to.
    pub way: &'static str,
    /// What follows the heading.
    pub body: Markup,
}

impl Door {
    /// A page as an answer.
    #[must_use]
    pub fn page(&self, visitor: &Visitor, page: Page<'_>) -> Response {
        self.page_with(StatusCode::OK, visitor, page)
    }

    /// A page that says that something was not done.
    #[must_use]
    pub fn page_with(&self, status: StatusCode, visitor: &Visitor, page: Page<'_>) -> Response {
        let Page { title, way, body } = page;
        let markup = html! {
            (DOCTYPE)
            html lang="en" {
                (head(title, self.frame.script.is_some()))
                body {
                    a.skip href="#main" { "To the content" }
                    header {
                        p.identity {
                            (self.frame.of)
                            @if let Some(user) = &visitor.user { ", " (user) }
                        }
                        nav aria-label="Pages" {
                            ul {
                                @for (path, name) in self.frame.ways {
                                    li { a href=(path) aria-current=[(*path == way).then_some("page")] { (name) } }
                                }
                            }
                        }
                        h1 { (title) }
                    }
                    main id="main" { (body) }
                    footer { p { (NO_DEVICE) } }
                }
            }
        };
        (status, Html(markup.into_string())).into_response()
    }

    /// A page that says in a sentence why there is no other.
    #[must_use]
    pub fn problem(&self, status: StatusCode, visitor: &Visitor, text: &str) -> Response {
        let page = Page {
            title: "Not done",
            way: "",
            body: problem(text),
        };
        self.page_with(status, visitor, page)
    }
}

/// What went wrong.
#[must_use]
pub fn problem(text: &str) -> Markup {
    html! { div.problem role="alert" { @for line in text.lines() { p { (line) } } } }
}

/// The hidden field of every form.
#[must_use]
pub fn token(visitor: &Visitor) -> Markup {
    html! { input type="hidden" name=(TOKEN) value=(visitor.token); }
}

/// A sentence to whoever is not let in: it says nothing of the site.
pub(super) fn bare(text: &str) -> Html<String> {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            (head("Kindred", false))
            body { header { h1 { "Kindred" } } main { p { (text) } } }
        }
    };
    Html(markup.into_string())
}

fn head(title: &str, has_script: bool) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) ", Kindred" }
            link rel="stylesheet" href=(STYLE_PATH);
            @if has_script { script src=(SCRIPT_PATH) defer {} }
        }
    }
}

/// Answers with a text that never changes.
pub(super) fn text(kind: &str, text: String) -> MethodRouter {
    let kind = format!("{kind}; charset=utf-8");
    get(move || async move { ([(header::CONTENT_TYPE, kind)], text) })
}
