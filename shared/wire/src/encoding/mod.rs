//! Messages as bytes: what a frame holds on the stream, and records of the coordinator's store.

pub(crate) mod assembly;
pub(crate) mod blocks;
pub(crate) mod codec;
pub(crate) mod frame;
pub(crate) mod list;
pub(crate) mod matrix;
pub(crate) mod parts;
pub(crate) mod raw;
pub(crate) mod sealed;
pub(crate) mod values;

use crate::encoding::assembly::{Assembly, Frames};
use crate::encoding::frame::{Frame, OutgoingFrame};
use crate::encoding::raw::ToCoordinatorFrame;
use crate::encoding::sealed::Sealed;
use crate::error::WireError;
use crate::generated as pb;
use crate::message::{progress, to_coordinator, to_site};
use bytes::{Buf, Bytes};
use prost::Message;
use protocol::message::{Answer, ToCoordinator, ToSite, Warrant};
use protocol::progress::Progress;
use protocol::result::RunResult;

/// The frames of a message to a site, each as it travels.
#[must_use]
pub fn encode_to_site(message: ToSite) -> Vec<Bytes> {
    encode(Frames::<pb::ToSiteFrame>::of(message))
}

/// The message of these frames.
///
/// # Errors
/// [`WireError`] says what was found and what was wanted.
pub fn decode_to_site(frames: &[Bytes]) -> Result<ToSite, WireError> {
    decode::<pb::ToSiteFrame>(frames)
}

/// The frames of a message to the coordinator, each as it travels. Only what a release rule has
/// cleared can be sealed, and only what was sealed is in them.
#[must_use]
pub fn encode_to_coordinator(message: ToCoordinator<Sealed>) -> Vec<Bytes> {
    encode(to_coordinator::frames(message))
}

/// The message of these frames.
///
/// # Errors
/// [`WireError`] says what was found and what was wanted.
pub fn decode_to_coordinator(frames: &[Bytes]) -> Result<ToCoordinator<Answer>, WireError> {
    decode::<ToCoordinatorFrame>(frames)
}

/// An answer that came to the coordinator, as one record of its store. No stream takes a record.
#[must_use]
pub fn encode_answer(answer: &Answer) -> Vec<u8> {
    record(Frames::<pb::AnswerFrame>::of(answer.clone()))
}

/// The answer of a record.
///
/// # Errors
/// [`WireError`] says what was found and what was wanted.
pub fn decode_answer(record: &[u8]) -> Result<Answer, WireError> {
    decode_record::<pb::AnswerFrame>(record)
}

/// A warrant as one record, for the coordinator's store.
#[must_use]
pub fn encode_warrant(warrant: &Warrant) -> Vec<u8> {
    to_site::warrant_to_proto(warrant.clone()).encode_to_vec()
}

/// The warrant of a record.
///
/// # Errors
/// [`WireError`] says what was found and what was wanted.
pub fn decode_warrant(record: &[u8]) -> Result<Warrant, WireError> {
    let found =
        pb::Warrant::decode(record).map_err(|error| values::malformed("a warrant", &error))?;
    to_site::warrant(found)
}

/// A result as one record.
#[must_use]
pub fn encode_result(result: &RunResult) -> Vec<u8> {
    record(Frames::<pb::ResultFrame>::of(result.clone()))
}

/// The result of a record.
///
/// # Errors
/// [`WireError`] says what was found and what was wanted.
pub fn decode_result(record: &[u8]) -> Result<RunResult, WireError> {
    decode_record::<pb::ResultFrame>(record)
}

/// A state of a run as one record.
#[must_use]
pub fn encode_progress(progress: &Progress) -> Vec<u8> {
    progress::progress_to_proto(progress.clone()).encode_to_vec()
}

/// The state of a run of a record.
///
/// # Errors
/// [`WireError`] says what was found and what was wanted.
pub fn decode_progress(record: &[u8]) -> Result<Progress, WireError> {
    let progress =
        pb::Progress::decode(record).map_err(|error| values::malformed("progress", &error))?;
    progress::progress(progress)
}

fn encode<F: Message>(frames: impl Iterator<Item = F>) -> Vec<Bytes> {
    frames.map(|frame| frame.encode_to_vec().into()).collect()
}

fn decode<F: Frame>(frames: &[Bytes]) -> Result<F::Message, WireError> {
    let parsed = frames
        .iter()
        .map(|frame| F::decode(frame.clone()).map_err(|error| values::malformed(F::NAME, &error)));
    assemble(parsed)
}

/// Frames one after the other, each behind its length.
fn record<F: OutgoingFrame>(frames: Frames<F>) -> Vec<u8> {
    let mut record = Vec::new();
    for frame in frames {
        record.extend_from_slice(&frame.encode_length_delimited_to_vec());
    }
    record
}

fn decode_record<F: Frame>(record: &[u8]) -> Result<F::Message, WireError> {
    let mut rest = Bytes::copy_from_slice(record);
    assemble::<F>(std::iter::from_fn(move || {
        let frame = rest
            .has_remaining()
            .then(|| F::decode_length_delimited(&mut rest))?;
        Some(frame.map_err(|error| {
            rest.clear();
            values::malformed(F::NAME, &error)
        }))
    }))
}

/// The one message of these frames.
fn assemble<F: Frame>(
    frames: impl Iterator<Item = Result<F, WireError>>,
) -> Result<F::Message, WireError> {
    let mut assembly = Assembly::<F>::default();
    let mut frames = frames;
    while let Some(frame) = frames.next() {
        if let Some(message) = assembly.push(frame?)? {
            return match frames.next() {
                None => Ok(message),
                Some(_) => Err(unexpected("a frame behind the message", "none")),
            };
        }
    }
    Err(unexpected(
        "an end before the message is whole",
        "the frames that it declares",
    ))
}

fn unexpected(found: &str, wanted: &str) -> WireError {
    WireError::Unexpected {
        found: found.to_owned(),
        wanted: wanted.to_owned(),
    }
}
