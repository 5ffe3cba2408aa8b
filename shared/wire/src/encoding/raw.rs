//! Messages of the protocol whose nested values stay as they came, as bytes.

use bytes::Bytes;
use prost::{Message, Oneof};

/// Consecutive entries of a matrix (`MatrixChunk` of parts.proto).
///
/// A packed run of doubles is, byte for byte, a bytes field of little-endian numbers. Reading it
/// as one keeps the run where it arrived until it is checked and copied into the matrix.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct MatrixChunk {
    /// Which matrix of the message.
    #[prost(uint32, tag = "1")]
    pub(crate) matrix: u32,
    /// Place of the first value, in entries.
    #[prost(uint64, tag = "2")]
    pub(crate) offset: u64,
    /// Little-endian float64.
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) values: Bytes,
}

/// A frame to the coordinator (`ToCoordinatorFrame` of federation.proto).
///
/// A nested message is, byte for byte, a bytes field. So what was sealed leaves as it was sealed.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ToCoordinatorFrame {
    #[prost(oneof = "ToCoordinatorContent", tags = "1, 2")]
    pub(crate) frame: Option<ToCoordinatorContent>,
}

/// What a frame to the coordinator holds, encoded.
#[derive(Clone, PartialEq, Eq, Oneof)]
pub(crate) enum ToCoordinatorContent {
    /// A `ToCoordinator`.
    #[prost(bytes = "bytes", tag = "1")]
    Message(Bytes),
    /// A `Part`.
    #[prost(bytes = "bytes", tag = "2")]
    Part(Bytes),
}

/// A message to the coordinator (`ToCoordinator` of federation.proto) that holds a reply.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct SealedMessage {
    /// The reply.
    #[prost(message, optional, tag = "2")]
    pub(crate) reply: Option<SealedReply>,
}

/// An answer to one exchange (`Reply` of federation.proto).
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct SealedReply {
    /// The run.
    #[prost(string, tag = "1")]
    pub(crate) run: String,
    /// The exchange.
    #[prost(uint32, tag = "2")]
    pub(crate) exchange: u32,
    /// An `Answer`.
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub(crate) answer: Option<Bytes>,
    /// A `JournalHead`, where the site keeps a journal.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub(crate) journal: Option<Bytes>,
    /// The site's word for the answer.
    #[prost(bytes = "bytes", tag = "5")]
    pub(crate) signature: Bytes,
}
