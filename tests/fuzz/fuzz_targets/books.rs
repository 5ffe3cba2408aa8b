//! Any lines as the entries of a site's journal and ledger: books or an error, never a panic.

#![no_main]

use kindred_tests::readers;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    readers::books(&readers::folder(), input);
});
