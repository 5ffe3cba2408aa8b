//! Frames: what one gRPC message carries.

use crate::encoding::parts::{Declared, IncomingParts};
use crate::error::WireError;
use crate::generated::part::Part;
use prost::Message;

/// Bytes of one frame at most: a part stays below 1 MiB but for its last item.
pub(crate) const FRAME_BYTES_MAX: usize = 5 << 20;
/// Bytes of one frame of a site at most: a chunk, or the texts of its problems.
pub(crate) const REPLY_FRAME_BYTES_MAX: usize = 2 << 20;

/// The content of a frame: the message, or a part of the message before it.
pub(crate) enum Content<H> {
    Header(H),
    Part(Part),
}

/// One of the protocol's frames, as it comes in.
pub(crate) trait Frame: Message + Default + std::fmt::Debug + 'static {
    /// The message without its matrices and long lists.
    type Header: std::fmt::Debug + Send;
    /// The whole message, in the protocol's types.
    type Message;
    /// The frame in words.
    const NAME: &'static str;

    /// What it carries.
    fn unpack(self) -> Result<Content<Self::Header>, WireError>;
    /// The run and exchange that a message answers, where it is an answer.
    fn answers(_header: &Self::Header) -> Option<(&str, u32)> {
        None
    }
    /// What follows a header in parts.
    fn declared(header: &Self::Header) -> Result<Declared, WireError>;
    /// The message, once all parts are there.
    fn join(header: Self::Header, parts: &mut IncomingParts) -> Result<Self::Message, WireError>;
}

/// A frame that this side fills by itself.
pub(crate) trait OutgoingFrame: Frame {
    /// The frame with this content.
    fn pack(content: Content<Self::Header>) -> Self;
}

/// Makes a generated message the frame of one that travels.
macro_rules! frame {
    ($frame:ident, $module:ident, $message:ty, $name:literal) => {
        impl $crate::encoding::frame::Frame for $crate::generated::$frame {
            type Header = <$message as $crate::encoding::parts::Travels>::Header;
            type Message = $message;
            const NAME: &'static str = $name;

            fn unpack(
                self,
            ) -> Result<$crate::encoding::frame::Content<Self::Header>, $crate::error::WireError>
            {
                use $crate::encoding::frame::Content;
                use $crate::encoding::values::present;
                match present($name, self.frame)? {
                    $crate::generated::$module::Frame::Message(header) => {
                        Ok(Content::Header(header))
                    }
                    $crate::generated::$module::Frame::Part(part) => {
                        present($name, part.part).map(Content::Part)
                    }
                }
            }

            fn declared(
                header: &Self::Header,
            ) -> Result<$crate::encoding::parts::Declared, $crate::error::WireError> {
                <$message as $crate::encoding::parts::Travels>::declared(header)
            }

            fn join(
                header: Self::Header,
                parts: &mut $crate::encoding::parts::IncomingParts,
            ) -> Result<$message, $crate::error::WireError> {
                <$message as $crate::encoding::parts::Travels>::join(header, parts)
            }
        }

        impl $crate::encoding::frame::OutgoingFrame for $crate::generated::$frame {
            fn pack(content: $crate::encoding::frame::Content<Self::Header>) -> Self {
                use $crate::encoding::frame::Content;
                use $crate::generated::{Part, $module};
                let frame = match content {
                    Content::Header(header) => $module::Frame::Message(header),
                    Content::Part(part) => $module::Frame::Part(Part { part: Some(part) }),
                };
                Self { frame: Some(frame) }
            }
        }
    };
}
pub(crate) use frame;
