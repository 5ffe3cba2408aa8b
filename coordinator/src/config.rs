//! coordinator.toml and operator.toml.

use protocol::document::{self, DocumentErrors, Section};
use service::proxy::{self, DialError, Proxy, optional_address, required_address};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::{Address, CredentialFiles, Dial};

/// The coordinator's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoordinatorConfig {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Folder of the store.
    pub folder: PathBuf,
    /// Certificate, key and authority.
    pub tls: CredentialFiles,
    /// The authority's list of revoked certificates.
    pub revoked: Option<PathBuf>,
    /// Where `/health` and `/metrics` answer, on loopback.
    pub status: Option<SocketAddr>,
    /// Where certificates are signed, and by which authority.
    pub enrolment: Option<Enrolling>,
    /// For how long the results of ended runs are kept.
    pub retain: Option<Duration>,
}

/// Where certificates are signed, and by which authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enrolling {
    /// Where to listen.
    pub listen: SocketAddr,
    /// The authority's folder, as `certificates init` made it.
    pub folder: PathBuf,
    /// Days until a certificate ends.
    pub days: u32,
}

/// An operator's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorConfig {
    /// The coordinator's address.
    pub coordinator: Address,
    /// Where certificates are renewed.
    pub enrolment: Option<Address>,
    /// Certificate, key and authority.
    pub tls: CredentialFiles,
    /// The way out, where the operator has no direct one.
    pub proxy: Option<Proxy>,
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("{} could not be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file has problems.
    #[error("{}:\n{problems}", path.display())]
    Problems {
        /// The file.
        path: PathBuf,
        /// All of them.
        problems: DocumentErrors,
    },
}

impl CoordinatorConfig {
    /// Reads and parses a file; relative paths in it are relative to its folder.
    ///
    /// # Errors
    /// [`ConfigError`], all problems at once.
    pub fn open(path: &Path) -> Result<Self, ConfigError> {
        open(path, Self::parse)
    }

    /// Parses `text`; relative paths in it are relative to `folder`.
    ///
    /// # Errors
    /// All problems at once.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, DocumentErrors> {
        document::read(text, |root| {
            let address = listen(root, "0.0.0.0:7443");
            let home = root
                .required::<String>("folder")
                .map(|path| folder.join(path));
            let tls = root.required_table("tls", |section| {
                let revoked: Option<String> = section.optional("revoked");
                let revoked = revoked.map(|path| folder.join(path));
                Some((tls(section, folder)?, revoked))
            });
            let status = service::status::address(root);
            let enrolment = root.table("enrolment", |section| {
                let listen = listen(section, "0.0.0.0:7444");
                let authority: Option<String> = section.required("authority");
                let days = section.count("days", 365, 1..=36_500);
                Some(Enrolling {
                    listen: listen?,
                    folder: folder.join(authority?),
                    days: u32::try_from(days).ok()?,
                })
            });
            let retain = service::retain(root);
            let (tls, revoked) = tls?;
            Some(Self {
                status,
                retain,
                enrolment,
                listen: address?,
                folder: home?,
                tls,
                revoked,
            })
        })
    }
}

impl OperatorConfig {
    /// Reads and parses a file; relative paths in it are relative to its folder.
    ///
    /// # Errors
    /// [`ConfigError`], all problems at once.
    pub fn open(path: &Path) -> Result<Self, ConfigError> {
        open(path, Self::parse)
    }

    /// Parses `text`; relative paths in it are relative to `folder`.
    ///
    /// # Errors
    /// All problems at once.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, DocumentErrors> {
        document::read(text, |root| {
            let coordinator = required_address(root, "coordinator");
            let enrolment = optional_address(root, "enrolment");
            let tls = root.required_table("tls", |section| tls(section, folder));
            let proxy = root.table("proxy", |section| Proxy::read(section, folder));
            Some(Self {
                coordinator: coordinator?,
                enrolment,
                tls: tls?,
                proxy,
            })
        })
    }

    /// How one of these two addresses is reached.
    ///
    /// # Errors
    /// [`DialError`].
    pub fn dial(&self, address: &Address) -> Result<Dial, DialError> {
        proxy::dial(address, &self.tls, self.proxy.as_ref())
    }
}

/// The address to listen at.
fn listen(section: &mut Section<'_, '_>, example: &str) -> Option<SocketAddr> {
    let text: String = section.required("listen")?;
    let address = text.parse().ok();
    if address.is_none() {
        let wanted = format!("IP:PORT, as in {example}");
        section.problem("listen", &format!("{text:?}"), &wanted);
    }
    address
}

fn open<T>(
    path: &Path,
    parse: impl FnOnce(&str, &Path) -> Result<T, DocumentErrors>,
) -> Result<T, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
        path: path.to_owned(),
        source,
    })?;
    parse(&text, path.parent().unwrap_or(Path::new(""))).map_err(|problems| ConfigError::Problems {
        path: path.to_owned(),
        problems,
    })
}

fn tls(section: &mut Section<'_, '_>, folder: &Path) -> Option<CredentialFiles> {
    let mut path = |key| {
        section
            .required::<String>(key)
            .map(|path| folder.join(path))
    };
    let (authority, certificate, key) = (path("ca"), path("certificate"), path("key"));
    Some(CredentialFiles {
        certificate: certificate?,
        key: key?,
        authority: authority?,
    })
}
