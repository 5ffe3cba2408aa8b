//! A private certificate authority in a folder.
//!
//! `init` makes `authority/`; each `issue` adds one folder, `site-north/` or the like, with
//! `certificate.pem`, `key.pem` and `ca.pem`, mode 0600 in folders of mode 0700. A folder appears whole or not at all and
//! is never written over, and adding one party touches no other's.

mod authority;
mod invitation;
mod requests;
mod writing;

use crate::enrolment::hexadecimal;
use crate::identity::Identity;
use crate::private::{self, OpenKey};
pub(crate) use authority::revoked_serials;
use authority::{Authority, certificate};
use protocol::name::{NameError, OperatorName, SiteName};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, SanType,
};
pub use requests::invite;
pub(crate) use requests::{Certified, RequestError, enrol, fingerprint, renew_shown, request};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use time::OffsetDateTime;
use writing::{File, failed, read, write_folder};

/// What the name of each authority begins with.
pub const AUTHORITY_NAME: &str = "Kindred certificate authority";
const AUTHORITY: &str = "authority";
const CERTIFICATE_FILE: &str = "certificate.pem";
const KEY_FILE: &str = "key.pem";
const AUTHORITY_FILE: &str = "ca.pem";
/// The authority's list of revoked certificates.
const REVOKED_FILE: &str = "revoked.pem";
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
    /// The party has no certificate, or none that is not revoked.
    #[error("found no valid certificate of {party}, wanted one")]
    Absent {
        /// The party.
        party: String,
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
    /// The system gives no random numbers.
    #[error("the system has no random numbers")]
    NoRandom,
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
    let mut params = params(&format!("{AUTHORITY_NAME} {own}"), validity);
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
            content: authority::revoking(&issuer, BTreeSet::new())?,
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

/// The DNS names and IP addresses that the certificate of a file is for.
///
/// # Errors
/// [`CertificateError`].
pub fn hosts(path: &Path) -> Result<Vec<String>, CertificateError> {
    Ok(Identity::hosts(&certificate(path)?))
}

/// The party that a signing request, DER, asks for; none where nobody would sign it.
#[must_use]
pub fn requested(request: &[u8]) -> Option<Identity> {
    let read = requests::Request::read(request).ok();
    read.map(|request| request.identity)
}

/// Whether the authority in `folder` can sign here.
///
/// # Errors
/// [`CertificateError`] says why not.
pub fn check_authority(folder: &Path) -> Result<(), CertificateError> {
    Authority::open(folder).map(|_| ())
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
    let place = folder.join(party(&identity));
    writing::check_free(&place)?;
    let authority_pem = read(&folder.join(AUTHORITY).join(CERTIFICATE_FILE))?;
    let key = new_key()?;
    let files = [
        File {
            name: CERTIFICATE_FILE,
            content: Authority::open(folder)?.issue((&identity, role), validity, &key)?,
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
    write_folder(&place, &files)?;
    Ok(CredentialFiles::in_folder(&place))
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
    let files = CredentialFiles::in_folder(&folder.join(party(&identity)));
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
    let authority = Authority::open(folder)?;
    let renewed = authority.issue((&identity, role), validity, &key)?;
    let path = &files.certificate;
    private::replace(path, renewed.as_bytes()).map_err(failed(path))?;
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
    let revoked = authority::revoked(folder)?;
    let own = certificate(&folder.join(AUTHORITY).join(CERTIFICATE_FILE))?;
    let mut all = vec![Issued {
        party: AUTHORITY.to_owned(),
        until: Identity::validity(&own).end,
        is_revoked: false,
    }];
    for (serial, certificate) in authority::issued(folder)? {
        if let Ok(identity) = Identity::of_certificate(&certificate) {
            all.push(Issued {
                party: party(&identity),
                until: Identity::validity(&certificate).end,
                is_revoked: revoked.contains(&serial),
            });
        }
    }
    all.sort_by(|one, other| (&one.party, one.until).cmp(&(&other.party, other.until)));
    Ok(all)
}

/// Revokes all keys that the authority in `folder` has certified for a party, and writes its list of
/// revoked certificates anew; gives its path. The party's folder is renamed, so that another certificate can be issued.
///
/// # Errors
/// [`CertificateError`], also where that party has no certificate.
pub fn revoke(folder: &Path, role: &Role, name: &str) -> Result<PathBuf, CertificateError> {
    let party = folder.join(party(&identity(role, name)?));
    let list = Authority::open(folder)?.revoke(&identity(role, name)?)?;
    // A party whose folder was moved elsewhere is revoked all the same.
    if let Ok(certificate) = certificate(&party.join(CERTIFICATE_FILE)) {
        let number = hexadecimal(&Identity::serial(&certificate));
        let number: String = number.chars().take(8).collect();
        let kept = party.with_extension(format!("revoked-{number}"));
        fs::rename(&party, &kept).map_err(failed(&party))?;
    }
    Ok(list)
}

fn identity(role: &Role, name: &str) -> Result<Identity, NameError> {
    Ok(match role {
        Role::Site => Identity::Site(SiteName::new(name)?),
        Role::Operator => Identity::Operator(OperatorName::new(name)?),
        Role::Coordinator { .. } => Identity::Coordinator(SiteName::new(name)?),
    })
}

/// The authority's certificate in `folder`, and its list of revoked ones.
pub(crate) fn authority_files(folder: &Path) -> (PathBuf, PathBuf) {
    let authority = folder.join(AUTHORITY);
    (
        authority.join(CERTIFICATE_FILE),
        authority.join(REVOKED_FILE),
    )
}

/// What a party's folder is called.
fn party(identity: &Identity) -> String {
    identity.to_string().replace('/', "-")
}

pub(crate) fn new_key() -> Result<KeyPair, CertificateError> {
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
