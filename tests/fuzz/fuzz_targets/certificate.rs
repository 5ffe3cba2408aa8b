//! Any bytes as a certificate, a list of revoked ones or a request for one: read or refused, never a panic.

#![no_main]

use kindred_tests::readers::Authority;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static AUTHORITY: LazyLock<Authority> = LazyLock::new(Authority::new);

fuzz_target!(|input: &[u8]| {
    AUTHORITY.judged(input);
});
