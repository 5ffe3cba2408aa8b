//! What a command did, where that is all it has to say.

use serde::Serialize;
use std::fmt;
use std::path::Path;

/// A deed, and of what.
#[derive(Debug, Serialize)]
pub struct Did {
    did: &'static str,
    run: Option<String>,
    study: Option<String>,
    files: Vec<String>,
    /// For people.
    #[serde(skip)]
    text: String,
}

impl Did {
    /// Something was done to a run.
    #[must_use]
    pub fn to_run(did: &'static str, run: &impl fmt::Display) -> Self {
        Self {
            did,
            run: Some(run.to_string()),
            study: None,
            files: Vec::new(),
            text: format!("{did} {run}"),
        }
    }

    /// Something was done to a study, in a sentence for people.
    #[must_use]
    pub fn to_study(did: &'static str, study: &impl fmt::Display, text: impl Into<String>) -> Self {
        Self {
            did,
            run: None,
            study: Some(study.to_string()),
            files: Vec::new(),
            text: text.into(),
        }
    }

    /// Files were written; people see their paths, one a line.
    #[must_use]
    pub fn to_files<'p>(did: &'static str, paths: impl IntoIterator<Item = &'p Path>) -> Self {
        let paths = paths.into_iter();
        let files: Vec<String> = paths.map(|path| path.display().to_string()).collect();
        Self {
            did,
            run: None,
            study: None,
            text: files.join("\n"),
            files,
        }
    }

    /// The same, with a file that came of it.
    #[must_use]
    pub fn with_file(mut self, path: &Path) -> Self {
        self.files.push(path.display().to_string());
        self
    }
}

impl fmt::Display for Did {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}
