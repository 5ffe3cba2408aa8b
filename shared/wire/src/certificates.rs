//! A private certificate authority in a folder.
//!
//! `init` makes `authority/`; each `issue` adds one folder, `site-north/` or the like, with
//! `certificate.pem`, `key.pem` (mode 0600) and `ca.pem`. A folder appears whole or not at all and
//! is never written over, and adding one party touches no other's.

use crate::identity::Identity;
use protocol::name::{NameError, OperatorName, SiteName};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType,
};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use time::OffsetDateTime;

const AUTHORITY: &str = "authority";
const CERTIFICATE_FILE: &str = "certificate.pem";
const KEY_FILE: &str = "key.pem";
const AUTHORITY_FILE: &str = "ca.pem";
/// Clocks of hospitals differ: a new certificate is valid from an hour ago.
const CLOCK_SKEW: Duration = Duration::from_secs(3600);

/// Whom a certificate is for.
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
    /// The name is not one.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A coordinator's host is neither a DNS name nor an IP address.
    #[error("found the host {found:?}, wanted DNS names and IP addresses, at least one")]
    Host {
        /// The host.
        found: String,
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
    let key = key.serialize_pem();
    let files = [
        File {
            name: CERTIFICATE_FILE,
            content: certificate.pem(),
            is_secret: false,
        },
        File {
            name: KEY_FILE,
            content: key,
            is_secret: true,
        },
    ];
    write_folder(&folder.join(AUTHORITY), &files)
}

/// Issues a certificate by the authority in `folder` and writes it to `folder`/role-name.
///
/// # Errors
/// [`CertificateError`], also where that party has a certificate already.
pub fn issue(
    folder: &Path,
    role: &Role,
    name: &str,
    validity: Validity,
) -> Result<CredentialFiles, CertificateError> {
    let identity = match role {
        Role::Site => Identity::Site(SiteName::new(name)?),
        Role::Operator => Identity::Operator(OperatorName::new(name)?),
        Role::Coordinator { .. } => Identity::Coordinator(SiteName::new(name)?),
    };
    let authority = folder.join(AUTHORITY);
    let authority_pem = read(&authority.join(CERTIFICATE_FILE))?;
    let authority_key = KeyPair::from_pem(&read(&authority.join(KEY_FILE))?)
        .map_err(CertificateError::Generation)?;
    let issuer = Issuer::from_ca_cert_pem(&authority_pem, authority_key)
        .map_err(CertificateError::Generation)?;

    let mut params = params(&identity.to_string(), validity);
    params.subject_alt_names = alternative_names(&identity, role)?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![match role {
        Role::Site | Role::Operator => ExtendedKeyUsagePurpose::ClientAuth,
        Role::Coordinator { .. } => ExtendedKeyUsagePurpose::ServerAuth,
    }];
    params.use_authority_key_identifier_extension = true;
    let key = new_key()?;
    let certificate = params
        .signed_by(&key, &issuer)
        .map_err(CertificateError::Generation)?;

    let files = [
        File {
            name: CERTIFICATE_FILE,
            content: certificate.pem(),
            is_secret: false,
        },
        File {
            name: KEY_FILE,
            content: key.serialize_pem(),
            is_secret: true,
        },
        File {
            name: AUTHORITY_FILE,
            content: authority_pem,
            is_secret: false,
        },
    ];
    let party = folder.join(format!("{}-{name}", identity.role()));
    write_folder(&party, &files)?;
    Ok(CredentialFiles::in_folder(&party))
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

struct File {
    name: &'static str,
    content: String,
    is_secret: bool,
}

/// Writes a folder beside its place, then renames it: it appears whole or not at all.
fn write_folder(folder: &Path, files: &[File]) -> Result<(), CertificateError> {
    if folder.exists() {
        return Err(CertificateError::Exists {
            path: folder.to_owned(),
        });
    }
    let beside = folder.with_extension(format!("{}.partial", std::process::id()));
    let written = write_files(&beside, files).and_then(|()| {
        // Renaming onto a folder that holds something fails: nothing is ever written over.
        fs::rename(&beside, folder).map_err(|source| match source.kind() {
            io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists => {
                CertificateError::Exists {
                    path: folder.to_owned(),
                }
            }
            _ => CertificateError::File {
                path: folder.to_owned(),
                source,
            },
        })
    });
    if written.is_err() {
        // Whatever failed is the error to tell; a leftover folder is only untidy.
        let _ = fs::remove_dir_all(&beside);
    }
    written
}

fn write_files(folder: &Path, files: &[File]) -> Result<(), CertificateError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| CertificateError::File { path, source }
    };
    fs::create_dir_all(folder).map_err(failed(folder))?;
    for file in files {
        let path = folder.join(file.name);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(
            &mut options,
            if file.is_secret { 0o600 } else { 0o644 },
        );
        let mut handle = options.open(&path).map_err(failed(&path))?;
        handle
            .write_all(file.content.as_bytes())
            .map_err(failed(&path))?;
        handle.sync_all().map_err(failed(&path))?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, CertificateError> {
    fs::read_to_string(path).map_err(|source| CertificateError::File {
        path: path.to_owned(),
        source,
    })
}
