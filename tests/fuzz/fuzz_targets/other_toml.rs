//! Any text as `coordinator.toml`, `operator.toml` or a policy: read, or refused with problems, never a panic.

#![no_main]

use coordinator::config::{CoordinatorConfig, OperatorConfig};
use libfuzzer_sys::fuzz_target;
use site_agent::config::policy;
use std::path::Path;

fuzz_target!(|text: &str| {
    let folder = Path::new("");
    let problems = [
        CoordinatorConfig::parse(text, folder).err(),
        OperatorConfig::parse(text, folder).err(),
        policy::parse(text).err(),
    ];
    for problems in problems.iter().flatten() {
        assert!(!problems.errors().is_empty());
    }
});
