//! What the build script makes of `proto/federation/v1`.
#![allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]

tonic::include_proto!("kindred.federation.v1");
