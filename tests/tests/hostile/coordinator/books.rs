//! Somebody at the site who would have a new budget: the ledger is cut, written anew or deleted while the agent is away.

use super::hospitals;
use super::site::unpsl;
use kindred_tests::deployment::site_config;
use kindred_tests::federation::converse;
use kindred_tests::programs::{Home, site_agent};
use kindred_tests::studies::Opened;
use std::fs;
use std::path::{Path, PathBuf};

/// A site that has admitted a run.
struct Served {
    home: Home,
    config: String,
}

fn served() -> Served {
    let (home, mut workers) = hospitals("");
    let text = unpsl("round_limit = 2");
    let study = Opened::of(&text, &home, &mut workers);
    converse(&study, study.job(&text), &mut workers, |_| ());
    let config = site_config("north", 1, "site-north");
    Served { home, config }
}

fn ledger(folder: &Path) -> PathBuf {
    folder.join("ledger.jsonl")
}

#[test]
fn an_agent_does_not_start_on_a_ledger_that_is_not_the_one_it_wrote() {
    type Touch = fn(&Path);
    let touched: [(&str, Touch); 4] = [
        ("the end is missing", |folder| {
            let text = fs::read_to_string(ledger(folder)).unwrap();
            let first = text.split_inclusive('\n').next().unwrap();
            fs::write(ledger(folder), first).unwrap();
        }),
        ("the file is missing", |folder| {
            fs::remove_file(ledger(folder)).unwrap();
        }),
        ("written anew", |folder| {
            // The ledger of another site, as good as any.
            let other = served();
            let other = other.home.join("sites/north");
            fs::copy(ledger(&other), ledger(folder)).unwrap();
            fs::copy(
                other.join("fingerprint.key"),
                folder.join("fingerprint.key"),
            )
            .unwrap();
        }),
        ("fingerprint.key", |folder| {
            fs::remove_file(folder.join("fingerprint.key")).unwrap();
        }),
    ];
    for (wanted, touch) in touched {
        let site = served();
        let home = &site.home;
        touch(&home.join("sites/north"));
        home.write("north.toml", &site.config);
        let ran = home.run(&site_agent(), &["serve", "--config", "north.toml"]);
        println!("{wanted}: {}", ran.stderr.trim());
        ran.must_fail(7, &[wanted]);
    }
}
