//! Who a certificate says its owner is, and all that is done with certificates and keys.

pub(crate) mod approval;
pub mod certificates;
pub(crate) mod credentials;
pub(crate) mod keys;
pub(crate) mod pairs;
pub(crate) mod secrets;
pub(crate) mod tls;
pub(crate) mod warrant;

use protocol::name::{NameError, OperatorName, SiteName};
use protocol::study::CertificateFingerprint;
use rustls_pki_types::CertificateDer;
use std::fmt;
use std::net::IpAddr;
use std::ops::Range;
use std::time::{Duration, SystemTime};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{ASN1Time, FromDer, X509Certificate};

/// The number that an authority gave a certificate.
pub(crate) type Serial = Vec<u8>;

/// Scheme of the URI that carries the identity.
const SCHEME: &str = "kindred://";

/// The owner of a certificate, from its one `kindred://role/name` URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// A site agent.
    Site(SiteName),
    /// A person who may submit jobs.
    Operator(OperatorName),
    /// A coordinator, by its name.
    Coordinator(SiteName),
}

impl Identity {
    /// The URI that carries this identity in a certificate.
    #[must_use]
    pub fn uri(&self) -> String {
        format!("{SCHEME}{self}")
    }

    /// What the owner of a certificate is, in one word.
    #[must_use]
    pub fn role(&self) -> &'static str {
        match self {
            Self::Site(_) => "site",
            Self::Operator(_) => "operator",
            Self::Coordinator(_) => "coordinator",
        }
    }

    fn parse(uri: &str) -> Result<Self, IdentityError> {
        let unknown = || IdentityError::Unknown {
            found: uri.chars().take(100).collect(),
        };
        let path = uri.strip_prefix(SCHEME).ok_or_else(unknown)?;
        let (role, name) = path.split_once('/').ok_or_else(unknown)?;
        Self::named(role, name).map_err(|error| match error {
            IdentityError::Unknown { .. } => unknown(),
            error => error,
        })
    }

    /// The party of this role and name.
    pub(crate) fn named(role: &str, name: &str) -> Result<Self, IdentityError> {
        Ok(match role {
            "site" => Self::Site(SiteName::new(name)?),
            "operator" => Self::Operator(OperatorName::new(name)?),
            "coordinator" => Self::Coordinator(SiteName::new(name)?),
            _ => {
                let found = role.chars().take(100).collect();
                return Err(IdentityError::Unknown { found });
            }
        })
    }

    /// The number that an authority gave a certificate; empty where it cannot be read.
    pub(crate) fn serial(certificate: &CertificateDer<'_>) -> Serial {
        let parsed = X509Certificate::from_der(certificate).ok();
        parsed.map_or_else(Vec::new, |(_, certificate)| {
            certificate.raw_serial().to_vec()
        })
    }

    /// The fingerprint of a certificate's key, DER; of something else, that of its bytes.
    pub(crate) fn fingerprint(certificate: &[u8]) -> CertificateFingerprint {
        match X509Certificate::from_der(certificate) {
            Ok((_, parsed)) => CertificateFingerprint::of(parsed.public_key().raw),
            Err(_) => CertificateFingerprint::of(certificate),
        }
    }

    /// The DNS names and IP addresses that a certificate is for.
    pub(crate) fn hosts(certificate: &CertificateDer<'_>) -> Vec<String> {
        let Ok((_, parsed)) = X509Certificate::from_der(certificate) else {
            return Vec::new();
        };
        let names = parsed.subject_alternative_name().ok().flatten();
        let names = names
            .into_iter()
            .flat_map(|names| &names.value.general_names);
        let host = |name: &GeneralName<'_>| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            GeneralName::IPAddress(bytes) => match <[u8; 4]>::try_from(*bytes) {
                Ok(four) => Some(IpAddr::from(four).to_string()),
                Err(_) => Some(IpAddr::from(<[u8; 16]>::try_from(*bytes).ok()?).to_string()),
            },
            GeneralName::OtherName(..)
            | GeneralName::RFC822Name(_)
            | GeneralName::X400Address(_)
            | GeneralName::DirectoryName(_)
            | GeneralName::EDIPartyName(_)
            | GeneralName::URI(_)
            | GeneralName::RegisteredID(_)
            | GeneralName::Invalid(..) => None,
        };
        names.filter_map(host).collect()
    }

    /// From when until when a certificate is valid; never where it cannot be read.
    pub(crate) fn validity(certificate: &CertificateDer<'_>) -> Range<SystemTime> {
        let moment = |time: ASN1Time| {
            let seconds = u64::try_from(time.timestamp()).unwrap_or_default();
            let moment = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
            moment.unwrap_or(SystemTime::UNIX_EPOCH)
        };
        match X509Certificate::from_der(certificate) {
            Ok((_, parsed)) => {
                let validity = parsed.validity();
                moment(validity.not_before)..moment(validity.not_after)
            }
            Err(_) => SystemTime::UNIX_EPOCH..SystemTime::UNIX_EPOCH,
        }
    }

    /// Reads the identity out of a certificate.
    pub(crate) fn of_certificate(certificate: &CertificateDer<'_>) -> Result<Self, IdentityError> {
        let (_, certificate) =
            X509Certificate::from_der(certificate).map_err(|_| IdentityError::Unreadable)?;
        let names = certificate
            .subject_alternative_name()
            .map_err(|_| IdentityError::Unreadable)?;
        let names = names
            .map(|names| names.value.general_names.as_slice())
            .unwrap_or_default();
        let mut uris = names.iter().filter_map(|name| match name {
            GeneralName::URI(uri) if uri.starts_with(SCHEME) => Some(*uri),
            _ => None,
        });
        match (uris.next(), uris.next()) {
            (Some(uri), None) => Self::parse(uri),
            (None, _) => Err(IdentityError::Absent),
            (Some(_), Some(_)) => Err(IdentityError::Several),
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Site(name) => write!(formatter, "site/{name}"),
            Self::Operator(name) => write!(formatter, "operator/{name}"),
            Self::Coordinator(name) => write!(formatter, "coordinator/{name}"),
        }
    }
}

/// A certificate that names nobody of this federation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The certificate cannot be read.
    #[error("found a certificate that cannot be read, wanted X.509")]
    Unreadable,
    /// No URI names an identity.
    #[error("found no kindred:// URI in the certificate, wanted one")]
    Absent,
    /// More than one does.
    #[error("found several kindred:// URIs in the certificate, wanted one")]
    Several,
    /// The URI names no known role.
    #[error("found the URI {found:?}, wanted kindred://site, operator or coordinator and a name")]
    Unknown {
        /// The URI.
        found: String,
    },
    /// The name is not one.
    #[error(transparent)]
    Name(#[from] NameError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_what_its_uri_says() {
        let site = Identity::parse("kindred://site/north").unwrap();
        assert_eq!(site, Identity::Site(SiteName::new("north").unwrap()));
        assert_eq!(site.uri(), "kindred://site/north");
        for wrong in [
            "kindred://site/",
            "kindred://site/North",
            "kindred://site/a/b",
            "kindred://nobody/north",
            "kindred:site/north",
            "https://site/north",
        ] {
            assert!(Identity::parse(wrong).is_err(), "{wrong}");
        }
    }
}
