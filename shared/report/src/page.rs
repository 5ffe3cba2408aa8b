//! The report: one self-contained page, whose chapters the method writes. The answer comes first, then how sure it is, then
//! what makes patients alike. What left each site and how it went is folded, for whoever audits.

use crate::LocalFigure;
use crate::figures::FigureError;
use crate::method::{self, Chapters};
use crate::outcome;
use crate::tables::{self, Bar};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use protocol::job::Job;
use protocol::result::RunResult;

/// Colours by the reader's scheme; tables that become cards where a screen is narrow; ink and no job where it is printed.
pub const STYLE: &str = include_str!("page.css");
/// Parts from which on a page has a list of contents.
const LISTED_MIN: usize = 4;

/// The page of a run.
#[derive(Debug, Clone)]
pub struct RunPage {
    /// Its heading.
    pub title: String,
    /// Which run it was.
    identity: Markup,
    /// The answer, and all chapters.
    main: Markup,
}

impl RunPage {
    /// The page of a run; none where its job cannot be read.
    ///
    /// # Errors
    /// [`FigureError`].
    pub fn of(result: &RunResult) -> Result<Option<Self>, FigureError> {
        let Ok(job) = Job::parse_for_one(&result.job) else {
            return Ok(None);
        };
        let chapters = method::chapters(result, &job)?;
        Ok(Some(Self::with(result, &job, &chapters, &[])))
    }

    /// The page of a run, from what its method says and the figures of its patients.
    pub(crate) fn with(
        result: &RunResult,
        job: &Job,
        chapters: &Chapters,
        of_patients: &[LocalFigure],
    ) -> Self {
        let parts = html! {
            (chapters.glance)
            (chapters.features)
            (tables::notes(result, job))
            @for of in of_patients { (tables::figure(of.title, &of.svg, of.caption)) }
            (chapters.quality)
            (tables::missing(result, job))
            details.auditor {
                summary { "For the auditor: what left, how it went, and the job" }
                (chapters.sites)
                (chapters.course)
                section.job {
                    h2 { "The job" }
                    pre tabindex="0" { (result.job) }
                }
            }
        };
        let answer = html! {
            (tables::failure(result))
            section.answer aria-label="The answer" {
                (method::answer(result, job))
                @if !job.opens_study() { p { (outcome_of(result, job)) } }
            }
        };
        Self {
            title: method::title(job),
            identity: tables::identity(result, job),
            main: with_contents(&answer, parts),
        }
    }

    /// All but the heading, as the part of another page that has the same style.
    #[must_use]
    pub fn part(&self) -> Markup {
        html! { (self.identity) (self.main) }
    }

    /// A file that needs no other.
    #[must_use]
    pub fn file(&self) -> String {
        whole(&self.title, &self.identity, &self.main)
    }
}

/// The outcome, and the share of the patients who have it.
fn outcome_of(result: &RunResult, job: &Job) -> String {
    let classes = &result.pooled.classes;
    outcome::sentence(&job.cohort.outcome, classes, result.patients())
}

/// A page: its title, which it is, and what follows.
fn whole(title: &str, identity: &Markup, main: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(title))
            body {
                header { h1 { (title) } (identity) }
                main { (main) }
            }
        }
    };
    page.into_string()
}

/// The answer, a list of contents where there are many parts, and the parts.
fn with_contents(answer: &Markup, parts: Markup) -> Markup {
    let (contents, parts) = contents(&parts.into_string());
    html! { (answer) (contents) (PreEscaped(parts)) }
}

/// Links to the headings of `parts`, each name once, where there are many, and the parts with the places that the links lead to.
fn contents(parts: &str) -> (Markup, String) {
    let mut pieces = parts.split("<h2>");
    let mut placed = pieces.next().unwrap_or_default().to_owned();
    let mut headings: Vec<(u32, &str)> = Vec::new();
    for (number, piece) in (1..).zip(pieces) {
        let heading = piece.split("</h2>").next().unwrap_or_default();
        if headings.iter().all(|(_, listed)| *listed != heading) {
            headings.push((number, heading));
        }
        placed.push_str(&format!("<h2 id=\"part-{number}\">{piece}"));
    }
    let contents = html! {
        @if headings.len() >= LISTED_MIN {
            nav.contents aria-label="Contents" {
                ul {
                    @for (number, heading) in headings {
                        li { a href=(format!("#part-{number}")) { (PreEscaped(heading)) } }
                    }
                }
            }
        }
    };
    (contents, placed)
}

fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) }
            style { (PreEscaped(STYLE)) }
        }
    }
}

/// Shares one below the other on a page of a site's own.
#[derive(Debug, Clone)]
pub struct Shares {
    /// The heading.
    pub title: &'static str,
    /// What each is of, how long its bar is, and what is written behind it.
    pub bars: Vec<(String, f64, String)>,
    /// What they show.
    pub caption: String,
}

/// A table of a page of a site's own.
#[derive(Debug, Clone)]
pub struct Table {
    /// The heading.
    pub title: String,
    /// What it shows.
    pub caption: String,
    /// Names of the columns.
    pub header: Vec<String>,
    /// The rows, each as long as the header.
    pub rows: Vec<Vec<String>>,
}

/// A part of a page of a site's own.
#[derive(Debug, Clone)]
pub enum Part {
    /// Nothing without a row.
    Table(Table),
    /// Nothing without a bar.
    Shares(Shares),
    /// Nothing without a drawing.
    Figure(LocalFigure),
}

/// A part as a page shows it. Bars are drawn in proportion to the longest, which is at least `1`.
#[must_use]
pub fn part(of: &Part) -> Markup {
    let bar = |(label, length, value): &(String, f64, String)| Bar {
        label: label.clone(),
        length: *length,
        value: value.clone(),
        flag: None,
    };
    match of {
        Part::Table(table) => tables::listed(table),
        Part::Shares(one) => {
            let bars: Vec<Bar> = one.bars.iter().map(bar).collect();
            tables::shares(one.title, &bars, &one.caption)
        }
        Part::Figure(of) => tables::figure(of.title, &of.svg, of.caption),
    }
}

/// The answer with which a page begins: its sentences, the first in larger letters.
#[must_use]
pub fn answer(sentences: &[String]) -> Markup {
    html! {
        section.answer aria-label="The answer" {
            @for (place, sentence) in sentences.iter().enumerate() {
                p class=[(place == 0).then_some("lead")] { (sentence) }
            }
        }
    }
}

/// A page of an answer about a site's own patients, which stays there: the sentences of the answer, then its parts.
#[must_use]
pub fn sheet(title: &str, sentences: &[String], parts: &[Part]) -> String {
    let parts = html! { @for of in parts { (part(of)) } };
    let main = with_contents(&answer(sentences), parts);
    whole(title, &Markup::default(), &main)
}
