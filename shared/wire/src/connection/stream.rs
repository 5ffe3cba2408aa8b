//! What both ends of a stream share: its outbox and its inbox.

use crate::connection::failing::ConnectionError;
use crate::connection::fault::FaultSlot;
use crate::connection::status;
use crate::encoding::assembly::{Allowance, Assembly};
use crate::encoding::frame::Frame;
use crate::error::WireError;
use prost::Message;
use protocol::failure::Failure;
use protocol::limits::OUTBOX_MAX;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tonic::{Code, Status, Streaming};

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

impl<M> fmt::Debug for OutboxSender<M> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("OutboxSender")
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
pub(crate) struct Outbox<M, I> {
    messages: mpsc::Receiver<M>,
    close: mpsc::Receiver<Failure>,
    cut: fn(M) -> I,
    frames: Option<I>,
    counts: Arc<ByteCounts>,
    is_closed: bool,
}

/// An outbox of at most [`OUTBOX_MAX`] waiting messages.
pub(crate) fn outbox<M, I>(
    cut: fn(M) -> I,
    counts: Arc<ByteCounts>,
) -> (OutboxSender<M>, Outbox<M, I>) {
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

impl<M, I> Stream for Outbox<M, I>
where
    I: Iterator + Unpin,
    I::Item: Message,
{
    type Item = Result<I::Item, Status>;

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

impl<F: Frame> Inbox<F> {
    pub(crate) fn new(frames: Streaming<F>, counts: Arc<ByteCounts>, fault: FaultSlot) -> Self {
        Self::with(Assembly::default(), frames, counts, fault)
    }

    /// Keeps answers only to what was asked.
    pub(crate) fn of_answers(
        asked: Allowance,
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
    pub(crate) async fn next(&mut self) -> Result<Option<F::Message>, ConnectionError> {
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
