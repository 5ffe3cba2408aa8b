//! TLS 1.3 with a certificate on both sides, all from one private authority.

use crate::certificates::{self, CredentialFiles};
use crate::connection::{ConnectionError, OWN};
use crate::holders::Serial;
use crate::identity::{Identity, IdentityError};
use crate::private::{self, OpenKey};
use crate::warrant::{Signer, Warrants};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// What HTTP/2 is called in the handshake.
const HTTP2: &[u8] = b"h2";
/// Where systems keep the authorities that they trust.
const SYSTEM_AUTHORITIES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// A certificate, key or authority that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file could not be read as PEM.
    #[error("could not read {wanted} from {}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        wanted: &'static str,
        /// Why.
        source: rustls_pki_types::pem::Error,
    },
    /// Others may read the key.
    #[error(transparent)]
    OpenKey(#[from] OpenKey),
    /// The system keeps no authorities where this program looks.
    #[error("found no file of trusted authorities on this system, wanted one named")]
    NoSystemAuthorities,
    /// Certificate and key, or authority, do not work together.
    #[error("could not use {} with its key and authority: {reason}", path.display())]
    Unusable {
        /// The certificate, or the authority.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The certificate names nobody of this federation.
    #[error("in {}", path.display())]
    Identity {
        /// The certificate.
        path: PathBuf,
        /// What is wrong.
        source: IdentityError,
    },
}

/// How a coordinator proves itself and judges who calls.
#[derive(Clone)]
pub struct ServerTls {
    pub(crate) config: Arc<ServerConfig>,
    /// Certificates that were revoked.
    pub(crate) serials: BTreeSet<Serial>,
    files: CredentialFiles,
    revoked: Option<PathBuf>,
    seen: Option<Seen>,
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
        Self::load_with(files, None)
    }

    /// As [`ServerTls::load`], with a list of revoked certificates, which the port reads again when it changes.
    ///
    /// # Errors
    /// [`TlsError`] names the file.
    pub fn load_revoking(files: &CredentialFiles, revoked: &Path) -> Result<Self, TlsError> {
        Self::load_with(files, Some(revoked))
    }

    fn load_with(files: &CredentialFiles, revoked: Option<&Path>) -> Result<Self, TlsError> {
        let unusable = |error: String| unusable(&files.certificate, error);
        let seen = revoked.and_then(seen);
        let list = revoked
            .map(revocation_list)
            .transpose()?
            .unwrap_or_default();
        let credentials = Credentials::read(files)?;
        let verifier = client_verifier(&files.authority, list.signed)?;
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
            files: files.clone(),
            revoked: revoked.map(Path::to_owned),
            serials: list.serials,
            seen,
            warrants,
        })
    }

    /// Reads the files again where the list of revoked certificates has changed; gives whether it has. A list that
    /// cannot be used leaves all as it was.
    pub(crate) fn reread(&mut self) -> bool {
        let Some(revoked) = &self.revoked else {
            return false;
        };
        let now = seen(revoked);
        if now == self.seen {
            return false;
        }
        match Self::load_with(&self.files, Some(revoked)) {
            Ok(read) => {
                tracing::info!(
                    certificates = read.serials.len(),
                    "read the list of revoked certificates again"
                );
                *self = read;
                true
            }
            Err(error) => {
                tracing::error!(%error, "the list of revoked certificates cannot be read again; the one before stays");
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

    /// Whether the own certificate can be a site's now, by this machine's clock.
    ///
    /// # Errors
    /// [`ConnectionError::OwnRole`], [`ConnectionError::Expired`].
    pub fn check_site(&self) -> Result<(), ConnectionError> {
        if !matches!(self.identity, Identity::Site(_)) {
            let found = self.identity.uri();
            return Err(ConnectionError::OwnRole { found });
        }
        if !self.valid.contains(&SystemTime::now()) {
            return Err(ConnectionError::Expired { whose: OWN });
        }
        Ok(())
    }

    /// Whom the certificate names.
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

pub(crate) struct Credentials {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
    identity: Identity,
    valid: Range<SystemTime>,
}

/// What a list of revoked certificates says.
#[derive(Default)]
pub(crate) struct RevocationList {
    pub(crate) signed: Vec<CertificateRevocationListDer<'static>>,
    serials: BTreeSet<Serial>,
}

pub(crate) fn revocation_list(path: &Path) -> Result<RevocationList, TlsError> {
    let failed = |source| pem(path, "a list of revoked certificates", source);
    let signed = CertificateRevocationListDer::pem_file_iter(path)
        .map_err(failed)?
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    if signed.is_empty() {
        return Err(failed(rustls_pki_types::pem::Error::NoItemsFound));
    }
    let mut serials = BTreeSet::new();
    for list in &signed {
        let found = certificates::revoked_serials(list)
            .ok_or_else(|| unusable(path, "it is no list of revoked certificates".to_owned()))?;
        serials.extend(found);
    }
    Ok(RevocationList { signed, serials })
}

fn seen(path: &Path) -> Option<Seen> {
    let metadata = std::fs::metadata(path).ok()?;
    Some(Seen {
        modified: metadata.modified().ok(),
        length: metadata.len(),
    })
}

impl Credentials {
    pub(crate) fn read(files: &CredentialFiles) -> Result<Self, TlsError> {
        let chain = chain(&files.certificate)?;
        private::check_key(&files.key)?;
        let key = PrivateKeyDer::from_pem_file(&files.key)
            .map_err(|source| pem(&files.key, "a private key", source))?;
        let identity =
            Identity::of_certificate(&chain[0]).map_err(|source| TlsError::Identity {
                path: files.certificate.clone(),
                source,
            })?;
        let valid = Identity::validity(&chain[0]);
        Ok(Self {
            chain,
            key,
            identity,
            valid,
        })
    }
}

/// The certificates of a file; at least one.
fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |source| pem(path, "certificates", source);
    let certificates = CertificateDer::pem_file_iter(path)
        .map_err(failed)?
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    if certificates.is_empty() {
        return Err(failed(rustls_pki_types::pem::Error::NoItemsFound));
    }
    Ok(certificates)
}

fn roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(chain(path)?);
    if added == 0 {
        return Err(unusable(
            path,
            "it holds no certificate of an authority".to_owned(),
        ));
    }
    Ok(roots)
}

/// What accepts certificates of sites and operators from the authority in `path`, but for those that a list revokes.
pub(crate) fn client_verifier(
    path: &Path,
    revoked: Vec<CertificateRevocationListDer<'static>>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots(path)?), provider())
        .with_crls(revoked)
        .only_check_end_entity_revocation()
        // Another authority of the same file need not have a list.
        .allow_unknown_revocation_status()
        .build()
        .map_err(|error| unusable(path, error.to_string()))
}

/// aws-lc, whose first choice of key exchange is X25519MLKEM768.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

fn pem(path: &Path, wanted: &'static str, source: rustls_pki_types::pem::Error) -> TlsError {
    TlsError::Pem {
        path: path.to_owned(),
        wanted,
        source,
    }
}

pub(crate) fn unusable(path: &Path, reason: String) -> TlsError {
    TlsError::Unusable {
        path: path.to_owned(),
        reason,
    }
}
