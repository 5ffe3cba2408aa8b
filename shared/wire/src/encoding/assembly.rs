//! From a message to its frames and back.

use crate::encoding::frame::{Content, Frame, OutgoingFrame};
use crate::encoding::parts::{IncomingParts, OutgoingParts, Travels};
use crate::error::WireError;

/// Messages of one stream that answer no question: a greeting, approvals, and answers that were on their way.
const UNASKED_MAX: u32 = 1_024;

/// Says how many bytes the parts of an answer may have, by its run and exchange; none where it was not asked for.
pub(crate) type Allowance = Box<dyn Fn(&str, u32) -> Option<u64> + Send + Sync>;

/// The frames of one message, made as they are asked for.
#[derive(Debug)]
pub(crate) struct Frames<F: Frame> {
    header: Option<F::Header>,
    parts: OutgoingParts,
}

impl<F: OutgoingFrame> Frames<F> {
    /// Cuts a message.
    pub(crate) fn of(message: F::Message) -> Self
    where
        F::Message: Travels<Header = F::Header>,
    {
        let (header, parts) = message.cut();
        Self {
            header: Some(header),
            parts,
        }
    }
}

impl<F: OutgoingFrame> Iterator for Frames<F> {
    type Item = F;

    fn next(&mut self) -> Option<F> {
        if let Some(header) = self.header.take() {
            return Some(F::pack(Content::Header(header)));
        }
        self.parts.next().map(|part| F::pack(Content::Part(part)))
    }
}

/// Puts messages together from frames.
pub(crate) struct Assembly<F: Frame> {
    begun: Option<(F::Header, IncomingParts)>,
    /// What was asked, where nothing else is to be kept.
    asked: Option<Allowance>,
    /// Messages so far that nobody asked for.
    unasked: u32,
    /// Bytes that the rest of the message may have.
    bytes_left: u64,
    /// Whether the message is read and dropped.
    is_dropped: bool,
}

/// What became of a message's head.
enum Fate {
    Kept,
    Dropped,
}

impl<F: Frame> Default for Assembly<F> {
    fn default() -> Self {
        Self {
            begun: None,
            asked: None,
            unasked: 0,
            bytes_left: u64::MAX,
            is_dropped: false,
        }
    }
}

impl<F: Frame> Assembly<F> {
    /// Keeps answers only to what was asked.
    pub(crate) fn of_answers(asked: Allowance) -> Self {
        Self {
            asked: Some(asked),
            ..Self::default()
        }
    }

    /// Takes a frame; gives the message that it completes.
    pub(crate) fn push(&mut self, frame: F) -> Result<Option<F::Message>, WireError> {
        let bytes = frame.encoded_len() as u64;
        let (header, mut parts) = match (frame.unpack()?, self.begun.take()) {
            (Content::Header(header), None) => {
                let parts = IncomingParts::new(F::declared(&header)?)?;
                if let Fate::Dropped = self.judge(&header, &parts)? {
                    return Ok(None);
                }
                (header, parts)
            }
            (Content::Part(part), Some((header, mut parts))) => {
                self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or_else(too_long)?;
                parts.push(part)?;
                (header, parts)
            }
            (Content::Header(_), Some(_)) => {
                return Err(unexpected(
                    "a new message",
                    "the rest of the message before it",
                ));
            }
            (Content::Part(_), None) if self.is_dropped => return Ok(None),
            (Content::Part(_), None) => {
                return Err(unexpected("a part of no message", "a message"));
            }
        };
        if parts.is_complete() {
            return F::join(header, &mut parts).map(Some);
        }
        self.begun = Some((header, parts));
        Ok(None)
    }

    /// An answer with parts is kept where it was asked, within what the question can need. Few messages may be unasked.
    fn judge(&mut self, header: &F::Header, parts: &IncomingParts) -> Result<Fate, WireError> {
        self.is_dropped = false;
        self.bytes_left = u64::MAX;
        let Some(asked) = &self.asked else {
            return Ok(Fate::Kept);
        };
        let answered = F::answers(header);
        if let Some(bytes) = answered.and_then(|(run, exchange)| asked(run, exchange)) {
            self.bytes_left = bytes;
            return Ok(Fate::Kept);
        }
        self.unasked += 1;
        if self.unasked > UNASKED_MAX {
            return Err(unexpected(
                "more than 1,024 messages that answer no question",
                "answers to questions",
            ));
        }
        Ok(match answered {
            Some((_, exchange)) if !parts.is_complete() => {
                tracing::debug!(exchange, "dropped an answer that was not asked for");
                self.is_dropped = true;
                Fate::Dropped
            }
            Some(_) | None => Fate::Kept,
        })
    }

    /// Whether a message has begun and is not complete.
    pub(crate) fn is_open(&self) -> bool {
        self.begun.is_some()
    }
}

fn too_long() -> WireError {
    unexpected(
        "an answer that is longer",
        "at most what the question can need",
    )
}

fn unexpected(found: &str, wanted: &str) -> WireError {
    WireError::Unexpected {
        found: found.to_owned(),
        wanted: wanted.to_owned(),
    }
}
