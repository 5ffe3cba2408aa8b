//! TLS for a caller who knows of the authority no more than its fingerprint.

use crate::identity::credentials::provider;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// What HTTP/2 is called in the handshake.
const HTTP2: &[u8] = b"h2";

/// Trusts the one authority of a fingerprint, which the other side sends with its certificate.
#[derive(Debug)]
struct Pinned {
    authority: [u8; 32],
    provider: Arc<CryptoProvider>,
}

/// TLS 1.3 that trusts the authority whose certificate has this SHA-256.
///
/// # Errors
/// Where the provider has no TLS 1.3.
pub(super) fn config(authority: [u8; 32]) -> Result<ClientConfig, Error> {
    let pinned = Pinned {
        authority,
        provider: provider(),
    };
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(pinned))
        .with_no_client_auth();
    config.resumption = rustls::client::Resumption::disabled();
    config.alpn_protocols = vec![HTTP2.to_vec()];
    Ok(config)
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let is_pinned = |one: &&CertificateDer<'_>| Sha256::digest(one)[..] == self.authority;
        let unknown = Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let authority = between.iter().find(is_pinned).ok_or(unknown)?;
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone().into_owned())?;
        let verifier = WebPkiServerVerifier::builder_with_provider(
            Arc::new(roots),
            Arc::clone(&self.provider),
        );
        let verifier = verifier
            .build()
            .map_err(|error| Error::General(error.to_string()))?;
        verifier.verify_server_cert(certificate, &[], host, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
