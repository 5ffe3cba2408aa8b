//! A file that only grows, and shows where it was touched: one JSON line per entry, each with the
//! hash of the one before.
//!
//! A line is `{"number":N,"previous":"HASH","entry":{...},"hash":"HASH"}`, where the last hash is
//! the SHA-256 of the bytes of the line before `,"hash"`. The first entry follows 64 zeros.

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use wire::private;

const FIRST_PREVIOUS: &str = "0000000000000000000000000000000000000000000000000000000000000000";
const HASH_KEY: &str = ",\"hash\":\"";
/// Bytes of one line at most; what is longer was not written here.
const LINE_LENGTH_MAX: u64 = 1 << 20;

/// A chain that is open for writing; no other process can have it open at the same time.
#[derive(Debug)]
pub struct Chain {
    file: File,
    path: PathBuf,
    length: u64,
    head: Head,
}

/// Where a chain ends. Kept elsewhere, it later shows whether the end was cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Entries.
    pub entries: u64,
    /// Hash of the last one, hexadecimal.
    pub hash: String,
}

/// One entry as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Link<E> {
    /// Its number, from 1.
    pub number: u64,
    /// The entry.
    pub entry: E,
    /// Its hash, hexadecimal.
    pub hash: String,
}

/// A last line that a crash had left incomplete. Its entry was never acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    /// Bytes that were taken off the end.
    pub bytes: u64,
    /// Their SHA-256, hexadecimal.
    pub digest: String,
}

/// A chain could not be read or written, or is not what was written.
#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    /// The file could not be read or written.
    #[error("{path} could not be {what}")]
    File {
        /// The file.
        path: String,
        /// What failed.
        what: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Another process writes it.
    #[error("{path} is in use by another process; only one program may run on one folder")]
    InUse {
        /// The file.
        path: String,
    },
    /// An entry is not what was written.
    #[error("{path}, entry {number}: found {found}, wanted {wanted}")]
    Broken {
        /// The file.
        path: String,
        /// The number of the entry, from 1.
        number: u64,
        /// What was found.
        found: String,
        /// What was wanted.
        wanted: String,
    },
    /// The approval of a study, or its patients, are not what the site approved.
    #[error("{path}: found {found}, wanted {wanted}")]
    Study {
        /// The file.
        path: String,
        /// What was found.
        found: &'static str,
        /// What was wanted.
        wanted: &'static str,
    },
}

/// A head was not `ENTRIES:HASH`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("found {found:?}, wanted ENTRIES:HASH as `journal verify` prints it")]
pub struct HeadError {
    /// What was found.
    pub found: String,
}

impl Chain {
    /// Opens or creates the chain at `path`, checks all of it, and takes off an incomplete last
    /// line. Every entry passes `entry` on the way. `kept` is a head that was kept from before.
    ///
    /// # Errors
    /// [`ChainError`] where the file cannot be used, is in use, or an entry was touched, or the end that was kept is not
    /// there any more.
    pub fn open<E: DeserializeOwned>(
        path: &Path,
        kept: Option<&Head>,
        mut entry: impl FnMut(Link<E>),
    ) -> Result<(Self, Option<Torn>), ChainError> {
        let fail = |what| move |source| file_error(path, what, source);
        let created = !path.exists();
        if created && let Some(kept) = kept.filter(|kept| kept.entries > 0) {
            let wanted = format!(
                "{} entries, as were kept: the file is missing",
                kept.entries
            );
            return Err(broken(path, 1, "no file".to_owned(), &wanted));
        }
        let mut options = OpenOptions::new();
        let mut file = private::open(path, options.read(true).append(true).create(true))
            .map_err(fail("opened"))?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => ChainError::InUse {
                path: path.display().to_string(),
            },
            TryLockError::Error(source) => file_error(path, "locked", source),
        })?;
        if created {
            sync_folder(path).map_err(fail("created"))?;
        }
        let mut at_kept = AtKept::new(kept);
        let followed = follow(&mut file, path, |link| {
            at_kept.see(&link);
            entry(link);
        })?;
        at_kept.check(path, &followed.head)?;
        let torn = (!followed.rest.is_empty()).then(|| Torn {
            bytes: followed.rest.len() as u64,
            digest: hexadecimal(&Sha256::digest(&followed.rest)),
        });
        if torn.is_some() {
            file.set_len(followed.length).map_err(fail("mended"))?;
            file.sync_all().map_err(fail("mended"))?;
        }
        let chain = Self {
            file,
            path: path.to_owned(),
            length: followed.length,
            head: followed.head,
        };
        Ok((chain, torn))
    }

    /// Appends one entry. When this returns, the entry is on the disk.
    ///
    /// # Errors
    /// [`ChainError::File`]; the chain then is as it was before.
    pub fn append<E: Serialize>(&mut self, entry: &E) -> Result<&Head, ChainError> {
        let number = self.head.entries + 1;
        let entry = serde_json::to_string(entry)
            .map_err(|error| file_error(&self.path, "written", io::Error::other(error)))?;
        let body = format!("{}{entry}", opening(number, &self.head.hash));
        let hash = hexadecimal(&Sha256::digest(&body));
        let line = format!("{body}{HASH_KEY}{hash}\"}}\n");
        let written = self
            .file
            .write_all(line.as_bytes())
            .and_then(|()| self.file.sync_data());
        if let Err(source) = written {
            // Half a line must not stand before the next one. Where even this fails, so will the
            // next check, which says so.
            let _ = self.file.set_len(self.length);
            return Err(file_error(&self.path, "written", source));
        }
        self.length += line.len() as u64;
        self.head = Head {
            entries: number,
            hash,
        };
        Ok(&self.head)
    }

    /// Where the chain ends.
    #[must_use]
    pub fn head(&self) -> &Head {
        &self.head
    }
}

/// Reads and checks the chain at `path`, also while another process writes it. `kept` is a head
/// that was kept from before.
///
/// # Errors
/// [`ChainError`], which names the first entry that is not what was written.
pub fn read<E: DeserializeOwned>(
    path: &Path,
    kept: Option<&Head>,
    mut entry: impl FnMut(Link<E>),
) -> Result<Head, ChainError> {
    let mut file = File::open(path).map_err(|source| file_error(path, "opened", source))?;
    let mut at_kept = AtKept::new(kept);
    let followed = follow(&mut file, path, |link: Link<E>| {
        at_kept.see(&link);
        entry(link);
    })?;
    if !followed.rest.is_empty() {
        let found = "a last line that is incomplete".to_owned();
        return Err(broken(
            path,
            followed.head.entries + 1,
            found,
            "a whole line",
        ));
    }
    at_kept.check(path, &followed.head)?;
    Ok(followed.head)
}

/// A head that was kept, and the hash that the chain has in its place.
struct AtKept<'k> {
    kept: Option<&'k Head>,
    found: Option<String>,
}

impl<'k> AtKept<'k> {
    fn new(kept: Option<&'k Head>) -> Self {
        Self { kept, found: None }
    }

    fn see<E>(&mut self, link: &Link<E>) {
        if self.kept.is_some_and(|kept| kept.entries == link.number) {
            self.found = Some(link.hash.clone());
        }
    }

    fn check(self, path: &Path, head: &Head) -> Result<(), ChainError> {
        match self.kept {
            Some(kept) if kept.entries > head.entries => {
                let found = "the end of the file".to_owned();
                let wanted = format!("{} entries, as were kept: the end is missing", kept.entries);
                Err(broken(path, head.entries + 1, found, &wanted))
            }
            Some(kept) if kept.entries > 0 && self.found.as_ref() != Some(&kept.hash) => {
                let found = format!("hash {}", self.found.unwrap_or_default());
                let wanted = format!("{}, as was kept: the file was written anew", kept.hash);
                Err(broken(path, kept.entries, found, &wanted))
            }
            _ => Ok(()),
        }
    }
}

/// SHA-256 of `bytes`, hexadecimal.
#[must_use]
pub fn digest(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// SHA-256 of `chunks`, one after the other, hexadecimal.
#[must_use]
pub fn digest_of(chunks: impl IntoIterator<Item = impl AsRef<[u8]>>) -> String {
    let mut digest = Sha256::new();
    for chunk in chunks {
        digest.update(chunk);
    }
    hexadecimal(&digest.finalize())
}

/// What is known after the last whole line.
struct Followed {
    head: Head,
    length: u64,
    rest: Vec<u8>,
}

fn follow<E: DeserializeOwned>(
    file: &mut File,
    path: &Path,
    mut entry: impl FnMut(Link<E>),
) -> Result<Followed, ChainError> {
    let fail = |source| file_error(path, "read", source);
    file.rewind().map_err(fail)?;
    let mut reader = BufReader::new(file);
    let mut followed = Followed {
        head: Head {
            entries: 0,
            hash: FIRST_PREVIOUS.to_owned(),
        },
        length: 0,
        rest: Vec::new(),
    };
    loop {
        let mut line = Vec::new();
        let read = reader
            .by_ref()
            .take(LINE_LENGTH_MAX)
            .read_until(b'\n', &mut line)
            .map_err(fail)?;
        if line.pop_if(|last| *last == b'\n').is_none() {
            if read as u64 == LINE_LENGTH_MAX {
                let found = format!("a line of {LINE_LENGTH_MAX} bytes and more");
                return Err(broken(path, followed.head.entries + 1, found, "an entry"));
            }
            followed.rest = line;
            return Ok(followed);
        }
        let link = link(&line, &followed.head)
            .map_err(|(found, wanted)| broken(path, followed.head.entries + 1, found, &wanted))?;
        followed.head = Head {
            entries: link.number,
            hash: link.hash.clone(),
        };
        followed.length += read as u64;
        entry(link);
    }
}

/// One line, as the next after `head`; or what was found and wanted.
fn link<E: DeserializeOwned>(line: &[u8], head: &Head) -> Result<Link<E>, (String, String)> {
    let changed = |found: &str| (found.to_owned(), "the line that was written".to_owned());
    let text = std::str::from_utf8(line).map_err(|_| changed("bytes that are no text"))?;
    let (body, hash) = text
        .rsplit_once(HASH_KEY)
        .and_then(|(body, end)| Some((body, end.strip_suffix("\"}")?)))
        .ok_or_else(|| changed("a line without its hash"))?;
    if hexadecimal(&Sha256::digest(body)) != hash {
        return Err(changed("a line that does not match its own hash"));
    }
    let number = head.entries + 1;
    let entry = body
        .strip_prefix(&opening(number, &head.hash))
        .ok_or_else(|| {
            let found = "a line that does not follow the one before it".to_owned();
            let wanted = format!("entry {number}: an entry was removed, inserted or moved");
            (found, wanted)
        })?;
    let entry = serde_json::from_str(entry)
        .map_err(|_| changed("an entry that this version does not know"))?;
    Ok(Link {
        number,
        entry,
        hash: hash.to_owned(),
    })
}

fn opening(number: u64, previous: &str) -> String {
    format!("{{\"number\":{number},\"previous\":\"{previous}\",\"entry\":")
}

/// Bytes as they are written down.
#[must_use]
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A new file is only there to stay once its folder is on the disk too.
///
/// # Errors
/// What the file system says.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

/// What the file system said of a file.
#[must_use]
pub fn file_error(path: &Path, what: &'static str, source: io::Error) -> ChainError {
    ChainError::File {
        path: path.display().to_string(),
        what,
        source,
    }
}

fn broken(path: &Path, number: u64, found: String, wanted: &str) -> ChainError {
    ChainError::Broken {
        path: path.display().to_string(),
        number,
        found,
        wanted: wanted.to_owned(),
    }
}

impl fmt::Display for Head {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.entries, self.hash)
    }
}

impl FromStr for Head {
    type Err = HeadError;

    fn from_str(text: &str) -> Result<Self, HeadError> {
        let error = || HeadError {
            found: text.to_owned(),
        };
        let (entries, hash) = text.trim().split_once(':').ok_or_else(error)?;
        if hash.len() != FIRST_PREVIOUS.len() || !hash.bytes().all(|byte| byte.is_ascii_hexdigit())
        {
            return Err(error());
        }
        Ok(Self {
            entries: entries.parse().map_err(|_| error())?,
            hash: hash.to_ascii_lowercase(),
        })
    }
}
