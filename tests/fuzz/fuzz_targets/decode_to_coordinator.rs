//! Any bytes as the frames of a message to the coordinator: a message or an error, never a panic.

#![no_main]

use kindred_tests::readers::frames;
use libfuzzer_sys::fuzz_target;
use wire::decode_to_coordinator;

fuzz_target!(|input: &[u8]| {
    if let Err(error) = decode_to_coordinator(&frames(input)) {
        assert!(!error.to_string().is_empty());
    }
});
