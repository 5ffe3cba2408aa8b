//! The listening port: accepts TCP, shakes hands over TLS, and tells refused callers why.

use crate::identity::Identity;
use crate::liveness::{FaultSlot, Watched};
use crate::tls::ServerTls;
use crate::transport::{CONNECT_TIMEOUT, HANDSHAKES_MAX, REFUSAL_LINGER, SEND_BUFFER_BYTES};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

/// Connections that the system holds until they are accepted.
const BACKLOG: u32 = 1024;
/// After a failed accept, which mostly means that files ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A port that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("could not listen on {address}: {source}. Is another program using the port?")]
pub struct ListenError {
    /// The address.
    pub address: SocketAddr,
    /// Why.
    pub source: io::Error,
}

/// Binds the coordinator's port.
///
/// # Errors
/// [`ListenError`] names the address.
pub fn listen(address: SocketAddr) -> Result<TcpListener, ListenError> {
    let bind = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4(),
            SocketAddr::V6(_) => TcpSocket::new_v6(),
        }?;
        // A coordinator that was killed can start again at once.
        socket.set_reuseaddr(true)?;
        socket.set_send_buffer_size(u32::try_from(SEND_BUFFER_BYTES).unwrap_or(u32::MAX))?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    bind().map_err(|source| ListenError { address, source })
}

/// Who is at the other end of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// None where the certificate names nobody of this federation.
    pub(crate) identity: Option<Identity>,
    /// Why the connection ended, once it has.
    pub(crate) fault: FaultSlot,
}

impl Connected for Watched<TlsStream<TcpStream>> {
    type ConnectInfo = Caller;

    fn connect_info(&self) -> Caller {
        let certificates = self
            .stream()
            .get_ref()
            .1
            .peer_certificates()
            .unwrap_or_default();
        let identity = certificates.first().and_then(|first| {
            let named = Identity::of_certificate(first);
            named
                .inspect_err(|error| tracing::warn!(%error, "a caller's certificate names nobody"))
                .ok()
        });
        Caller {
            identity,
            fault: self.fault(),
        }
    }
}

/// Callers whose TLS handshake succeeded. The port closes when the stream is dropped.
pub(crate) fn callers(
    listener: TcpListener,
    tls: ServerTls,
) -> ReceiverStream<io::Result<Watched<TlsStream<TcpStream>>>> {
    let (sender, receiver) = mpsc::channel(HANDSHAKES_MAX);
    tokio::spawn(async move {
        let accepting = accept(&listener, tls, sender.clone());
        tokio::select! {
            () = accepting => {}
            () = sender.closed() => {}
        }
    });
    ReceiverStream::new(receiver)
}

async fn accept(
    listener: &TcpListener,
    tls: ServerTls,
    callers: mpsc::Sender<io::Result<Watched<TlsStream<TcpStream>>>>,
) {
    let acceptor = TlsAcceptor::from(tls.config);
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    loop {
        let Ok(permit) = Arc::clone(&handshakes).acquire_owned().await else {
            return;
        };
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (acceptor, callers) = (acceptor.clone(), callers.clone());
        tokio::spawn(async move {
            if let Some(stream) = shake_hands(&acceptor, stream, peer).await {
                // Nobody is left to serve the caller when the coordinator stops.
                let _ = callers.send(Ok(Watched::new(stream))).await;
            }
            drop(permit);
        });
    }
}

async fn shake_hands(
    acceptor: &TlsAcceptor,
    stream: TcpStream,
    peer: SocketAddr,
) -> Option<TlsStream<TcpStream>> {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, %peer, "could not switch off Nagle's algorithm");
    }
    let handshake = acceptor.accept(stream).into_fallible();
    match tokio::time::timeout(CONNECT_TIMEOUT, handshake).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err((error, stream))) => {
            tracing::warn!(%peer, %error, "refused a caller");
            linger(stream).await;
            None
        }
        Err(_) => {
            tracing::warn!(%peer, "a caller did not finish the TLS handshake in time");
            None
        }
    }
}

/// Keeps a refused connection open until its caller has read the alert: closing at once, with
/// bytes of the caller unread, would reset the connection and lose it.
async fn linger(mut stream: TcpStream) {
    let drain = async {
        stream.shutdown().await?;
        let mut unread = [0; 4096];
        while stream.read(&mut unread).await? > 0 {}
        io::Result::Ok(())
    };
    // However it ends, the caller was refused already.
    let _ = tokio::time::timeout(REFUSAL_LINGER, drain).await;
}
