//! How the conversation travels: protobuf frames over one held gRPC stream per site, TLS 1.3 on both
//! sides. The only crate that names gRPC, protobuf and TLS; no generated type leaves it.
//!
//! ```text
//! message, method     a message as a header and its parts (Travels): one file per method
//!   -> encoding       parts, frames, whole messages, answers that are sealed
//! connection          one stream: dialled, accepted, watched over
//!   -> identity       who is at its other end
//! server, client, operations, enrolment
//! ```

mod client;
mod connection;
mod encoding;
pub mod enrolment;
mod error;
mod generated;
mod identity;
mod incoming;
pub mod jobs;
mod message;
mod method;
mod operations;
pub mod private;
mod server;
mod visible;

pub use client::{
    CoordinatorReceiver, CoordinatorSender, OperatorClient, ProgressReceiver, attend, probe,
};
pub use connection::dial::{Address, AddressError, Dial, Proxy};
pub use connection::failing::{ConnectionError, Remedy, SendError};
pub use connection::port::{ListenError, listen};
pub use connection::status::PROTOCOL_VERSION;
pub use connection::witness::shown_authority;
pub use encoding::sealed::{Heard, Sealed, bytes_of, digest_of, seal};
pub use encoding::{
    decode_answer, decode_progress, decode_result, decode_to_coordinator, decode_to_site,
    decode_warrant, encode_answer, encode_progress, encode_result, encode_to_coordinator,
    encode_to_site, encode_warrant,
};
pub use error::WireError;
pub use identity::approval::{
    fingerprint, fingerprint_of, fingerprint_of_der, has_agreed, has_approved, has_vouched,
};
pub use identity::certificates::{self, CredentialFiles};
pub use identity::credentials::TlsError;
pub use identity::keys::{KeyError, Said, SiteKeys, run_digest};
pub use identity::pairs::Acquaintance;
pub use identity::secrets::RunSecrets;
pub use identity::tls::{ClientTls, ServerTls, database_tls};
pub use identity::warrant::{SignatureError, Signer, WarrantError, Warrants, run_id};
pub use identity::{Identity, IdentityError};
pub use incoming::{Incoming, OperatorCall, Reply, SiteReceiver, SiteSender, Traffic};
pub use message::covered::as_heard;
pub use message::study::{decode_approved, decode_opening, encode_approved, encode_opening};
pub use server::{ServeError, serve};
pub use visible::LogLine;

#[cfg(test)]
mod tests;
