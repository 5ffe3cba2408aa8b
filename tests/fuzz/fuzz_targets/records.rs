//! Any bytes as a record of a store: what was stored or an error, never a panic.

#![no_main]

use kindred_tests::readers;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    readers::record(input);
});
