//! What every page has: its head, the ways to the others, and what it is not.

use super::Desk;
use super::guard::{TOKEN, Visitor};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

pub(super) const STYLE_PATH: &str = "/page.css";
pub(super) const ICON_PATH: &str = "/favicon.ico";

/// What pages have besides a report's style.
const STYLE: &str = include_str!("pages.css");
/// It stands on every page.
const NO_DEVICE: &str = "Kindred is research software. It is not a medical device, and nothing on this page may decide the care of a \
    patient.";

/// The pages that every page leads to.
const WAYS: [(&str, &str); 4] = [
    ("/", "Patients"),
    ("/studies", "Studies"),
    ("/left", "What left"),
    ("/checkup", "Checkup"),
];

/// A page.
pub(super) struct Page<'p> {
    pub(super) title: &'p str,
    /// The way that it belongs to.
    pub(super) way: &'static str,
    pub(super) body: Markup,
}

impl Desk {
    /// A page as an answer.
    pub(super) fn page(&self, visitor: &Visitor, page: Page<'_>) -> Response {
        self.page_with(StatusCode::OK, visitor, page)
    }

    /// A page that says that something was not done.
    pub(super) fn page_with(
        &self,
        status: StatusCode,
        visitor: &Visitor,
        page: Page<'_>,
    ) -> Response {
        let Page { title, way, body } = page;
        let markup = html! {
            (DOCTYPE)
            html lang="en" {
                (head(title))
                body {
                    a.skip href="#main" { "To the content" }
                    header {
                        p.identity {
                            "Kindred at " (self.site)
                            @if let Some(user) = &visitor.user { ", " (user) }
                        }
                        nav aria-label="Pages" {
                            ul {
                                @for (path, name) in WAYS {
                                    li { a href=(path) aria-current=[(path == way).then_some("page")] { (name) } }
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
    pub(super) fn problem(&self, status: StatusCode, visitor: &Visitor, text: &str) -> Response {
        let page = Page {
            title: "Not done",
            way: "",
            body: problem(text),
        };
        self.page_with(status, visitor, page)
    }
}

/// What went wrong.
pub(super) fn problem(text: &str) -> Markup {
    html! { div.problem role="alert" { @for line in text.lines() { p { (line) } } } }
}

/// The hidden field of every form.
pub(super) fn token(visitor: &Visitor) -> Markup {
    html! { input type="hidden" name=(TOKEN) value=(visitor.token); }
}

/// A sentence to whoever is not let in: it says nothing of the site.
pub(super) fn bare(text: &str) -> Html<String> {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            (head("Kindred"))
            body { header { h1 { "Kindred" } } main { p { (text) } } }
        }
    };
    Html(markup.into_string())
}

fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) ", Kindred" }
            link rel="stylesheet" href=(STYLE_PATH);
        }
    }
}

/// The style of all pages.
pub(super) async fn style() -> Response {
    let style = format!("{}{STYLE}", report::STYLE);
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], style).into_response()
}

/// Pages have no icon.
pub(super) async fn icon() -> StatusCode {
    StatusCode::NO_CONTENT
}
