//! Jobs to begin with.

use std::fmt::Write as _;

/// The job on synthetic patients.
pub const DEMO_JOB: &str = include_str!("../../deploy/jobs/demo.toml");

/// The demonstration's job with other keys of `[unpsl]`, and more tables after it.
pub fn demo_job(unpsl: &[&str], tables: &str) -> String {
    let key = |line: &str| line.split('=').next().unwrap_or_default().trim().to_owned();
    let replaced: Vec<String> = unpsl.iter().map(|line| key(line)).collect();
    let mut text = String::new();
    for line in DEMO_JOB.lines() {
        if !replaced.contains(&key(line)) {
            let _ = writeln!(text, "{line}");
        }
    }
    for line in unpsl {
        let _ = writeln!(text, "{line}");
    }
    text + tables
}
