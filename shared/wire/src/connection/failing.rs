//! Why two parties cannot talk, or no longer.

use crate::connection::fault::{Fault, FaultSlot};
use crate::connection::status;
use crate::error::WireError;
use crate::visible;
use protocol::failure::{Code, Failure};
use protocol::limits::OUTBOX_MAX;
use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError};
use time::OffsetDateTime;
use time::macros::format_description;
use tonic::{Code as Grpc, Status};

/// Whose certificate it is.
pub(crate) const OWN: &str = "this party's";
const THEIRS: &str = "the coordinator's";

/// What may help when two parties cannot talk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Dialling again.
    Soon,
    /// Dialling again, after a longer pause: most likely a person has to change something first.
    Later,
    /// Dialling again after a long pause: another holder of the certificate has this party's place.
    Replaced,
    /// Only a person: the certificate that was shown here is not the coordinator's.
    Person,
}

/// Why two parties cannot talk, or no longer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// Nobody answers at the address.
    #[error(
        "could not reach {address}: {reason}. Is the address right and the coordinator running?"
    )]
    Unreachable {
        /// The address that was tried.
        address: String,
        /// Why.
        reason: String,
    },
    /// The proxy does not let the connection through.
    #[error("the proxy {proxy} did not open a tunnel: {reason}")]
    Proxy {
        /// The proxy's address.
        proxy: String,
        /// Why.
        reason: String,
    },
    /// A certificate is past its time, or not yet valid.
    #[error("{whose} certificate is not valid now{when}: ask for a new one, or correct the clock")]
    Expired {
        /// `this party's` or `the coordinator's`.
        whose: &'static str,
        /// Its end or beginning and this machine's clock, where they are known.
        when: String,
    },
    /// The other side says that this party's certificate was revoked.
    #[error("this party's certificate was revoked: ask for a new one")]
    Revoked,
    /// A certificate comes from an authority that the other side does not trust.
    #[error("{whose} certificate comes from another authority: both sides need the same ca.pem")]
    ForeignAuthority {
        /// `this party's` or `the coordinator's`.
        whose: &'static str,
    },
    /// The coordinator's certificate is for other hosts than the one that was dialled.
    #[error(
        "the coordinator's certificate is for {names} and not for {address}: dial a name that it has, or issue one that names this host"
    )]
    WrongHost {
        /// The address that was tried.
        address: String,
        /// The names that the certificate has.
        names: String,
    },
    /// The peer's certificate is not a coordinator's.
    #[error("found {found} at {address}, wanted a coordinator's certificate")]
    WrongRole {
        /// The party that the certificate names.
        found: String,
        /// The address that was tried.
        address: String,
    },
    /// This party's own certificate is not that of its site.
    #[error(
        "found {found} in this party's certificate, wanted {wanted}: \
         use the certificate that was issued to this site, or its name as `site`"
    )]
    OwnName {
        /// The party that the certificate names.
        found: String,
        /// The party that it ought to name.
        wanted: String,
    },
    /// TLS failed otherwise.
    #[error("no secure connection: {reason}")]
    Tls {
        /// Why.
        reason: String,
    },
    /// The peer sent a malformed message.
    #[error("the other side broke the protocol: {0}")]
    Protocol(#[source] WireError),
    /// The peer said no, and why.
    #[error("{}", _0.text)]
    Refused(Failure),
    /// The connection was lost.
    #[error("the connection was lost: {reason}")]
    Disconnected {
        /// How.
        reason: String,
    },
}

impl ConnectionError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Unreachable { .. } => Code::Unreachable,
            Self::Proxy { .. } => Code::Proxy,
            Self::Expired { .. } => Code::Expired,
            Self::Revoked => Code::Revoked,
            Self::ForeignAuthority { .. } => Code::Authority,
            Self::WrongHost { .. } => Code::Host,
            Self::WrongRole { .. } | Self::OwnName { .. } => Code::Role,
            Self::Tls { .. } => Code::Tls,
            Self::Protocol(_) => Code::Protocol,
            Self::Refused(failure) => failure.code,
            Self::Disconnected { .. } => Code::Disconnected,
        }
    }

    /// What may help. Only a certificate that was shown to this party and judged here is a reason to give up: all else
    /// can be said by whoever stands between, or mends itself once the other side is mended.
    #[must_use]
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Unreachable { .. }
            | Self::Proxy { .. }
            | Self::Tls { .. }
            | Self::Disconnected { .. } => Remedy::Soon,
            Self::Refused(failure) if failure.code == Code::Replaced => Remedy::Replaced,
            Self::Refused(failure) if [Code::Stopping, Code::Slow].contains(&failure.code) => {
                Remedy::Soon
            }
            Self::Refused(_) | Self::Protocol(_) | Self::Revoked => Remedy::Later,
            Self::Expired { whose, .. } | Self::ForeignAuthority { whose } if *whose == OWN => {
                Remedy::Later
            }
            Self::Expired { .. }
            | Self::ForeignAuthority { .. }
            | Self::WrongHost { .. }
            | Self::WrongRole { .. }
            | Self::OwnName { .. } => Remedy::Person,
        }
    }

    /// The error as a failure that can be sent to the other side.
    #[must_use]
    pub fn to_failure(&self) -> Failure {
        Failure::new(self.code(), self.to_string())
    }

    /// What a gRPC status and the socket's fault say together.
    pub(crate) fn of_status(status: &Status, fault: &FaultSlot, wanted: &'static str) -> Self {
        if status.code() == Grpc::DataLoss || status.code() == Grpc::OutOfRange {
            let reason = visible::line(status.message().to_owned());
            return Self::Protocol(WireError::Malformed { wanted, reason });
        }
        if let Some(failure) = status::failure(status) {
            return Self::Refused(failure);
        }
        if status.code() == Grpc::Unimplemented {
            return Self::Refused(status::unknown_service());
        }
        Self::of_fault(fault).unwrap_or_else(|| Self::Disconnected {
            reason: visible::line(format!("{:?}: {}", status.code(), status.message())),
        })
    }

    fn of_fault(fault: &FaultSlot) -> Option<Self> {
        Some(match fault.get()? {
            Fault::Tls(error) => Self::of_tls(error, ""),
            Fault::Io(reason) if reason.contains("close_notify") => Self::Disconnected {
                reason: "the other side ended without a word".to_owned(),
            },
            fault => Self::Disconnected {
                reason: fault.to_string(),
            },
        })
    }

    /// Of a certificate that has `ended`, or that begins later, and the clock's time.
    pub(crate) fn expired(whose: &'static str, ended: &str, times: [UnixTime; 2]) -> Self {
        let [end, now] = times.map(minute);
        let when = format!(" (it {ended} {end}, and this machine's clock says {now})");
        Self::Expired { whose, when }
    }

    /// What a failed handshake means for who dialled `address`.
    pub(crate) fn of_tls(error: &rustls::Error, address: &str) -> Self {
        use rustls::Error::{AlertReceived, InvalidCertificate, InvalidMessage};
        match error {
            InvalidCertificate(CertificateError::Expired | CertificateError::NotValidYet) => {
                Self::Expired {
                    whose: THEIRS,
                    when: String::new(),
                }
            }
            InvalidCertificate(CertificateError::ExpiredContext { time, not_after }) => {
                Self::expired(THEIRS, "ended", [*not_after, *time])
            }
            InvalidCertificate(CertificateError::NotValidYetContext { time, not_before }) => {
                Self::expired(THEIRS, "begins", [*not_before, *time])
            }
            InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::BadSignature,
            ) => Self::ForeignAuthority { whose: THEIRS },
            InvalidCertificate(CertificateError::NotValidForName) => Self::WrongHost {
                address: address.to_owned(),
                names: names(&[]),
            },
            InvalidCertificate(CertificateError::NotValidForNameContext { presented, .. }) => {
                Self::WrongHost {
                    address: address.to_owned(),
                    names: names(presented),
                }
            }
            AlertReceived(AlertDescription::CertificateRevoked) => Self::Revoked,
            AlertReceived(AlertDescription::CertificateExpired) => Self::Expired {
                whose: OWN,
                when: String::new(),
            },
            InvalidMessage(_) => Self::Tls {
                reason: format!("{address} does not speak TLS: is this the coordinator's port?"),
            },
            AlertReceived(AlertDescription::UnknownCA | AlertDescription::DecryptError) => {
                Self::ForeignAuthority { whose: OWN }
            }
            _ => Self::Tls {
                reason: error.to_string(),
            },
        }
    }
}

/// A time as people write it.
fn minute(time: UnixTime) -> String {
    let form = format_description!("[year]-[month]-[day] [hour]:[minute] UTC");
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    let time = OffsetDateTime::from_unix_timestamp(seconds).ok();
    let text = time.and_then(|time| time.format(form).ok());
    text.unwrap_or_else(|| "beyond all calendars".to_owned())
}

/// Names of a certificate as people write them: the library says `DnsName("localhost")` and `IpAddress(127.0.0.1)`. Of many the first.
fn names(presented: &[String]) -> String {
    const SHOWN: usize = 8;
    let bare = |name: &String| {
        let name = name
            .strip_prefix("DnsName(")
            .or(name.strip_prefix("IpAddress("));
        let name = name?.strip_suffix(')')?.trim_matches('"');
        (!name.is_empty()).then(|| visible::line(name.to_owned()))
    };
    let mut all: Vec<String> = presented.iter().filter_map(bare).collect();
    let more = all.len().saturating_sub(SHOWN);
    all.truncate(SHOWN);
    match (all.is_empty(), more) {
        (true, _) => "no host".to_owned(),
        (false, 0) => all.join(", "),
        (false, more) => format!("{} and {more} more", all.join(", ")),
    }
}

/// A message that could not be queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The connection is gone.
    #[error("the connection is closed")]
    Closed,
    /// The peer takes messages more slowly than they are made; the connection was dropped.
    #[error("{OUTBOX_MAX} messages wait for this connection; it was dropped as too slow")]
    Overflow,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_of_other_hosts_is_named_by_them() {
        let shown = [
            "DnsName(\"localhost\")",
            "IpAddress(127.0.0.1)",
            "UnsupportedNameType",
        ];
        let named = ConnectionError::WrongHost {
            address: "kindred.example:443".to_owned(),
            names: names(&shown.map(str::to_owned)),
        };
        let said = named.to_string();
        assert!(
            said.contains("is for localhost, 127.0.0.1 and not for kindred.example:443"),
            "{said}"
        );
        let many: Vec<String> = (0..11)
            .map(|host| format!("DnsName(\"h{host}\")"))
            .collect();
        assert!(names(&many).ends_with("h7 and 3 more"));
        assert_eq!(names(&[]), "no host");
    }
}
