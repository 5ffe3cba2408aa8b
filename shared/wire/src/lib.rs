//! How the conversation travels: protobuf frames over one held gRPC stream a site, TLS 1.3 on both
//! sides. The only crate that names gRPC, protobuf and TLS; no generated type leaves it.

mod asked;
mod assembly;
pub mod certificates;
mod client;
mod connection;
mod dial;
mod encoding;
mod error;
mod frame;
mod generated {
    //! What the build script makes of `proto/federation/v1`.
    #![allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
    tonic::include_proto!("kindred.federation.v1");
}
mod holders;
mod identity;
mod liveness;
mod operations;
mod parts;
mod port;
pub mod private;
mod progress;
mod server;
mod slots;
mod status;
mod tls;
mod to_coordinator;
mod to_site;
mod transport;
mod trees;
mod values;
mod visible;
mod warrant;

pub use certificates::CredentialFiles;
pub use client::{
    CoordinatorReceiver, CoordinatorSender, OperatorClient, ProgressReceiver, attend,
};
pub use connection::{ConnectionError, Remedy, SendError};
pub use dial::{Address, AddressError, Dial, Proxy};
pub use encoding::{
    decode_answer, decode_progress, decode_result, decode_to_coordinator, decode_to_site,
    decode_warrant, encode_answer, encode_progress, encode_result, encode_to_coordinator,
    encode_to_site, encode_warrant,
};
pub use error::WireError;
pub use identity::{Identity, IdentityError};
pub use operations::{OperatorCall, Reply};
pub use port::{ListenError, listen};
pub use server::{Incoming, ServeError, SiteReceiver, SiteSender, Traffic, serve};
pub use status::PROTOCOL_VERSION;
pub use tls::{ClientTls, ServerTls, TlsError, database_tls};
pub use visible::LogLine;
pub use warrant::{SignatureError, Signer, WarrantError, Warrants, run_id};

#[cfg(test)]
mod forest_tests;
#[cfg(test)]
mod message_tests;
