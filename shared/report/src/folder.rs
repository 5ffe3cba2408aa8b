//! Output appears whole or not at all: written beside, then renamed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The file by which a folder of results is known.
const RESULT_FILE: &str = "result.json";

/// A folder of results in the making. Dropped without [`PendingFolder::finish`], it leaves nothing.
#[derive(Debug)]
pub struct PendingFolder {
    partial: PathBuf,
    target: PathBuf,
    finished: bool,
}

/// The output folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It holds something that is no result of a run.
    #[error(
        "output folder {}: found files that are no result of a run, wanted an empty or absent \
         folder, or an earlier result to replace",
        path.display()
    )]
    Occupied {
        /// The folder.
        path: PathBuf,
    },
    /// The file system said no.
    #[error("output folder {} could not be written", path.display())]
    Write {
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl PendingFolder {
    /// Makes `TARGET.partial`. An earlier result at `target` is replaced only when this finishes.
    ///
    /// # Errors
    /// [`FolderError`].
    pub fn begin(target: &Path) -> Result<Self, FolderError> {
        let write = |source| FolderError::Write {
            path: target.to_owned(),
            source,
        };
        let target = std::path::absolute(target).map_err(write)?;
        if target.exists() && !target.join(RESULT_FILE).is_file() {
            let empty = target.is_dir() && fs::read_dir(&target).map_err(write)?.next().is_none();
            if !empty {
                return Err(FolderError::Occupied { path: target });
            }
        }
        let partial = beside(&target, "partial");
        if partial.exists() {
            fs::remove_dir_all(&partial).map_err(write)?;
        }
        private_folder(&partial).map_err(write)?;
        Ok(Self {
            partial,
            target,
            finished: false,
        })
    }

    /// Where to write.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.partial
    }

    /// Puts the folder in its place.
    ///
    /// # Errors
    /// [`FolderError::Write`].
    pub fn finish(mut self) -> Result<PathBuf, FolderError> {
        let write = |source| FolderError::Write {
            path: self.target.clone(),
            source,
        };
        let old = beside(&self.target, "old");
        if self.target.exists() {
            if old.exists() {
                fs::remove_dir_all(&old).map_err(write)?;
            }
            fs::rename(&self.target, &old).map_err(write)?;
        }
        fs::rename(&self.partial, &self.target).map_err(write)?;
        if old.exists() {
            fs::remove_dir_all(&old).map_err(write)?;
        }
        self.finished = true;
        Ok(self.target.clone())
    }
}

impl Drop for PendingFolder {
    fn drop(&mut self) {
        if !self.finished {
            let _ = fs::remove_dir_all(&self.partial);
        }
    }
}

/// Results may hold patients: the folder is its owner's alone, whatever the umask.
fn private_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Ok(())
}

fn beside(target: &Path, suffix: &str) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(suffix);
    target.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_folder_leaves_nothing_and_an_earlier_result_untouched() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("run");
        for text in ["first", "second"] {
            let folder = PendingFolder::begin(&target).unwrap();
            fs::write(folder.path().join(RESULT_FILE), text).unwrap();
            folder.finish().unwrap();
        }
        drop(PendingFolder::begin(&target).unwrap());
        assert_eq!(
            fs::read_to_string(target.join(RESULT_FILE)).unwrap(),
            "second"
        );
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_with_anything_else_is_not_replaced() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("thesis.txt"), "mine").unwrap();
        let error = PendingFolder::begin(home.path()).unwrap_err();
        assert!(matches!(error, FolderError::Occupied { .. }), "{error}");
    }
}
