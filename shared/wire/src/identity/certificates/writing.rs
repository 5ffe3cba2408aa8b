//! Files of certificates: a folder appears whole or not at all.

use super::CertificateError;
use crate::private;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// A file of a folder.
pub(super) struct File {
    pub(super) name: &'static str,
    pub(super) content: String,
}

/// Names the file or folder that the system's error is of.
pub(super) fn failed(path: &Path) -> impl Fn(io::Error) -> CertificateError + '_ {
    |source| CertificateError::File {
        path: path.to_owned(),
        source,
    }
}

/// Refuses a folder that is there: certificates are never written over.
pub(super) fn check_free(folder: &Path) -> Result<(), CertificateError> {
    match folder.exists() {
        true => Err(CertificateError::Exists {
            path: folder.to_owned(),
        }),
        false => Ok(()),
    }
}

/// Writes a folder beside its place, then renames it: it appears whole or not at all.
pub(super) fn write_folder(folder: &Path, files: &[File]) -> Result<(), CertificateError> {
    check_free(folder)?;
    let beside = folder.with_extension(format!("{}.partial", std::process::id()));
    let written = write_files(&beside, files).and_then(|()| {
        // Renaming onto a folder that holds something fails: nothing is ever written over.
        fs::rename(&beside, folder).map_err(|source| match source.kind() {
            io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists => {
                CertificateError::Exists {
                    path: folder.to_owned(),
                }
            }
            _ => failed(folder)(source),
        })
    });
    if written.is_err() {
        // Whatever failed is the error to tell; a leftover folder is only untidy.
        let _ = fs::remove_dir_all(&beside);
    }
    written
}

fn write_files(folder: &Path, files: &[File]) -> Result<(), CertificateError> {
    private::folder(folder).map_err(failed(folder))?;
    for file in files {
        let path = folder.join(file.name);
        let mut options = OpenOptions::new();
        let handle = private::open(&path, options.write(true).create_new(true));
        let mut handle = handle.map_err(failed(&path))?;
        handle
            .write_all(file.content.as_bytes())
            .map_err(failed(&path))?;
        handle.sync_all().map_err(failed(&path))?;
    }
    Ok(())
}

pub(super) fn read(path: &Path) -> Result<String, CertificateError> {
    fs::read_to_string(path).map_err(failed(path))
}
