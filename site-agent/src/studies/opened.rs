//! How a study opened, as this site heard it: the keys of all hospitals, which every run of the study has.

use super::FOLDER;
use crate::books::chain::{ChainError, file_error};
use crate::books::key::replace;
use protocol::name::RunId;
use protocol::opening::Opening;
use protocol::study::StudyName;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use wire::private;

const OPENINGS: &str = "openings";

fn openings(folder: &Path, study: &StudyName) -> PathBuf {
    folder.join(FOLDER).join(study.as_str()).join(OPENINGS)
}

/// Keeps how a study opened. When this returns, it is on the disk. False, and nothing is kept, where it has opened before without other
/// patients: sums over both would reveal those of the patients by which they differ.
///
/// # Errors
/// [`ChainError::File`].
pub fn keep(folder: &Path, study: &StudyName, opening: &Opening) -> Result<bool, ChainError> {
    let openings = openings(folder, study);
    let known = left_out(&folder.join(FOLDER).join(study.as_str()));
    let known = known.map_err(|source| file_error(&openings, "read", source))?;
    if known.is_some_and(|known| known != opening.left_out) {
        return Ok(false);
    }
    let path = openings.join(opening.run.as_str());
    private::folder(&openings)
        .and_then(|()| replace(&path, &wire::encode_opening(opening)))
        .map_err(|source| file_error(&path, "written", source))?;
    Ok(true)
}

/// Who is in no sum of the study in this folder, by patterns of who has which outcome; none before it has opened.
pub(super) fn left_out(study: &Path) -> io::Result<Option<Vec<u32>>> {
    let Some(run) = runs(study)?.pop() else {
        return Ok(None);
    };
    let bytes = fs::read(study.join(OPENINGS).join(run))?;
    let opening = wire::decode_opening(&bytes).map_err(io::Error::other)?;
    Ok(Some(opening.left_out))
}

/// Whether the hospitals of the study in this folder have agreed on keys, and sums of its card were asked.
pub(super) fn is_known(study: &Path) -> bool {
    runs(study).is_ok_and(|runs| !runs.is_empty())
}

/// The runs by which the study in this folder has opened.
pub(super) fn runs(study: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(study.join(OPENINGS)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let name =
        |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    entries.map(name).collect()
}

/// How a study opened by a run; none where this site took no part in it.
///
/// # Errors
/// [`ChainError::File`] where it cannot be read, or is not what was written.
pub fn read(folder: &Path, study: &StudyName, run: &RunId) -> Result<Option<Opening>, ChainError> {
    let path = openings(folder, study).join(run.as_str());
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(file_error(&path, "read", error)),
    };
    let opening = wire::decode_opening(&bytes).map_err(io::Error::other);
    let opening = opening.map_err(|source| file_error(&path, "read", source))?;
    Ok(Some(opening))
}
