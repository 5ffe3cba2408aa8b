//! How the conversation travels: protobuf frames over one held gRPC stream a site, TLS 1.3 on both
//! sides. The only crate that names gRPC, protobuf and TLS; no generated type leaves it.

mod assembly;
mod encoding;
mod error;
mod frame;
mod generated {
    //! What the build script makes of `proto/federation/v1`.
    #![allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]
    tonic::include_proto!("kindred.federation.v1");
}
mod parts;
mod progress;
mod status;
mod to_coordinator;
mod to_site;
mod values;

pub use encoding::{
    decode_answer, decode_progress, decode_result, decode_to_coordinator, decode_to_site,
    encode_answer, encode_progress, encode_result, encode_to_coordinator, encode_to_site,
};
pub use error::WireError;
