//! The site's own key, and files that only their owner may read.

use crate::books::chain::{ChainError, file_error, sync_folder};
use crate::books::ledger;
use privacy::FingerprintKey;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use wire::private;

const KEY_LENGTH: usize = 32;

/// A number of the site's own, which nobody else can know, for each thing that it is asked for.
pub type Secret = Box<dyn Fn(&[u8]) -> u64 + Send>;

/// The site's key, made on `first` use from the system's random numbers.
pub(super) fn key(path: &Path, first: bool) -> Result<FingerprintKey, ChainError> {
    let fail = |what| move |source| file_error(path, what, source);
    if first && !path.exists() {
        make(path).map_err(fail("made"))?;
    }
    let stored = fs::read(path).map_err(fail("read"))?;
    let wanted = || io::Error::other(format!("found {} bytes, wanted 32", stored.len()));
    let bytes = stored.as_slice().try_into();
    let bytes: [u8; KEY_LENGTH] = bytes.map_err(|_| fail("read")(wanted()))?;
    Ok(FingerprintKey::new(bytes))
}

/// Makes a key whole, or leaves the one that another process has made in the meantime.
fn make(path: &Path) -> io::Result<()> {
    let mut bytes = [0; KEY_LENGTH];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    replace(&beside, &bytes)?;
    let linked = fs::hard_link(&beside, path);
    fs::remove_file(&beside)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => sync_folder(path),
    }
}

/// The key is not the one that the ledger was begun with.
pub(super) fn other_key(ledger: &Path, key: &Path) -> ChainError {
    ChainError::Broken {
        path: ledger.display().to_string(),
        number: 1,
        found: "the digest of another key, or none".to_owned(),
        wanted: format!(
            "the digest of {}: put back the key that this ledger was begun with",
            key.display()
        ),
    }
}

/// The key of the site in `folder` for fingerprints of its patients, whoever has its ledger open.
///
/// # Errors
/// [`ChainError`] where the site's key cannot be read, or made before the first run.
pub fn of_fingerprints(folder: &Path) -> Result<FingerprintKey, ChainError> {
    private::folder(folder).map_err(|error| file_error(folder, "made", error))?;
    // An agent that starts at the same moment makes an empty ledger before it makes the key.
    let is_first = fs::metadata(folder.join(ledger::FILE_NAME)).map_or(true, |one| one.len() == 0);
    key(&folder.join(ledger::KEY_NAME), is_first)
}

/// Writes a file that only its owner may read: beside, then renamed.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut options = OpenOptions::new();
    let mut file = private::open(&beside, options.write(true).create(true).truncate(true))?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    sync_folder(path)
}
