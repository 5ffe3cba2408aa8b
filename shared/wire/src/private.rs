//! Files and folders that only their owner may read, whatever the umask.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};

/// What others may do, of a file's mode.
#[cfg(unix)]
const OTHERS: u32 = 0o077;

/// Of a folder's mode: everybody may write in it, each their own files.
#[cfg(unix)]
const STICKY: u32 = 0o1000;

/// A key that group or others may read or write.
#[derive(Debug, thiserror::Error)]
#[error(
    "found mode {mode:03o} at the key {}, wanted one that its owner alone may read: chmod 600 {}. If others may have \
     read it, have a new one issued",
    path.display(), path.display()
)]
pub struct OpenKey {
    /// The key's file.
    pub path: PathBuf,
    /// Its mode.
    pub mode: u32,
}

/// Makes a folder, with the folders above it, mode 0700; one that is there already gets this mode.
///
/// # Errors
/// As the system says.
pub fn folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    builder.mode(0o700);
    builder.create(path)?;
    close(path, 0o700)
}

/// Makes a folder that somebody names, or that one's own lies in: mode 0700 where it is made, and as it is where it is
/// there, for it may hold what others read.
///
/// # Errors
/// As the system says.
pub fn named_folder(path: &Path) -> io::Result<()> {
    match path.is_dir() {
        true => Ok(()),
        false => folder(path),
    }
}

/// Opens a file as `options` say, mode 0600 whether it is new or not.
///
/// # Errors
/// As the system says.
pub fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    options.mode(0o600);
    let file = options.open(path)?;
    close(path, 0o600)?;
    Ok(file)
}

/// Writes a whole file, mode 0600, in the place of any before.
///
/// # Errors
/// As the system says.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    open(path, options.write(true).create(true).truncate(true))?.write_all(bytes)
}

/// Writes a file that somebody names: beside, then renamed, and nothing where that fails. What is there and no file, such as
/// `/dev/stdout`, is written as it is.
///
/// # Errors
/// As the system says.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return write(path, bytes);
    }
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let written = write(&partial, bytes).and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        let _ = fs::remove_file(&partial);
    }
    written
}

/// Refuses a key that group or others may read or write.
///
/// # Errors
/// [`OpenKey`]; where there is no such file, whoever reads it says so.
pub fn check_key(path: &Path) -> Result<(), OpenKey> {
    #[cfg(unix)]
    if let Ok(metadata) = fs::metadata(path) {
        let mode = metadata.permissions().mode() & 0o777;
        if mode & OTHERS != 0 {
            let path = path.to_owned();
            return Err(OpenKey { path, mode });
        }
    }
    Ok(())
}

/// Gives `path` the mode, unless it is as closed already. What is everybody's stays so: a device, such as `/dev/null`, and a
/// folder with the sticky bit, such as `/tmp`.
fn close(path: &Path, mode: u32) -> io::Result<()> {
    #[cfg(unix)]
    {
        let found = fs::metadata(path)?;
        if !found.is_file() && !found.is_dir() {
            return Ok(());
        }
        let is_folder = found.is_dir();
        let found = found.permissions().mode();
        if is_folder && found & STICKY != 0 {
            return Ok(());
        }
        if found & OTHERS != 0 || found & mode != mode {
            return fs::set_permissions(path, fs::Permissions::from_mode(mode));
        }
    }
    Ok(())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_made_and_what_was_there_is_the_owners_alone() {
        let home = tempfile::tempdir().unwrap();
        let deep = home.path().join("a/b");
        folder(&deep).unwrap();
        assert_eq!((mode(&home.path().join("a")), mode(&deep)), (0o700, 0o700));
        let file = deep.join("file");
        fs::write(&file, "old and longer").unwrap();
        for path in [&file, &deep] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
        }
        write(&file, b"new").unwrap();
        folder(&deep).unwrap();
        assert_eq!((mode(&file), mode(&deep)), (0o600, 0o700));
        assert_eq!(fs::read(&file).unwrap(), b"new");
    }

    #[test]
    fn a_device_that_is_written_to_stays_as_it_was() {
        let null = Path::new("/dev/null");
        let before = mode(null);
        write(null, b"new").unwrap();
        assert_eq!(mode(null), before);
    }

    #[test]
    fn a_folder_of_everybody_and_a_named_one_stay_as_they_were() {
        let home = tempfile::tempdir().unwrap();
        let shared = home.path().join("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
        folder(&shared).unwrap();
        assert_eq!(mode(&shared), 0o777);
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o755)).unwrap();
        named_folder(&shared).unwrap();
        assert_eq!(mode(&shared), 0o755);
        let new = shared.join("new");
        named_folder(&new).unwrap();
        assert_eq!(mode(&new), 0o700);
    }

    #[test]
    fn a_key_that_the_group_can_read_is_refused_with_its_mode() {
        let home = tempfile::tempdir().unwrap();
        let key = home.path().join("key.pem");
        write(&key, b"").unwrap();
        assert!(check_key(&key).is_ok());
        for open in [0o640, 0o604, 0o620] {
            fs::set_permissions(&key, fs::Permissions::from_mode(open)).unwrap();
            let text = check_key(&key).unwrap_err().to_string();
            assert!(
                text.contains(&format!("{open:o}")) && text.contains("chmod 600"),
                "{text}"
            );
        }
    }
}
