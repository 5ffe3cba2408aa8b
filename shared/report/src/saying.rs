//! What a program writes, and where. A reader that has gone away is no fault of the program.

use std::error::Error;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

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

/// Says `text` on standard error: how it goes, and what went wrong. Where nobody listens, nothing is said.
pub fn remark(text: impl Display) {
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
