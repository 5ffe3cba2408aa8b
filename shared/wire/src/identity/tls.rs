//! TLS 1.3 with a certificate on both sides, all from one private authority.

use crate::connection::failing::{ConnectionError, OWN};
use crate::identity::certificates::{self, CredentialFiles};
use crate::identity::credentials::{
    Credentials, TlsError, any_client_verifier, chain, client_verifier, provider, revocation_list,
    roots, unusable,
};
use crate::identity::warrant::{Signer, Warrants};
use crate::identity::{Identity, Serial};
use protocol::name::SiteName;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::pki_types::UnixTime;
use rustls::server::NoServerSessionStorage;
use rustls::{ClientConfig, ServerConfig};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// What HTTP/2 is called in the handshake.
const HTTP2: &[u8] = b"h2";
/// Where systems keep the authorities that they trust.
const SYSTEM_AUTHORITIES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Who is let in at a port.
#[derive(Clone)]
pub(crate) enum Callers {
    /// Whoever holds a certificate.
    Known,
    /// Whoever holds one, and who holds none yet: they are shown the authority's certificate.
    Anybody {
        /// That certificate's file.
        authority: PathBuf,
    },
}

/// How a coordinator proves itself and judges who calls.
#[derive(Clone)]
pub struct ServerTls {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) callers: Callers,
    /// Certificates that were revoked.
    pub(crate) serials: BTreeSet<Serial>,
    files: CredentialFiles,
    revoked: Option<PathBuf>,
    seen: Vec<Option<Seen>>,
    pub(crate) warrants: Warrants,
}

/// How a site or operator proves itself and judges the coordinator.
#[derive(Clone)]
pub struct ClientTls {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) signer: Signer,
    identity: Identity,
    /// From when until when the own certificate is valid.
    valid: Range<SystemTime>,
}

/// A file as it was when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    modified: Option<SystemTime>,
    length: u64,
}

impl ServerTls {
    /// Reads a coordinator's certificate, key and authority.
    ///
    /// # Errors
    /// [`TlsError`] names the file.
    pub fn load(files: &CredentialFiles) -> Result<Self, TlsError> {
        Self::load_with(files, None, Callers::Known)
    }

    /// Judges signatures by the same authority.
    #[must_use]
    pub fn warrants(&self) -> Warrants {
        self.warrants.clone()
    }

    /// As [`ServerTls::load`], with a list of revoked certificates. The port reads all files again when one of them changes.
    ///
    /// # Errors
    /// [`TlsError`] names the file.
    pub fn load_revoking(files: &CredentialFiles, revoked: &Path) -> Result<Self, TlsError> {
        Self::load_with(files, Some(revoked), Callers::Known)
    }

    /// As [`ServerTls::load_revoking`], of the authority in `folder`, for the port at which it signs: a caller may have no
    /// certificate yet.
    ///
    /// # Errors
    /// [`TlsError`] names the file.
    pub fn load_enrolling(files: &CredentialFiles, folder: &Path) -> Result<Self, TlsError> {
        let (authority, revoked) = certificates::authority_files(folder);
        Self::load_with(files, Some(&revoked), Callers::Anybody { authority })
    }

    fn load_with(
        files: &CredentialFiles,
        revoked: Option<&Path>,
        callers: Callers,
    ) -> Result<Self, TlsError> {
        let unusable = |error: String| unusable(&files.certificate, error);
        let seen = seen(files, revoked);
        let list = revoked
            .map(revocation_list)
            .transpose()?
            .unwrap_or_default();
        let mut credentials = Credentials::read(files)?;
        let verifier = match &callers {
            Callers::Known => client_verifier(&files.authority, list.signed)?,
            Callers::Anybody { authority } => {
                credentials.chain.extend(chain(authority)?);
                any_client_verifier(authority, list.signed)?
            }
        };
        let warrants = Warrants::new(Arc::clone(&verifier));
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| unusable(error.to_string()))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(credentials.chain, credentials.key)
            .map_err(|error| unusable(error.to_string()))?;
        // A resumed session would not show its certificate again, which may be revoked or past its time by then.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.alpn_protocols = vec![HTTP2.to_vec()];
        Ok(Self {
            config: Arc::new(config),
            callers,
            files: files.clone(),
            revoked: revoked.map(Path::to_owned),
            serials: list.serials,
            seen,
            warrants,
        })
    }

    /// Reads the files again where one of them has changed; gives whether it has. Files that cannot be used together leave all as it was.
    pub(crate) fn reread(&mut self) -> bool {
        let revoked = self.revoked.as_deref();
        let now = seen(&self.files, revoked);
        if now == self.seen {
            return false;
        }
        match Self::load_with(&self.files, revoked, self.callers.clone()) {
            Ok(read) => {
                tracing::info!(
                    revoked = read.serials.len(),
                    "read the certificates and the list of revoked ones again"
                );
                // Whoever judges signatures by them goes on with the new list.
                self.warrants.renew(&read.warrants);
                let warrants = self.warrants.clone();
                *self = Self { warrants, ..read };
                true
            }
            Err(error) => {
                tracing::error!(%error, "certificates or the list of revoked ones cannot be read again; those before stay");
                self.seen = now;
                false
            }
        }
    }
}

impl ClientTls {
    /// Reads a site's or operator's certificate, key and authority.
    ///
    /// # Errors
    /// [`TlsError`] names the file.
    pub fn load(files: &CredentialFiles) -> Result<Self, TlsError> {
        let unusable = |error: String| unusable(&files.certificate, error);
        let credentials = Credentials::read(files)?;
        let signer = Signer::new(&credentials, &files.key)?;
        let (identity, valid) = (credentials.identity, credentials.valid);
        let roots = Arc::new(roots(&files.authority)?);
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider())
            .build()
            .map_err(|error| unusable(error.to_string()))?;
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| unusable(error.to_string()))?
            .with_webpki_verifier(verifier)
            .with_client_auth_cert(credentials.chain, credentials.key)
            .map_err(|error| unusable(error.to_string()))?;
        config.resumption = Resumption::disabled();
        config.alpn_protocols = vec![HTTP2.to_vec()];
        Ok(Self {
            config: Arc::new(config),
            signer,
            identity,
            valid,
        })
    }

    /// Whether the own certificate can be that of the site `name` now, by this machine's clock.
    ///
    /// # Errors
    /// [`ConnectionError::OwnName`], [`ConnectionError::Expired`].
    pub fn check_site(&self, name: &SiteName) -> Result<(), ConnectionError> {
        let wanted = Identity::Site(name.clone());
        if self.identity != wanted {
            return Err(ConnectionError::OwnName {
                found: self.identity.uri(),
                wanted: wanted.uri(),
            });
        }
        let now = SystemTime::now();
        if !self.valid.contains(&now) {
            let (word, limit) = match now < self.valid.start {
                true => ("begins", self.valid.start),
                false => ("ended", self.valid.end),
            };
            let times = [limit, now].map(|time| {
                UnixTime::since_unix_epoch(time.duration_since(UNIX_EPOCH).unwrap_or_default())
            });
            return Err(ConnectionError::expired(OWN, word, times));
        }
        Ok(())
    }

    /// The party that the certificate names.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }
}

impl std::fmt::Debug for ServerTls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ServerTls")
    }
}

impl std::fmt::Debug for ClientTls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "ClientTls({})", self.identity)
    }
}

/// TLS 1.2 or 1.3 towards a database server, for tokio-postgres: trusts the authorities of the
/// file, or the system's where none is given.
///
/// # Errors
/// [`TlsError`] names the file.
pub fn database_tls(authorities: Option<&Path>) -> Result<ClientConfig, TlsError> {
    let path = match authorities {
        Some(path) => path,
        None => SYSTEM_AUTHORITIES
            .map(Path::new)
            .into_iter()
            .find(|path| path.exists())
            .ok_or(TlsError::NoSystemAuthorities)?,
    };
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(path, error.to_string()))?
        .with_root_certificates(roots(path)?)
        .with_no_client_auth();
    Ok(config)
}

fn seen(files: &CredentialFiles, revoked: Option<&Path>) -> Vec<Option<Seen>> {
    let own = [&files.certificate, &files.key, &files.authority].map(PathBuf::as_path);
    let seen = |path: &Path| {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Seen {
            modified: metadata.modified().ok(),
            length: metadata.len(),
        })
    };
    own.into_iter().chain(revoked).map(seen).collect()
}
