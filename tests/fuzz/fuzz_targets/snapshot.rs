//! Any bytes as the frozen patients of a study, behind their digest: patients or none, never a panic.

#![no_main]

use kindred_tests::readers;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    readers::snapshot(input);
});
