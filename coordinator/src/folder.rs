//! The coordinator's folder: its own, closed to others, and used by one coordinator at a time.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use wire::private;

/// The file that a running coordinator holds locked; the system lets go of it when the program ends.
const LOCK: &str = "coordinator.lock";
/// The store.
pub(crate) const STORE: &str = "coordinator.sqlite";

/// A folder that this program holds.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    _lock: File,
}

/// A folder that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The system refused.
    #[error("{} could not be used", path.display())]
    System {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Another program holds it.
    #[error("{} is used by another coordinator; wanted a folder of its own for each", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
}

impl Folder {
    /// Whether a coordinator runs on it.
    #[must_use]
    pub fn is_in_use(path: &Path) -> bool {
        let lock = File::open(path.join(LOCK));
        lock.is_ok_and(|lock| matches!(lock.try_lock(), Err(TryLockError::WouldBlock)))
    }

    /// Makes the folder where there is none, closes it to others, and holds it until it is dropped.
    ///
    /// # Errors
    /// [`FolderError`].
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let refused = |path: &Path| {
            let path = path.to_owned();
            move |source| FolderError::System { path, source }
        };
        if path.is_dir() {
            close(path, FOLDER_MODE).map_err(refused(path))?;
        }
        private::folder(path).map_err(refused(path))?;
        for entry in fs::read_dir(path).map_err(refused(path))? {
            let entry = entry.map_err(refused(path))?;
            let is_ours = entry.file_name().to_string_lossy().starts_with(STORE);
            let file = entry.path();
            if is_ours && file.is_file() {
                close(&file, FILE_MODE).map_err(refused(&file))?;
            }
        }
        let name = path.join(LOCK);
        let mut options = OpenOptions::new();
        let lock = private::open(&name, options.append(true).create(true));
        let lock = lock.map_err(refused(&name))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                path: path.to_owned(),
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => Err(FolderError::InUse {
                path: path.to_owned(),
            }),
            Err(TryLockError::Error(error)) => Err(refused(&name)(error)),
        }
    }

    /// Where the store lies.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.path.join(STORE)
    }
}

/// Permissions of the folder: its owner's alone.
const FOLDER_MODE: u32 = 0o700;
/// Permissions of a file in it.
const FILE_MODE: u32 = 0o600;

/// Takes from others what they may do with a file or folder, and says so.
#[cfg(unix)]
fn close(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let found = fs::metadata(path)?.permissions().mode() & 0o777;
    if found & !mode == 0 {
        return Ok(());
    }
    tracing::warn!(path = %path.display(), "others could read or write here; no longer");
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn close(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_held_until_it_is_let_go_of() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("coordinator");
        let held = Folder::open(&path).unwrap();
        assert!(matches!(
            Folder::open(&path),
            Err(FolderError::InUse { .. })
        ));
        drop(held);
        Folder::open(&path).unwrap();
    }
}
