//! Frames: what one gRPC message carries, and how tonic reads and writes it.

use crate::generated as pb;
use bytes::Bytes;
use prost::Message;
use std::marker::PhantomData;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// Bytes of one frame at most: a part stays below 1 MiB but for its last item.
pub(crate) const FRAME_BYTES_MAX: usize = 5 << 20;
/// Bytes of one frame of a site at most: a chunk, or the texts of its problems.
pub(crate) const REPLY_FRAME_BYTES_MAX: usize = 2 << 20;
/// Bytes of the entries of one chunk at most.
pub(crate) const CHUNK_BYTES_MAX: usize = 1 << 20;

/// Consecutive entries of a matrix (`MatrixChunk` of matrix.proto).
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

/// The content of a frame: the message, or a part of the message before it.
pub(crate) enum Content<H> {
    Header(H),
    Part(pb::part::Part),
}

/// One of the protocol's frames.
pub(crate) trait Frame: Message + Default + std::fmt::Debug + 'static {
    /// The message that this kind of frame carries.
    type Header: std::fmt::Debug + Send;
    /// The frame in words.
    const NAME: &'static str;

    fn pack(content: Content<Self::Header>) -> Self;
    /// None where the frame is empty or of an unknown kind.
    fn unpack(self) -> Option<Content<Self::Header>>;
}

macro_rules! frame {
    ($frame:ident, $module:ident, $header:ident, $name:literal) => {
        impl Frame for pb::$frame {
            type Header = pb::$header;
            const NAME: &'static str = $name;

            fn pack(content: Content<pb::$header>) -> Self {
                let frame = match content {
                    Content::Header(header) => pb::$module::Frame::Message(header),
                    Content::Part(part) => pb::$module::Frame::Part(pb::Part { part: Some(part) }),
                };
                Self { frame: Some(frame) }
            }

            fn unpack(self) -> Option<Content<pb::$header>> {
                match self.frame? {
                    pb::$module::Frame::Message(header) => Some(Content::Header(header)),
                    pb::$module::Frame::Part(part) => part.part.map(Content::Part),
                }
            }
        }
    };
}

frame!(ToSiteFrame, to_site_frame, ToSite, "a frame to a site");
frame!(
    ToCoordinatorFrame,
    to_coordinator_frame,
    ToCoordinator,
    "a frame to the coordinator"
);
frame!(
    AnswerFrame,
    answer_frame,
    Answer,
    "a frame of a stored answer"
);
frame!(ResultFrame, result_frame, RunResult, "a frame of a result");

/// tonic's codec with room reserved for the whole frame.
#[derive(Debug, Clone)]
pub(crate) struct FrameCodec<T, U> {
    types: PhantomData<(T, U)>,
}

impl<T, U> Default for FrameCodec<T, U> {
    fn default() -> Self {
        Self { types: PhantomData }
    }
}

impl<T, U> Codec for FrameCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = FrameEncoder<T>;
    type Decoder = FrameDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        FrameEncoder { types: PhantomData }
    }

    fn decoder(&mut self) -> Self::Decoder {
        FrameDecoder { types: PhantomData }
    }
}

/// Writes frames.
#[derive(Debug)]
pub(crate) struct FrameEncoder<T> {
    types: PhantomData<T>,
}

impl<T: Message> Encoder for FrameEncoder<T> {
    type Item = T;
    type Error = Status;

    fn encode(&mut self, frame: T, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.reserve(frame.encoded_len());
        frame
            .encode(buffer)
            .map_err(|error| Status::internal(error.to_string()))
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::default()
    }
}

/// Reads frames.
#[derive(Debug)]
pub(crate) struct FrameDecoder<U> {
    types: PhantomData<U>,
}

impl<U: Message + Default> Decoder for FrameDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        // `DataLoss` is what the inbox knows as bytes that are no frame.
        U::decode(buffer)
            .map(Some)
            .map_err(|error| Status::data_loss(error.to_string()))
    }
}
