//! Characters that a document may not hold: what people read of it must be what programs read.

use super::errors::Problems;
use toml_span::value::{Value, ValueInner};

/// Reports every string below `value` that holds a character that steers how text is shown.
pub(super) fn judge(value: &Value<'_>, problems: &Problems) {
    match value.as_ref() {
        ValueInner::String(text) => judge_text(text, value.span.start, problems),
        ValueInner::Array(items) => items.iter().for_each(|item| judge(item, problems)),
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
    if let Some(found) = text.chars().find(|found| steers(*found)) {
        problems.add(offset, || {
            format!(
                "found the character U+{:04X}, wanted text without control and bidirectional characters",
                u32::from(found)
            )
        });
    }
}

/// Whether a character steers a terminal, or the order in which others are shown.
fn steers(found: char) -> bool {
    let is_control = found.is_control() && !matches!(found, '\n' | '\r' | '\t');
    let is_bidirectional = matches!(
        found,
        '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    is_control || is_bidirectional
}
