//! Promise: a result says what left each hospital, message by message, and the hospital's own journal says the same.

use kindred_tests::deployment::Deployment;
use kindred_tests::programs::{Home, site_agent};
use kindred_tests::results::result;
use kindred_tests::samples::{DEMO_JOB, demo_of_forests};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Messages and bytes of each kind.
type Totals = BTreeMap<String, (u64, u64)>;

fn in_journal(path: &Path, run: &str) -> Totals {
    let mut totals = Totals::new();
    for line in fs::read_to_string(path).unwrap().lines() {
        let link: Value = serde_json::from_str(line).unwrap();
        let entry = &link["entry"];
        if entry["run"] == run {
            let total = totals
                .entry(entry["kind"].as_str().unwrap().to_owned())
                .or_default();
            total.0 += 1;
            total.1 += entry["bytes"].as_u64().unwrap();
        }
    }
    totals
}

fn in_result(site: &Value) -> Totals {
    let messages = site["messages"].as_array().unwrap().iter();
    let number = |one: &Value, key: &str| one[key].as_u64().unwrap();
    let total = |one: &Value| (number(one, "count"), number(one, "bytes"));
    messages
        .map(|one| (one["kind"].as_str().unwrap().to_owned(), total(one)))
        .collect()
}

#[test]
fn what_left_each_hospital_is_what_its_journal_says() {
    let forest = demo_of_forests(10_000);
    let forest = format!("{forest}[forest]\ntrees = 40\nscope = \"federated\"\n");
    for (job, kinds) in [
        (
            DEMO_JOB.to_owned(),
            [
                "assessment",
                "contribution",
                "derivatives",
                "description",
                "moments",
                "prepared",
                "spread",
            ]
            .as_slice(),
        ),
        (forest, &["assessment", "description", "trees"]),
    ] {
        let home = Home::with_patients("north=90,south=70,east=60,west=60");
        home.write("job.toml", &job);
        home.write("policy.toml", "forests = true\n");
        home.simulate(&[]).must_succeed();
        let out = home.join("out");
        let (result, page) = (
            result(&out),
            fs::read_to_string(out.join("report.html")).unwrap(),
        );
        let run = result["run"].as_str().unwrap();
        for site in result["sites"].as_array().unwrap() {
            let name = site["name"].as_str().unwrap();
            let journal = out.join("sites").join(name).join("journal.jsonl");
            let found = in_result(site);
            assert_eq!(found, in_journal(&journal, run), "{name}");
            assert_eq!(found.keys().collect::<Vec<_>>(), kinds, "{name}");
            for (_, bytes) in found.values() {
                assert!(page.contains(&format!("{bytes} bytes")), "{name}: {bytes}");
            }
            // All bytes of the connection are a little more.
            let bytes: u64 = found.values().map(|(_, bytes)| bytes).sum();
            assert!(site["bytes_sent"].as_u64().unwrap() > bytes);
        }
    }
}

#[test]
fn before_the_first_message_a_journal_says_that_nothing_has_left() {
    let deployment = Deployment::alone();
    let home = &deployment.home;
    let list = ["journal", "list", "--config", "north.toml"];
    let before = home.run(&site_agent(), &list).must_succeed();
    assert_eq!(before.stdout, "nothing has left this site yet\n");
    // A ledger without its journal is no such site.
    home.write("sites/north/ledger.jsonl", "");
    let taken_away = home.run(&site_agent(), &list);
    taken_away.must_fail(kindred_tests::exit::JOURNAL, &["journal.jsonl"]);
}
