//! Certificates for keys that the authority never sees: invitations, and the requests that answer them.

use super::authority::{self, Authority, certificate};
use super::invitation::{self, Invitation};
use super::writing::{File, failed, read, write_folder};
use super::{
    AUTHORITY, AUTHORITY_FILE, CERTIFICATE_FILE, CertificateError, Role, Validity, identity,
    params, party, writing,
};
use crate::connection::dial::Address;
use crate::enrolment::{Secret, Token};
use crate::identity::Identity;
use crate::private;
use protocol::study::CertificateFingerprint;
use rcgen::{
    CertificateSigningRequestParams, KeyPair, PKCS_ECDSA_P256_SHA256, PublicKey, PublicKeyData,
    SanType,
};
use rustls_pki_types::{CertificateDer, CertificateSigningRequestDer};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What a party receives.
pub(crate) struct Certified {
    /// Who it is.
    pub(crate) party: String,
    /// Its certificate, PEM.
    pub(crate) certificate: String,
    /// The authority's certificate, PEM.
    pub(crate) authority: String,
}

/// Why no certificate is signed. No text says more than the caller knows.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// Nobody was invited by such a secret.
    #[error("found a token that this authority has not given: ask whoever keeps it for another")]
    Unknown,
    /// The token's certificate has another key.
    #[error(
        "found a token that was used already: if it was not by you, have the certificate revoked; ask for another token"
    )]
    Used,
    /// The token's time is over.
    #[error("found a token that has expired: ask for another")]
    Expired,
    /// The request does not name the party that it has to.
    #[error("found a request for {found}, wanted one for {wanted}")]
    Name {
        /// The party of the request.
        found: String,
        /// The party of the token or of the certificate.
        wanted: String,
    },
    /// The party has got a certificate in another way since.
    #[error("{party} has a certificate already: have it revoked first, or renew it")]
    Taken {
        /// The party.
        party: String,
    },
    /// The request is none, or not signed by its key.
    #[error("found something else than a signing request for a P-256 key with its own signature")]
    Unreadable,
    /// A renewed certificate keeps its key, by which studies know its holder.
    #[error("found a request for another key, wanted one for the key of the certificate")]
    Key,
    /// The certificate that the caller shows is not one to renew.
    #[error("the certificate was revoked, or is not of this authority: ask for a token")]
    Revoked,
    /// The authority's files cannot be used.
    #[error(transparent)]
    Files(#[from] CertificateError),
}

/// A request whose own key has signed it.
pub(super) struct Request {
    pub(super) identity: Identity,
    key: PublicKey,
}

/// A token for a party that has no certificate: good once, until `until`. Of its secret the authority in `folder` keeps a
/// hash.
///
/// # Errors
/// [`CertificateError`], also where that party has a certificate already.
pub fn invite(
    folder: &Path,
    role: &Role,
    name: &str,
    (coordinator, enrolment): (Address, Address),
    until: SystemTime,
) -> Result<Token, CertificateError> {
    let identity = identity(role, name)?;
    writing::check_free(&folder.join(party(&identity)))?;
    let own = certificate(&folder.join(AUTHORITY).join(CERTIFICATE_FILE))?;
    let secret = Secret::new().ok_or(CertificateError::NoRandom)?;
    let until = until.duration_since(UNIX_EPOCH).unwrap_or_default();
    let until = UNIX_EPOCH + Duration::from_secs(until.as_secs());
    let invitation = Invitation {
        path: invitation::place(folder, &secret),
        identity: identity.clone(),
        until,
    };
    invitation.write()?;
    Ok(Token {
        identity,
        coordinator,
        enrolment,
        until,
        authority: Sha256::digest(&own).into(),
        secret,
    })
}

/// A certificate for the key of a request, to whoever has a token's secret.
pub(crate) fn enrol(
    folder: &Path,
    secret: &[u8],
    request: &[u8],
    days: u32,
) -> Result<Certified, RequestError> {
    let secret = Secret::of_bytes(secret).ok_or(RequestError::Unknown)?;
    let authority = Authority::open(folder)?;
    let invitation = Invitation::read(invitation::place(folder, &secret))?;
    let Request { identity, key } = Request::read(request)?;
    if identity != invitation.identity {
        return Err(RequestError::Name {
            found: identity.to_string(),
            wanted: invitation.identity.to_string(),
        });
    }
    let place = folder.join(party(&identity));
    let is_used = invitation.is_used();
    if !is_used && invitation.until < SystemTime::now() {
        return Err(RequestError::Expired);
    }
    let authority_pem = read(&folder.join(AUTHORITY).join(CERTIFICATE_FILE))?;
    let known = place.join(CERTIFICATE_FILE);
    if known.exists() {
        // Whoever asks again for the same key has not heard the answer.
        let is_same = Identity::fingerprint(&certificate(&known)?) == fingerprint(&key);
        return match (is_same, is_used) {
            (true, _) => {
                invitation.mark_used()?;
                Ok(Certified {
                    party: identity.to_string(),
                    certificate: read(&known)?,
                    authority: authority_pem,
                })
            }
            (false, true) => Err(RequestError::Used),
            (false, false) => Err(RequestError::Taken {
                party: identity.to_string(),
            }),
        };
    }
    if is_used {
        return Err(RequestError::Used);
    }
    let issued = authority.issue((&identity, &role(&identity)), Validity::days(days), &key)?;
    let files = [
        File {
            name: CERTIFICATE_FILE,
            content: issued.clone(),
        },
        File {
            name: AUTHORITY_FILE,
            content: authority_pem.clone(),
        },
    ];
    write_folder(&place, &files)?;
    invitation.mark_used()?;
    Ok(Certified {
        party: identity.to_string(),
        certificate: issued,
        authority: authority_pem,
    })
}

/// A certificate anew for the key of the one that the caller has shown in the handshake.
pub(crate) fn renew_shown(
    folder: &Path,
    shown: &CertificateDer<'_>,
    request: &[u8],
    days: u32,
) -> Result<Certified, RequestError> {
    let authority = Authority::open(folder)?;
    let serial = Identity::serial(shown);
    let is_ours = authority::issued(folder)?.contains_key(&serial);
    if !is_ours || authority::revoked(folder)?.contains(&serial) {
        return Err(RequestError::Revoked);
    }
    let holder = Identity::of_certificate(shown).map_err(|_| RequestError::Revoked)?;
    let Request { identity, key } = Request::read(request)?;
    if identity != holder {
        return Err(RequestError::Name {
            found: identity.to_string(),
            wanted: holder.to_string(),
        });
    }
    if Identity::fingerprint(shown) != fingerprint(&key) {
        return Err(RequestError::Key);
    }
    let issued = authority.issue((&identity, &role(&identity)), Validity::days(days), &key)?;
    let known = folder.join(party(&identity)).join(CERTIFICATE_FILE);
    if known.exists() {
        private::replace(&known, issued.as_bytes()).map_err(failed(&known))?;
    }
    Ok(Certified {
        party: identity.to_string(),
        certificate: issued,
        authority: read(&folder.join(AUTHORITY).join(CERTIFICATE_FILE))?,
    })
}

/// A request for a certificate of this party, signed by its key, DER.
pub(crate) fn request(identity: &Identity, key: &KeyPair) -> Result<Vec<u8>, CertificateError> {
    // A request says nothing of when.
    let mut params = params(&identity.to_string(), Validity::days(0));
    let uri = identity.uri().try_into();
    params.subject_alt_names = vec![SanType::URI(uri.map_err(CertificateError::Generation)?)];
    let request = params.serialize_request(key);
    Ok(request
        .map_err(CertificateError::Generation)?
        .der()
        .to_vec())
}

/// The fingerprint of a key, as studies have it.
pub(crate) fn fingerprint(key: &impl PublicKeyData) -> CertificateFingerprint {
    CertificateFingerprint::of(&key.subject_public_key_info())
}

fn role(identity: &Identity) -> Role {
    match identity {
        Identity::Site(_) => Role::Site,
        Identity::Operator(_) => Role::Operator,
        // Without a host none is issued: coordinators are not invited.
        Identity::Coordinator(_) => Role::Coordinator { hosts: Vec::new() },
    }
}

impl Request {
    pub(super) fn read(der: &[u8]) -> Result<Self, RequestError> {
        let read =
            CertificateSigningRequestParams::from_der(&CertificateSigningRequestDer::from(der));
        // rcgen judges the signature by the key, and takes the curve from the signature's kind.
        let read = read.map_err(|_| RequestError::Unreadable)?;
        if read.public_key.algorithm() != &PKCS_ECDSA_P256_SHA256 || !is_p256(der, &read.public_key)
        {
            return Err(RequestError::Unreadable);
        }
        let mut uris = read
            .params
            .subject_alt_names
            .iter()
            .filter_map(|name| match name {
                SanType::URI(uri) => Some(uri.as_str()),
                _ => None,
            });
        let (Some(uri), None) = (uris.next(), uris.next()) else {
            return Err(RequestError::Unreadable);
        };
        let identity = Identity::parse(uri).map_err(|_| RequestError::Unreadable)?;
        Ok(Self {
            identity,
            key: read.public_key,
        })
    }
}

/// Whether the key in the request is written as a P-256 key is.
fn is_p256(der: &[u8], key: &PublicKey) -> bool {
    use x509_parser::certification_request::X509CertificationRequest;
    use x509_parser::prelude::FromDer;
    let parsed = X509CertificationRequest::from_der(der).ok();
    parsed.is_some_and(|(_, request)| {
        let info = request.certification_request_info.subject_pki;
        info.raw == key.subject_public_key_info()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enrolment::hexadecimal;
    use crate::identity::certificates::{init, new_key, renew, revoke};
    use rcgen::{CertificateParams, PKCS_ECDSA_P384_SHA384};
    use std::fs;
    use std::path::PathBuf;

    const DAYS: u32 = 5;

    fn authority() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        init(folder.path(), Validity::days(10)).unwrap();
        folder
    }

    fn invited(folder: &Path, hours: i64) -> Token {
        let place = Address::new("localhost:7443").unwrap();
        let moved = Duration::from_secs(3600 * hours.unsigned_abs());
        let now = SystemTime::now();
        let until = if hours < 0 { now - moved } else { now + moved };
        invite(folder, &Role::Site, "north", (place.clone(), place), until).unwrap()
    }

    fn north() -> Identity {
        Identity::named("site", "north").unwrap()
    }

    fn asked(folder: &Path, token: &Token, key: &KeyPair) -> Result<Certified, RequestError> {
        let request = request(&north(), key).unwrap();
        enrol(folder, token.secret.bytes(), &request, DAYS)
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        let mut all = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => all.extend(files(&path)),
                false => all.push(path),
            }
        }
        all
    }

    #[test]
    fn the_authority_keeps_neither_key_nor_secret() {
        let folder = authority();
        let (token, key) = (invited(folder.path(), 1), new_key().unwrap());
        asked(folder.path(), &token, &key).unwrap();
        let secret = hexadecimal(token.secret.bytes());
        for path in files(folder.path()) {
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            assert!(!text.contains(&secret), "{}", path.display());
            assert!(!path.display().to_string().contains(&secret));
            let is_own = path.ends_with("authority/key.pem");
            assert_eq!(text.contains("PRIVATE KEY"), is_own, "{}", path.display());
        }
    }

    #[test]
    fn a_token_is_good_once_and_again_for_the_same_key() {
        let folder = authority();
        let (token, key) = (invited(folder.path(), 1), new_key().unwrap());
        let first = asked(folder.path(), &token, &key).unwrap().certificate;
        let again = asked(folder.path(), &token, &key).unwrap().certificate;
        assert_eq!(first, again);
        let thief = asked(folder.path(), &token, &new_key().unwrap());
        assert!(matches!(thief, Err(RequestError::Used)));
        // Nor is it good once what it was used for is revoked.
        revoke(folder.path(), &Role::Site, "north").unwrap();
        for key in [key, new_key().unwrap()] {
            let refused = asked(folder.path(), &token, &key);
            assert!(matches!(refused, Err(RequestError::Used)));
        }
    }

    #[test]
    fn a_token_expires_and_one_that_nobody_gave_is_unknown() {
        let folder = authority();
        let key = new_key().unwrap();
        let late = asked(folder.path(), &invited(folder.path(), -1), &key);
        assert!(matches!(late, Err(RequestError::Expired)));
        let other = authority();
        let foreign = asked(folder.path(), &invited(other.path(), 1), &key);
        assert!(matches!(foreign, Err(RequestError::Unknown)));
        let request = request(&north(), &key).unwrap();
        for secret in [&b""[..], b"../../authority/key.pem", &[0; 17]] {
            let refused = enrol(folder.path(), secret, &request, DAYS);
            assert!(matches!(refused, Err(RequestError::Unknown)));
        }
        assert!(!folder.path().join("site-north").exists());
    }

    #[test]
    fn a_request_names_the_party_of_its_token_and_is_signed_by_its_key() {
        let folder = authority();
        let (token, key) = (invited(folder.path(), 1), new_key().unwrap());
        let sent = |request: &[u8]| enrol(folder.path(), token.secret.bytes(), request, DAYS).err();
        for (role, name) in [
            ("site", "south"),
            ("operator", "north"),
            ("coordinator", "north"),
        ] {
            let other = Identity::named(role, name).unwrap();
            let refused = sent(&request(&other, &key).unwrap());
            assert!(matches!(refused, Some(RequestError::Name { .. })));
        }
        let own = request(&north(), &key).unwrap();
        let mut accepted = 0;
        for place in 0..own.len() {
            let mut changed = own.clone();
            changed[place] ^= 1;
            // Bits of the encoding that no signature covers change neither party nor key.
            if let Ok(read) = Request::read(&changed) {
                assert_eq!(read.identity, north(), "byte {place}");
                assert_eq!(fingerprint(&read.key), fingerprint(&key), "byte {place}");
                accepted += 1;
            }
        }
        assert!(accepted <= 2, "{accepted} changes were accepted");
        let large = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap();
        let large = request(&north(), &large).unwrap();
        let nameless = CertificateParams::default().serialize_request(&key);
        for other in [&large[..], nameless.unwrap().der()] {
            assert!(matches!(sent(other), Some(RequestError::Unreadable)));
        }
        assert!(sent(&own).is_none());
    }

    #[test]
    fn a_party_with_a_certificate_is_not_invited_and_its_certificate_is_for_callers_alone() {
        let folder = authority();
        let (first, second) = (invited(folder.path(), 1), invited(folder.path(), 1));
        let key = new_key().unwrap();
        let signed = asked(folder.path(), &first, &key).unwrap().certificate;
        let taken = asked(folder.path(), &second, &new_key().unwrap());
        assert!(matches!(taken, Err(RequestError::Taken { .. })));
        let place = Address::new("localhost:7443").unwrap();
        let places = (place.clone(), place);
        let again = invite(
            folder.path(),
            &Role::Site,
            "north",
            places,
            SystemTime::now(),
        );
        assert!(matches!(again, Err(CertificateError::Exists { .. })));
        // A key that is elsewhere is renewed by its holder alone.
        assert!(renew(folder.path(), &Role::Site, "north", Validity::days(DAYS)).is_err());
        use rustls_pki_types::pem::PemObject;
        let der = CertificateDer::from_pem_slice(signed.as_bytes()).unwrap();
        let request = request(&north(), &key).unwrap();
        let renewed = renew_shown(folder.path(), &der, &request, DAYS).unwrap();
        assert_ne!(renewed.certificate, signed);
        let other = super::request(&north(), &new_key().unwrap()).unwrap();
        let refused = renew_shown(folder.path(), &der, &other, DAYS);
        assert!(matches!(refused, Err(RequestError::Key)));
        revoke(folder.path(), &Role::Site, "north").unwrap();
        let refused = renew_shown(folder.path(), &der, &request, DAYS);
        assert!(matches!(refused, Err(RequestError::Revoked)));
    }
}
