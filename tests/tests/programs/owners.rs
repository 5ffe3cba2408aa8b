//! Promise: whoever owns a coordinator or a hospital can show what operators did, and keeps results no longer than they want.

use crate::hindered::{metric, open};
use crate::studies::{at_site, study};
use kindred_tests::deployment::{Deployment, WAITS};
use kindred_tests::exit::{JOURNAL, USAGE};
use kindred_tests::programs::{PATIENCE, Ran, coordinator, until};
use protocol::name::RunId;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, SystemTime};

/// One feature, in a blink.
pub(crate) const QUICK: &str = "name = \"metric\"\nmethod = \"unpsl\"\nstudy = \"demo.study.toml\"\noutcome = \"class\"\n\
    [unpsl]\nrank = 1\nlambda_sparsity = 0.001\n";

fn audit(deployment: &Deployment, words: &[&str]) -> Ran {
    let all = [&["audit"], words, &["--config", "coordinator.toml"]].concat();
    deployment.home.run(&coordinator(), &all)
}

/// Who did what, to which run or study.
fn acts(deployment: &Deployment, words: &[&str]) -> Vec<(String, String, String)> {
    let said = audit(deployment, &[&["list", "--json"], words].concat()).must_succeed();
    let said: Value = serde_json::from_str(&said.stdout).unwrap();
    let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
    let entries = said["entries"].as_array().unwrap().iter();
    let act = |one: &Value| (text(one, "operator"), text(one, "did"), text(one, "run"));
    entries.map(act).collect()
}

/// The moments at which all in a folder was written, so many days earlier.
fn age(folder: &Path, days: u64) {
    let then = SystemTime::now() - Duration::from_secs(86_400 * days);
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => age(&path, days),
            false => File::options()
                .append(true)
                .open(&path)
                .unwrap()
                .set_modified(then)
                .unwrap(),
        }
    }
}

#[test]
fn an_administrator_sees_and_ends_what_is_everybodys_and_submits_nothing() {
    let mut deployment = open();
    deployment.admit_rival();
    let run = deployment.submit(QUICK, &["--token", "one"]);
    metric(&deployment, &run);
    deployment.desert();
    let waiting = deployment.submit(QUICK, &["--token", "two"]);
    let by_rival = |deployment: &Deployment, words: &[&str]| deployment.job_by_rival(words);
    let listed = |deployment: &Deployment| {
        let listed = by_rival(deployment, &["list", "--json"]).must_succeed();
        let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
        let operator = |one: &Value| one["operator"].as_str().unwrap().to_owned();
        let runs = listed.as_array().unwrap().iter();
        runs.map(operator).collect::<Vec<_>>()
    };
    assert!(listed(&deployment).is_empty());
    by_rival(&deployment, &["cancel", waiting.as_str()]).must_fail(USAGE, &["KDR-RUN"]);

    deployment.kill_coordinator();
    let config = fs::read_to_string(deployment.home.join("coordinator.toml")).unwrap();
    let named = |name: &str| format!("administrators = [{name:?}]\n{config}");
    deployment.home.write("coordinator.toml", &named("No Name"));
    let serve = ["serve", "--config", "coordinator.toml"];
    let refused = deployment.home.run(&coordinator(), &serve);
    refused.must_fail(USAGE, &["administrators", "names of operators"]);
    deployment.home.write("coordinator.toml", &named("rival"));
    deployment.start_coordinator();
    assert_eq!(listed(&deployment), ["researcher"; 3]);
    by_rival(&deployment, &["show", run.as_str()]).must_succeed();
    by_rival(&deployment, &["cancel", waiting.as_str()]).must_succeed();
    by_rival(&deployment, &["remove", run.as_str()]).must_succeed();
    by_rival(&deployment, &["submit", "job.toml", "--token", "three"])
        .must_fail(USAGE, &["KDR-STUDY", "one of the operators of the study"]);
    let close = ["study", "close", "demo", "--config", "rival.toml"];
    let closed = deployment.home.run(&coordinator(), &close);
    closed.must_succeed();
    let did: Vec<(String, String)> = acts(&deployment, &[])
        .into_iter()
        .skip(4)
        .map(|one| (one.0, one.1))
        .collect();
    let by_rival = |did: &str| ("rival".to_owned(), did.to_owned());
    assert_eq!(did, ["cancelled", "removed", "closed"].map(by_rival));
}

#[test]
fn an_audit_log_shows_who_did_what_and_where_it_was_touched() {
    let mut deployment = open();
    deployment.admit_rival();
    let run = deployment.submit(QUICK, &["--token", "one"]);
    metric(&deployment, &run);
    // The same again is no other act; what is refused or not there is none.
    deployment.submit(QUICK, &["--token", "one"]);
    deployment.job_by_rival(&["cancel", run.as_str()]);
    deployment.job(&["remove", "0123456789ab"]);
    deployment.job(&["remove", run.as_str()]).must_succeed();
    deployment.desert();
    let second = deployment.submit(QUICK, &["--token", "two"]);
    deployment.job(&["cancel", second.as_str()]).must_succeed();
    study(&deployment, &["close", "demo"]).must_succeed();
    let did: Vec<String> = acts(&deployment, &[])
        .into_iter()
        .map(|one| one.1)
        .collect();
    let wanted = [
        "proposed",
        "submitted",
        "fetched",
        "removed",
        "submitted",
        "cancelled",
        "closed",
    ];
    assert_eq!(did, wanted);
    let own = acts(&deployment, &[run.as_str()]);
    assert_eq!(own.len(), 3);
    assert!(
        own.iter()
            .all(|one| one.0 == "researcher" && one.2 == run.as_str())
    );
    let shown = audit(&deployment, &["list"]).must_succeed().stdout;
    assert!(
        shown.contains("researcher") && shown.contains("closed"),
        "{shown}"
    );

    let verified = audit(&deployment, &["verify"]).must_succeed().stdout;
    let head = verified.trim().rsplit(' ').next().unwrap().to_owned();
    assert!(verified.starts_with("7 entries"), "{verified}");
    deployment.kill_coordinator();
    let path = deployment.home.join("coordinator/audit.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    let cut: Vec<&str> = whole.lines().take(6).collect();
    fs::write(&path, cut.join("\n") + "\n").unwrap();
    audit(&deployment, &["verify"]).must_succeed();
    audit(&deployment, &["verify", "--head", &head]).must_fail(JOURNAL, &["7 entries"]);
    fs::write(&path, whole.replace("\"removed\"", "\"fetched\"")).unwrap();
    audit(&deployment, &["verify"]).must_fail(JOURNAL, &["audit.jsonl, entry 4"]);
    // A coordinator does not go on from a log that was touched.
    let serve = ["serve", "--config", "coordinator.toml"];
    let started = deployment.home.run(&coordinator(), &serve);
    started.must_fail(JOURNAL, &["audit.jsonl, entry 4"]);
    fs::write(&path, whole).unwrap();
    deployment.start_coordinator();
}

#[test]
fn results_go_after_the_days_that_their_owners_set_and_those_of_an_open_study_stay_at_its_hospitals()
 {
    let mut deployment = open();
    let run = deployment.submit(QUICK, &[]);
    metric(&deployment, &run);
    let site = deployment.home.join("sites/north");
    let left = [
        site.join("runs").join(run.as_str()),
        site.join("transcripts").join(run.as_str()),
    ];
    let journal = fs::read(site.join("journal.jsonl")).unwrap();
    assert!(left.iter().all(|path| path.exists()), "{left:?}");
    for file in ["north.toml", "coordinator.toml"] {
        let text = fs::read_to_string(deployment.home.join(file)).unwrap();
        deployment
            .home
            .write(file, &format!("retain_days = 3\n{text}"));
    }
    for folder in ["runs", "transcripts"] {
        age(&site.join(folder), 4);
    }
    let again = |deployment: &mut Deployment| {
        deployment.kill_agent("north");
        deployment.start_agent("north");
        deployment.agent("north").wait_for("joined the coordinator");
    };
    again(&mut deployment);
    at_site(&deployment, "north", &["audit", "demo"]).must_succeed();
    assert!(left.iter().all(|path| path.exists()), "{left:?}");
    study(&deployment, &["close", "demo"]).must_succeed();
    deployment.agent("north").wait_for("have closed a study");
    again(&mut deployment);
    until("old results to go", PATIENCE, || {
        left.iter().all(|path| !path.exists()).then_some(())
    });
    assert_eq!(fs::read(site.join("journal.jsonl")).unwrap(), journal);

    // The coordinator has it by the moment of its end, which is now.
    deployment.kill_coordinator();
    deployment.start_coordinator();
    let listed = deployment.job(&["list"]).must_succeed().stdout;
    assert!(listed.contains(run.as_str()), "{listed}");
    assert!(deployment.coordinator_log().matches(WAITS).count() >= 2);
}

#[test]
fn a_job_that_is_submitted_many_times_at_once_is_one_run() {
    let mut deployment = open();
    deployment.home.write("job.toml", QUICK);
    for token in ["one", "two", "three", "four"] {
        let words = ["job", "submit", "job.toml", "--seed", "3", "--token", token];
        let caller = |_: u32| {
            let mut command = deployment.home.command(&coordinator());
            command.args(words).args(["--config", "operator.toml"]);
            command.stdout(Stdio::piped()).spawn().unwrap()
        };
        let callers: Vec<Child> = (0..6).map(caller).collect();
        let said = callers.into_iter().map(|one| {
            let output = one.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", deployment.coordinator_log());
            String::from_utf8(output.stdout).unwrap()
        });
        let said: BTreeSet<String> = said.collect();
        assert_eq!(said.len(), 1, "{said:?}");
        let run = said.first().unwrap().trim();
        metric(&deployment, &RunId::new(run).unwrap());
        let submitted = acts(&deployment, &[run]);
        let submitted = submitted.iter().filter(|(_, did, _)| did == "submitted");
        assert_eq!(submitted.count(), 1);
    }
    assert!(deployment.coordinator().ended().is_none());
}
