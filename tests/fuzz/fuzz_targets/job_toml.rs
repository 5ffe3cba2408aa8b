//! Any text as a job: a job or problems, never a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::job::Job;

fuzz_target!(|text: &str| {
    if let Err(problems) = Job::parse(text) {
        assert!(!problems.errors().is_empty());
    }
});
