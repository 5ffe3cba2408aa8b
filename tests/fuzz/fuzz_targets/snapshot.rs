//! Any bytes as the frozen patients of a study, behind their digest: patients or none, never a panic.

#![no_main]

use kindred_tests::readers;
use libfuzzer_sys::fuzz_target;

// A panic of the Parquet library that the reader catches stops nobody; one that it does not still does.
fuzz_target!(
    init: std::panic::set_hook(Box::new(|_| ())),
    |input: &[u8]| {
        readers::snapshot(input);
    }
);
