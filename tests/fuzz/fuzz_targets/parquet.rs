//! Any bytes as a site's Parquet file: a cohort or problems, never a panic.

#![no_main]

use kindred_tests::readers;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    readers::parquet(&readers::folder(), input);
});
