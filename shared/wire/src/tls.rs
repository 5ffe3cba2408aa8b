//! TLS 1.3 with a certificate on both sides, all from one private authority.

use crate::certificates::CredentialFiles;
use crate::identity::{Identity, IdentityError};
use crate::warrant::{Signer, Warrants};
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    pub(crate) warrants: Warrants,
}

/// How a site or operator proves itself and judges the coordinator.
#[derive(Clone)]
pub struct ClientTls {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) signer: Signer,
    warrants: Warrants,
    identity: Identity,
}

impl ServerTls {
    /// Reads a coordinator's certificate, key and authority.
    ///
    /// # Errors
    /// [`TlsError`] names the file.
    pub fn load(files: &CredentialFiles) -> Result<Self, TlsError> {
        let unusable = |error: String| unusable(&files.certificate, error);
        let credentials = Credentials::read(files)?;
        let verifier = client_verifier(&files.authority)?;
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| unusable(error.to_string()))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(credentials.chain, credentials.key)
            .map_err(|error| unusable(error.to_string()))?;
        config.alpn_protocols = vec![HTTP2.to_vec()];
        Ok(Self {
            config: Arc::new(config),
            warrants: Warrants::load(&files.authority)?,
        })
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
        let identity = credentials.identity;
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
        config.alpn_protocols = vec![HTTP2.to_vec()];
        Ok(Self {
            config: Arc::new(config),
            signer,
            warrants: Warrants::load(&files.authority)?,
            identity,
        })
    }

    /// What judges who asked for a job.
    #[must_use]
    pub fn warrants(&self) -> &Warrants {
        &self.warrants
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
}

impl Credentials {
    pub(crate) fn read(files: &CredentialFiles) -> Result<Self, TlsError> {
        let chain = certificates(&files.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&files.key)
            .map_err(|source| pem(&files.key, "a private key", source))?;
        let identity =
            Identity::of_certificate(&chain[0]).map_err(|source| TlsError::Identity {
                path: files.certificate.clone(),
                source,
            })?;
        Ok(Self {
            chain,
            key,
            identity,
        })
    }
}

/// The certificates of a file; at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
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
    let (added, _) = roots.add_parsable_certificates(certificates(path)?);
    if added == 0 {
        return Err(unusable(
            path,
            "it holds no certificate of an authority".to_owned(),
        ));
    }
    Ok(roots)
}

/// What accepts certificates of sites and operators from the authority in `path`.
pub(crate) fn client_verifier(path: &Path) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots(path)?), provider())
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
