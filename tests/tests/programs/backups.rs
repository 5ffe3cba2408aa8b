//! Promise: who goes on from a backup finds the same bits, and no restore makes a book forget what was written in it.

use crate::hindered::{METRIC, SEED, in_rounds, metric, open};
use crate::studies::at_site;
use kindred_tests::deployment::Deployment;
use kindred_tests::exit::{JOURNAL, USAGE};
use kindred_tests::programs::{Ran, coordinator, site_agent};
use std::fs;
use std::os::unix::fs::PermissionsExt;

pub(crate) fn of_north(deployment: &Deployment, words: &[&str]) -> Ran {
    let all = [words, &["--config", "north.toml"]].concat();
    deployment.home.run(&site_agent(), &all)
}

pub(crate) fn of_coordinator(deployment: &Deployment, words: &[&str]) -> Ran {
    let all = [words, &["--config", "coordinator.toml"]].concat();
    deployment.home.run(&coordinator(), &all)
}

/// The head that a command has printed.
fn head(said: &str) -> String {
    let found = said
        .split_whitespace()
        .find(|word| word.contains(':') && word.len() > 64);
    found.expect("a head").to_owned()
}

#[test]
fn a_hospital_goes_on_from_its_backup_and_never_from_one_that_is_behind_its_ledger() {
    let mut deployment = open();
    of_north(&deployment, &["backup", "--out", "early"]).must_succeed();
    let (wanted, run) = in_rounds(&deployment);
    // In the middle of a run, of which an agent writes.
    let said = of_north(&deployment, &["backup", "--out", "copy"]).must_succeed();
    head(&said.stdout);
    of_north(&deployment, &["backup", "--out", "copy"]).must_fail(USAGE, &["copy is not empty"]);
    of_north(&deployment, &["restore", "copy"]).must_fail(USAGE, &["in use by another process"]);
    assert!(metric(&deployment, &run) == wanted);
    deployment.kill_agent("north");

    let behind = ["journal.jsonl", "a restore would forget them"];
    for copy in ["early", "copy"] {
        of_north(&deployment, &["restore", copy]).must_fail(JOURNAL, &behind);
        of_north(&deployment, &["restore", copy, "--latest"]).must_fail(JOURNAL, &behind);
    }
    let verified = of_north(&deployment, &["journal", "verify"]).must_succeed();
    let last = head(&verified.stdout);
    of_north(&deployment, &["backup", "--out", "whole"]).must_succeed();
    let site = deployment.home.join("sites/north");
    fs::rename(&site, deployment.home.join("burnt")).unwrap();
    of_north(&deployment, &["restore", "whole"]).must_fail(USAGE, &["--head", "--latest"]);
    of_north(&deployment, &["restore", "copy", "--head", &last]).must_fail(JOURNAL, &["entries"]);
    assert!(!site.exists());
    of_north(&deployment, &["restore", "whole", "--head", &last]).must_succeed();
    // Again changes nothing: what is there goes on to the same end.
    of_north(&deployment, &["restore", "whole"]).must_succeed();
    deployment.start_agent("north");
    let again = deployment.submit(crate::owners::QUICK, &[]);
    metric(&deployment, &again);
    at_site(&deployment, "north", &["audit", "demo"]).must_succeed();
    let other = fs::read_to_string(deployment.home.join("south.toml")).unwrap();
    deployment.home.write("other.toml", &other);
    let words = ["restore", "whole", "--config", "other.toml"];
    let refused = deployment.home.run(&site_agent(), &words);
    refused.must_fail(USAGE, &["a backup of north, wanted one of south"]);
}

#[test]
fn a_coordinator_goes_on_from_its_backup_and_never_from_one_that_is_behind() {
    let mut deployment = open();
    let (wanted, run) = in_rounds(&deployment);
    let said = of_coordinator(&deployment, &["backup", "--out", "copy"]).must_succeed();
    for file in fs::read_dir(deployment.home.join("copy")).unwrap() {
        let mode = file.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let last = head(&said.stdout);
    of_coordinator(&deployment, &["restore", "copy"]).must_fail(USAGE, &["used by another"]);
    deployment.kill_coordinator();
    fs::rename(
        deployment.home.join("coordinator"),
        deployment.home.join("burnt"),
    )
    .unwrap();
    of_coordinator(&deployment, &["restore", "copy"]).must_fail(USAGE, &["--head", "--latest"]);
    let restored = of_coordinator(&deployment, &["restore", "copy", "--head", &last]);
    // Hospitals have answered more of it than the copy knows.
    let said = restored.must_succeed().stderr;
    assert!(
        said.contains(run.as_str()) && said.contains("submit it again"),
        "{said}"
    );
    deployment.start_coordinator();
    let shown = deployment
        .job(&["show", run.as_str()])
        .must_succeed()
        .stdout;
    assert!(shown.contains("KDR-STOPPED"), "{shown}");
    let again = deployment.submit(METRIC, &[&SEED[..], &["--token", "after"]].concat());
    assert!(metric(&deployment, &again) == wanted, "other bits");
    deployment.kill_coordinator();
    let behind = ["audit.jsonl", "a restore would forget them"];
    of_coordinator(&deployment, &["restore", "copy"]).must_fail(JOURNAL, &behind);
}
