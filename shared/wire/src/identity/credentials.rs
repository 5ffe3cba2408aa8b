//! Certificates and keys as they are read from files.

use crate::identity::certificates::{self, CredentialFiles};
use crate::identity::{Identity, IdentityError, Serial};
use crate::private::{self, OpenKey};
use rustls::RootCertStore;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientCertVerifierBuilder, WebPkiClientVerifier};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

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

/// What a party proves itself with.
pub(crate) struct Credentials {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
    pub(crate) identity: Identity,
    /// From when until when the certificate is valid.
    pub(crate) valid: Range<SystemTime>,
}

/// What a list of revoked certificates says.
#[derive(Default)]
pub(crate) struct RevocationList {
    pub(crate) signed: Vec<CertificateRevocationListDer<'static>>,
    pub(crate) serials: BTreeSet<Serial>,
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
            .ok_or_else(|| unusable(path, "it is not a list of revoked certificates".to_owned()))?;
        serials.extend(found);
    }
    Ok(RevocationList { signed, serials })
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
pub(crate) fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
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

pub(crate) fn roots(path: &Path) -> Result<RootCertStore, TlsError> {
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
    built(path, judging(path, revoked)?)
}

/// As [`client_verifier`], which also lets in who has no certificate yet.
pub(crate) fn any_client_verifier(
    path: &Path,
    revoked: Vec<CertificateRevocationListDer<'static>>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    built(path, judging(path, revoked)?.allow_unauthenticated())
}

fn judging(
    path: &Path,
    revoked: Vec<CertificateRevocationListDer<'static>>,
) -> Result<ClientCertVerifierBuilder, TlsError> {
    let roots = Arc::new(roots(path)?);
    let judging = WebPkiClientVerifier::builder_with_provider(roots, provider())
        .with_crls(revoked)
        .only_check_end_entity_revocation()
        // Another authority of the same file need not have a list.
        .allow_unknown_revocation_status();
    Ok(judging)
}

fn built(
    path: &Path,
    judging: ClientCertVerifierBuilder,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    judging
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
