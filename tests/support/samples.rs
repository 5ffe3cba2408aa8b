//! Jobs and configurations to begin with.

use std::fmt::Write as _;

/// The job on synthetic patients.
pub const DEMO_JOB: &str = include_str!("../../deploy/jobs/demo.toml");

/// A site whose patients are in the file `patients.csv` with their names in the column `id`; it has no rule.
pub const SITE: &str = "site = 'north'\ncoordinator = 'localhost:7443'\nfolder = 'results'\n\
    [tls]\nca = 'ca.pem'\ncertificate = 'c.pem'\nkey = 'k.pem'\n\
    [source]\nkind = 'csv'\npath = 'patients.csv'\npatient = 'id'\n";

/// The demonstration's job with other keys of `[unpsl]`, and more tables after it. Where they do not say otherwise, the metric
/// keeps most features, so that there is one.
pub fn demo_job(unpsl: &[&str], tables: &str) -> String {
    let key = |line: &str| line.split('=').next().unwrap_or_default().trim().to_owned();
    let is_set = |weak: &&str| unpsl.iter().any(|line| key(line) == key(weak));
    let weak = ["lambda_sparsity = 0.003", "rank = 8"];
    let unset = weak.into_iter().filter(|weak| !is_set(weak));
    let unpsl: Vec<&str> = unpsl.iter().copied().chain(unset).collect();
    let replaced: Vec<String> = unpsl.iter().map(|line| key(line)).collect();
    let mut text = String::new();
    for line in DEMO_JOB.lines() {
        if !replaced.contains(&key(line)) {
            let _ = writeln!(text, "{line}");
        }
    }
    for line in &unpsl {
        let _ = writeln!(text, "{line}");
    }
    text + tables
}

/// The demonstration's job as one of forests, without the table of its method: every number has a range of `reach` on either
/// side of 0, as federated forests need it.
pub fn demo_of_forests(reach: u32) -> String {
    let (head, _) = DEMO_JOB.split_once("[unpsl]").expect("the method's table");
    let ranged = format!("kind = \"numeric\"\nrange = [-{reach}, {reach}]");
    head.replace("method = \"unpsl\"", "method = \"forest\"")
        .replace("kind = \"numeric\"", &ranged)
}
