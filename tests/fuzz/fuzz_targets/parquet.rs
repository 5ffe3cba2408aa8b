//! Any bytes as a site's Parquet file: a cohort or problems, never a panic.

#![no_main]

use kindred_tests::readers;
use libfuzzer_sys::fuzz_target;

// A panic of the Parquet library that the reader catches stops nobody; one that it does not still does.
fuzz_target!(
    init: std::panic::set_hook(Box::new(|_| ())),
    |input: &[u8]| {
        readers::parquet(&readers::folder(), input);
    }
);
