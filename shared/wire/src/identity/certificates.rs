//! A private certificate authority in a folder.
//!
//! `init` makes `authority/`; each `issue` adds one folder, `site-north/` or the like, with
//! `certificate.pem`, `key.pem` and `ca.pem`, mode 0600 in folders of mode 0700. A folder appears whole or not at all and
//! is never written over, and adding one party touches no other's.

mod writing;

use crate::identity::{Identity, Serial};
use crate::private::{self, OpenKey};
use protocol::name::{NameError, OperatorName, SiteName};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, RevokedCertParams, SanType, SerialNumber,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use time::OffsetDateTime;
use writing::{File, read, write_folder};
use x509_parser::prelude::{CertificateRevocationList, FromDer};

const AUTHORITY: &str = "authority";
const CERTIFICATE_FILE: &str = "certificate.pem";
const KEY_FILE: &str = "key.pem";
const AUTHORITY_FILE: &str = "ca.pem";
/// The authority's list of revoked certificates.
const REVOKED_FILE: &str = "revoked.pem";
/// A list says until when it is good; no reader of ours refuses an older one, because none is safer than an old one.
const LIST_VALIDITY: Duration = Duration::from_secs(3_650 * 86_400);
/// Clocks of hospitals differ: a new certificate is valid from an hour ago.
const CLOCK_SKEW: Duration = Duration::from_secs(3600);

/// The party that a certificate is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// A site agent.
    Site,
    /// A person who may submit jobs.
    Operator,
    /// The coordinator, reached by these DNS names and IP addresses.
    Coordinator {
        /// DNS names and IP addresses.
        hosts: Vec<String>,
    },
}

/// From when until when a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// Not before.
    pub from: SystemTime,
    /// Not after.
    pub until: SystemTime,
}

impl Validity {
    /// From now on for so many days.
    #[must_use]
    pub fn days(days: u32) -> Self {
        let now = SystemTime::now();
        Self {
            from: now - CLOCK_SKEW,
            until: now + Duration::from_secs(u64::from(days) * 86_400),
        }
    }
}

/// The three files that let a party speak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialFiles {
    /// The party's certificate, PEM.
    pub certificate: PathBuf,
    /// Its private key, PEM.
    pub key: PathBuf,
    /// The certificate of the authority that everyone trusts, PEM.
    pub authority: PathBuf,
}

impl CredentialFiles {
    /// The three files of a folder that [`issue`] made.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self {
            certificate: folder.join(CERTIFICATE_FILE),
            key: folder.join(KEY_FILE),
            authority: folder.join(AUTHORITY_FILE),
        }
    }
}

/// What went wrong with certificates on disk.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The folder is there already.
    #[error("found {}, wanted no such folder: certificates are never written over", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// A file or folder could not be read or written.
    #[error("could not read or write {}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others may read the authority's key.
    #[error(transparent)]
    OpenKey(#[from] OpenKey),
    /// The name is not one.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A coordinator's host is neither a DNS name nor an IP address.
    #[error("found the host {found:?}, wanted DNS names and IP addresses, at least one")]
    Host {
        /// The host.
        found: String,
    },
    /// A file is not what it should be.
    #[error("found something else in {}, wanted what this program wrote there", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
    },
    /// A certificate could not be made, or the authority's could not be read.
    #[error("could not make a certificate")]
    Generation(#[source] rcgen::Error),
}

/// Makes a certificate authority in `folder`/authority.
///
/// # Errors
/// [`CertificateError`], also where there is an authority already.
pub fn init(folder: &Path, validity: Validity) -> Result<(), CertificateError> {
    let key = new_key()?;
    // The name is the authority's own: who meets two authorities must be able to tell them apart.
    let own: String = key
        .public_key_raw()
        .iter()
        .skip(1)
        .take(8)
        .fold(String::new(), |own, byte| own + &format!("{byte:02x}"));
    let mut params = params(&format!("Kindred certificate authority {own}"), validity);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = params
        .self_signed(&key)
        .map_err(CertificateError::Generation)?;
    let (certificate, key_pem) = (certificate.pem(), key.serialize_pem());
    let issuer =
        Issuer::from_ca_cert_pem(&certificate, key).map_err(CertificateError::Generation)?;
    let files = [
        File {
            name: CERTIFICATE_FILE,
            content: certificate,
        },
        File {
            name: KEY_FILE,
            content: key_pem,
        },
        // Empty at first, so that a configuration may name it from the beginning.
        File {
            name: REVOKED_FILE,
            content: revoking(&issuer, BTreeSet::new())?,
        },
    ];
    write_folder(&folder.join(AUTHORITY), &files)
}

/// Until when the certificate of a file is valid.
///
/// # Errors
/// [`CertificateError`].
pub fn valid_until(path: &Path) -> Result<SystemTime, CertificateError> {
    Ok(Identity::validity(&certificate(path)?).end)
}

/// Issues a certificate by the authority in `folder` and writes it to `folder`/role-name. None outlives its authority: one
/// that would ends with it.
///
/// # Errors
/// [`CertificateError`], also where that party has a certificate already.
pub fn issue(
    folder: &Path,
    role: &Role,
    name: &str,
    validity: Validity,
) -> Result<CredentialFiles, CertificateError> {
    let identity = identity(role, name)?;
    let authority_pem = read(&folder.join(AUTHORITY).join(CERTIFICATE_FILE))?;
    let key = new_key()?;
    let files = [
        File {
            name: CERTIFICATE_FILE,
            content: certified(folder, (&identity, role), validity, &key)?,
        },
        File {
            name: KEY_FILE,
            content: key.serialize_pem(),
        },
        File {
            name: AUTHORITY_FILE,
            content: authority_pem,
        },
    ];
    let party = folder.join(format!("{}-{name}", identity.role()));
    write_folder(&party, &files)?;
    Ok(CredentialFiles::in_folder(&party))
}

/// Issues a party's certificate anew for the key that it has, so that studies know it still, and puts it in the old one's place.
///
/// # Errors
/// [`CertificateError`], also where that party has no certificate.
pub fn renew(
    folder: &Path,
    role: &Role,
    name: &str,
    validity: Validity,
) -> Result<CredentialFiles, CertificateError> {
    let identity = identity(role, name)?;
    let files = CredentialFiles::in_folder(&folder.join(format!("{}-{name}", identity.role())));
    private::check_key(&files.key)?;
    let key = KeyPair::from_pem(&read(&files.key)?).map_err(CertificateError::Generation)?;
    let known;
    let role = match role {
        Role::Site | Role::Operator => role,
        Role::Coordinator { hosts } if !hosts.is_empty() => role,
        Role::Coordinator { .. } => {
            let hosts = Identity::hosts(&certificate(&files.certificate)?);
            known = Role::Coordinator { hosts };
            &known
        }
    };
    let renewed = certified(folder, (&identity, role), validity, &key)?;
    private::replace(&files.certificate, renewed.as_bytes()).map_err(|source| {
        CertificateError::File {
            path: files.certificate.clone(),
            source,
        }
    })?;
    Ok(files)
}

/// A certificate that an authority has issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issued {
    /// The party, as `site-north`; `authority` itself is one.
    pub party: String,
    /// Until when it is valid.
    pub until: SystemTime,
    /// Whether the authority has revoked it.
    pub is_revoked: bool,
}

/// All certificates in the folder of an authority, by party.
///
/// # Errors
/// [`CertificateError`].
pub fn list(folder: &Path) -> Result<Vec<Issued>, CertificateError> {
    let failed = |source| CertificateError::File {
        path: folder.to_owned(),
        source,
    };
    let revoked = revoked(folder)?;
    let mut issued = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path().join(CERTIFICATE_FILE);
        if !path.is_file() {
            continue;
        }
        let certificate = certificate(&path)?;
        issued.push(Issued {
            party: entry.file_name().to_string_lossy().into_owned(),
            until: Identity::validity(&certificate).end,
            is_revoked: revoked.contains(&Identity::serial(&certificate)),
        });
    }
    issued.sort_by(|one, other| one.party.cmp(&other.party));
    Ok(issued)
}

/// Revokes the certificate that the authority in `folder` issued to a party, and writes the authority's list of revoked
/// certificates anew; gives its path. The party's folder is renamed, so that another certificate can be issued.
///
/// # Errors
/// [`CertificateError`], also where that party has no certificate.
pub fn revoke(folder: &Path, role: &Role, name: &str) -> Result<PathBuf, CertificateError> {
    let identity = identity(role, name)?;
    let party = folder.join(format!("{}-{name}", identity.role()));
    let serial = Identity::serial(&certificate(&party.join(CERTIFICATE_FILE))?);
    let list = folder.join(AUTHORITY).join(REVOKED_FILE);
    let mut serials = revoked(folder)?;
    serials.insert(serial.clone());
    let signed = revoking(&issuer(folder)?, serials)?;
    private::replace(&list, signed.as_bytes()).map_err(|source| CertificateError::File {
        path: list.clone(),
        source,
    })?;
    let number: String = serial
        .iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let kept = folder.join(format!("{}-{name}.revoked-{number}", identity.role()));
    fs::rename(&party, &kept).map_err(|source| CertificateError::File {
        path: party,
        source,
    })?;
    Ok(list)
}

/// The numbers of the certificates that the authority in `folder` has revoked.
fn revoked(folder: &Path) -> Result<BTreeSet<Serial>, CertificateError> {
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
fn revoking(
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

/// A certificate by the authority in `folder`, PEM. None outlives its authority: one that would ends with it.
fn certified(
    folder: &Path,
    (identity, role): (&Identity, &Role),
    validity: Validity,
    key: &KeyPair,
) -> Result<String, CertificateError> {
    let end = valid_until(&folder.join(AUTHORITY).join(CERTIFICATE_FILE))?;
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
    let certificate = params.signed_by(key, &issuer(folder)?);
    Ok(certificate.map_err(CertificateError::Generation)?.pem())
}

fn certificate(path: &Path) -> Result<CertificateDer<'static>, CertificateError> {
    let found = CertificateDer::from_pem_slice(read(path)?.as_bytes());
    found.map_err(|_| CertificateError::Unreadable {
        path: path.to_owned(),
    })
}

/// The numbers of the certificates that a list revokes; none where it cannot be read.
pub(crate) fn revoked_serials(list: &CertificateRevocationListDer<'_>) -> Option<BTreeSet<Serial>> {
    let (_, list) = CertificateRevocationList::from_der(list).ok()?;
    let serials = list.iter_revoked_certificates();
    Some(serials.map(|one| one.raw_serial().to_vec()).collect())
}

fn issuer(folder: &Path) -> Result<Issuer<'static, KeyPair>, CertificateError> {
    let authority = folder.join(AUTHORITY);
    private::check_key(&authority.join(KEY_FILE))?;
    let key = KeyPair::from_pem(&read(&authority.join(KEY_FILE))?)
        .map_err(CertificateError::Generation)?;
    Issuer::from_ca_cert_pem(&read(&authority.join(CERTIFICATE_FILE))?, key)
        .map_err(CertificateError::Generation)
}

fn identity(role: &Role, name: &str) -> Result<Identity, NameError> {
    Ok(match role {
        Role::Site => Identity::Site(SiteName::new(name)?),
        Role::Operator => Identity::Operator(OperatorName::new(name)?),
        Role::Coordinator { .. } => Identity::Coordinator(SiteName::new(name)?),
    })
}

fn new_key() -> Result<KeyPair, CertificateError> {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(CertificateError::Generation)
}

fn params(common_name: &str, validity: Validity) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.not_before = OffsetDateTime::from(validity.from);
    params.not_after = OffsetDateTime::from(validity.until);
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    params
}

fn alternative_names(identity: &Identity, role: &Role) -> Result<Vec<SanType>, CertificateError> {
    let uri = identity
        .uri()
        .try_into()
        .map_err(CertificateError::Generation)?;
    let mut names = vec![SanType::URI(uri)];
    let Role::Coordinator { hosts } = role else {
        return Ok(names);
    };
    if hosts.is_empty() {
        return Err(CertificateError::Host {
            found: String::new(),
        });
    }
    for host in hosts {
        let refused = || CertificateError::Host {
            found: host.clone(),
        };
        names.push(match host.parse::<IpAddr>() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => {
                rustls_pki_types::DnsName::try_from(host.as_str()).map_err(|_| refused())?;
                SanType::DnsName(host.clone().try_into().map_err(|_| refused())?)
            }
        });
    }
    Ok(names)
}
