//! From a message to its frames and back.

use crate::error::WireError;
use crate::frame::{Content, Frame};
use crate::parts::{Declared, IncomingParts, OutgoingParts};

/// A message without its matrices and long lists.
pub(crate) trait Header: Sized {
    /// The whole message, in the protocol's types.
    type Message;

    /// What follows in parts.
    fn declared(&self) -> Result<Declared, WireError>;
    /// The message, once all parts are there.
    fn complete(self, parts: IncomingParts) -> Result<Self::Message, WireError>;
}

/// The frames of one message, made as they are asked for.
#[derive(Debug)]
pub(crate) struct Frames<F: Frame> {
    header: Option<F::Header>,
    parts: OutgoingParts,
}

impl<F: Frame> Frames<F> {
    pub(crate) fn new(header: F::Header, parts: OutgoingParts) -> Self {
        Self {
            header: Some(header),
            parts,
        }
    }
}

impl<F: Frame> Iterator for Frames<F> {
    type Item = F;

    fn next(&mut self) -> Option<F> {
        if let Some(header) = self.header.take() {
            return Some(F::pack(Content::Header(header)));
        }
        self.parts.next().map(|part| F::pack(Content::Part(part)))
    }
}

/// Puts messages together from frames.
#[derive(Debug)]
pub(crate) struct Assembly<F: Frame> {
    begun: Option<(F::Header, IncomingParts)>,
}

impl<F: Frame> Default for Assembly<F> {
    fn default() -> Self {
        Self { begun: None }
    }
}

impl<F> Assembly<F>
where
    F: Frame,
    F::Header: Header,
{
    /// Takes a frame; gives the message that it completes.
    pub(crate) fn push(
        &mut self,
        frame: F,
    ) -> Result<Option<<F::Header as Header>::Message>, WireError> {
        let content = frame
            .unpack()
            .ok_or(WireError::Missing { field: F::NAME })?;
        let (header, parts) = match (content, self.begun.take()) {
            (Content::Header(header), None) => {
                let parts = IncomingParts::new(header.declared()?)?;
                (header, parts)
            }
            (Content::Part(part), Some((header, mut parts))) => {
                parts.push(part)?;
                (header, parts)
            }
            (Content::Header(_), Some(_)) => {
                return Err(unexpected(
                    "a new message",
                    "the rest of the message before it",
                ));
            }
            (Content::Part(_), None) => {
                return Err(unexpected("a part of no message", "a message"));
            }
        };
        if parts.is_complete() {
            return header.complete(parts).map(Some);
        }
        self.begun = Some((header, parts));
        Ok(None)
    }

    /// Whether a message has begun and is not complete.
    pub(crate) fn is_open(&self) -> bool {
        self.begun.is_some()
    }
}

fn unexpected(found: &str, wanted: &str) -> WireError {
    WireError::Unexpected {
        found: found.to_owned(),
        wanted: wanted.to_owned(),
    }
}
