//! What is wrong with a document.

use crate::limits::DOCUMENT_PROBLEMS_MAX;
use std::cell::{Cell, RefCell};
use std::fmt;

/// What is wrong with one document, in the order of its lines: [`DOCUMENT_PROBLEMS_MAX`] problems, and how
/// many more there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentErrors {
    errors: Vec<DocumentError>,
    more: usize,
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentError {
    /// Line, from 1.
    pub line: usize,
    /// What was found and what was wanted.
    pub text: String,
}

/// Problems found so far.
#[derive(Debug, Default)]
pub(super) struct Problems {
    /// Byte offset and text.
    told: RefCell<Vec<(usize, String)>>,
    /// Problems beyond those.
    more: Cell<usize>,
}

impl Problems {
    /// Keeps a problem; one too many is counted, and its text is not even made.
    pub(super) fn add(&self, offset: usize, text: impl FnOnce() -> String) {
        let mut told = self.told.borrow_mut();
        if told.len() < DOCUMENT_PROBLEMS_MAX {
            told.push((offset, text()));
        } else {
            self.more.set(self.more.get() + 1);
        }
    }

    /// Whether there are none.
    pub(super) fn are_none(&self) -> bool {
        self.told.borrow().is_empty()
    }
}

impl DocumentErrors {
    /// The problems that are reported, by line.
    #[must_use]
    pub fn errors(&self) -> &[DocumentError] {
        &self.errors
    }

    /// How many problems are not reported.
    #[must_use]
    pub fn more(&self) -> usize {
        self.more
    }

    /// The same of a document that stands within another, by this name.
    pub(crate) fn within(mut self, name: &str) -> Self {
        for error in &mut self.errors {
            error.text = format!("{name}: {}", error.text);
        }
        self
    }

    /// One pass over the text for the lines of all problems.
    pub(super) fn at_lines(text: &str, problems: Problems) -> Self {
        let mut told = problems.told.into_inner();
        told.sort_by_key(|(offset, _)| *offset);
        let mut breaks = text
            .bytes()
            .enumerate()
            .filter(|(_, byte)| *byte == b'\n')
            .peekable();
        let mut line = 1;
        let mut error = |(offset, text)| {
            while breaks.next_if(|(place, _)| *place < offset).is_some() {
                line += 1;
            }
            DocumentError { line, text }
        };
        Self {
            errors: told.into_iter().map(&mut error).collect(),
            more: problems.more.get(),
        }
    }
}

impl fmt::Display for DocumentErrors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.errors.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(formatter, "{separator}line {}: {}", error.line, error.text)?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(formatter, "\nand {more} more"),
        }
    }
}

impl std::error::Error for DocumentErrors {}
