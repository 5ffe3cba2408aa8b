//! Any text as `site.toml`: a configuration or problems, never a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use site_agent::config::SiteConfig;
use std::path::Path;

fuzz_target!(|text: &str| {
    if let Err(problems) = SiteConfig::parse(text, Path::new("")) {
        assert!(!problems.errors().is_empty());
    }
});
