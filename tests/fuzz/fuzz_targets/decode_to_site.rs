//! Any bytes as the frames of a message to a site: a message or an error, never a panic.

#![no_main]

use kindred_tests::readers::frames;
use libfuzzer_sys::fuzz_target;
use wire::decode_to_site;

fuzz_target!(|input: &[u8]| {
    if let Err(error) = decode_to_site(&frames(input)) {
        assert!(!error.to_string().is_empty());
    }
});
