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

/// Writes a folder beside its place, then renames it: it appears whole or not at all.
pub(super) fn write_folder(folder: &Path, files: &[File]) -> Result<(), CertificateError> {
    if folder.exists() {
        return Err(CertificateError::Exists {
            path: folder.to_owned(),
        });
    }
    let beside = folder.with_extension(format!("{}.partial", std::process::id()));
    let written = write_files(&beside, files).and_then(|()| {
        // Renaming onto a folder that holds something fails: nothing is ever written over.
        fs::rename(&beside, folder).map_err(|source| match source.kind() {
            io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists => {
                CertificateError::Exists {
                    path: folder.to_owned(),
                }
            }
            _ => CertificateError::File {
                path: folder.to_owned(),
                source,
            },
        })
    });
    if written.is_err() {
        // Whatever failed is the error to tell; a leftover folder is only untidy.
        let _ = fs::remove_dir_all(&beside);
    }
    written
}

fn write_files(folder: &Path, files: &[File]) -> Result<(), CertificateError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| CertificateError::File { path, source }
    };
    private::folder(folder).map_err(failed(folder))?;
    for file in files {
        let path = folder.join(file.name);
        let mut options = OpenOptions::new();
        let mut handle =
            private::open(&path, options.write(true).create_new(true)).map_err(failed(&path))?;
        handle
            .write_all(file.content.as_bytes())
            .map_err(failed(&path))?;
        handle.sync_all().map_err(failed(&path))?;
    }
    Ok(())
}

pub(super) fn read(path: &Path) -> Result<String, CertificateError> {
    fs::read_to_string(path).map_err(|source| CertificateError::File {
        path: path.to_owned(),
        source,
    })
}
