//! A certificate that a party has got, as its program says so.

use serde::Serialize;
use std::fmt;
use std::path::Path;
use time::OffsetDateTime;
use wire::{CredentialFiles, TlsError, certificates, fingerprint_of};

/// Where its files lie, by what studies name its holder, and its last day.
#[derive(Debug, Serialize)]
pub struct Certified {
    certificate: String,
    key: String,
    authority: String,
    /// The configuration that names them, where one was written.
    config: Option<String>,
    fingerprint: String,
    /// The last day, UTC.
    valid_until: String,
}

/// A certificate whose files cannot be read back.
#[derive(Debug, thiserror::Error)]
pub enum CertifiedError {
    /// Its fingerprint.
    #[error(transparent)]
    Fingerprint(#[from] TlsError),
    /// Its end.
    #[error(transparent)]
    End(#[from] certificates::CertificateError),
}

impl Certified {
    /// Reads the files.
    ///
    /// # Errors
    /// [`CertifiedError`].
    pub fn read(files: &CredentialFiles, config: Option<&Path>) -> Result<Self, CertifiedError> {
        let shown = |path: &Path| path.display().to_string();
        let until = certificates::valid_until(&files.certificate)?;
        Ok(Self {
            certificate: shown(&files.certificate),
            key: shown(&files.key),
            authority: shown(&files.authority),
            config: config.map(shown),
            fingerprint: fingerprint_of(&files.certificate)?.to_string(),
            valid_until: OffsetDateTime::from(until).date().to_string(),
        })
    }

    /// What people need to know besides the paths.
    pub fn remarks(&self) -> [String; 2] {
        [
            format!("fingerprint {}", self.fingerprint),
            format!("valid until {}", self.valid_until),
        ]
    }
}

impl fmt::Display for Certified {
    /// The paths, one a line.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            certificate,
            key,
            authority,
            config,
            ..
        } = self;
        write!(formatter, "{certificate}\n{key}\n{authority}")?;
        config
            .iter()
            .try_for_each(|config| write!(formatter, "\n{config}"))
    }
}
