//! Any text as a study, or as its draft: a study or problems, never a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::study::{Study, by_nobody};

fuzz_target!(|text: &str| {
    for text in [text, &by_nobody(text)] {
        if let Err(problems) = Study::parse(text) {
            assert!(!problems.errors().is_empty());
        }
    }
});
