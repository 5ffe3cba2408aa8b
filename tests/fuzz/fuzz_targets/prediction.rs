//! Any bytes as a saved prediction, behind its digest: an answer or an error, never a panic.

#![no_main]

use kindred_tests::readers::{LeftFile, LeftRun};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static RUN: LazyLock<LeftRun> = LazyLock::new(LeftRun::of_metric);

fuzz_target!(|input: &[u8]| {
    RUN.asked(LeftFile::Saved, input);
});
