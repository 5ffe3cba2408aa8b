//! Characters that hide in a text or turn it around: whoever reads a name or a label must see what is there.

use super::errors::Problems;
use toml_span::value::{Value, ValueInner};

/// Reports each string and key of a document that has a character which nobody sees.
pub(super) fn judge(value: &Value<'_>, problems: &Problems) {
    match value.as_ref() {
        ValueInner::String(text) => judge_text(text, value.span.start, problems),
        ValueInner::Array(values) => values.iter().for_each(|value| judge(value, problems)),
        ValueInner::Table(table) => {
            for (key, value) in table {
                judge_text(&key.name, key.span.start, problems);
                judge(value, problems);
            }
        }
        ValueInner::Integer(_) | ValueInner::Float(_) | ValueInner::Boolean(_) => {}
    }
}

fn judge_text(text: &str, offset: usize, problems: &Problems) {
    if let Some(found) = text.chars().find(|found| is_hidden(*found)) {
        problems.add(offset, || {
            let code = u32::from(found);
            format!("found the character U+{code:04X}, wanted none that hides in a text or turns it around")
        });
    }
}

/// Control characters but line ends and tabs, and the marks, embeddings, overrides and isolates of bidirectional text.
fn is_hidden(found: char) -> bool {
    let is_control = found.is_control() && !matches!(found, '\n' | '\r' | '\t');
    let is_bidirectional = matches!(
        found,
        '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
    );
    is_control || is_bidirectional
}
