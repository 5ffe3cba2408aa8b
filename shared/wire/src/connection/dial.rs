//! Reaching the coordinator: directly or through an HTTP CONNECT proxy, then TLS.

use crate::connection::failing::ConnectionError;
use crate::connection::fault::FaultSlot;
use crate::connection::liveness::{Lease, Watched};
use crate::connection::transport::{
    CONNECT_TIMEOUT, CONNECTION_WINDOW_BYTES, HEADER_LIST_BYTES, HTTP2_FRAME_BYTES,
    PING_REPLY_TIMEOUT, SEND_BUFFER_BYTES, STREAM_WINDOW_BYTES,
};
use crate::encoding::frame::FRAME_BYTES_MAX;
use crate::generated::enrolment_client::EnrolmentClient;
use crate::generated::federation_client::FederationClient;
use crate::generated::operations_client::OperationsClient;
use crate::identity::Identity;
use crate::identity::tls::ClientTls;
use http::{HeaderValue, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::rt::TokioIo;
use protocol::limits::KEEPALIVE_INTERVAL;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::transport::{Channel, Endpoint};
use tower::{Service, ServiceExt};

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
}

/// A text that is no `host:port`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("found the address {found:?}, wanted host:port, as in coordinator.example.org:7443")]
pub struct AddressError {
    /// The text.
    pub found: String,
}

impl Address {
    /// Parses `host:port`; an IPv6 address stands in brackets.
    ///
    /// # Errors
    /// [`AddressError`] tells what was found.
    pub fn new(text: &str) -> Result<Self, AddressError> {
        let refused = || AddressError {
            found: text.to_owned(),
        };
        let (host, port) = text.rsplit_once(':').ok_or_else(refused)?;
        let port = port.parse().map_err(|_| refused())?;
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        ServerName::try_from(bare).map_err(|_| refused())?;
        let address = Self {
            host: bare.to_owned(),
            port,
        };
        address.uri().map_err(|_| refused())?;
        Ok(address)
    }

    /// A host, which may be an IPv6 address without brackets, and a port.
    ///
    /// # Errors
    /// [`AddressError`] tells what was found.
    pub fn of_host(host: &str, port: u16) -> Result<Self, AddressError> {
        match host.contains(':') {
            true => Self::new(&format!("[{host}]:{port}")),
            false => Self::new(&format!("{host}:{port}")),
        }
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The same host at another port.
    #[must_use]
    pub fn with_port(&self, port: u16) -> Self {
        Self {
            host: self.host.clone(),
            port,
        }
    }

    fn uri(&self) -> Result<Uri, http::uri::InvalidUri> {
        format!("http://{self}").parse()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(formatter, "[{}]:{}", self.host, self.port)
        } else {
            write!(formatter, "{}:{}", self.host, self.port)
        }
    }
}

/// An HTTP proxy that opens tunnels by CONNECT.
#[derive(Clone)]
pub struct Proxy {
    address: Address,
    authorization: Option<HeaderValue>,
}

impl Proxy {
    /// A proxy that asks for no password.
    #[must_use]
    pub fn open(address: Address) -> Self {
        Self {
            address,
            authorization: None,
        }
    }

    /// A proxy with basic authentication.
    #[must_use]
    pub fn with_password(address: Address, user: &str, password: &str) -> Self {
        let encoded = base64(format!("{user}:{password}").as_bytes());
        // Base64 holds nothing that a header could not.
        let authorization = HeaderValue::from_str(&format!("Basic {encoded}")).ok();
        Self {
            address,
            authorization,
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Proxy({})", self.address)
    }
}

/// How a site or an operator reaches the coordinator.
#[derive(Debug, Clone)]
pub struct Dial {
    /// The coordinator.
    pub address: Address,
    /// Who dials, and which authority they trust.
    pub tls: ClientTls,
    /// The way through a hospital's network, where it needs one.
    pub proxy: Option<Proxy>,
}

/// The way to a port, and the TLS that is spoken there.
pub(crate) struct Way<'a> {
    pub(crate) address: &'a Address,
    pub(crate) tls: Arc<ClientConfig>,
    pub(crate) proxy: Option<&'a Proxy>,
}

type Stream = Watched<TlsStream<TcpStream>>;

/// An open connection, ready for calls.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    channel: Channel,
    pub(crate) fault: FaultSlot,
}

impl Line {
    pub(crate) fn federation(&self) -> FederationClient<Channel> {
        FederationClient::new(self.channel.clone()).max_decoding_message_size(FRAME_BYTES_MAX)
    }

    pub(crate) fn operations(&self) -> OperationsClient<Channel> {
        OperationsClient::new(self.channel.clone()).max_decoding_message_size(FRAME_BYTES_MAX)
    }

    pub(crate) fn enrolment(&self) -> EnrolmentClient<Channel> {
        EnrolmentClient::new(self.channel.clone()).max_decoding_message_size(FRAME_BYTES_MAX)
    }
}

impl Dial {
    pub(crate) async fn connect(&self) -> Result<Line, ConnectionError> {
        let way = Way {
            address: &self.address,
            tls: Arc::clone(&self.tls.config),
            proxy: self.proxy.as_ref(),
        };
        way.connect().await
    }
}

impl Way<'_> {
    pub(crate) async fn connect(&self) -> Result<Line, ConnectionError> {
        let stream = self.secure(self.reach().await?).await?;
        let fault = stream.fault();
        let unreachable = |reason: String| self.unreachable(reason);
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address))
            .map_err(|error| unreachable(error.to_string()))?
            .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
            .keep_alive_timeout(PING_REPLY_TIMEOUT)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .http2_max_header_list_size(HEADER_LIST_BYTES)
            .max_frame_size(HTTP2_FRAME_BYTES);
        // One connection, made above where its errors can be reported; a lost one is not replaced
        // behind the program's back.
        let only = Arc::new(Mutex::new(Some(TokioIo::new(stream))));
        let connector = tower::service_fn(move |_: Uri| {
            let stream = only.lock().unwrap_or_else(PoisonError::into_inner).take();
            async move { stream.ok_or(std::io::Error::from(std::io::ErrorKind::NotConnected)) }
        });
        let channel = endpoint
            .connect_with_connector(connector)
            .await
            .map_err(|error| {
                let status = tonic::Status::unavailable(error.to_string());
                ConnectionError::of_status(&status, &fault, "HTTP/2")
            })?;
        Ok(Line { channel, fault })
    }

    /// A TCP connection to the coordinator's port.
    async fn reach(&self) -> Result<TcpStream, ConnectionError> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.set_send_buffer_size(Some(SEND_BUFFER_BYTES));
        let destination = self
            .address
            .uri()
            .map_err(|error| self.unreachable(error.to_string()))?;
        let Some(proxy) = self.proxy else {
            let reached = connector.oneshot(destination).await;
            return reached
                .map(TokioIo::into_inner)
                .map_err(|error| self.unreachable(causes(&error)));
        };
        let refused = |reason| ConnectionError::Proxy {
            proxy: proxy.address.to_string(),
            reason,
        };
        let proxy_uri = proxy
            .address
            .uri()
            .map_err(|error| refused(error.to_string()))?;
        let mut tunnel = Tunnel::new(proxy_uri, connector);
        if let Some(authorization) = &proxy.authorization {
            tunnel = tunnel.with_auth(authorization.clone());
        }
        match tokio::time::timeout(CONNECT_TIMEOUT, tunnel.call(destination)).await {
            Ok(reached) => reached
                .map(TokioIo::into_inner)
                .map_err(|error| refused(causes(&error))),
            Err(_) => Err(refused(format!(
                "no answer in {} s",
                CONNECT_TIMEOUT.as_secs()
            ))),
        }
    }

    /// TLS, and whether a coordinator answers.
    async fn secure(&self, stream: TcpStream) -> Result<Stream, ConnectionError> {
        let name = ServerName::try_from(self.address.host.clone())
            .map_err(|error| self.unreachable(error.to_string()))?;
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        let handshake = tokio::time::timeout(CONNECT_TIMEOUT, connector.connect(name, stream));
        let stream = match handshake.await {
            Ok(shaken) => shaken.map_err(|error| self.handshake_failed(&error))?,
            Err(_) => return Err(self.unreachable("no TLS handshake in time".to_owned())),
        };
        let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let found = certificates.first().map(Identity::of_certificate);
        let until = certificates
            .first()
            .map_or(SystemTime::UNIX_EPOCH, |first| {
                Identity::validity(first).end
            });
        match found {
            Some(Ok(Identity::Coordinator(_))) => {
                let lease = Lease {
                    until,
                    cut: None,
                    place: None,
                };
                Ok(Watched::new(stream, lease))
            }
            other => {
                let found = match other {
                    Some(Ok(identity)) => identity.uri(),
                    Some(Err(error)) => error.to_string(),
                    None => "no certificate".to_owned(),
                };
                Err(ConnectionError::WrongRole {
                    found,
                    address: self.address.to_string(),
                })
            }
        }
    }

    fn handshake_failed(&self, error: &std::io::Error) -> ConnectionError {
        match error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<rustls::Error>())
        {
            Some(error) => ConnectionError::of_tls(error, &self.address.to_string()),
            None => ConnectionError::Tls {
                reason: error.to_string(),
            },
        }
    }

    fn unreachable(&self, reason: String) -> ConnectionError {
        ConnectionError::Unreachable {
            address: self.address.to_string(),
            reason,
        }
    }
}

/// An error with its causes.
fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for triple in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, i| {
            bits << 8 | u32::from(triple.get(i).copied().unwrap_or_default())
        });
        for i in 0..4 {
            let symbol = ALPHABET[(bits >> (18 - 6 * i) & 63) as usize];
            text.push(if i <= triple.len() {
                char::from(symbol)
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        // RFC 4648, section 10, and the example of RFC 7617, section 2.
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
            ("Aladdin:open sesame", "QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        ];
        for (plain, encoded) in vectors {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
    }

    #[test]
    fn an_address_is_a_host_and_a_port() {
        for good in [
            "localhost:7443",
            "127.0.0.1:1",
            "[::1]:7443",
            "a.example.org:443",
        ] {
            assert_eq!(Address::new(good).unwrap().to_string(), good);
        }
        for bad in [
            "",
            "localhost",
            "localhost:",
            ":1",
            "a b:1",
            "host:70000",
            "http://a:1",
        ] {
            assert!(Address::new(bad).is_err(), "{bad}");
        }
    }
}
