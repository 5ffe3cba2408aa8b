//! How tonic reads and writes frames.

use prost::Message;
use std::marker::PhantomData;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

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
