//! What this site draws at random for each run and keeps: a file a run, which nobody but the site's user reads.

use super::chain::{ChainError, file_error};
use super::key::replace;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use wire::{RunSecrets, private};

const FOLDER: &str = "keys";

fn path(folder: &Path, run: &str) -> PathBuf {
    folder.join(FOLDER).join(run)
}

/// What is kept of the run with this digest; none where nothing is.
///
/// # Errors
/// [`ChainError::File`] where it cannot be read, or is not what was written.
pub fn read(folder: &Path, run: &str) -> Result<Option<RunSecrets>, ChainError> {
    let path = path(folder, run);
    let secrets = match fs::read(&path) {
        Ok(bytes) => RunSecrets::from_bytes(&bytes).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => Err(error),
    };
    let secrets = secrets.map_err(|source| file_error(&path, "read", source))?;
    Ok(Some(secrets))
}

/// Keeps the secrets of a run in the place of any before. When this returns, they are on the disk.
///
/// # Errors
/// [`ChainError::File`]: then nothing that follows from them may be sent.
pub fn write(folder: &Path, run: &str, secrets: &RunSecrets) -> Result<(), ChainError> {
    let path = path(folder, run);
    private::folder(&folder.join(FOLDER))
        .and_then(|()| replace(&path, &secrets.to_bytes()))
        .map_err(|source| file_error(&path, "written", source))
}
