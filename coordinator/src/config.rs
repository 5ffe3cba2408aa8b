//! coordinator.toml and operator.toml.

use protocol::document::{self, DocumentErrors, Section};
use protocol::name::OperatorName;
use service::pages;
use service::postgres::{self, Server};
use service::proxy::{self, DialError, Proxy, optional_address, required_address};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::{Address, CredentialFiles, Dial};

/// The port of pages where the file says nothing.
const PAGES_PORT: u16 = 9446;

/// The coordinator's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoordinatorConfig {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Folder of the audit log, and of the store where that is SQLite's.
    pub folder: PathBuf,
    /// Where the runs are kept.
    pub store: StoreConfig,
    /// Certificate, key and authority.
    pub tls: CredentialFiles,
    /// The authority's list of revoked certificates.
    pub revoked: Option<PathBuf>,
    /// Where `/health` and `/metrics` answer, on loopback.
    pub status: Option<SocketAddr>,
    /// Where certificates are signed, and by which authority.
    pub enrolment: Option<Enrolling>,
    /// Where operators have pages.
    pub pages: Option<PagesConfig>,
    /// For how long the results of ended runs are kept.
    pub retain: Option<Duration>,
    /// Operators who see and end what is everybody's.
    pub administrators: Vec<OperatorName>,
}

/// Where the runs are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreConfig {
    /// In a file of the coordinator's folder.
    Sqlite,
    /// In a database of PostgreSQL, which other coordinators may share.
    Postgres(Server),
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

/// Where operators have pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagesConfig {
    /// Where they are served.
    pub served: pages::PagesConfig,
    /// Whose they are where no proxy says who asks.
    pub operator: Option<OperatorName>,
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
            let store = store(root, folder);
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
            let pages = root.table("pages", |section| pages(section, folder));
            let retain = service::retain(root);
            let administrators = administrators(root);
            let (tls, revoked) = tls?;
            Some(Self {
                status,
                retain,
                administrators: administrators?,
                enrolment,
                pages,
                listen: address?,
                folder: home?,
                store: store?,
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

/// The operators who see and end what is everybody's; none where the file says nothing.
fn administrators(section: &mut Section<'_, '_>) -> Option<Vec<OperatorName>> {
    let names: Vec<String> = section.optional("administrators").unwrap_or_default();
    let named: Result<Vec<_>, _> = names.iter().map(|name| OperatorName::new(name)).collect();
    if let Err(error) = &named {
        section.problem("administrators", &error.to_string(), "names of operators");
    }
    named.ok()
}

/// `[store]`: SQLite where the file has no such table.
fn store(root: &mut Section<'_, '_>, folder: &Path) -> Option<StoreConfig> {
    if !root.has("store") {
        return Some(StoreConfig::Sqlite);
    }
    root.table("store", |section| {
        if !section.has("kind") {
            section.required::<String>("kind");
        }
        match section.choice("kind", &[("sqlite", false), ("postgres", true)]) {
            Some(false) => Some(StoreConfig::Sqlite),
            Some(true) => Server::read(section, folder).map(StoreConfig::Postgres),
            None => {
                section.pass_over(&postgres::KEYS);
                None
            }
        }
    })
}

/// `[pages]`: a proxy says which operator asks, or one operator is named.
fn pages(section: &mut Section<'_, '_>, folder: &Path) -> Option<PagesConfig> {
    let has_proxy = section.has("proxy");
    let served = pages::PagesConfig::read(section, folder, PAGES_PORT);
    let named: Option<String> = section.optional("operator");
    let operator = named.as_deref().map(OperatorName::new);
    let found = format!("{:?}", named.as_deref().unwrap_or_default());
    match (&operator, has_proxy) {
        (Some(Ok(_)), false) | (None, true) => {}
        (Some(Err(_)), _) => section.problem("operator", &found, "the name of an operator"),
        (None, false) => {
            let wanted = "the operator whose pages they are, or [pages.proxy], which says who asks";
            section.problem("operator", "no key", wanted);
        }
        (Some(Ok(_)), true) => {
            section.problem(
                "operator",
                &found,
                "no such key: [pages.proxy] says who asks",
            );
        }
    }
    Some(PagesConfig {
        served: served?,
        operator: operator.transpose().ok()?,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    const REST: &str = "listen = \"0.0.0.0:7443\"\nfolder = \"f\"\n[tls]\nca = \"a\"\ncertificate = \"c\"\nkey = \"k\"\n";

    fn parsed(pages: &str) -> Result<Option<PagesConfig>, String> {
        let config = CoordinatorConfig::parse(&format!("{REST}{pages}"), Path::new("/srv"));
        let config = config.map_err(|problems| problems.to_string())?;
        Ok(config.pages)
    }

    #[test]
    fn the_store_is_in_a_file_or_in_a_database_that_is_named_in_full() {
        let parsed = |store: &str| {
            let config = CoordinatorConfig::parse(&format!("{REST}{store}"), Path::new("/srv"));
            config.map(|config| config.store)
        };
        assert_eq!(parsed("").unwrap(), StoreConfig::Sqlite);
        let sqlite = parsed("[store]\nkind = \"sqlite\"");
        assert_eq!(sqlite.unwrap(), StoreConfig::Sqlite);
        let whole = "[store]\nkind = \"postgres\"\nhost = \"db\"\ndatabase = \"k\"\nuser = \"c\"\nca = \"ca.pem\"\n";
        let StoreConfig::Postgres(server) = parsed(whole).unwrap() else {
            panic!("a database");
        };
        assert_eq!(server.to_string(), "database k at db:5432");
        let ca = PathBuf::from("/srv/ca.pem");
        assert_eq!(server.tls, postgres::DatabaseTls::Verified { ca });
        for (text, wanted) in [
            ("[store]", &["store: found no key \"kind\""][..]),
            (
                "[store]\nkind = \"mysql\"\nhost = \"h\"",
                &["store.kind: found"],
            ),
            ("[store]\nkind = \"sqlite\"\nhost = \"h\"", &["store.host"]),
            (
                "[store]\nkind = \"postgres\"\nhosts = \"db\"\nuser = 7\ntls = \"disabled\"",
                &[
                    "did you mean \"host\"",
                    "found no key \"database\"",
                    "store.user",
                ],
            ),
        ] {
            let problems = parsed(text).unwrap_err().to_string();
            for wanted in wanted {
                assert!(problems.contains(wanted), "{wanted}\n---\n{problems}");
            }
        }
    }

    #[test]
    fn pages_are_of_one_operator_or_a_proxy_says_who_asks() {
        assert_eq!(parsed("").unwrap(), None);
        let own = parsed("[pages]\noperator = \"anna\"").unwrap().unwrap();
        assert_eq!(own.served, pages::PagesConfig::loopback(PAGES_PORT));
        assert_eq!(own.operator.unwrap().as_str(), "anna");
        let proxy = "[pages.proxy]\nuser_header = \"x-remote-user\"\npassword_env = \"P\"";
        let behind = parsed(&format!("[pages]\nhosts = [\"k.example\"]\n{proxy}"));
        let behind = behind.unwrap().unwrap();
        assert!(behind.operator.is_none() && behind.served.proxy.is_some());
        for (text, wanted) in [
            ("[pages]".to_owned(), "pages.operator: found no key"),
            (
                "[pages]\noperator = \"An na\"".to_owned(),
                "pages.operator: found \"An na\"",
            ),
            (
                format!("[pages]\noperator = \"anna\"\nhosts = [\"k.example\"]\n{proxy}"),
                "pages.operator: found \"anna\", wanted no such key",
            ),
        ] {
            let problems = parsed(&text).unwrap_err();
            assert!(problems.contains(wanted), "{wanted}\n---\n{problems}");
        }
    }
}
