//! A hospital's signature under its approval of a study.

use crate::identity::Identity;
use crate::identity::certificates::CredentialFiles;
use crate::identity::credentials::{TlsError, chain};
use crate::identity::warrant::{SignatureError, Signed, Signer, verifies};
use protocol::message::Warrant;
use protocol::study::{Approval, CertificateFingerprint, Consent, SignedApproval};
use rustls::pki_types::CertificateDer;
use std::path::Path;

/// What a signature of an audit's result begins with.
const AUDIT: &[u8] = b"kindred: a hospital audits its answers, version 1\0";
/// What a signature is of begins with this, so that no other signature of the same key can stand for it.
const PURPOSE: &[u8] = b"kindred: a hospital approves a study, version 2\0";
/// The same of a consent.
const CONSENT: &[u8] = b"kindred: a hospital may be read by studies, version 1\0";

/// The fingerprint of the certificate that these files hold.
///
/// # Errors
/// [`TlsError`] names the file.
pub fn fingerprint(files: &CredentialFiles) -> Result<CertificateFingerprint, TlsError> {
    fingerprint_of(&files.certificate)
}

/// The fingerprint of a certificate, DER: of its key, so that a renewed one has the same.
#[must_use]
pub fn fingerprint_of_der(certificate: &[u8]) -> CertificateFingerprint {
    Identity::fingerprint(certificate)
}

/// The fingerprint of the certificate in a file.
///
/// # Errors
/// [`TlsError`] names the file.
pub fn fingerprint_of(certificate: &Path) -> Result<CertificateFingerprint, TlsError> {
    Ok(Identity::fingerprint(&chain(certificate)?[0]))
}

impl Signer {
    /// The approval with the certificate's word for it.
    ///
    /// # Errors
    /// [`SignatureError`] where the key cannot sign.
    pub fn approve(&self, approval: Approval) -> Result<SignedApproval, SignatureError> {
        let word = self.word(&message(&approval))?;
        Ok(SignedApproval { approval, word })
    }

    /// The certificate's word for a consent.
    ///
    /// # Errors
    /// [`SignatureError`] where the key cannot sign.
    pub fn agree(&self, consent: &Consent) -> Result<Warrant, SignatureError> {
        self.word(&consent_message(consent))
    }

    /// The certificate's word for the result of an audit, as it is written.
    ///
    /// # Errors
    /// [`SignatureError`] where the key cannot sign.
    pub fn vouch(&self, result: &[u8]) -> Result<Warrant, SignatureError> {
        self.word(&[AUDIT, result].concat())
    }

    fn word(&self, message: &[u8]) -> Result<Warrant, SignatureError> {
        let signed = self.sign_bytes(message)?;
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
pub fn has_approved(certificate: &CertificateFingerprint, approved: &SignedApproval) -> bool {
    holds(certificate, &approved.word, &message(&approved.approval))
}

/// Whether the holder of this certificate has signed the consent.
#[must_use]
pub fn has_agreed(certificate: &CertificateFingerprint, consent: &Consent, word: &Warrant) -> bool {
    holds(certificate, word, &consent_message(consent))
}

/// Whether the holder of this certificate has signed the result of an audit.
#[must_use]
pub fn has_vouched(certificate: &CertificateFingerprint, result: &[u8], word: &Warrant) -> bool {
    holds(certificate, word, &[AUDIT, result].concat())
}

fn holds(certificate: &CertificateFingerprint, word: &Warrant, message: &[u8]) -> bool {
    let Some(first) = word.chain.first() else {
        return false;
    };
    let signed = Signed {
        chain: word.chain.clone(),
        scheme: word.scheme,
        signature: word.signature.clone(),
    };
    let certified = CertificateDer::from(first.as_slice());
    Identity::fingerprint(first) == *certificate && verifies(&certified, &signed, message)
}

/// The bytes that are signed of an approval.
fn message(approval: &Approval) -> Vec<u8> {
    let Approval {
        study,
        digest,
        commitment,
        patients_at_most,
        approved,
    } = approval;
    let mut bytes = texts(PURPOSE, [study, digest, commitment]);
    bytes.extend(patients_at_most.to_be_bytes());
    bytes.extend(approved.0.to_be_bytes());
    bytes
}

/// The bytes that are signed of a consent.
fn consent_message(consent: &Consent) -> Vec<u8> {
    let Consent {
        study,
        digest,
        hospital,
        agreed,
    } = consent;
    let mut bytes = texts(CONSENT, [study, digest, hospital]);
    bytes.extend(agreed.0.to_be_bytes());
    bytes
}

/// The purpose, then each text after its length.
fn texts(purpose: &[u8], texts: [&String; 3]) -> Vec<u8> {
    let mut bytes = purpose.to_vec();
    for text in texts {
        bytes.extend((text.len() as u64).to_be_bytes());
        bytes.extend(text.as_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::certificates::{Role, Validity, init, issue};
    use protocol::time::Timestamp;

    #[test]
    fn a_consent_holds_for_its_words_and_its_certificate_alone() {
        let home = tempfile::tempdir().unwrap();
        init(home.path(), Validity::days(10)).unwrap();
        let party = |name| issue(home.path(), &Role::Site, name, Validity::days(5)).unwrap();
        let (north, south) = (party("north"), party("south"));
        let consent = Consent {
            study: "heart".to_owned(),
            digest: "a".repeat(64),
            hospital: "north".to_owned(),
            agreed: Timestamp(1),
        };
        let word = Signer::load(&north).unwrap().agree(&consent).unwrap();
        let (own, other) = (fingerprint(&north).unwrap(), fingerprint(&south).unwrap());
        assert!(has_agreed(&own, &consent, &word));
        assert!(!has_agreed(&other, &consent, &word));
        let digest = "b".repeat(64);
        assert!(!has_agreed(
            &own,
            &Consent {
                digest,
                ..consent.clone()
            },
            &word
        ));
        let hospital = "south".to_owned();
        assert!(!has_agreed(
            &own,
            &Consent {
                hospital,
                ..consent
            },
            &word
        ));
    }

    #[test]
    fn an_approval_holds_for_its_words_and_its_certificate_alone() {
        let home = tempfile::tempdir().unwrap();
        init(home.path(), Validity::days(10)).unwrap();
        let party = |name| issue(home.path(), &Role::Site, name, Validity::days(5)).unwrap();
        let (north, south) = (party("north"), party("south"));
        let approval = Approval {
            study: "heart".to_owned(),
            digest: "a".repeat(64),
            commitment: "b".repeat(64),
            patients_at_most: 120,
            approved: Timestamp(1),
        };
        let signed = Signer::load(&north).unwrap().approve(approval).unwrap();
        let (own, other) = (fingerprint(&north).unwrap(), fingerprint(&south).unwrap());
        assert!(has_approved(&own, &signed));
        assert!(!has_approved(&other, &signed));
        let mut more = signed.clone();
        more.approval.patients_at_most = 130;
        assert!(!has_approved(&own, &more));
        // The operator's word for a job is none for a study.
        let word = Signer::load(&north).unwrap().sign("yes", 1, "a").unwrap();
        assert!(!has_approved(&own, &SignedApproval { word, ..signed }));
    }
}
