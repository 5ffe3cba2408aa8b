//! `site.toml`: who this site is, where its patients are, how its codes read, and its own policy.

mod columns;
mod pages;
pub mod policy;
mod source;

pub use columns::{ColumnMapping, Conversion, DeclaredRange, EVERY_OTHER};
pub use pages::{PagesConfig, PagesOperator};
pub use source::{
    CsvSource, DateFormat, DecimalMark, ParquetSource, PostgresSource, Query, SourceConfig,
    SourceKind,
};

use privacy::Policy;
use protocol::document::{self, DocumentErrors, Section};
use protocol::name::SiteName;
use service::cli::NoConfig;
use service::proxy::{self, DialError, Proxy, optional_address, required_address};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::{Address, CredentialFiles, Dial, TlsError, Warrants};

/// Megabytes of the copies of all runs together, where the file does not say.
const TRANSCRIPTS_MEGABYTES: u64 = 4_096;
/// The most that it can say.
const TRANSCRIPTS_MEGABYTES_MAX: u64 = 1 << 30;

/// One site's configuration. Only [`SiteConfig::parse`] makes one, so what it holds fits together.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SiteConfig {
    /// The site's name, as its certificate has it.
    pub site: SiteName,
    /// Where the coordinator listens.
    pub coordinator: Address,
    /// Where certificates are renewed.
    pub enrolment: Option<Address>,
    /// Proof of who this site is, and which authority it trusts.
    pub tls: CredentialFiles,
    /// The authority's list of revoked certificates; it is read for each run.
    pub revoked: Option<PathBuf>,
    /// The way out, where the site has no direct one.
    pub proxy: Option<Proxy>,
    /// Where `/health` and `/metrics` answer, on loopback.
    pub status: Option<SocketAddr>,
    /// Where pages for people are served.
    pub pages: PagesConfig,
    /// Folder of local results and of the journal.
    pub folder: PathBuf,
    /// Bytes of the copies of all runs together, at most: of more the oldest go.
    pub transcripts_bytes_max: u64,
    /// For how long what ended runs left is kept.
    pub retain: Option<Duration>,
    /// Where the patients are and how their columns read.
    pub source: SourceConfig,
    /// What may leave the site; closed where the file has no `[policy]`.
    pub policy: Policy,
}

/// A file that could not be read, or that does not fit.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// There is none, and no table in its place.
    #[error("found no --data, and {0}")]
    Absent(NoConfig),
    /// The file could not be read.
    #[error("{path} could not be read")]
    Read {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file has problems.
    #[error("{path}:\n{problems}")]
    Problems {
        /// The file.
        path: String,
        /// All of them.
        problems: DocumentErrors,
    },
}

impl SiteConfig {
    /// Reads and parses a file. Relative paths in it are relative to its folder.
    ///
    /// # Errors
    /// [`ConfigError`], with all problems of the file at once.
    pub fn open(path: &Path) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
            path: name.clone(),
            source,
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, folder).map_err(|problems| ConfigError::Problems {
            path: name,
            problems,
        })
    }

    /// Parses `text`; relative paths in it are relative to `folder`.
    ///
    /// # Errors
    /// All problems of the text at once, each with its line.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, DocumentErrors> {
        document::read(text, |root| {
            let site = site(root);
            let coordinator = required_address(root, "coordinator");
            let enrolment = optional_address(root, "enrolment");
            let files = root.required_table("tls", |section| {
                let ca = path(section, "ca", folder);
                let certificate = path(section, "certificate", folder);
                let key = path(section, "key", folder);
                let revoked: Option<String> = section.optional("revoked");
                let files = CredentialFiles {
                    certificate: certificate?,
                    key: key?,
                    authority: ca?,
                };
                Some((files, revoked.map(|path| folder.join(path))))
            });
            let proxy = root.table("proxy", |section| Proxy::read(section, folder));
            let status = service::status::address(root);
            let pages = pages::read(root, folder).unwrap_or_default();
            let results = path(root, "folder", folder);
            let transcripts = root.count(
                "transcripts_megabytes_max",
                TRANSCRIPTS_MEGABYTES,
                1..=TRANSCRIPTS_MEGABYTES_MAX,
            );
            let retain = service::retain(root);
            let source = source::read(root, folder);
            let policy = root.table("policy", policy::read).unwrap_or_default();
            let (tls, revoked) = files?;
            Some(Self {
                site: site?,
                coordinator: coordinator?,
                enrolment,
                tls,
                revoked,
                proxy,
                status,
                pages,
                folder: results?,
                transcripts_bytes_max: transcripts << 20,
                retain,
                source: source?,
                policy,
            })
        })
    }

    /// What judges who asked for a job, as the files say now.
    ///
    /// # Errors
    /// [`TlsError`] names the file: then nobody may be believed.
    pub fn warrants(&self) -> Result<Warrants, TlsError> {
        match &self.revoked {
            Some(revoked) => Warrants::load_revoking(&self.tls.authority, revoked),
            None => Warrants::load(&self.tls.authority),
        }
    }

    /// How the coordinator is reached: certificates are loaded and passwords fetched.
    ///
    /// # Errors
    /// [`DialError`] where a certificate, key or password cannot be had.
    pub fn dial(&self) -> Result<Dial, DialError> {
        // A list that cannot be read is said now, not when the first run begins.
        self.warrants()?;
        proxy::dial(&self.coordinator, &self.tls, self.proxy.as_ref())
    }
}

fn site(root: &mut Section<'_, '_>) -> Option<SiteName> {
    let name: String = root.required("site")?;
    match SiteName::new(&name) {
        Ok(site) => Some(site),
        Err(_) => {
            let wanted = "a-z, 0-9, '-' and '_', at most 64 characters";
            root.problem("site", &format!("{name:?}"), wanted);
            None
        }
    }
}

/// The required path `key`, made relative to the file's folder.
fn path(section: &mut Section<'_, '_>, key: &'static str, folder: &Path) -> Option<PathBuf> {
    let text: String = section.required(key)?;
    if text.is_empty() {
        section.problem(key, "an empty path", "a path");
        return None;
    }
    Some(folder.join(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
site = "north"
coordinator = "coordinator.example:7443"
folder = "results"

[tls]
ca = "ca.pem"
certificate = "/etc/kindred/north.pem"
key = "north.key"

[proxy]
address = "[::1]:3128"
user = "kindred"
password_env = "PROXY_PASSWORD"

[source]
kind = "csv"
path = "patients.csv"
patient = "id"
delimiter = ";"
decimal = ","
date_format = "DD.MM.YYYY"
missing = ["NA"]

[columns.chol]
column = "CHOL"
unit = "mg/dl"
convert = [{ to = "mmol/l", factor = 0.02586 }]

[columns.sex]
levels = { M = "male", F = "female" }
"#;

    #[test]
    fn a_whole_file_is_read_with_paths_relative_to_its_folder() {
        let config = SiteConfig::parse(WHOLE, Path::new("/srv/north")).unwrap();
        assert_eq!(config.site.as_str(), "north");
        assert_eq!(config.coordinator.to_string(), "coordinator.example:7443");
        assert_eq!(config.tls.authority, Path::new("/srv/north/ca.pem"));
        assert_eq!(config.tls.certificate, Path::new("/etc/kindred/north.pem"));
        assert_eq!(config.folder, Path::new("/srv/north/results"));
        assert_eq!(config.proxy.unwrap().address.to_string(), "[::1]:3128");
        let chol = config.source.columns.get("chol").unwrap();
        assert_eq!(chol.column.as_deref(), Some("CHOL"));
        assert_eq!(chol.conversions[0].factor, 0.02586);
        let sex = config.source.columns.get("sex").unwrap();
        assert_eq!(sex.levels.as_ref().unwrap()["M"], "male");
    }

    #[test]
    fn every_problem_is_told_at_once() {
        let text = WHOLE
            .replace("site = \"north\"", "site = \"North\"")
            .replace("example:7443", "example")
            .replace("delimiter = \";\"", "delimter = \";\"")
            .replace("decimal = \",\"", "decimal = \";\"")
            .replace("DD.MM.YYYY", "DD.MM.YY")
            .replace("factor = 0.02586", "factor = 0")
            .replace("user = \"kindred\"\n", "");
        let errors = SiteConfig::parse(&text, Path::new("")).unwrap_err();
        let text = errors.to_string();
        for wanted in [
            "line 2: site: found \"North\"",
            "line 3: coordinator: found \"coordinator.example\", wanted host:port",
            "proxy.user: found no key",
            "source.delimter: found an unknown key; did you mean \"delimiter\"?",
            "source.decimal: found \";\"",
            "source.date_format: found \"DD.MM.YY\"",
            "columns.chol.convert.factor: found 0",
        ] {
            assert!(text.contains(wanted), "{wanted}\n---\n{text}");
        }
        assert_eq!(errors.errors().len(), 7, "{text}");
        // Of a kind that is none, its keys are not judged.
        let text = WHOLE.replace("kind = \"csv\"", "kind = \"excel\"");
        let text = SiteConfig::parse(&text, Path::new(""))
            .unwrap_err()
            .to_string();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(
            text.contains("source.kind: found \"excel\", wanted one of"),
            "{text}"
        );
    }

    #[test]
    fn a_password_is_not_in_the_file() {
        let text = WHOLE.replace(
            "password_env = \"PROXY_PASSWORD\"",
            "password = \"hunter2\"",
        );
        let errors = SiteConfig::parse(&text, Path::new("")).unwrap_err();
        assert!(!errors.to_string().contains("hunter2"), "{errors}");
    }
}
