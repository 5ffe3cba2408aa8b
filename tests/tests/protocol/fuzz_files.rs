//! Promise: no file that was damaged or changed stops a program, also where whoever changed it made its digest anew. What
//! `tests/fuzz` reads, with good inputs: they are stored in `tests/fuzz/corpus`, and with `KINDRED_CORPUS=1` written there.

use crate::fuzz_smoke::{self, Counts, JOB, changed, times};
use kindred_tests::readers::{self, Authority, LeftFile, LeftRun};
use kindred_tests::samples::SITE;
use kindred_tests::workspace::{root, text};
use protocol::job::Job;
use protocol::message::ToSite;
use protocol::study::by_nobody;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use site_agent::books::{journal, transcript};
use site_agent::config::SiteConfig;
use site_agent::source::{Freezing, Room, snapshot};
use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::tempdir;

/// The good inputs of one target of `tests/fuzz`, by their names.
type Inputs = Vec<(&'static str, Vec<u8>)>;

/// Gives a reader every good input, which it reads, and changes of them, which do not stop it.
fn smoke(
    target: &str,
    good: &Inputs,
    seed: u64,
    usual: u32,
    read: impl Fn(&[u8]) -> bool,
) -> Counts {
    keep(target, good);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut counts = Counts::default();
    for (name, whole) in good {
        assert!(read(whole), "{target}: {name}");
    }
    for path in stored(target) {
        assert!(read(&fs::read(&path).unwrap()), "{}", path.display());
    }
    for round in 0..times(usual) as usize {
        let (_, whole) = &good[round % good.len()];
        match read(&changed(whole, &mut random)) {
            true => counts.read += 1,
            false => counts.refused += 1,
        }
    }
    counts
}

fn corpus(target: &str) -> PathBuf {
    root().join("tests/fuzz/corpus").join(target)
}

fn keep(target: &str, good: &Inputs) {
    if std::env::var_os("KINDRED_CORPUS").is_some() {
        fs::create_dir_all(corpus(target)).unwrap();
        for (name, whole) in good {
            fs::write(corpus(target).join(name), whole).unwrap();
        }
    }
}

/// The stored inputs of a target; there is one at least.
fn stored(target: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(corpus(target)).unwrap();
    let paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    assert!(!paths.is_empty(), "{target}");
    paths
}

/// Golden messages, as `input` makes inputs of them.
fn golden(names: &[&'static str], input: impl Fn(&[bytes::Bytes]) -> Vec<u8>) -> Inputs {
    let all = fuzz_smoke::golden();
    let one = |name: &&'static str| {
        let found = all.iter().find(|one| one.name == *name).expect("a message");
        (*name, input(&found.frames))
    };
    names.iter().map(one).collect()
}

#[test]
fn messages_are_stored_for_the_fuzzer() {
    let read_by_site = |input: &[u8]| wire::decode_to_site(&readers::frames(input)).is_ok();
    let names = [
        "begin",
        "closed",
        "end",
        "judge",
        "metric",
        "introduce",
        "step",
    ];
    let site = golden(&names, readers::of_frames);
    let site: Inputs = site
        .into_iter()
        .filter(|(_, input)| read_by_site(input))
        .collect();
    assert!(site.len() >= 4, "{}", site.len());
    smoke("decode_to_site", &site, 1, 1_000, read_by_site).expect_both();
    let read = |input: &[u8]| wire::decode_to_coordinator(&readers::frames(input)).is_ok();
    let names = [
        "hello",
        "moments",
        "introduced",
        "grown",
        "unfit",
        "covered",
        "progress",
    ];
    let coordinator = golden(&names, readers::of_frames);
    let coordinator: Inputs = coordinator
        .into_iter()
        .filter(|(_, input)| read(input))
        .collect();
    assert!(coordinator.len() >= 4, "{}", coordinator.len());
    smoke("decode_to_coordinator", &coordinator, 2, 1_000, read).expect_both();
}

#[test]
fn no_changed_record_stops_the_store() {
    let mut good = golden(
        &["result", "metric", "forest", "regression"],
        fuzz_smoke::record,
    );
    good.retain(|(_, input)| readers::record(input));
    good.extend(golden(&["progress"], |frames| frames[0].to_vec()));
    assert!(good.len() >= 3, "{}", good.len());
    smoke("records", &good, 3, 10_000, readers::record).expect_both();
}

#[test]
fn no_changed_transcript_stops_an_audit() {
    let folder = tempdir().unwrap();
    let messages = golden(&["begin", "closed"], readers::of_frames);
    let mut messages = messages
        .iter()
        .map(|(_, input)| wire::decode_to_site(&readers::frames(input)).unwrap());
    let (Some(ToSite::Begin(begin)), Some(ToSite::Closed(closed))) =
        (messages.next(), messages.next())
    else {
        panic!("other messages");
    };
    let mut closed = Arc::unwrap_or_clone(closed);
    closed.run = begin.run.clone();
    transcript::begin(folder.path(), "digest", &begin).unwrap();
    transcript::add(folder.path(), &closed).unwrap();
    transcript::add(folder.path(), &closed).unwrap();
    let whole = fs::read(transcript::path(folder.path(), &begin.run)).unwrap();
    let read = |input: &[u8]| readers::transcript(folder.path(), input);
    smoke("transcript", &vec![("run", whole)], 4, 3_000, read).expect_both();
}

/// Entries of a journal, of a ledger and of an audit log.
fn books() -> Inputs {
    let entry = |exchange: u32, kind: &str| journal::Entry {
        time: "2026-01-01T00:00:00Z".to_owned(),
        run: "run".to_owned(),
        exchange,
        kind: kind.to_owned(),
        shape: "3 numbers".to_owned(),
        digest: "ab".repeat(32),
        bytes: 120,
        ledger: format!("2:{}", "cd".repeat(32)),
    };
    let left = [
        entry(1, "moments"),
        entry(2, "describe"),
        entry(3, "moments"),
    ];
    let left = left.map(|entry| serde_json::to_string(&entry).unwrap());
    let answer = |question: &str, rounds: u64| {
        let answered = json!({"kind": "moments", "tells": true, "rounds": rounds, "digest": "ab"});
        json!({"answer": {"run": "a", "question": question, "answered": answered}})
    };
    let noted = [
        json!({"key": {"digest": "ab".repeat(32)}}),
        json!({"run": {"run": "a", "name": "run", "study": "study"}}),
        json!({"asks": {"run": "a", "asks": {"grouping": "cd", "queries": 3}}}),
        answer("one", 1),
        answer("two", 1),
        json!({"shut": {"run": "a"}}),
        json!({"void": {"run": "a"}}),
    ];
    let noted = noted.map(|event: Value| event.to_string());
    let lines = |lines: &[String]| lines.join("\n").into_bytes();
    let acts = [
        json!({"time": "2026-01-01T00:00:00Z", "user": "ward", "did": "searched", "run": "a", "study": null}),
        json!({"time": "2026-01-01T00:01:00Z", "user": "ward", "did": "approved", "run": null, "study": "s"}),
    ];
    let acts = acts.map(|act: Value| act.to_string());
    vec![
        ("journal", lines(&left)),
        ("ledger", lines(&noted)),
        ("audit", lines(&acts)),
    ]
}

#[test]
fn no_changed_entry_stops_who_reads_the_books() {
    let folder = tempdir().unwrap();
    let read = |input: &[u8]| readers::books(folder.path(), input);
    smoke("books", &books(), 5, 4_000, read).expect_both();
}

/// A count that somebody wrote is added to others.
#[test]
fn the_largest_count_stops_nobody_who_reads_the_books() {
    let folder = tempdir().unwrap();
    for (name, entries) in books() {
        let text = String::from_utf8(entries).unwrap();
        let largest = u64::MAX.to_string();
        for (key, usual) in [("bytes", "120"), ("rounds", "1"), ("queries", "3")] {
            let whole = format!("\"{key}\":{usual}");
            let input = text.replace(&whole, &format!("\"{key}\":{largest}"));
            assert!(
                readers::books(folder.path(), input.as_bytes()),
                "{name}: {key}"
            );
        }
    }
}

#[test]
fn no_changed_pair_stops_who_reads_judgements() {
    let good = vec![("pairs", b"patient,other,similar\np1,p2,yes\n".to_vec())];
    smoke("judged", &good, 12, 3_000, readers::judged).expect_both();
}

#[test]
fn no_changed_table_stops_who_drafts_a_study() {
    let folder = tempdir().unwrap();
    let good = vec![("csv", patients().into_bytes()), ("parquet", frozen())];
    let read = |input: &[u8]| readers::draft(folder.path(), input);
    smoke("draft", &good, 13, 3_000, read).expect_both();
}

#[test]
fn no_changed_parquet_file_stops_the_reader() {
    let folder = tempdir().unwrap();
    let file = |name: &str| fs::read(root().join("tests/reference/parquet").join(name)).unwrap();
    let good = vec![
        ("frame", file("frame.parquet")),
        ("types", file("types.parquet")),
        ("frozen", frozen()),
    ];
    let read = |input: &[u8]| readers::parquet(folder.path(), input);
    smoke("parquet", &good, 6, 3_000, read).expect_both();
}

#[test]
fn no_changed_snapshot_stops_who_reads_frozen_patients() {
    let good = vec![("frozen", frozen())];
    smoke("snapshot", &good, 7, 3_000, readers::snapshot).expect_both();
}

/// Frozen patients, without the digest in front: a Parquet file whose numbers are numbers.
fn frozen() -> Vec<u8> {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("patients.csv"), patients()).unwrap();
    let site = SiteConfig::parse(SITE, folder.path()).unwrap();
    let job = Job::parse(JOB).unwrap();
    let freezing = Freezing {
        source: &site.source,
        cohorts: vec![(*job.cohort).clone()],
        gridded: HashSet::new(),
        cell_min: 1,
    };
    let table = freezing.read(Room::Memory).unwrap().rows.table().unwrap();
    snapshot::to_bytes(&table.clone().into()).unwrap()[32..].to_vec()
}

fn patients() -> String {
    let rows = (0..12).map(|row| {
        let (sex, outcome) = (["F", "M"][row % 2], row % 2);
        format!("p{row},7{row}.3125,{sex},19{row:02}-02-28,{outcome}\n")
    });
    format!("id,weight,sex,born,num\n{}", rows.collect::<String>())
}

#[test]
fn no_changed_certificate_stops_who_judges_it() {
    let authority = Authority::new();
    let [own, revoked, operator] = authority.whole();
    // `openssl req -new` made the request, for a key that nobody has any more.
    let request = fs::read(corpus("certificate").join("request")).unwrap();
    let good = vec![
        ("authority", own),
        ("revoked", revoked),
        ("operator", operator),
        ("request", request),
    ];
    let counts = smoke("certificate", &good, 8, 4_000, |input| {
        authority.judged(input)
    });
    counts.expect_both();
}

#[test]
fn no_changed_token_stops_who_enrols() {
    let token = format!(
        "kindred1/site/north/[::1]:7443/7444/1800000000/{}/{}",
        "ab".repeat(32),
        "07".repeat(16)
    );
    let read = |input: &[u8]| readers::token(&String::from_utf8_lossy(input));
    smoke(
        "token",
        &vec![("token", token.into_bytes())],
        9,
        20_000,
        read,
    )
    .expect_both();
}

#[test]
fn no_changed_file_of_a_run_stops_who_asks_by_it() {
    let metric = LeftRun::of_metric();
    let forest = LeftRun::of_forest();
    for (target, run, file) in [
        ("comparison", &metric, LeftFile::Record),
        ("prediction", &metric, LeftFile::Saved),
        ("forest", &forest, LeftFile::Forest),
    ] {
        let good = vec![("left", run.whole(file))];
        let counts = smoke(target, &good, 10, 600, |input| run.asked(file, input));
        println!("{target}: {counts:?}");
        assert!(
            counts.read > 5 && counts.refused > 100,
            "{target}: {counts:?}"
        );
        let [(_, whole)] = &good[..] else {
            panic!("one input")
        };
        assert!(run.asked(file, whole), "{target}");
    }
}

#[test]
fn sources_and_toml_are_stored_for_the_fuzzer() {
    let toml = |path: &str| text(path).into_bytes();
    let study = by_nobody(&text("deploy/jobs/heart-disease.study.toml"));
    keep("csv", &vec![("patients", patients().into_bytes())]);
    keep("site_toml", &vec![("site", SITE.as_bytes().to_vec())]);
    keep("job_toml", &vec![("job", JOB.as_bytes().to_vec())]);
    keep("study_toml", &vec![("study", study.into_bytes())]);
    let others = ["config/coordinator", "config/operator", "policies/site"];
    let others = others.map(|path| toml(&format!("deploy/{path}.toml")));
    let [coordinator, operator, policy] = others;
    let others = vec![
        ("coordinator", coordinator),
        ("operator", operator),
        ("policy", policy),
    ];
    keep("other_toml", &others);
    for target in ["csv", "site_toml", "job_toml", "study_toml", "other_toml"] {
        stored(target);
    }
}
