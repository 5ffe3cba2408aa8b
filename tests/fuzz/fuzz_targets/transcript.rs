//! Any bytes as the copy of a run that a site keeps: a transcript or an error, never a panic.

#![no_main]

use kindred_tests::readers;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    readers::transcript(&readers::folder(), input);
});
