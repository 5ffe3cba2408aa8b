//! How a hospital gets a certificate for a key that it makes itself, and its first configuration.

use crate::cli;
use crate::config::{ConfigError, SiteConfig};
use crate::exit::UsageError;
use crate::init::Initialised;
use serde::Serialize;
use service::certificate::Certified;
use service::proxy::{DialError, Proxy};
use std::fmt;
use std::path::{Path, PathBuf};
use wire::enrolment::{self, EnrolError, Token, TokenError};
use wire::{AddressError, CredentialFiles, Dial, Identity, private};

/// A hospital that has no certificate.
#[derive(Debug, thiserror::Error)]
pub enum EnrolmentError {
    /// The word is no token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The token is another party's, or the configuration names no authority.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// The proxy's address is none.
    #[error(transparent)]
    Proxy(#[from] AddressError),
    /// The authority cannot be reached, or refuses.
    #[error(transparent)]
    Enrol(#[from] EnrolError),
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The own certificate, or the way to the authority, cannot be used.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The configuration could not be written.
    #[error("{} could not be written", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// What a hospital has after enrolling.
#[derive(Debug)]
pub struct Enrolled {
    /// Certificate, key and authority.
    pub files: CredentialFiles,
    /// The configuration; one that was there already stays as it is.
    pub config: PathBuf,
}

/// Certificate and configuration of a hospital, and what was proposed of its table.
#[derive(Serialize)]
pub struct EnrolledSite {
    /// The certificate.
    #[serde(flatten)]
    pub certified: Certified,
    /// The proposal, where a table was named.
    pub proposal: Option<Initialised>,
}

impl fmt::Display for EnrolledSite {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.certified.fmt(formatter)?;
        let mut proposal = self.proposal.iter();
        proposal.try_for_each(|one| write!(formatter, "\n{one}"))
    }
}

/// Makes the site's key, has it certified by a token, and writes the configuration.
///
/// # Errors
/// [`EnrolmentError`].
pub async fn enrol(arguments: &cli::Enrol) -> Result<Enrolled, EnrolmentError> {
    let token = Token::parse(&arguments.token)?;
    let Identity::Site(_) = &token.identity else {
        let found = &token.identity;
        let text = format!(
            "found a token for {found}, wanted one for a site; an operator enrols by `kindred-coordinator enrol`"
        );
        return Err(UsageError(text).into());
    };
    let proxy = arguments.proxy.named()?;
    let way = proxy.as_ref().map(Proxy::open).transpose()?;
    let files = enrolment::enrol(&token, &arguments.out, way.as_ref()).await?;
    let path = arguments.out.join("site.toml");
    if !path.exists() {
        let text = site_config(&token, arguments, proxy.as_ref());
        private::replace(&path, text.as_bytes()).map_err(|source| EnrolmentError::Write {
            path: path.clone(),
            source,
        })?;
    }
    SiteConfig::open(&path)?;
    Ok(Enrolled {
        files,
        config: path,
    })
}

/// Has the site's certificate renewed for its key, and puts it in its place.
///
/// # Errors
/// [`EnrolmentError`].
pub async fn renew(path: &Path) -> Result<CredentialFiles, EnrolmentError> {
    let config = SiteConfig::open(path)?;
    let Some(address) = config.enrolment.clone() else {
        let path = path.display();
        let text = format!("{path}: found no key \"enrolment\", wanted the address that signs");
        return Err(UsageError(text).into());
    };
    let dial = Dial {
        address,
        ..config.dial()?
    };
    enrolment::renew(&dial, &config.tls).await?;
    Ok(config.tls)
}

fn site_config(token: &Token, arguments: &cli::Enrol, proxy: Option<&Proxy>) -> String {
    let Identity::Site(site) = &token.identity else {
        return String::new();
    };
    let folder = arguments
        .folder
        .as_ref()
        .map_or("agent".to_owned(), |folder| {
            let absolute = std::path::absolute(folder);
            absolute
                .unwrap_or_else(|_| folder.clone())
                .display()
                .to_string()
        });
    let mut text = format!(
        "# The agent of one hospital: kindred-site-agent serve --config site.toml\n\
         # Relative paths are relative to this file. Unknown keys are errors.\n\n\
         site = \"{site}\"\n\
         coordinator = \"{}\"\n\
         enrolment = \"{}\"    # where `kindred-site-agent renew` asks\n\
         folder = {folder:?}    # results, journal and ledger; keep it\n\n\
         [tls]\n\
         ca = \"ca.pem\"\n\
         certificate = \"certificate.pem\"\n\
         key = \"key.pem\"\n\n",
        token.coordinator, token.enrolment
    );
    if let Some(proxy) = proxy {
        text += &format!("{proxy}\n");
    }
    text += "# One row per patient. Columns, units and codes are declared in [columns].\n\
             [source]\n\
             kind = \"csv\"\n\
             path = \"patients.csv\"\n\
             # patient = \"patient_id\"\n\n\
             # All is refused that is not allowed here.\n\
             [policy]\n\
             operators = []\n\
             methods = []\n";
    text
}
