//! Any bytes as the frames of a message to a site: a message or an error, never a panic.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use wire::decode_to_site;

fuzz_target!(|frames: Vec<Vec<u8>>| {
    let frames: Vec<Bytes> = frames.into_iter().map(Bytes::from).collect();
    if let Err(error) = decode_to_site(&frames) {
        assert!(!error.to_string().is_empty());
    }
});
