//! The report: one self-contained page, whose chapters the method writes. The answer comes first, then how sure it is, then
//! what left each site, then how it went.

use crate::LocalFigure;
use crate::method::{self, Chapters};
use crate::tables::{self, Bar};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use protocol::job::Job;
use protocol::result::RunResult;

/// Colours by the reader's scheme; tables that become cards where a screen is narrow; ink and no job where it is printed.
const STYLE: &str = include_str!("page.css");

/// The page of a run, from what its method says and the figures of its patients.
pub(crate) fn html(
    result: &RunResult,
    job: &Job,
    chapters: &Chapters,
    of_patients: &[LocalFigure],
) -> String {
    let title = method::title(job);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(&title))
            body {
                header {
                    h1 { (title) }
                    (tables::identity(result, job))
                }
                main {
                    (tables::failure(result))
                    section.answer aria-label="The answer" { (chapters.answer) }
                    (chapters.glance)
                    (chapters.features)
                    (tables::notes(result))
                    @for of in of_patients { (tables::figure(of.title, &of.svg, of.caption)) }
                    (chapters.quality)
                    (chapters.sites)
                    (tables::missing(result, job))
                    (chapters.course)
                    details.job {
                        summary { "The job" }
                        pre tabindex="0" { (result.job) }
                    }
                }
            }
        }
    };
    page.into_string()
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

/// Shares beside each other on a page of a site's own.
#[derive(Debug, Clone)]
pub struct Shares {
    /// The heading.
    pub title: &'static str,
    /// What each is of, how long its bar is, and what stands behind it.
    pub bars: Vec<(String, f64, String)>,
    /// What they show.
    pub caption: String,
}

/// A page of an answer about a site's own patients, which stays there: the sentences of the answer, then shares, then figures; those
/// without a drawing are left out. Bars are as long as they are to the longest, which is at least `1`.
#[must_use]
pub fn sheet(title: &str, answer: &[String], shares: &[Shares], figures: &[LocalFigure]) -> String {
    let drawn = figures.iter().filter(|figure| !figure.svg.is_empty());
    let bar = |(label, length, value): &(String, f64, String)| Bar {
        label: label.clone(),
        length: *length,
        value: value.clone(),
        flag: None,
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(title))
            body {
                header { h1 { (title) } }
                main {
                    section.answer aria-label="The answer" {
                        @for (place, sentence) in answer.iter().enumerate() {
                            p class=[(place == 0).then_some("lead")] { (sentence) }
                        }
                    }
                    @for one in shares {
                        (tables::shares(one.title, &one.bars.iter().map(bar).collect::<Vec<_>>(), &one.caption))
                    }
                    @for of in drawn { (tables::figure(of.title, &of.svg, of.caption)) }
                }
            }
        }
    };
    page.into_string()
}
