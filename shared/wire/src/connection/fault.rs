//! Why a connection ended, as its socket saw it.

use protocol::limits::{KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Without a sign of life for this long, a peer is dead.
pub(crate) const SILENCE_MAX: Duration =
    Duration::from_secs(KEEPALIVE_INTERVAL.as_secs() + KEEPALIVE_TIMEOUT.as_secs());

/// Why a connection ended, as its socket saw it.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// The peer refused or broke TLS.
    Tls(rustls::Error),
    /// No sign of life.
    Silent,
    /// The socket failed.
    Io(String),
    /// The peer's certificate is past its time.
    Expired,
    /// The peer's certificate was revoked.
    Revoked,
    /// The peer has opened too many other connections.
    Crowded,
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tls(error) => write!(formatter, "{error}"),
            Self::Silent => write!(formatter, "no sign of life for {} s", SILENCE_MAX.as_secs()),
            Self::Io(reason) => formatter.write_str(reason),
            Self::Expired => formatter.write_str("the peer's certificate is past its time"),
            Self::Revoked => formatter.write_str("the peer's certificate was revoked"),
            Self::Crowded => {
                formatter.write_str("the holder of the certificate has opened too many connections")
            }
        }
    }
}

/// The first fault of a connection, readable by who holds the connection's other end.
pub(crate) type FaultSlot = Arc<OnceLock<Fault>>;
