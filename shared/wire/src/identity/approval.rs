//! A hospital's signature under its approval of a study.

use crate::identity::certificates::CredentialFiles;
use crate::identity::credentials::{Credentials, TlsError};
use crate::identity::warrant::{SignatureError, Signed, Signer, verifies};
use protocol::message::Warrant;
use protocol::study::CertificateFingerprint;
use rustls::pki_types::CertificateDer;

/// What a signature is of begins with this, so that no other signature of the same key can stand for it.
const PURPOSE: &[u8] = b"kindred: a hospital approves a study, version 1\0";

/// The fingerprint of the certificate that these files hold.
///
/// # Errors
/// [`TlsError`] names the file.
pub fn fingerprint(files: &CredentialFiles) -> Result<CertificateFingerprint, TlsError> {
    let credentials = Credentials::read(files)?;
    Ok(CertificateFingerprint::of(&credentials.chain[0]))
}

impl Signer {
    /// The certificate's word for an approval.
    ///
    /// # Errors
    /// [`SignatureError`] where the key cannot sign.
    pub fn approve(&self, approval: &[u8]) -> Result<Warrant, SignatureError> {
        let signed = self.sign_bytes(&[PURPOSE, approval].concat())?;
        Ok(Warrant {
            token: String::new(),
            chain: signed.chain,
            scheme: signed.scheme,
            signature: signed.signature,
        })
    }
}

/// Whether the holder of this certificate has signed the approval.
#[must_use]
pub fn has_approved(
    certificate: &CertificateFingerprint,
    approval: &[u8],
    warrant: &Warrant,
) -> bool {
    let Some(first) = warrant.chain.first() else {
        return false;
    };
    let signed = Signed {
        chain: warrant.chain.clone(),
        scheme: warrant.scheme,
        signature: warrant.signature.clone(),
    };
    let message = [PURPOSE, approval].concat();
    CertificateFingerprint::of(first) == *certificate
        && verifies(&CertificateDer::from(first.as_slice()), &signed, &message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::certificates::{Role, Validity, init, issue};

    #[test]
    fn an_approval_holds_for_its_bytes_and_its_certificate_alone() {
        let home = tempfile::tempdir().unwrap();
        init(home.path(), Validity::days(10)).unwrap();
        let party = |name| issue(home.path(), &Role::Site, name, Validity::days(5)).unwrap();
        let (north, south) = (party("north"), party("south"));
        let signed = Signer::load(&north).unwrap().approve(b"yes").unwrap();
        let (own, other) = (fingerprint(&north).unwrap(), fingerprint(&south).unwrap());
        assert!(has_approved(&own, b"yes", &signed));
        assert!(!has_approved(&own, b"yes ", &signed));
        assert!(!has_approved(&other, b"yes", &signed));
        // The operator's word for a job is none for a study.
        let asked = Signer::load(&north).unwrap().sign("yes", 1, "a").unwrap();
        assert!(!has_approved(&own, b"yes", &asked));
    }
}
