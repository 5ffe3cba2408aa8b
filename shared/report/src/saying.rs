//! What a program writes, and where. A reader that has gone away is no fault of the program.

use std::error::Error;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether nothing but errors is said on standard error.
static IS_QUIET: AtomicBool = AtomicBool::new(false);
/// Whether what is said there are objects for machines.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Chooses for the whole program what it says on standard error besides its log, and how.
pub fn speak(is_quiet: bool, is_json: bool) {
    IS_QUIET.store(is_quiet, Ordering::Relaxed);
    IS_JSON.store(is_json, Ordering::Relaxed);
}

/// Whether a person reads standard error, and wants to see how it goes.
pub(crate) fn is_watched() -> bool {
    !IS_QUIET.load(Ordering::Relaxed) && !IS_JSON.load(Ordering::Relaxed)
}

/// Nothing can be said on standard output.
#[derive(Debug, thiserror::Error)]
pub enum SayError {
    /// Whoever read it has closed it, as `head` does once it has enough.
    #[error("nobody reads the output any more")]
    Closed,
    /// The system said no.
    #[error("standard output could not be written")]
    Failed(#[source] io::Error),
}

/// Says `text` on standard output, on lines of its own: what the command was asked for.
///
/// # Errors
/// [`SayError`].
pub fn say(text: impl Display) -> Result<(), SayError> {
    written(io::stdout().lock(), &text).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => SayError::Closed,
        _ => SayError::Failed(error),
    })
}

/// Says `text` on standard error: how it goes. Where nobody listens, or only to errors, nothing is said.
pub fn remark(text: impl Display) {
    if !IS_QUIET.load(Ordering::Relaxed) {
        heard("INFO", "", &text);
    }
}

/// Says on standard error what went wrong.
pub fn complain(text: impl Display) {
    heard("ERROR", "error: ", &text);
}

fn heard(level: &str, lead: &str, text: &impl Display) {
    let text = match IS_JSON.load(Ordering::Relaxed) {
        true => serde_json::json!({"level": level, "message": text.to_string()}).to_string(),
        false => format!("{lead}{text}"),
    };
    let _ = written(io::stderr().lock(), &text);
}

/// An error and its causes in one line; a cause that the text before it holds already is not said again.
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let said = next.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = next.source();
    }
    text
}

fn written(mut stream: impl Write, text: &impl Display) -> io::Result<()> {
    let mut text = text.to_string();
    if !text.ends_with('\n') && !text.is_empty() {
        text.push('\n');
    }
    stream.write_all(text.as_bytes())?;
    stream.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_ends_its_line_once() {
        for (text, wanted) in [("", ""), ("a", "a\n"), ("a\nb\n", "a\nb\n")] {
            let mut said = Vec::new();
            written(&mut said, &text).unwrap();
            assert_eq!(said, wanted.as_bytes());
        }
    }
}
