//! Files of jobs, and of the studies that they are of.

use protocol::document::DocumentErrors;
use protocol::study::{Study, by_nobody, is_file, named, split};
use std::io;
use std::path::{Path, PathBuf};

/// A file of a study that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StudyFileError {
    /// It could not be read.
    #[error("{} could not be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It has problems.
    #[error("{}:\n{problems}", path.display())]
    Problems {
        /// The file.
        path: PathBuf,
        /// All of them.
        problems: DocumentErrors,
    },
}

/// The text of a job as it travels: with the study whose file it names, if it names one and has it not yet. `path` is the job's file.
///
/// # Errors
/// [`StudyFileError`] names the study's file.
pub fn with_study(path: &Path, text: String) -> Result<String, StudyFileError> {
    joined(path, text, study)
}

/// As [`with_study`], for whoever only looks: the parties of the study may have no certificates yet.
///
/// # Errors
/// [`StudyFileError`] names the study's file.
pub fn with_draft(path: &Path, text: String) -> Result<String, StudyFileError> {
    joined(path, text, draft)
}

fn joined(
    path: &Path,
    text: String,
    study: impl Fn(&Path) -> Result<Study, StudyFileError>,
) -> Result<String, StudyFileError> {
    let (_, known) = split(&text);
    let word = named(&text).filter(|word| known.is_none() && is_file(word));
    let Some(word) = word else {
        return Ok(text);
    };
    let path = path.parent().unwrap_or(Path::new("")).join(word);
    Ok(study(&path)?.join(&text))
}

/// Reads a study whose parties may have no certificates yet.
///
/// # Errors
/// [`StudyFileError`] names the file.
pub fn draft(path: &Path) -> Result<Study, StudyFileError> {
    parsed(path, &by_nobody(&read(path)?))
}

/// Reads a study.
///
/// # Errors
/// [`StudyFileError`] names the file.
pub fn study(path: &Path) -> Result<Study, StudyFileError> {
    parsed(path, &read(path)?)
}

fn read(path: &Path) -> Result<String, StudyFileError> {
    std::fs::read_to_string(path).map_err(|source| StudyFileError::Read {
        path: path.to_owned(),
        source,
    })
}

fn parsed(path: &Path, text: &str) -> Result<Study, StudyFileError> {
    Study::parse(text).map_err(|problems| StudyFileError::Problems {
        path: path.to_owned(),
        problems,
    })
}
