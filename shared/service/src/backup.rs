//! Copies of a program's folder, and how one takes its place again: never so that what was written down since is forgotten.
//!
//! A copy is a folder with the files and `backup.json`, which has the digest of each.

use crate::chain::{self, ChainError, Head, hexadecimal};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use wire::private;

const MANIFEST: &str = "backup.json";
/// The form of a copy that this version writes.
const FORM: u32 = 1;
/// Problems of a copy that are listed.
const PROBLEMS_SHOWN: usize = 20;

/// `backup.json`.
#[derive(Serialize, Deserialize)]
struct Manifest {
    form: u32,
    /// The version that wrote it.
    version: String,
    /// Whose folder it is.
    of: String,
    /// SHA-256 of each file, hexadecimal, by its path.
    files: BTreeMap<String, String>,
}

/// A copy that could not be made, or does not take the place of what is there.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A file could not be read or written.
    #[error("{} could not be {what}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What failed.
        what: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The folder for a copy has something in it.
    #[error("{} is not empty, wanted a new folder for the backup", path.display())]
    There {
        /// The folder.
        path: PathBuf,
    },
    /// Files are not those that were copied.
    #[error("{} is not the backup that was made:\n{}", path.display(), problems.join("\n"))]
    Changed {
        /// The copy.
        path: PathBuf,
        /// What is missing or was changed.
        problems: Vec<String>,
    },
    /// It is of another party.
    #[error("{} is a backup of {found}, wanted one of {wanted}", path.display())]
    Other {
        /// The copy.
        path: PathBuf,
        /// Whose it is.
        found: String,
        /// Whose it should be.
        wanted: String,
    },
    /// What is there goes on after the copy was made.
    #[error(
        "{} has entries that the backup does not have: a restore would forget them. Start from what is there", path.display()
    )]
    Behind {
        /// The book.
        path: PathBuf,
    },
    /// Nothing there says how far the book had come.
    #[error(
        "found no {}, wanted --head with its last head, or --latest where nothing was written since the backup", path.display()
    )]
    Unknown {
        /// The book.
        path: PathBuf,
    },
    /// A book is not what was written.
    #[error(transparent)]
    Book(#[from] ChainError),
}

/// What is known of the book that is lost.
#[derive(Debug, Clone)]
pub enum Known {
    /// Nothing.
    Nothing,
    /// Its head, which was kept elsewhere.
    Head(Head),
    /// Nothing was written after the copy, by somebody's word.
    Latest,
}

/// A copy that was made, or put in its place.
#[derive(Debug, Serialize)]
pub struct Copied {
    /// The copy.
    folder: String,
    files: usize,
    bytes: u64,
    /// Where its book ends, `ENTRIES:HASH`: keep it elsewhere.
    head: Option<String>,
}

impl fmt::Display for Copied {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            folder,
            files,
            bytes,
            head,
        } = self;
        write!(formatter, "{folder}: {files} files, {bytes} bytes")?;
        head.iter()
            .try_for_each(|head| write!(formatter, "\nthe head is {head}"))
    }
}

/// A folder for a copy, which is being made.
pub struct Backup {
    folder: PathBuf,
    files: BTreeMap<String, String>,
    bytes: u64,
}

impl Backup {
    /// Begins a copy in a new folder, closed to others.
    ///
    /// # Errors
    /// [`BackupError`] where there is something in it.
    pub fn begin(folder: &Path) -> Result<Self, BackupError> {
        let is_used = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
        if is_used {
            let path = folder.to_owned();
            return Err(BackupError::There { path });
        }
        private::folder(folder).map_err(failed(folder, "made"))?;
        Ok(Self {
            folder: folder.to_owned(),
            files: BTreeMap::new(),
            bytes: 0,
        })
    }

    /// Where a file of the copy is to lie.
    #[must_use]
    pub fn place(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Adds a file that lies in its place already.
    ///
    /// # Errors
    /// [`BackupError::File`].
    pub fn add(&mut self, name: &str) -> Result<(), BackupError> {
        let path = self.place(name);
        let bytes = fs::read(&path).map_err(failed(&path, "read"))?;
        self.note(name, &bytes);
        Ok(())
    }

    /// Copies a file; one that has gone meanwhile is none.
    ///
    /// # Errors
    /// [`BackupError::File`].
    pub fn copy(&mut self, from: &Path, name: &str) -> Result<(), BackupError> {
        match fs::read(from) {
            Ok(bytes) => self.write(name, &bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(failed(from, "read")(error)),
        }
    }

    /// Copies a book, without a last line that is just being written.
    ///
    /// # Errors
    /// [`BackupError`] where it is not what was written.
    pub fn copy_book(&mut self, from: &Path, name: &str) -> Result<(), BackupError> {
        let bytes = match fs::read(from) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(from, "read")(error)),
        };
        self.write(name, whole_lines(&bytes))?;
        chain::read(&self.place(name), None, |_: chain::Link<Value>| {})?;
        Ok(())
    }

    /// Copies all in a folder but for what is not wanted, by its path from there.
    ///
    /// # Errors
    /// [`BackupError::File`].
    pub fn copy_folder(
        &mut self,
        from: &Path,
        is_left_out: &dyn Fn(&str) -> bool,
    ) -> Result<(), BackupError> {
        self.copy_below(from, "", is_left_out)
    }

    fn copy_below(
        &mut self,
        from: &Path,
        below: &str,
        is_left_out: &dyn Fn(&str) -> bool,
    ) -> Result<(), BackupError> {
        let entries = match fs::read_dir(from) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(from, "read")(error)),
        };
        for entry in entries {
            let entry = entry.map_err(failed(from, "read"))?;
            let name = format!("{below}{}", entry.file_name().to_string_lossy());
            if is_left_out(&name) {
                continue;
            }
            match entry.path().is_dir() {
                true => self.copy_below(&entry.path(), &format!("{name}/"), is_left_out)?,
                false => self.copy(&entry.path(), &name)?,
            }
        }
        Ok(())
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), BackupError> {
        let path = self.place(name);
        write(&path, bytes)?;
        self.note(name, bytes);
        Ok(())
    }

    fn note(&mut self, name: &str, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let digest = hexadecimal(&Sha256::digest(bytes));
        self.files.insert(name.to_owned(), digest);
    }

    /// Writes down what the copy has; `book` is the file whose head is to be kept.
    ///
    /// # Errors
    /// [`BackupError`].
    pub fn finish(self, version: &str, of: &str, book: &str) -> Result<Copied, BackupError> {
        let copied = Copied {
            folder: self.folder.display().to_string(),
            files: self.files.len(),
            bytes: self.bytes,
            head: head(&self.folder.join(book))?,
        };
        let manifest = Manifest {
            form: FORM,
            version: version.to_owned(),
            of: of.to_owned(),
            files: self.files,
        };
        // Texts cannot fail to be written.
        let text = serde_json::to_string_pretty(&manifest).unwrap_or_default();
        write(&self.folder.join(MANIFEST), text.as_bytes())?;
        Ok(copied)
    }
}

/// A copy whose files are those that were copied.
#[derive(Debug)]
pub struct Whole {
    folder: PathBuf,
    files: Vec<String>,
}

impl Whole {
    /// Checks a copy of a party.
    ///
    /// # Errors
    /// [`BackupError`], all that is missing or was changed at once.
    pub fn open(folder: &Path, of: &str) -> Result<Self, BackupError> {
        let path = folder.join(MANIFEST);
        let text = fs::read(&path).map_err(failed(&path, "read"))?;
        let changed = |problems: Vec<String>| BackupError::Changed {
            path: folder.to_owned(),
            problems,
        };
        let manifest: Result<Manifest, _> = serde_json::from_slice(&text);
        let manifest = manifest.map_err(|error| changed(vec![format!("{MANIFEST}: {error}")]))?;
        if manifest.form != FORM {
            let found = format!("{MANIFEST}: found form {}, wanted {FORM}", manifest.form);
            return Err(changed(vec![found]));
        }
        if manifest.of != of {
            return Err(BackupError::Other {
                path: folder.to_owned(),
                found: manifest.of,
                wanted: of.to_owned(),
            });
        }
        let problem = |(name, wanted): (&String, &String)| {
            let is_inside = Path::new(name)
                .components()
                .all(|part| matches!(part, std::path::Component::Normal(_)));
            match fs::read(folder.join(name)) {
                _ if !is_inside => Some(format!("{name}: found a path that leads elsewhere")),
                Ok(bytes) if hexadecimal(&Sha256::digest(&bytes)) == *wanted => None,
                Ok(_) => Some(format!("{name}: found other bytes")),
                Err(error) => Some(format!("{name}: {error}")),
            }
        };
        let problems = manifest.files.iter().filter_map(problem);
        let problems: Vec<String> = problems.take(PROBLEMS_SHOWN).collect();
        match problems.is_empty() {
            true => Ok(Self {
                folder: folder.to_owned(),
                files: manifest.files.into_keys().collect(),
            }),
            false => Err(changed(problems)),
        }
    }

    /// Whether it goes on from the book that is at `present`, or from what is known of a lost one.
    ///
    /// # Errors
    /// [`BackupError`] where something would be forgotten, or nobody knows.
    pub fn goes_on(&self, book: &str, present: &Path, known: &Known) -> Result<(), BackupError> {
        let (own, path) = (self.folder.join(book), present.to_owned());
        match fs::read(present) {
            Ok(there) => {
                let copied = match fs::read(&own) {
                    // A book that began after the copy was made.
                    Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
                    read => read.map_err(failed(&own, "read"))?,
                };
                match copied.starts_with(whole_lines(&there)) {
                    true => Ok(()),
                    false => Err(BackupError::Behind { path }),
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => match known {
                Known::Nothing => Err(BackupError::Unknown { path }),
                Known::Latest => Ok(()),
                Known::Head(head) => {
                    chain::read(&own, Some(head), |_: chain::Link<Value>| {})?;
                    Ok(())
                }
            },
            Err(error) => Err(failed(present, "read")(error)),
        }
    }

    /// Whether the copy has a file of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.files.iter().any(|file| file == name)
    }

    /// Puts all files in their place, those named `last` after all others, in their order.
    ///
    /// # Errors
    /// [`BackupError::File`]; the same call then goes on.
    pub fn restore(&self, to: &Path, last: &[&str], book: &str) -> Result<Copied, BackupError> {
        private::folder(to).map_err(failed(to, "made"))?;
        let is_last = |name: &&String| last.contains(&name.as_str());
        let others = self.files.iter().filter(|name| !is_last(name));
        let ends = last
            .iter()
            .filter_map(|name| self.files.iter().find(|one| one == name));
        let mut copied = Copied {
            folder: self.folder.display().to_string(),
            files: 0,
            bytes: 0,
            head: head(&self.folder.join(book))?,
        };
        for name in others.chain(ends) {
            let from = self.folder.join(name);
            let bytes = fs::read(&from).map_err(failed(&from, "read"))?;
            write(&to.join(name), &bytes)?;
            copied.files += 1;
            copied.bytes += bytes.len() as u64;
        }
        Ok(copied)
    }
}

/// Where a book ends; none where there is no book.
fn head(book: &Path) -> Result<Option<String>, BackupError> {
    if !book.exists() {
        return Ok(None);
    }
    let head = chain::read(book, None, |_: chain::Link<Value>| {})?;
    Ok(Some(head.to_string()))
}

/// Writes a file that only its owner may read, in a folder of the same kind: beside, then renamed.
fn write(path: &Path, bytes: &[u8]) -> Result<(), BackupError> {
    if let Some(folder) = path.parent() {
        private::folder(folder).map_err(failed(folder, "made"))?;
    }
    private::replace(path, bytes).map_err(failed(path, "written"))
}

/// The bytes to the end of the last whole line.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    &bytes[..end.map_or(0, |end| end + 1)]
}

fn failed(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> BackupError + use<> {
    let path = path.to_owned();
    move |source| BackupError::File { path, what, source }
}

#[cfg(test)]
mod tests;
