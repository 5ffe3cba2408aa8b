//! The folder of an approval while it is written.

use super::approve::{StudyError, unwritten};
use super::{FOLDER, SNAPSHOT};
use crate::config::SiteConfig;
use crate::source::snapshot::{self, SnapshotDigest};
use crate::source::{FrozenRows, Room};
use parquet::errors::ParquetError;
use protocol::study::Study;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::PathBuf;
use tempfile::TempDir;
use wire::private;

/// How the name of a folder ends that is not complete.
const PARTIAL: &str = ".partial";
/// Values of patients in memory at once: 1 GiB of numbers. The others wait on the disk.
const VALUES_IN_MEMORY: usize = 1 << 27;

/// The folder of an approval while it is written: beside, then renamed, so that it is there whole or not at all.
pub(super) struct Partial {
    studies: PathBuf,
    folder: PathBuf,
    /// Goes with all that is in it, unless it is renamed. Two that are written at once have two.
    partial: TempDir,
}

impl Partial {
    pub(super) fn begin(config: &SiteConfig, study: &Study) -> Result<Self, StudyError> {
        let studies = config.folder.join(FOLDER);
        let folder = studies.join(study.name.as_str());
        let prefix = format!(".{}.", study.name);
        let made = (|| {
            private::folder(&config.folder)?;
            private::folder(&studies)?;
            // What an interrupted approval has left.
            for entry in fs::read_dir(&studies)? {
                let entry = entry?;
                let name = entry.file_name();
                let name = name.to_string_lossy();
                if name.starts_with(&prefix) && name.ends_with(PARTIAL) {
                    fs::remove_dir_all(entry.path())?;
                }
            }
            let mut named = tempfile::Builder::new();
            let partial = named.prefix(&prefix).suffix(PARTIAL).tempdir_in(&studies)?;
            private::folder(partial.path())?;
            Ok(partial)
        })();
        match made {
            Ok(partial) => Ok(Self {
                studies,
                folder,
                partial,
            }),
            Err(source) => Err(unwritten(&folder, source)),
        }
    }

    /// A folder for rows that memory has no room for. It goes before the approval is complete.
    pub(super) fn aside(&self) -> Result<(TempDir, Room), StudyError> {
        let failed = |source| unwritten(&self.folder, source);
        let aside = tempfile::tempdir_in(self.partial.path()).map_err(failed)?;
        private::folder(aside.path()).map_err(failed)?;
        let room = Room::Folder {
            folder: aside.path().to_path_buf(),
            values: VALUES_IN_MEMORY,
        };
        Ok((aside, room))
    }

    /// Writes the snapshot of the patients.
    pub(super) fn freeze(&self, rows: &FrozenRows) -> Result<(SnapshotDigest, File), StudyError> {
        let failed = |source| unwritten(&self.folder, source);
        let path = self.partial.path().join(SNAPSHOT);
        let mut options = OpenOptions::new();
        let file = private::open(&path, options.write(true).create_new(true));
        let mut file = file.map_err(failed)?;
        let digest = snapshot::write(rows, &mut file).map_err(|error| match error {
            ParquetError::External(source) => match source.downcast::<io::Error>() {
                Ok(source) => failed(*source),
                Err(other) => StudyError::Snapshot(other.to_string()),
            },
            other => StudyError::Snapshot(other.to_string()),
        })?;
        Ok((digest, file))
    }

    /// Waits until the disk has the snapshot. Giving the memory of the patients back takes about as long.
    pub(super) fn keep(
        &self,
        (digest, file): (SnapshotDigest, File),
        (rows, aside): (FrozenRows, TempDir),
    ) -> Result<SnapshotDigest, StudyError> {
        let let_go = || {
            drop(rows);
            aside.close()
        };
        let (on_disk, gone) = rayon::join(|| file.sync_all(), let_go);
        gone.map_err(|source| unwritten(&self.folder, source))?;
        on_disk.map_err(|source| unwritten(&self.folder, source))?;
        Ok(digest)
    }

    /// Writes a file, and waits until the disk has it.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), StudyError> {
        let path = self.partial.path().join(name);
        let written = private::write(&path, bytes).and_then(|()| File::open(&path)?.sync_all());
        written.map_err(|source| unwritten(&self.folder, source))
    }

    /// Writes all other files, and gives the folder its name.
    pub(super) fn complete(self, files: &[(String, Vec<u8>)]) -> Result<(), StudyError> {
        let mut files = files.iter();
        files.try_for_each(|(name, bytes)| self.write(name, bytes))?;
        let written = (|| {
            fs::rename(self.partial.path(), &self.folder)?;
            File::open(&self.studies)?.sync_all()
        })();
        written.map_err(|source| unwritten(&self.folder, source))?;
        let _ = self.partial.keep();
        Ok(())
    }
}
