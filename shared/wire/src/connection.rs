//! What both ends of a connection share: its errors, its outbox and its inbox.

use crate::asked::Asked;
use crate::assembly::{Assembly, Frames, Header};
use crate::error::WireError;
use crate::frame::Frame;
use crate::liveness::{Fault, FaultSlot};
use crate::{status, visible};
use protocol::limits::OUTBOX_MAX;
use protocol::message::Failure;
use rustls::{AlertDescription, CertificateError};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tonic::{Code, Status, Streaming};

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
    #[error("{whose} certificate is not valid now: ask for a new one, or correct the clock")]
    Expired {
        /// `this party's` or `the coordinator's`.
        whose: &'static str,
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
    #[error("the coordinator's certificate is not for {address}: issue one that names this host")]
    WrongHost {
        /// The address that was tried.
        address: String,
    },
    /// The peer's certificate is not a coordinator's.
    #[error("found {found} at {address}, wanted a coordinator's certificate")]
    WrongRole {
        /// Whom the certificate names.
        found: String,
        /// The address that was tried.
        address: String,
    },
    /// This party's own certificate is not a site's.
    #[error(
        "found {found} in this party's certificate, wanted kindred://site/ and a name: \
         use a certificate that was issued to a site"
    )]
    OwnRole {
        /// Whom the certificate names.
        found: String,
    },
    /// TLS failed otherwise.
    #[error("no secure connection: {reason}")]
    Tls {
        /// Why.
        reason: String,
    },
    /// The peer sent what is no message.
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
    pub fn code(&self) -> &str {
        match self {
            Self::Unreachable { .. } => "KDR-UNREACHABLE",
            Self::Proxy { .. } => "KDR-PROXY",
            Self::Expired { .. } => "KDR-EXPIRED",
            Self::Revoked => "KDR-REVOKED",
            Self::ForeignAuthority { .. } => "KDR-AUTHORITY",
            Self::WrongHost { .. } => "KDR-HOST",
            Self::WrongRole { .. } | Self::OwnRole { .. } => status::CODE_ROLE,
            Self::Tls { .. } => "KDR-TLS",
            Self::Protocol(_) => status::CODE_PROTOCOL,
            Self::Refused(failure) => &failure.code,
            Self::Disconnected { .. } => "KDR-DISCONNECTED",
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
            Self::Refused(failure) if failure.code == status::CODE_REPLACED => Remedy::Replaced,
            Self::Refused(failure)
                if [status::CODE_STOPPING, status::CODE_SLOW].contains(&failure.code.as_str()) =>
            {
                Remedy::Soon
            }
            Self::Refused(_) | Self::Protocol(_) | Self::Revoked => Remedy::Later,
            Self::Expired { whose } | Self::ForeignAuthority { whose } if *whose == OWN => {
                Remedy::Later
            }
            Self::Expired { .. }
            | Self::ForeignAuthority { .. }
            | Self::WrongHost { .. }
            | Self::WrongRole { .. }
            | Self::OwnRole { .. } => Remedy::Person,
        }
    }

    /// The error as a failure that can be told to the other side.
    #[must_use]
    pub fn to_failure(&self) -> Failure {
        Failure {
            code: self.code().to_owned(),
            text: self.to_string(),
        }
    }

    /// What a gRPC status and the socket's fault say together.
    pub(crate) fn of_status(status: &Status, fault: &FaultSlot, wanted: &'static str) -> Self {
        if status.code() == Code::DataLoss || status.code() == Code::OutOfRange {
            let reason = visible::line(status.message().to_owned());
            return Self::Protocol(WireError::Malformed { wanted, reason });
        }
        if let Some(failure) = status::failure(status) {
            return Self::Refused(failure);
        }
        if status.code() == Code::Unimplemented {
            return Self::Refused(status::unknown_service());
        }
        Self::of_fault(fault).unwrap_or_else(|| Self::Disconnected {
            reason: visible::line(format!("{:?}: {}", status.code(), status.message())),
        })
    }

    fn of_fault(fault: &FaultSlot) -> Option<Self> {
        Some(match fault.get()? {
            Fault::Tls(error) => Self::of_tls(error, ""),
            fault => Self::Disconnected {
                reason: fault.to_string(),
            },
        })
    }

    /// What a failed handshake means for who dialled `address`.
    pub(crate) fn of_tls(error: &rustls::Error, address: &str) -> Self {
        use rustls::Error::{AlertReceived, InvalidCertificate};
        match error {
            InvalidCertificate(
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. },
            ) => Self::Expired { whose: THEIRS },
            InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::BadSignature,
            ) => Self::ForeignAuthority { whose: THEIRS },
            InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            ) => Self::WrongHost {
                address: address.to_owned(),
            },
            AlertReceived(AlertDescription::CertificateRevoked) => Self::Revoked,
            AlertReceived(AlertDescription::CertificateExpired) => Self::Expired { whose: OWN },
            AlertReceived(AlertDescription::UnknownCA | AlertDescription::DecryptError) => {
                Self::ForeignAuthority { whose: OWN }
            }
            _ => Self::Tls {
                reason: error.to_string(),
            },
        }
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

/// Bytes of encoded frames, as the two directions of one connection count them.
#[derive(Debug, Default)]
pub(crate) struct ByteCounts {
    pub(crate) sent: AtomicU64,
    pub(crate) received: AtomicU64,
}

impl ByteCounts {
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

/// The sending end of an outbox.
#[derive(Debug)]
pub(crate) struct OutboxSender<M> {
    pub(crate) messages: mpsc::Sender<M>,
    pub(crate) close: mpsc::Sender<Failure>,
}

impl<M> Clone for OutboxSender<M> {
    fn clone(&self) -> Self {
        Self {
            messages: self.messages.clone(),
            close: self.close.clone(),
        }
    }
}

impl<M> OutboxSender<M> {
    /// Ends the stream with a reason; the first reason counts.
    pub(crate) fn close(&self, failure: Failure) {
        // Full means that a reason is there already, closed that nobody is left to hear it.
        let _ = self.close.try_send(failure);
    }
}

/// Messages on their way out, cut into frames as the connection takes them.
pub(crate) struct Outbox<M, F: Frame> {
    messages: mpsc::Receiver<M>,
    close: mpsc::Receiver<Failure>,
    cut: fn(M) -> Frames<F>,
    frames: Option<Frames<F>>,
    counts: Arc<ByteCounts>,
    is_closed: bool,
}

/// An outbox of at most [`OUTBOX_MAX`] waiting messages.
pub(crate) fn outbox<M, F: Frame>(
    cut: fn(M) -> Frames<F>,
    counts: Arc<ByteCounts>,
) -> (OutboxSender<M>, Outbox<M, F>) {
    let (messages, messages_receiver) = mpsc::channel(OUTBOX_MAX);
    let (close, close_receiver) = mpsc::channel(1);
    let outbox = Outbox {
        messages: messages_receiver,
        close: close_receiver,
        cut,
        frames: None,
        counts,
        is_closed: false,
    };
    (OutboxSender { messages, close }, outbox)
}

impl<M, F: Frame> Stream for Outbox<M, F>
where
    M: Unpin,
    Self: Unpin,
{
    type Item = Result<F, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_closed {
            return Poll::Ready(None);
        }
        if let Poll::Ready(Some(failure)) = self.close.poll_recv(context) {
            self.is_closed = true;
            return Poll::Ready(Some(Err(status::status(Code::Aborted, &failure))));
        }
        loop {
            if let Some(frame) = self.frames.as_mut().and_then(Iterator::next) {
                let bytes = frame.encoded_len() as u64;
                self.counts.sent.fetch_add(bytes, Ordering::Relaxed);
                return Poll::Ready(Some(Ok(frame)));
            }
            self.frames = None;
            match ready!(self.messages.poll_recv(context)) {
                Some(message) => self.frames = Some((self.cut)(message)),
                None => return Poll::Ready(None),
            }
        }
    }
}

/// Messages on their way in.
pub(crate) struct Inbox<F: Frame> {
    frames: Streaming<F>,
    assembly: Assembly<F>,
    counts: Arc<ByteCounts>,
    fault: FaultSlot,
}

impl<F> Inbox<F>
where
    F: Frame,
    F::Header: Header,
{
    pub(crate) fn new(frames: Streaming<F>, counts: Arc<ByteCounts>, fault: FaultSlot) -> Self {
        Self::with(Assembly::default(), frames, counts, fault)
    }

    /// Keeps answers only to what was asked.
    pub(crate) fn of_answers(
        asked: Arc<Asked>,
        frames: Streaming<F>,
        counts: Arc<ByteCounts>,
        fault: FaultSlot,
    ) -> Self {
        Self::with(Assembly::of_answers(asked), frames, counts, fault)
    }

    fn with(
        assembly: Assembly<F>,
        frames: Streaming<F>,
        counts: Arc<ByteCounts>,
        fault: FaultSlot,
    ) -> Self {
        Self {
            frames,
            assembly,
            counts,
            fault,
        }
    }

    /// The next message; none where the peer ended the stream. Nothing is lost when the future is
    /// dropped.
    pub(crate) async fn next(
        &mut self,
    ) -> Result<Option<<F::Header as Header>::Message>, ConnectionError> {
        loop {
            let frame = self.frames.message().await;
            let frame = frame
                .map_err(|status| ConnectionError::of_status(&status, &self.fault, F::NAME))?;
            let Some(frame) = frame else {
                return self.ended();
            };
            let bytes = frame.encoded_len() as u64;
            self.counts.received.fetch_add(bytes, Ordering::Relaxed);
            let message = self
                .assembly
                .push(frame)
                .map_err(ConnectionError::Protocol)?;
            if message.is_some() {
                return Ok(message);
            }
        }
    }

    fn ended<T>(&self) -> Result<Option<T>, ConnectionError> {
        if self.assembly.is_open() {
            return Err(ConnectionError::Protocol(WireError::Unexpected {
                found: "an end before the message is whole".to_owned(),
                wanted: "the parts that it declares".to_owned(),
            }));
        }
        Ok(None)
    }
}
