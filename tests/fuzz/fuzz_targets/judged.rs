//! Any bytes as pairs that physicians have judged: pairs or problems, never a panic.

#![no_main]

use kindred_tests::readers;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    readers::judged(input);
});
