//! Texts of a peer, as they may be shown: control characters are written out, so that none forges a line of a log or
//! moves a terminal.

use std::io::{self, Write};

/// A text on one line.
pub(crate) fn line(text: String) -> String {
    shown(text, |_| false)
}

/// A text whose lines stay lines.
pub(crate) fn lines(text: String) -> String {
    shown(text, |letter| letter == '\n')
}

fn shown(text: String, stays: impl Fn(char) -> bool) -> String {
    written(text, stays, |letter, shown| {
        shown.extend(letter.escape_default())
    })
}

/// The text with each hidden letter that does not stay written out.
fn written(
    text: String,
    stays: impl Fn(char) -> bool,
    write_out: impl Fn(char, &mut String),
) -> String {
    if !text.contains(|letter| is_hidden(letter) && !stays(letter)) {
        return text;
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_hidden(letter) && !stays(letter) {
            write_out(letter, &mut shown);
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// A line of JSON, which stays one: what is hidden is all below 65,536.
fn json_line(text: String) -> String {
    written(
        text,
        |_| false,
        |letter, shown| {
            shown.push_str(&format!("\\u{:04x}", u32::from(letter)));
        },
    )
}

/// C0, DEL and C1, separators of lines and paragraphs, and what turns the direction of writing.
fn is_hidden(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The log of a program, on standard error: what is written at once is one line.
#[derive(Debug, Clone, Copy)]
pub enum LogLine {
    /// For people.
    Text,
    /// For machines: a JSON object.
    Json,
}

impl Write for LogLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let text = text.strip_suffix('\n').unwrap_or(&text).to_owned();
        let mut shown = match self {
            Self::Text => line(text),
            Self::Json => json_line(text),
        };
        shown.push('\n');
        // Where nobody reads the log any more, the program goes on.
        let _ = io::stderr().lock().write_all(shown.as_bytes());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let _ = io::stderr().lock().flush();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_written_out_and_all_else_stays() {
        let text = "naïve – \t1\n2\r\u{1b}[2J\u{9b}\u{202e}\u{7f}".to_owned();
        let wanted = "naïve – \\t1\\n2\\r\\u{1b}[2J\\u{9b}\\u{202e}\\u{7f}";
        assert_eq!(line(text.clone()), wanted);
        assert_eq!(lines(text), wanted.replace("\\n", "\n"));
        assert_eq!(line("plain".to_owned()), "plain");
        assert_eq!(
            json_line("{\"a\":\"\u{202e}\"}".to_owned()),
            "{\"a\":\"\\u202e\"}"
        );
    }
}
