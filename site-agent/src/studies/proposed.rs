//! Studies that were proposed to this site, which it has not approved: their texts alone.

use super::{Approved, own};
use crate::books::chain::{ChainError, file_error};
use crate::config::SiteConfig;
use protocol::study::{Study, StudyName, is_file};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use wire::private;

const FOLDER: &str = "proposed";
const ENDING: &str = ".study.toml";
/// How the name of a file ends that holds the digest of the text that was reviewed last.
const REVIEWED: &str = ".reviewed";
/// Studies that are kept for approval at most.
const PROPOSED_MAX: usize = 64;

fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(FOLDER).join(format!("{name}{ENDING}"))
}

/// The name of a proposed study that a word of the command line means; none where it means a file.
fn named(word: &Path) -> Option<&str> {
    let name = word.to_str().filter(|word| !is_file(word));
    name.filter(|name| StudyName::new(name).is_ok())
}

/// The file that a word of the command line means: itself, or the text of the study of that name, as it was proposed.
#[must_use]
pub fn file(config: &SiteConfig, word: &Path) -> PathBuf {
    match named(word) {
        Some(name) => path(&config.folder, name),
        None => word.to_owned(),
    }
}

/// Keeps which text of a proposed study was reviewed: the coordinator can replace it at any time.
///
/// # Errors
/// [`ChainError::File`] where it cannot be written.
pub fn reviewed(config: &SiteConfig, word: &Path, study: &Study) -> Result<(), ChainError> {
    let Some(name) = named(word) else {
        return Ok(());
    };
    let path = mark(&config.folder, name);
    private::write(&path, study.digest().as_bytes())
        .map_err(|source| file_error(&path, "written", source))
}

/// Whether a proposed study has another text than the one that was reviewed last.
///
/// # Errors
/// [`ChainError::File`] where that cannot be read.
pub(super) fn is_another(
    config: &SiteConfig,
    word: &Path,
    study: &Study,
) -> Result<bool, ChainError> {
    let Some(name) = named(word) else {
        return Ok(false);
    };
    let path = mark(&config.folder, name);
    match fs::read_to_string(&path) {
        Ok(digest) => Ok(digest != study.digest()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(file_error(&path, "read", error)),
    }
}

fn mark(folder: &Path, name: &str) -> PathBuf {
    folder.join(FOLDER).join(format!("{name}{REVIEWED}"))
}

/// Keeps the text of a study that names this site, for whoever may approve it.
///
/// # Errors
/// [`ChainError::File`] where it cannot be written.
pub fn keep(config: &SiteConfig, text: &str) -> Result<(), ChainError> {
    let Ok(study) = Study::parse(text) else {
        tracing::warn!("a study was proposed that this version cannot read");
        return Ok(());
    };
    let name = study.name.as_str();
    if own(&study, &config.site).is_none() {
        tracing::warn!(
            study = name,
            "a study was proposed that does not name this site"
        );
        return Ok(());
    }
    let path = path(&config.folder, name);
    if fs::read_to_string(&path).is_ok_and(|known| known == text) {
        return Ok(());
    }
    if names(config)?.len() >= PROPOSED_MAX && !path.exists() {
        tracing::warn!(
            study = name,
            "more than {PROPOSED_MAX} studies wait for approval; this one was not kept"
        );
        return Ok(());
    }
    private::folder(&config.folder.join(FOLDER))
        .and_then(|()| private::write(&path, text.as_bytes()))
        .map_err(|source| file_error(&path, "written", source))?;
    tracing::info!(
        study = name,
        digest = study.digest(),
        "a study waits for this site's approval: kindred-site-agent study review {name}"
    );
    Ok(())
}

/// Forgets proposals that are no more.
///
/// # Errors
/// [`ChainError::File`] where they cannot be read or taken away.
pub fn withdraw(config: &SiteConfig, is_over: impl Fn(&Study) -> bool) -> Result<(), ChainError> {
    for name in names(config)? {
        let path = path(&config.folder, &name);
        let text = fs::read_to_string(&path).map_err(|error| file_error(&path, "read", error))?;
        let Some(study) = Study::parse(&text).ok().filter(&is_over) else {
            continue;
        };
        fs::remove_file(&path).map_err(|error| file_error(&path, "taken away", error))?;
        let study = study.name.as_str();
        tracing::info!(
            study,
            "a study that was proposed is closed, and waits for approval no more"
        );
    }
    Ok(())
}

/// The names of the studies that were proposed.
fn names(config: &SiteConfig) -> Result<Vec<String>, ChainError> {
    let folder = config.folder.join(FOLDER);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(file_error(&folder, "read", error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| file_error(&folder, "read", error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(ENDING).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// The studies that wait for approval: proposed, and of a name that is not among those approved.
///
/// # Errors
/// [`ChainError::File`] where they cannot be read.
pub fn waiting(config: &SiteConfig, approved: &[Approved]) -> Result<Vec<Study>, ChainError> {
    let mut waiting = Vec::new();
    for name in names(config)? {
        let path = path(&config.folder, &name);
        let text = fs::read_to_string(&path).map_err(|error| file_error(&path, "read", error))?;
        let study = Study::parse(&text).ok();
        let is_new = |study: &Study| approved.iter().all(|one| one.study.name != study.name);
        waiting.extend(study.filter(is_new));
    }
    Ok(waiting)
}
