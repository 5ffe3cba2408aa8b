//! Promise: each form in which release 0.2.0 stored something means the same to this one, and what this one would store of the same
//! is the same bytes. The archive is that of `stored`; what stands here was read from it by other programs.

use crate::stored::archive;
use coordinator::audit::{Act, By, Entry as Acted};
use coordinator::store::{Reach, Store};
use kindred_tests::programs::{Home, ran};
use protocol::name::{OperatorName, RunId, SiteName};
use protocol::progress::Ending;
use protocol::study::StudyName;
use protocol::time::Timestamp;
use service::backup::Whole;
use site_agent::books::chain::{Chain, Link, digest, read};
use site_agent::books::journal::Entry;
use site_agent::books::ledger::{Answered, Ledger};
use site_agent::books::{ledger, secrets, transcript};
use site_agent::source::{Snapshot, snapshot};
use site_agent::studies::{all, opened};
use std::fs;
use std::path::Path;
use std::process::Command;

const STUDY: &str = "fd0cdb27fdb7819368621c2f6e51a99e09d4ea3f435a3a904b0f8adbd342419d";
const OPENED: &str = "6e3e90b16212";
const OPENED_DIGEST: &str = "d5ed9146c06b3b526a968a1a146d04259b80495b2e8d5d3cd109f4807b38f428";
const LEARNED: &str = "1ca2dc336ee1";
const LEARNED_DIGEST: &str = "d77c7c43ed415a896cf9e79ea72ac228ad4f55a4902784c239cc6703a5d019bb";
const SUBMITTED: Timestamp = Timestamp(1_795_720_632_379);

fn run(name: &str) -> RunId {
    RunId::new(name).unwrap()
}

/// What release 0.2.0 stored.
fn unpacked() -> Home {
    let home = Home::new();
    let mut command = Command::new("tar");
    command.arg("-xpzf").arg(archive("0.2.0")).arg("-C");
    ran(command.arg(home.path())).must_succeed();
    home
}

/// The entries of a chain, once they have been written anew to the same bytes.
macro_rules! entries {
    ($entry:ty, $path:expr) => {{
        let (path, mut entries) = ($path, Vec::<Link<$entry>>::new());
        read(&path, None, |link| entries.push(link)).unwrap();
        let again = path.with_extension("again");
        let (mut chain, _) = Chain::open(&again, None, |_: Link<$entry>| {}).unwrap();
        for link in &entries {
            assert_eq!(chain.append(&link.entry).unwrap().hash, link.hash);
        }
        assert!(fs::read(path).unwrap() == fs::read(again).unwrap());
        entries
    }};
}

#[test]
fn the_journal_and_the_audit_log_of_an_earlier_release_mean_the_same() {
    let home = unpacked();
    let journal = entries!(Entry, home.join("sites/north/journal.jsonl"));
    assert_eq!(journal.len(), 40);
    let last = journal.last().unwrap();
    let text = |text: &str| text.to_owned();
    let wanted = Entry {
        time: text("2026-11-26T19:17:13.371Z"),
        run: text(LEARNED),
        exchange: 35,
        kind: text("assessment"),
        shape: text("143 words of 16 bytes, covered"),
        digest: text("696e04224cfb7a3927dfb26efbec7c768a967f4a283aacda3e2216b583dcce03"),
        bytes: 2316,
        ledger: text("41:1366b0ee151698b3bb3a48172bd16acd4f8ab9ad1eda3af362b0716e081a1a40"),
    };
    assert_eq!((last.number, &last.entry), (40, &wanted));
    let hash = "e6be2bb90183abc00ec349961dd5adbc4c1eba6338f9b82c0884dcd7b2610314";
    assert_eq!(last.hash, hash);

    let log = entries!(Acted, home.join("coordinator/audit.jsonl"));
    let by = By::from(&OperatorName::new("researcher").unwrap());
    let act = |at: u64, did| Acted::new(Timestamp(1_795_720_000_000 + at), by.clone(), did);
    let wanted = [
        act(630_979, Act::Proposed).on_run(OPENED).on_study("demo"),
        act(632_379, Act::Submitted)
            .on_run(LEARNED)
            .on_study("demo"),
        act(633_402, Act::Fetched).on_run(LEARNED),
    ];
    let found: Vec<Acted> = log.into_iter().map(|link| link.entry).collect();
    assert_eq!(found, wanted);
}

#[test]
fn the_ledger_and_the_secrets_of_an_earlier_release_mean_the_same() {
    let home = unpacked();
    let north = home.join("sites/north");
    assert_eq!(
        ledger::runs(&north, STUDY).unwrap(),
        [LEARNED.to_owned()].into()
    );
    let used = ledger::used(&north).unwrap();
    assert_eq!(used.len(), 1);
    let used = used[STUDY];
    assert_eq!((used.runs, used.rounds), (1, 42));
    assert_eq!((used.queries, used.metrics_for_groups), (0, 0));
    let ledger = Ledger::open(&north, None).unwrap();
    let last = "41:1366b0ee151698b3bb3a48172bd16acd4f8ab9ad1eda3af362b0716e081a1a40";
    assert_eq!(ledger.head().to_string(), last);
    let (run, question) = (
        serde_json::from_value(LEARNED_DIGEST.into()).unwrap(),
        serde_json::from_value(
            "46fc829f195a8e6f9e79cf88ce3ecd543bbed8b44a54dda5e86eeaa8b4e7746e".into(),
        ),
    );
    let wanted: Answered = serde_json::from_value(serde_json::json!({
        "kind": "assessment",
        "tells": true,
        "rounds": 0,
        "digest": "696e04224cfb7a3927dfb26efbec7c768a967f4a283aacda3e2216b583dcce03",
        "exchange": 35,
    }))
    .unwrap();
    assert_eq!(ledger.answered(&run, &question.unwrap()), Some(&wanted));

    let kept = secrets::read(&north, OPENED_DIGEST).unwrap().unwrap();
    let stored = fs::read(north.join("keys").join(OPENED_DIGEST)).unwrap();
    assert!(kept.to_bytes() == stored, "other secrets");
}

#[test]
fn the_copies_of_runs_of_an_earlier_release_mean_the_same() {
    let home = unpacked();
    let north = home.join("sites/north");
    for (name, digest, seed, opening, closed) in [
        (OPENED, OPENED_DIGEST, 1, None, 5),
        (LEARNED, LEARNED_DIGEST, 3, Some(run(OPENED)), 35),
    ] {
        let found = transcript::read(&north, &run(name)).unwrap();
        assert_eq!(
            (found.digest.as_str(), found.recorded_by.as_deref()),
            (digest, Some("0.2.0"))
        );
        let begin = &found.begin;
        assert_eq!((begin.seed, &begin.opening), (seed, &opening));
        assert_eq!(begin.run, run(name));
        let exchanges: Vec<u32> = found.closed.iter().map(|one| one.record.exchange).collect();
        assert_eq!(exchanges, (0..=closed).collect::<Vec<_>>());
        transcript::begin(home.path(), digest, begin).unwrap();
        for one in &found.closed {
            transcript::add(home.path(), one).unwrap();
        }
        // Before the rest stands the version of whoever writes.
        let rest = |folder: &Path| {
            let mut bytes = fs::read(transcript::path(folder, &run(name))).unwrap();
            let head = u64::from_be_bytes(bytes[..8].try_into().unwrap());
            bytes.split_off(8 + usize::try_from(head).unwrap())
        };
        assert!(rest(home.path()) == rest(&north), "{name}: other bytes");
    }
}

#[test]
fn the_studies_of_an_earlier_release_mean_the_same_at_a_hospital_and_at_the_coordinator() {
    let home = unpacked();
    let (north, site) = (home.join("sites/north"), SiteName::new("north").unwrap());
    let known = all(&north, &site).unwrap();
    let [own] = &known[..] else {
        panic!("found other studies");
    };
    let approval = &own.signed.approval;
    assert_eq!(
        (approval.study.as_str(), approval.digest.as_str()),
        ("demo", STUDY)
    );
    let commitment = "7c2c4f706cffdcd4d72f601ca9aae4f147af7aeaf075b30ff1763aca073c1110";
    assert_eq!(approval.commitment, commitment);
    assert_eq!(approval.patients_at_most, 130);
    assert_eq!(approval.approved, Timestamp(1_795_720_631_443));
    let name = StudyName::new("demo").unwrap();
    let opening = opened::read(&north, &name, &run(OPENED)).unwrap().unwrap();
    let stored = north.join("studies/demo/openings").join(OPENED);
    assert!(wire::encode_opening(&opening) == fs::read(stored).unwrap());
    assert_eq!(
        (&opening.run, opening.digest.as_str()),
        (&run(OPENED), OPENED_DIGEST)
    );

    let store = Store::open(&home.join("coordinator/coordinator.sqlite")).unwrap();
    let kept = store.study(&name).unwrap().unwrap();
    assert_eq!(kept.approvals.len(), 4);
    assert_eq!(kept.approvals[&site], own.signed);
    assert_eq!((&kept.study, &kept.run), (&own.study, &run(OPENED)));
    assert!(kept.opening == Some(opening) && !kept.closed);
    let result = store.result(&run(LEARNED), &Reach::All).unwrap().unwrap();
    assert_eq!((result.version.as_str(), result.seed), ("0.2.0", 3));
    assert_eq!(
        (result.ending, result.times.submitted),
        (Ending::Converged, Some(SUBMITTED))
    );
    let journals = store.journals().unwrap();
    let head = &journals[&site];
    let hash = "e6be2bb90183abc00ec349961dd5adbc4c1eba6338f9b82c0884dcd7b2610314";
    assert_eq!((head.entries, head.hash.as_str()), (40, hash));
}

#[test]
fn the_frozen_patients_and_the_backup_of_an_earlier_release_mean_the_same() {
    let home = unpacked();
    let path = home.join("sites/north/studies/demo/snapshot.parquet");
    let stored = Snapshot::open(&path);
    let table = stored.unwrap().unwrap().table().unwrap();
    assert_eq!(table.patients(), 130);
    let mut rows = Vec::new();
    table.canonical(&mut |bytes| rows.extend_from_slice(bytes));
    // pyarrow and hashlib come to the same.
    let wanted = "fc298f7ee8f5bce5eb75e068cbfe78af808d19a8ba0d63ca84bd3483cd09755c";
    assert_eq!(digest(&rows), wanted);
    // What this release would store of them says the same.
    let again = Snapshot::of_bytes(snapshot::to_bytes(&table.clone().into()).unwrap());
    assert!(again.unwrap().table().unwrap() == table, "other patients");

    // Every file of the backup is the one that was copied.
    let backup = home.join("of-north");
    Whole::open(&backup, "north").unwrap();
    fs::write(backup.join("ledger.jsonl"), b"").unwrap();
    let found = Whole::open(&backup, "north").unwrap_err().to_string();
    assert!(found.contains("ledger.jsonl: found other bytes"), "{found}");
}
