//! Notices a dead peer.
//!
//! HTTP/2 pings keep both directions talking, but a ping waits behind what is already in the
//! socket, and a blocked writer reads nothing. So death is judged here, at the socket: no byte has
//! come, and no blocked write has gone on, for as long as the limits allow. On a slow line a large
//! matrix that still trickles out is a sign of life.

use crate::connection::fault::{Fault, FaultSlot, SILENCE_MAX};
use crate::connection::holders::Place;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::SystemTime;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep};

/// How long a connection may last, whatever its peer does.
#[derive(Debug)]
pub(crate) struct Lease {
    /// The end of the peer's certificate.
    pub(crate) until: SystemTime,
    /// Ready once the connection has to end before, where anyone can say so.
    pub(crate) cut: Option<oneshot::Receiver<Fault>>,
    /// What is free again once the connection has ended.
    pub(crate) place: Option<Place>,
}

/// A stream that fails once its peer is dead.
#[derive(Debug)]
pub(crate) struct Watched<S> {
    stream: S,
    alive_at: Instant,
    alarm: Pin<Box<Sleep>>,
    is_write_blocked: bool,
    fault: FaultSlot,
    lease: Lease,
}

impl<S> Watched<S> {
    pub(crate) fn new(stream: S, lease: Lease) -> Self {
        let alive_at = Instant::now();
        Self {
            stream,
            alive_at,
            alarm: Box::pin(tokio::time::sleep_until(alive_at + SILENCE_MAX)),
            is_write_blocked: false,
            fault: FaultSlot::default(),
            lease,
        }
    }

    pub(crate) fn stream(&self) -> &S {
        &self.stream
    }

    pub(crate) fn fault(&self) -> FaultSlot {
        Arc::clone(&self.fault)
    }

    /// Pending while the peer may live.
    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        if let Some(cut) = &mut self.lease.cut
            && let Poll::Ready(outcome) = Pin::new(cut).poll(context)
        {
            self.lease.cut = None;
            if let Ok(fault) = outcome {
                return Poll::Ready(self.ended(fault));
            }
        }
        loop {
            ready!(self.alarm.as_mut().poll(context));
            let silent_at = self.alive_at + SILENCE_MAX;
            if Instant::now() >= silent_at {
                return Poll::Ready(self.ended(Fault::Silent));
            }
            // The alarm rings at least once in the time of the longest silence.
            if SystemTime::now() >= self.lease.until {
                return Poll::Ready(self.ended(Fault::Expired));
            }
            self.alarm.as_mut().reset(silent_at);
        }
    }

    fn ended(&mut self, fault: Fault) -> io::Error {
        self.lease.place = None;
        let error = io::Error::new(io::ErrorKind::TimedOut, fault.to_string());
        let _ = self.fault.set(fault);
        error
    }

    fn note(&self, error: &io::Error) {
        let fault = match error.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(error) => Fault::Tls(rustls::Error::clone(error)),
            None => Fault::Io(error.to_string()),
        };
        let _ = self.fault.set(fault);
    }

    fn written<T>(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match outcome {
            Poll::Pending => {
                self.is_write_blocked = true;
                self.poll_silence(context).map(Err)
            }
            Poll::Ready(Ok(value)) => {
                // Room in a buffer says nothing; room that was waited for was made by the peer.
                if std::mem::take(&mut self.is_write_blocked) {
                    self.alive_at = Instant::now();
                }
                Poll::Ready(Ok(value))
            }
            Poll::Ready(Err(error)) => {
                self.note(&error);
                Poll::Ready(Err(error))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Pending => self.poll_silence(context).map(Err),
            Poll::Ready(Ok(())) => {
                self.alive_at = Instant::now();
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => {
                self.note(&error);
                Poll::Ready(Err(error))
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.written(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.written(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
        self.written(context, outcome)
    }
}
