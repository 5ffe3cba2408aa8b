//! Whose certificate is shown at an address: whoever opens TLS on the way shows their own.

use crate::connection::dial::{Dial, Way};
use crate::identity::credentials::provider;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use std::sync::{Arc, Mutex, PoisonError};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Notes the authority's name, and refuses every certificate.
#[derive(Debug, Default)]
struct Witness {
    seen: Mutex<Option<String>>,
}

/// The name of the authority of the certificate that is shown where `dial` leads. Nothing is said there: the handshake ends
/// with the certificate.
pub async fn shown_authority(dial: &Dial) -> Option<String> {
    let witness = Arc::new(Witness::default());
    let judging: Arc<dyn ServerCertVerifier> = Arc::<Witness>::clone(&witness);
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .ok()?
        .dangerous()
        .with_custom_certificate_verifier(judging)
        .with_no_client_auth();
    let way = Way {
        address: &dial.address,
        tls: Arc::new(config),
        proxy: dial.proxy.as_ref(),
    };
    // It always fails: the witness refuses.
    let _ = way.connect().await;
    let mut seen = witness.seen.lock().unwrap_or_else(PoisonError::into_inner);
    seen.take()
}

impl ServerCertVerifier for Witness {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Ok((_, parsed)) = X509Certificate::from_der(certificate) {
            let name = crate::visible::line(parsed.issuer().to_string());
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            *seen = Some(name.chars().take(200).collect());
        }
        Err(Error::InvalidCertificate(CertificateError::UnknownIssuer))
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::InvalidCertificate(CertificateError::UnknownIssuer))
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::InvalidCertificate(CertificateError::UnknownIssuer))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}
