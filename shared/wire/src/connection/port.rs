//! The listening port: accepts TCP, shakes hands over TLS, and tells refused callers why.

use crate::connection::fault::FaultSlot;
use crate::connection::holders::Holders;
use crate::connection::liveness::{Lease, Watched};
use crate::connection::slots::{Slot, Slots};
use crate::connection::transport::{
    CONNECT_TIMEOUT, FIRST_BYTE_TIMEOUT, HANDSHAKES_MAX, REFUSAL_LINGER, REFUSALS_LOGGED_MAX,
    REVOKED_LOOK_INTERVAL, SEND_BUFFER_BYTES, STRANGER_TIMEOUT,
};
use crate::identity::Identity;
use crate::identity::tls::{Callers, ServerTls};
use rustls::pki_types::CertificateDer;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Instant;
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
    /// The certificate; none of a caller at the port of enrolment who has none yet.
    pub(crate) certificate: Option<CertificateDer<'static>>,
    /// Where the caller is.
    pub(crate) address: IpAddr,
    /// Why the connection ended, once it has.
    pub(crate) fault: FaultSlot,
}

impl Connected for Watched<TlsStream<TcpStream>> {
    type ConnectInfo = Caller;

    fn connect_info(&self) -> Caller {
        let (stream, session) = self.stream().get_ref();
        let certificates = session.peer_certificates().unwrap_or_default();
        let first = certificates.first();
        let address = stream.peer_addr().map(|peer| peer.ip());
        Caller {
            identity: first.and_then(|first| Identity::of_certificate(first).ok()),
            certificate: first.map(|first| first.clone().into_owned()),
            // Of a socket that is closed already.
            address: address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
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
    mut tls: ServerTls,
    callers: mpsc::Sender<io::Result<Watched<TlsStream<TcpStream>>>>,
) {
    let mut desk = Arc::new(Desk::new(&tls));
    let mut look = tokio::time::interval(REVOKED_LOOK_INTERVAL);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = look.tick() => {
                if tls.reread() {
                    desk = Arc::new(desk.again(&tls));
                }
                continue;
            }
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (slot, makes_room) = desk.slots.enter(peer.ip());
        let (desk, callers) = (Arc::clone(&desk), callers.clone());
        tokio::spawn(async move {
            let received = async {
                if let Some(stream) = desk.receive(stream, peer, &slot).await {
                    // Nobody is left to serve the caller when the coordinator stops.
                    let _ = callers.send(Ok(stream)).await;
                }
            };
            tokio::select! {
                () = received => {}
                _ = makes_room => {}
            }
        });
    }
}

/// What all callers of a port share.
struct Desk {
    acceptor: TlsAcceptor,
    callers: Callers,
    slots: Arc<Slots>,
    holders: Arc<Holders>,
    refusals: Arc<Refusals>,
}

impl Desk {
    fn new(tls: &ServerTls) -> Self {
        let desk = Self {
            acceptor: TlsAcceptor::from(Arc::clone(&tls.config)),
            callers: tls.callers.clone(),
            slots: Arc::default(),
            holders: Arc::default(),
            refusals: Arc::default(),
        };
        desk.holders.revoke(tls.serials.clone());
        desk
    }

    /// The same after the certificates have changed.
    fn again(&self, tls: &ServerTls) -> Self {
        self.holders.revoke(tls.serials.clone());
        Self {
            acceptor: TlsAcceptor::from(Arc::clone(&tls.config)),
            callers: tls.callers.clone(),
            slots: Arc::clone(&self.slots),
            holders: Arc::clone(&self.holders),
            refusals: Arc::clone(&self.refusals),
        }
    }

    /// A caller's connection, once TLS has identified it.
    async fn receive(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        slot: &Slot,
    ) -> Option<Watched<TlsStream<TcpStream>>> {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, %peer, "could not switch off Nagle's algorithm");
        }
        let mut first = [0];
        let spoke = tokio::time::timeout(FIRST_BYTE_TIMEOUT, stream.peek(&mut first));
        if !matches!(spoke.await, Ok(Ok(1))) {
            self.refusals.note(peer, "it said nothing");
            return None;
        }
        slot.spoke();
        let handshake = self.acceptor.accept(stream).into_fallible();
        match tokio::time::timeout(CONNECT_TIMEOUT, handshake).await {
            Ok(Ok(stream)) => self.admit(stream, peer),
            Ok(Err((error, stream))) => {
                self.refusals.note(peer, &error.to_string());
                linger(stream).await;
                None
            }
            Err(_) => {
                self.refusals
                    .note(peer, "it did not finish the TLS handshake in time");
                None
            }
        }
    }

    fn admit(
        &self,
        stream: TlsStream<TcpStream>,
        peer: SocketAddr,
    ) -> Option<Watched<TlsStream<TcpStream>>> {
        let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let Some(first) = certificates.first() else {
            return self.admit_stranger(stream, peer);
        };
        let holder = match Identity::of_certificate(first) {
            Ok(identity) => identity.to_string(),
            Err(error) => {
                self.refusals.note(peer, &error.to_string());
                String::new()
            }
        };
        let until = Identity::validity(first).end;
        let (place, cut) = self.holders.enter(holder, Identity::serial(first))?;
        let lease = Lease {
            until,
            cut: Some(cut),
            place: Some(place),
        };
        Some(Watched::new(stream, lease))
    }
}

impl Desk {
    /// A caller without a certificate. The port of enrolment alone receives such, and not for long.
    fn admit_stranger(
        &self,
        stream: TlsStream<TcpStream>,
        peer: SocketAddr,
    ) -> Option<Watched<TlsStream<TcpStream>>> {
        match &self.callers {
            Callers::Known => return None,
            Callers::Anybody { .. } => {}
        }
        let (place, cut) = self.holders.enter(peer.ip().to_string(), Vec::new())?;
        let lease = Lease {
            until: SystemTime::now() + STRANGER_TIMEOUT,
            cut: Some(cut),
            place: Some(place),
        };
        Some(Watched::new(stream, lease))
    }
}

/// Tells the log of refused callers, of so many a minute.
#[derive(Debug, Default)]
struct Refusals {
    state: Mutex<Option<Minute>>,
}

#[derive(Debug, Clone, Copy)]
struct Minute {
    began: Instant,
    refused: u32,
}

impl Refusals {
    fn note(&self, peer: SocketAddr, error: &str) {
        let now = Instant::now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = Minute {
            began: now,
            refused: 0,
        };
        let minute = state.get_or_insert(fresh);
        if now - minute.began >= Duration::from_secs(60) {
            if let Some(more) = minute.refused.checked_sub(REFUSALS_LOGGED_MAX + 1) {
                tracing::warn!(
                    callers = more + 1,
                    "refused more callers in the last minute"
                );
            }
            *minute = fresh;
        }
        minute.refused += 1;
        if minute.refused <= REFUSALS_LOGGED_MAX {
            tracing::warn!(%peer, error, "refused a caller");
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
