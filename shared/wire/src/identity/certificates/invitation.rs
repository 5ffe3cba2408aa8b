//! Who was invited, as the authority keeps it: a file named by the hash of the token's secret.

use super::AUTHORITY;
use super::requests::RequestError;
use super::writing::{failed, read};
use super::{CertificateError, Identity};
use crate::enrolment::{Secret, hexadecimal};
use crate::private;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The folder of invitations, each named by the hash of its secret.
const INVITATIONS: &str = "invitations";

/// Who was invited, until when.
pub(super) struct Invitation {
    pub(super) path: PathBuf,
    pub(super) identity: Identity,
    pub(super) until: SystemTime,
}

pub(super) fn place(folder: &Path, secret: &Secret) -> PathBuf {
    let invitations = folder.join(AUTHORITY).join(INVITATIONS);
    invitations.join(hexadecimal(&secret.hash()))
}

impl Invitation {
    pub(super) fn read(path: PathBuf) -> Result<Self, RequestError> {
        if !path.exists() {
            return Err(RequestError::Unknown);
        }
        let text = read(&path)?;
        let unreadable = || CertificateError::Unreadable { path: path.clone() };
        let (uri, until) = text.trim().split_once(' ').ok_or_else(unreadable)?;
        let identity = Identity::parse(uri).map_err(|_| unreadable())?;
        let seconds: u64 = until.parse().map_err(|_| unreadable())?;
        let until = UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        Ok(Self {
            identity,
            until: until.ok_or_else(unreadable)?,
            path,
        })
    }

    pub(super) fn write(&self) -> Result<(), CertificateError> {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        private::folder(folder).map_err(failed(folder))?;
        let until = self.until.duration_since(UNIX_EPOCH).unwrap_or_default();
        let text = format!("{} {}\n", self.identity.uri(), until.as_secs());
        private::replace(&self.path, text.as_bytes()).map_err(failed(&self.path))
    }

    /// The mark that its token was used.
    fn mark(&self) -> PathBuf {
        self.path.with_extension("used")
    }

    pub(super) fn is_used(&self) -> bool {
        self.mark().exists()
    }

    pub(super) fn mark_used(&self) -> Result<(), CertificateError> {
        let mark = self.mark();
        fs::write(&mark, "").map_err(failed(&mark))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invitation_that_was_changed_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("invitation");
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            Invitation::read(path.clone()).map(|found| found.until)
        };
        let until = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        assert_eq!(read("kindred://site/north 1800000000\n").unwrap(), until);
        for changed in [
            "",
            "kindred://site/north",
            "kindred://guest/north 1800000000",
            "kindred://site/north soon",
            // Later than any moment.
            "kindred://site/north 18446744073709551615",
        ] {
            let error = read(changed).unwrap_err();
            assert!(
                error.to_string().contains("something else in"),
                "{changed}: {error}"
            );
        }
    }
}
