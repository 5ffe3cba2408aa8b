//! Failures on their way: a gRPC status that carries a stable code and a sentence.

use crate::error::WireError;
use protocol::message::Failure;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

/// The metadata that carries the stable code.
const CODE_KEY: &str = "kindred-code";

/// Bytes of a peer are not a message of this protocol.
pub(crate) const CODE_PROTOCOL: &str = "KDR-PROTOCOL";

/// A failure as a status.
pub(crate) fn status(grpc: Code, failure: &Failure) -> Status {
    let mut metadata = MetadataMap::new();
    if let Ok(code) = MetadataValue::try_from(failure.code.as_str()) {
        metadata.insert(CODE_KEY, code);
    }
    let text = crate::values::shortened(failure.text.clone());
    Status::with_metadata(grpc, text, metadata)
}

/// The failure that a status carries, if a peer of ours made it.
pub(crate) fn failure(status: &Status) -> Option<Failure> {
    let code = status.metadata().get(CODE_KEY)?.to_str().ok()?;
    Some(Failure { code: code.to_owned(), text: status.message().to_owned() })
}

/// The status of bytes that are not a message.
pub(crate) fn protocol_violation(error: &WireError) -> Status {
    let failure = Failure { code: CODE_PROTOCOL.to_owned(), text: error.to_string() };
    status(Code::InvalidArgument, &failure)
}
