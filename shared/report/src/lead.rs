//! The answer of a run in the last lines of a terminal.

use crate::method;
use crate::saying::{SayError, complain, remark, say};
use protocol::job::Job;
use protocol::name::RunId;
use protocol::progress::Ending;
use protocol::result::RunResult;
use serde::Serialize;
use std::path::Path;

/// Paragraphs that a terminal shows; the page has all.
const SHOWN: usize = 2;

/// A run as a command leaves it: how it ended, where its results lie, and its answer.
#[derive(Debug, Serialize)]
pub struct RunSaid {
    run: String,
    status: &'static str,
    error: Option<Failed>,
    folder: Option<String>,
    report: Option<String>,
    /// What the run could not use.
    notes: Vec<String>,
    /// The first paragraphs of the page.
    answer: Vec<String>,
    #[serde(skip)]
    sentence: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct Failed {
    code: &'static str,
    text: String,
}

impl RunSaid {
    /// A run that goes on.
    #[must_use]
    pub fn going(run: &RunId, status: &'static str) -> Self {
        Self {
            run: run.to_string(),
            status,
            error: None,
            folder: None,
            report: None,
            notes: Vec::new(),
            answer: Vec::new(),
            sentence: None,
        }
    }

    /// A run that has ended.
    #[must_use]
    pub fn ended(result: &RunResult, folder: Option<&Path>) -> Self {
        let page = folder.map(|folder| folder.join("report.html"));
        let shown = |path: &Path| path.display().to_string();
        Self {
            error: match &result.ending {
                Ending::Failed(failure) => Some(Failed {
                    code: failure.code.name(),
                    text: format!("{}\n{}", failure.code.meaning(), failure.text),
                }),
                Ending::Converged | Ending::Completed | Ending::RoundLimit | Ending::Cancelled => {
                    None
                }
            },
            folder: folder.map(shown),
            report: page.as_deref().map(shown),
            notes: result.notes.clone(),
            answer: lead(result),
            sentence: Some(result.ending.sentence()),
            ..Self::going(&result.run, result.ending.status())
        }
    }

    /// Says it: an object for machines; or how the run ended, where its report is, what it could not use, and last its answer.
    ///
    /// # Errors
    /// [`SayError`].
    pub fn say(&self, as_json: bool) -> Result<(), SayError> {
        if as_json {
            // Texts cannot fail to be written.
            return say(serde_json::to_string_pretty(self).unwrap_or_default());
        }
        match &self.error {
            Some(Failed { code, text }) => complain(format_args!("{code}: {text}")),
            None => self.sentence.iter().try_for_each(say)?,
        }
        if let Some(page) = &self.report {
            say(format_args!("report: {page}"))?;
        }
        let notes = self.notes.iter();
        notes.for_each(|note| remark(format_args!("note: {note}")));
        self.answer.iter().try_for_each(say)
    }
}

/// The first paragraphs of the answer on the page of a run, as plain text; nothing of a run that left no page.
fn lead(result: &RunResult) -> Vec<String> {
    let job = Job::parse_for_one(&result.job).ok();
    let job = job.filter(|_| result.has_model());
    let answer = job.map(|job| method::answer(result, &job).into_string());
    answer.map_or_else(Vec::new, |answer| paragraphs(&answer))
}

/// The text of the paragraphs of `page`.
fn paragraphs(page: &str) -> Vec<String> {
    let paragraphs = page.split("<p").skip(1).filter_map(|one| {
        let inner = one.split_once('>')?.1;
        Some(inner.split("</p>").next().unwrap_or(inner))
    });
    paragraphs.take(SHOWN).map(plain).collect()
}

/// Text without tags and with the characters that stand for themselves.
fn plain(marked: &str) -> String {
    let mut pieces = marked.split('<');
    let first = pieces.next().unwrap_or_default().to_owned();
    let rest = pieces.map(|piece| piece.split_once('>').map_or("", |(_, text)| text));
    let text = rest.fold(first, |text, piece| text + piece);
    let entities = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&amp;", "&"),
    ];
    let text = entities
        .iter()
        .fold(text, |text, (from, to)| text.replace(from, to));
    text.replace('\u{a0}', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_lose_their_tags_and_no_character() {
        let page = "<p class=\"lead\">Mostly on <b>age &amp; sex</b>, p &lt;\u{a0}0.05.</p><div></div><p>Then \
                    this.</p><p>Not this.</p>";
        let wanted = ["Mostly on age & sex, p < 0.05.", "Then this."];
        assert_eq!(paragraphs(page), wanted);
        assert!(paragraphs("").is_empty());
    }
}
