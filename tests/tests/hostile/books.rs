//! Somebody with the folder of a hospital who would have new budgets: another key makes every cohort a new one, and a journal
//! that is gone tells nobody what left. The agent does not start.

use crate::masks::{Court, honest};
use kindred_tests::deployment::site_config;
use kindred_tests::federation::NOW;
use protocol::name::SiteName;
use site_agent::books::chain::ChainError;
use site_agent::config::SiteConfig;
use site_agent::exit::Exits;
use site_agent::run::worker::Worker;
use std::fs;
use std::path::Path;

/// What the agent says of the folder of south, once a run has gone there and `touch` has changed something.
fn opened(touch: impl FnOnce(&Path)) -> Result<(), ChainError> {
    let mut court = Court::open();
    court.play(honest);
    drop(court.workers.remove(&SiteName::new("south").unwrap()));
    let home = court.home.path();
    touch(&home.join("sites/south"));
    let config = site_config("south", 1, "site-south");
    let config = SiteConfig::parse(&config, home).unwrap();
    loop {
        match Worker::open(config.clone(), NOW) {
            // A program that another test starts holds every lock of this process for a blink.
            Err(ChainError::InUse { .. }) => {}
            other => return other.map(drop),
        }
    }
}

#[test]
fn a_folder_that_nobody_touched_is_opened_again() {
    assert!(opened(|_| ()).is_ok());
}

#[test]
fn a_ledger_with_another_key_or_without_its_journal_stops_the_agent() {
    type Touch = fn(&Path);
    let touched: [(&str, Touch); 3] = [
        ("put back the key", |folder| {
            fs::write(folder.join("fingerprint.key"), [7; 32]).unwrap();
        }),
        ("the file is missing", |folder| {
            fs::remove_file(folder.join("journal.jsonl")).unwrap();
        }),
        ("put back the key", |folder| {
            // A ledger that somebody wrote anew, without a word of the key.
            let path = folder.join("ledger.jsonl");
            fs::remove_file(&path).unwrap();
            fs::remove_file(folder.join("journal.jsonl")).unwrap();
            fs::write(folder.join("journal.jsonl"), "").unwrap();
            let entry = r#"{"void":{"run":"a"}}"#;
            let mut chain = site_agent::books::chain::Chain::open(
                &path,
                None,
                |_: site_agent::books::chain::Link<serde_json::Value>| (),
            )
            .unwrap()
            .0;
            let entry: serde_json::Value = serde_json::from_str(entry).unwrap();
            chain.append(&entry).unwrap();
        }),
    ];
    for (wanted, touch) in touched {
        let error = opened(touch).unwrap_err();
        println!("{error}");
        assert!(error.to_string().contains(wanted), "{error}");
        assert_eq!(error.exit() as i32, 7);
    }
}
