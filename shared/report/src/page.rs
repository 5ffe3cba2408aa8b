//! The report: one self-contained page, whose chapters the method writes.

use crate::LocalFigure;
use crate::method::Chapters;
use crate::tables;
use maud::{DOCTYPE, PreEscaped, html};
use protocol::job::Job;
use protocol::result::RunResult;

const STYLE: &str = "
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 900px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.6em; margin-bottom: 0; } h2 { font-size: 1.15em; margin-top: 2em; border-bottom: 1px solid #ddd; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: right; padding: .25em .6em; border-bottom: 1px solid #eee; }
th:first-child, td:first-child { text-align: left; } th { font-weight: 600; background: #f7f7f7; }
.status { display: inline-block; padding: .1em .6em; border-radius: 4px; background: #e6efe6; }
.failed, .cancelled { background: #f6e0dc; } .round_limit { background: #f7efd9; }
pre { background: #f7f7f7; padding: 1em; overflow-x: auto; font-size: 13px; } svg { width: 100%; height: auto; }
.note { color: #555; } li { margin: .2em 0; }";

/// The page of a run, from what its method says and the figures of its patients.
pub(crate) fn html(
    result: &RunResult,
    job: &Job,
    chapters: &Chapters,
    of_patients: &[LocalFigure],
) -> String {
    let title = format!("{}: patient similarity", job.name);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (title) }
                (chapters.summary)
                (tables::failure(result))
                (tables::notes(result))
                (chapters.features)
                @for of in of_patients { (tables::figure(of.title, &of.svg, of.caption)) }
                (chapters.sites)
                (tables::missing(result))
                (chapters.quality)
                (chapters.course)
                h2 { "Job" }
                pre { (result.job) }
            }
        }
    };
    page.into_string()
}
