//! The answer of a run in the last lines of a terminal.

use crate::method;
use crate::saying::{SayError, remark, say};
use protocol::job::Job;
use protocol::result::RunResult;
use std::path::Path;

/// Paragraphs that a terminal shows; the page has all.
const SHOWN: usize = 2;

/// Says where the report of an ended run is, what the run could not use, and last its answer.
///
/// # Errors
/// [`SayError`].
pub fn say_results(result: &RunResult, folder: Option<&Path>) -> Result<(), SayError> {
    if let Some(folder) = folder {
        let page = folder.join("report.html");
        say(format_args!("report: {}", page.display()))?;
    }
    let notes = result.notes.iter();
    notes.for_each(|note| remark(format_args!("note: {note}")));
    lead(result).iter().try_for_each(say)
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
