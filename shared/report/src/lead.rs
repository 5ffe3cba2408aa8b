//! The answer of a run in the last lines of a terminal.

use crate::method;
use protocol::job::Job;
use protocol::result::RunResult;

/// Paragraphs that a terminal shows; the page has all.
const SHOWN: usize = 2;

/// The first paragraphs of the answer on the page of a run, as plain text; nothing of a run that left no page.
#[must_use]
pub fn lead(result: &RunResult) -> Vec<String> {
    let Ok(job) = Job::parse_for_one(&result.job) else {
        return Vec::new();
    };
    match method::chapters(result, &job) {
        Ok(chapters) if result.has_model() => paragraphs(&chapters.answer.into_string()),
        Ok(_) | Err(_) => Vec::new(),
    }
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
