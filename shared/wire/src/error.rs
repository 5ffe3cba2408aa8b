//! What can be wrong with the bytes of a peer.

use protocol::name::NameError;

/// Bytes that are not a message of this protocol. Says what was found and what was wanted, never
/// an entry of a matrix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The bytes are not the protobuf message that was expected.
    #[error("found bytes that are not {wanted}: {reason}")]
    Malformed {
        /// The message that was expected.
        wanted: &'static str,
        /// What the decoder said.
        reason: String,
    },
    /// A field that the message needs is absent, or of a kind that this version does not know.
    #[error("found no {field} or an unknown one, wanted one that version 1 of the protocol names")]
    Missing {
        /// The field.
        field: &'static str,
    },
    /// A frame or number that does not belong here.
    #[error("found {found}, wanted {wanted}")]
    Unexpected {
        /// What came.
        found: String,
        /// What would have been right.
        wanted: String,
    },
    /// Something is larger than its limit.
    #[error("found {field} of {found}, wanted at most {limit}")]
    TooLarge {
        /// What is too large.
        field: &'static str,
        /// Its size.
        found: u64,
        /// The limit.
        limit: u64,
    },
    /// Not a number, or infinite.
    #[error("found {found} in {field}, wanted finite numbers")]
    NotFinite {
        /// Where.
        field: &'static str,
        /// `NaN`, `infinity` or `-infinity`.
        found: &'static str,
    },
    /// A name is not one.
    #[error("{field}: {source}")]
    Name {
        /// Whose name.
        field: &'static str,
        /// What is wrong with it.
        source: NameError,
    },
}
