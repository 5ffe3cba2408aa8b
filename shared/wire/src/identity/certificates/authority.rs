//! The authority of a folder: what it signs, keeps and revokes.
//!
//! A certificate's number follows from its key, so a revoked number stands for the key and all of its certificates. The
//! authority keeps the newest of each key before its holder has it, in `authority/issued/NUMBER.pem`, wherever a party's
//! folder goes, and revokes a party with all of its keys.

use super::writing::{failed, read};
use super::{
    AUTHORITY, CERTIFICATE_FILE, CertificateError, KEY_FILE, REVOKED_FILE, Role, Validity,
    alternative_names, params,
};
use crate::enrolment::hexadecimal;
use crate::identity::{Identity, Serial};
use crate::private;
use rcgen::{
    CertificateRevocationListParams, ExtendedKeyUsagePurpose, Issuer, KeyIdMethod, KeyPair,
    KeyUsagePurpose, PublicKeyData, RevokedCertParams, SerialNumber,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use time::OffsetDateTime;
use x509_parser::prelude::{CertificateRevocationList, FromDer};

/// The folder of all certificates that an authority has issued.
const ISSUED: &str = "issued";
/// A list says until when it is good; no reader of ours refuses an older one, because none is safer than an old one.
const LIST_VALIDITY: Duration = Duration::from_secs(3_650 * 86_400);

/// An authority that can sign.
pub(super) struct Authority {
    /// The folder of the authority and of all parties.
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
    /// The lock of the key's file: one program signs at a time, so a revocation knows of all that was issued.
    _lock: fs::File,
}

impl Authority {
    /// Reads the authority in `folder`, and waits while another program signs by it.
    pub(super) fn open(folder: &Path) -> Result<Self, CertificateError> {
        let authority = folder.join(AUTHORITY);
        let key = authority.join(KEY_FILE);
        private::check_key(&key)?;
        let lock = fs::File::open(&key).map_err(failed(&key))?;
        lock.lock().map_err(failed(&key))?;
        let key = KeyPair::from_pem(&read(&key)?).map_err(CertificateError::Generation)?;
        let issuer = Issuer::from_ca_cert_pem(&read(&authority.join(CERTIFICATE_FILE))?, key);
        Ok(Self {
            folder: folder.to_owned(),
            issuer: issuer.map_err(CertificateError::Generation)?,
            _lock: lock,
        })
    }

    /// A certificate for this key, PEM, which is kept. None outlives its authority: one that would ends with it.
    pub(super) fn issue(
        &self,
        (identity, role): (&Identity, &Role),
        validity: Validity,
        key: &impl PublicKeyData,
    ) -> Result<String, CertificateError> {
        let own = self.folder.join(AUTHORITY).join(CERTIFICATE_FILE);
        let end = Identity::validity(&certificate(&own)?).end;
        let validity = Validity {
            until: validity.until.min(end),
            ..validity
        };
        let mut params = params(&identity.to_string(), validity);
        params.subject_alt_names = alternative_names(identity, role)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![match role {
            Role::Site | Role::Operator => ExtendedKeyUsagePurpose::ClientAuth,
            Role::Coordinator { .. } => ExtendedKeyUsagePurpose::ServerAuth,
        }];
        params.use_authority_key_identifier_extension = true;
        params.serial_number = Some(number_of(key));
        let signed = params.signed_by(key, &self.issuer);
        let signed = signed.map_err(CertificateError::Generation)?;
        self.keep(signed.der(), &signed.pem())?;
        Ok(signed.pem())
    }

    fn keep(&self, found: &CertificateDer<'_>, text: &str) -> Result<(), CertificateError> {
        let issued = self.folder.join(AUTHORITY).join(ISSUED);
        private::folder(&issued).map_err(failed(&issued))?;
        let path = issued.join(format!("{}.pem", hexadecimal(&Identity::serial(found))));
        private::replace(&path, text.as_bytes()).map_err(failed(&path))
    }

    /// Revokes all certificates of a party, and writes the list of revoked ones anew; gives its path.
    pub(super) fn revoke(&self, identity: &Identity) -> Result<PathBuf, CertificateError> {
        let mut serials = revoked(&self.folder)?;
        let before = serials.len();
        let of_party = issued(&self.folder)?.into_iter();
        let of_party =
            of_party.filter(|(_, one)| Identity::of_certificate(one).as_ref() == Ok(identity));
        serials.extend(of_party.map(|(serial, _)| serial));
        if serials.len() == before {
            return Err(CertificateError::Absent {
                party: identity.to_string(),
            });
        }
        let list = self.folder.join(AUTHORITY).join(REVOKED_FILE);
        let signed = revoking(&self.issuer, serials)?;
        private::replace(&list, signed.as_bytes()).map_err(failed(&list))?;
        Ok(list)
    }
}

/// The number of all certificates of a key: whoever revokes one of them revokes the key, renewed ones too.
fn number_of(key: &impl PublicKeyData) -> SerialNumber {
    const LENGTH_MAX: usize = 20; // RFC 5280, section 4.1.2.2
    let mut number = Sha256::digest(key.der_bytes())[..LENGTH_MAX].to_vec();
    number[0] &= 0x7f; // and positive
    SerialNumber::from(number)
}

/// All certificates of sites, operators and coordinators that the authority in `folder` has issued, by number. An earlier
/// version kept them in the parties' folders alone.
pub(super) fn issued(
    folder: &Path,
) -> Result<BTreeMap<Serial, CertificateDer<'static>>, CertificateError> {
    let kept = folder.join(AUTHORITY).join(ISSUED);
    let mut files: Vec<PathBuf> = entries(folder)?;
    files
        .iter_mut()
        .for_each(|path| path.push(CERTIFICATE_FILE));
    if kept.is_dir() {
        files.extend(entries(&kept)?);
    }
    let authority = folder.join(AUTHORITY).join(CERTIFICATE_FILE);
    files.retain(|path| path.is_file() && *path != authority);
    let mut issued = BTreeMap::new();
    for path in files {
        let found = certificate(&path)?;
        issued.insert(Identity::serial(&found), found);
    }
    Ok(issued)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, CertificateError> {
    let entries = fs::read_dir(folder).map_err(failed(folder))?;
    let paths = entries.map(|entry| Ok(entry.map_err(failed(folder))?.path()));
    paths.collect()
}

/// The numbers of the certificates that the authority in `folder` has revoked.
pub(super) fn revoked(folder: &Path) -> Result<BTreeSet<Serial>, CertificateError> {
    let list = folder.join(AUTHORITY).join(REVOKED_FILE);
    // An authority of an earlier version has none before it revokes.
    if !list.exists() {
        return Ok(BTreeSet::new());
    }
    let text = read(&list)?;
    let signed = CertificateRevocationListDer::from_pem_slice(text.as_bytes()).ok();
    let serials = signed.as_ref().and_then(revoked_serials);
    serials.ok_or(CertificateError::Unreadable { path: list })
}

/// The list of revoked certificates of these numbers, PEM.
pub(super) fn revoking(
    issuer: &Issuer<'_, KeyPair>,
    serials: BTreeSet<Serial>,
) -> Result<String, CertificateError> {
    let now = OffsetDateTime::now_utc();
    let one = |serial: Serial| RevokedCertParams {
        serial_number: SerialNumber::from(serial),
        revocation_time: now,
        reason_code: None,
        invalidity_date: None,
    };
    let params = CertificateRevocationListParams {
        this_update: now,
        next_update: now + LIST_VALIDITY,
        crl_number: SerialNumber::from(now.unix_timestamp().unsigned_abs()),
        issuing_distribution_point: None,
        revoked_certs: serials.into_iter().map(one).collect(),
        key_identifier_method: KeyIdMethod::Sha256,
    };
    let signed = params.signed_by(issuer).and_then(|list| list.pem());
    signed.map_err(CertificateError::Generation)
}

/// The numbers of the certificates that a list revokes; none where it cannot be read.
pub(crate) fn revoked_serials(list: &CertificateRevocationListDer<'_>) -> Option<BTreeSet<Serial>> {
    let (_, list) = CertificateRevocationList::from_der(list).ok()?;
    let serials = list.iter_revoked_certificates();
    Some(serials.map(|one| one.raw_serial().to_vec()).collect())
}

/// The certificate of a file.
pub(super) fn certificate(path: &Path) -> Result<CertificateDer<'static>, CertificateError> {
    let found = CertificateDer::from_pem_slice(read(path)?.as_bytes());
    found.map_err(|_| CertificateError::Unreadable {
        path: path.to_owned(),
    })
}
