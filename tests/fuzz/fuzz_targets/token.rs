//! Any text as the word by which a party enrols: a token or an error, never a panic.

#![no_main]

use kindred_tests::readers;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    readers::token(text);
});
