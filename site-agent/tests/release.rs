//! The site's own say over what leaves it: policy files, journal, ledger and explanation.

#![allow(clippy::unwrap_used)] // functions that tests share

use privacy::{Cost, JobFacts, Limits, Permission, Policy, Released};
use protocol::failure::{Code, Failure};
use protocol::job::Job;
use protocol::message::{Begin, Request, Warrant};
use protocol::name::RunId;
use protocol::study::{Study, nobody, of_job, pinned};
use protocol::time::Timestamp;
use site_agent::books::chain::{self, ChainError, Head};
use site_agent::books::identity::{Question, RunDigest};
use site_agent::books::journal::{self, Entry, Journal};
use site_agent::books::ledger::{self, Answered, Asks, Ledger};
use site_agent::config::policy;
use site_agent::explain::Explanation;
use std::fs;
use std::path::Path;
use wire::Sealed;

const JOB: &str = r#"
name = "sample"
method = "unpsl"
sites = ["north", "south", "east"]
[outcome]
column = "disease"
kind = "binary"
positive = ["1"]
[[features]]
name = "age"
kind = "numeric"
[[features]]
name = "cp"
kind = "categorical"
levels = ["1", "2", "3", "4"]
impute = "indicator"
[unpsl]
rank = 3
round_limit = 50
"#;

fn sample(name: &str) -> Policy {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../deploy/policies")
        .join(name);
    let text = fs::read_to_string(&path).unwrap();
    policy::parse(&text).unwrap_or_else(|errors| panic!("{name}:\n{errors}"))
}

/// Whether the sample admits a job, the first of its study.
fn admits(name: &str, job: &JobFacts) -> bool {
    sample(name).admit(job, &Limits::default()).is_ok()
}

#[test]
fn a_permission_is_granted_by_its_name_and_the_sample_of_all_rules_lists_it_as_closed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/policies/site.toml");
    let every_rule = fs::read_to_string(path).unwrap();
    for permission in Permission::ALL {
        let name = permission.name();
        let policy = policy::parse(&format!("{name} = true")).unwrap();
        assert_eq!(policy.rules().permissions, [permission].into());
        assert!(every_rule.contains(&format!("\n{name} = false")), "{name}");
    }
}

fn run(name: &str) -> RunId {
    RunId::new(name).unwrap()
}

#[test]
fn every_sample_policy_is_read_and_says_what_it_means() {
    assert_eq!(sample("site.toml"), Policy::default());
    assert_eq!(policy::parse("").unwrap(), Policy::default());
    let job = Job::parse(JOB).unwrap().facts("researcher");
    assert!(!admits("site.toml", &job));
    assert!(admits("simulation.toml", &job));
    let moments = "second_moments is true, where it is false unless set.";
    let pairs = "pair_sums is true, where it is false unless set.";
    assert_eq!(sample("simulation.toml").lowered(), [moments, pairs]);
    assert!(admits("heart-disease.toml", &job));
    let lowered = sample("heart-disease.toml").lowered();
    let class = "class_patients_min is 6, lowered from 10.";
    assert_eq!(lowered, [class, moments, pairs]);
    let class = "class_patients_min is 8, lowered from 10.";
    // Trees leave only by the samples that are made for them.
    let trees = JobFacts {
        permissions: [Permission::Forests].into(),
        ..job
    };
    assert!(!admits("simulation.toml", &trees));
    assert!(!admits("heart-disease.toml", &trees));
    assert!(admits("forests.toml", &trees));
    let opened = "forests is true, where it is false unless set.";
    assert_eq!(sample("forests.toml").lowered(), [opened]);
    assert!(admits("heart-disease-forest.toml", &trees));
    assert!(admits("heart-disease-compare.toml", &trees));
    let of_comparison = [
        "class_patients_min is 6, lowered from 10.",
        moments,
        pairs,
        opened,
    ];
    assert_eq!(
        sample("heart-disease-compare.toml").lowered(),
        of_comparison
    );
    let both = [class, opened];
    assert_eq!(sample("heart-disease-forest.toml").lowered(), both);
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/policies");
    let names = fs::read_dir(samples).unwrap();
    let policies = names.filter(|name| {
        let path = name.as_ref().unwrap().path();
        path.extension()
            .is_some_and(|extension| extension == "toml")
    });
    assert_eq!(policies.count(), 6, "a sample that no test reads");
}

#[test]
fn every_problem_of_a_policy_is_told_at_once() {
    let text = "operator = ['researcher']\nmethods = 'unpsl'\npatients_min = 0\n\
                sites_min = -1\ncell_min = 'few'\n";
    let errors = policy::parse(text).unwrap_err().to_string();
    for wanted in [
        "line 1: operator: found an unknown key; did you mean \"operators\"?",
        "line 2: methods: found \"unpsl\", wanted a list of strings",
        "line 3: patients_min: found 0",
        "line 4: sites_min: found -1",
        "line 5: cell_min: found \"few\"",
    ] {
        assert!(errors.contains(wanted), "{wanted}\n---\n{errors}");
    }
    // A method that is misspelt would stay closed.
    let errors = policy::parse("methods = ['unpls', 'forest']")
        .unwrap_err()
        .to_string();
    assert!(errors.contains("line 1: methods: found \"unpls\", wanted one of \"unpsl\""));
    assert!(
        errors.ends_with("or \"*\"; did you mean \"unpsl\"?"),
        "{errors}"
    );
    assert!(policy::parse("methods = ['*']").is_ok());
}

fn failure() -> Sealed {
    wire::seal(Released::notice(Failure::new(Code::Forest, "of a test")))
}

/// A journal of `count` entries in a new folder.
fn written(count: u32) -> (tempfile::TempDir, Head) {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(folder.path(), Timestamp(0)).unwrap();
    for exchange in 1..=count {
        let entry = Entry::new(Timestamp(1_000), &run("r1"), exchange, &failure());
        journal.append(&entry).unwrap();
    }
    let head = journal.head().clone();
    (folder, head)
}

fn lines(folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(folder.join(journal::FILE_NAME)).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn rewrite(folder: &Path, lines: &[String]) {
    fs::write(folder.join(journal::FILE_NAME), lines.join("\n") + "\n").unwrap();
}

#[track_caller]
fn assert_broken_at(number: u64, outcome: Result<Head, ChainError>) {
    match outcome {
        Err(ChainError::Broken { number: found, .. }) => assert_eq!(found, number),
        other => panic!("entry {number} should be broken: {other:?}"),
    }
}

#[test]
fn an_untouched_journal_verifies_and_lists_what_was_sent() {
    let (folder, head) = written(3);
    assert_eq!(journal::verify(folder.path(), None).unwrap(), head);
    assert_eq!(head.to_string().parse::<Head>().unwrap(), head);
    let list = journal::list(folder.path(), None).unwrap().to_string();
    // A heading and three entries; then, after an empty line, a heading, the kind and all.
    assert_eq!(list.lines().count(), 8);
    assert!(list.lines().last().unwrap().starts_with("all  "), "{list}");
    let none = journal::list(folder.path(), Some("another"))
        .unwrap()
        .to_string();
    assert_eq!(none.lines().count(), 4, "{none}");
    // As sha256sum has it.
    assert!(chain::digest(b"bytes").starts_with("277089d91c0bdf4f"));
    let left: Vec<u8> = failure().chunks().flatten().copied().collect();
    let digest = &chain::digest(&left)[..16];
    for wanted in ["1970-01-01T00:00:01Z", "failure", digest] {
        assert!(list.contains(wanted), "{wanted}\n{list}");
    }
    // The next agent goes on where the last one ended.
    let mut journal = Journal::open(folder.path(), Timestamp(0)).unwrap();
    journal
        .append(&Entry::new(Timestamp(0), &run("r2"), 1, &failure()))
        .unwrap();
    assert_eq!(
        journal::verify(folder.path(), Some(&head)).unwrap().entries,
        4
    );
}

#[test]
fn a_flipped_bit_of_any_byte_is_found_and_named() {
    let (folder, _) = written(3);
    let path = folder.path().join(journal::FILE_NAME);
    let clean = fs::read(&path).unwrap();
    let mut line = 1;
    for position in 0..clean.len() {
        let mut touched = clean.clone();
        touched[position] ^= 1 << (position % 8);
        fs::write(&path, touched).unwrap();
        assert_broken_at(line, journal::verify(folder.path(), None));
        line += u64::from(clean[position] == b'\n');
    }
}

#[test]
fn a_removed_inserted_moved_or_forged_line_is_found_and_named() {
    let (folder, _) = written(5);
    let clean = lines(folder.path());
    let check = |number: u64, change: &dyn Fn(&mut Vec<String>)| {
        let mut touched = clean.clone();
        change(&mut touched);
        rewrite(folder.path(), &touched);
        assert_broken_at(number, journal::verify(folder.path(), None));
        assert!(Journal::open(folder.path(), Timestamp(0)).is_err());
    };
    check(1, &|lines| drop(lines.remove(0)));
    check(3, &|lines| drop(lines.remove(2)));
    check(2, &|lines| lines.swap(1, 3));
    check(4, &|lines| lines.insert(3, lines[2].clone()));
    // Changed with a hash that fits the line: the line after it no longer follows.
    check(3, &|lines| {
        let body = lines[1]
            .replace("failure", "nothing")
            .rsplit_once(",\"hash\"")
            .unwrap()
            .0
            .to_owned();
        let hash = chain::digest(body.as_bytes());
        lines[1] = format!("{body},\"hash\":\"{hash}\"}}");
    });
}

#[test]
fn a_cut_off_end_is_found_against_the_head_that_was_kept() {
    let (folder, head) = written(5);
    let clean = lines(folder.path());
    rewrite(folder.path(), &clean[..3]);
    assert_eq!(journal::verify(folder.path(), None).unwrap().entries, 3);
    assert_broken_at(4, journal::verify(folder.path(), Some(&head)));
    // As long as it was, and yet another history.
    rewrite(folder.path(), &clean);
    let mut kept = head;
    kept.hash = "ab".repeat(32);
    assert_broken_at(5, journal::verify(folder.path(), Some(&kept)));
}

#[test]
fn a_line_that_a_crash_left_incomplete_is_taken_off_and_the_journal_says_so() {
    let (folder, _) = written(3);
    let path = folder.path().join(journal::FILE_NAME);
    let clean = fs::read(&path).unwrap();
    let last = clean[..clean.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap()
        + 1;
    for end in last + 1..clean.len() {
        fs::write(&path, &clean[..end]).unwrap();
        assert_broken_at(3, journal::verify(folder.path(), None));
        drop(Journal::open(folder.path(), Timestamp(0)).unwrap());
        assert_eq!(journal::verify(folder.path(), None).unwrap().entries, 3);
        let list = journal::list(folder.path(), None).unwrap().to_string();
        let recovered = list.lines().find(|line| line.contains("recovery")).unwrap();
        let digest = chain::digest(&clean[last..end]);
        assert!(recovered.contains(&digest[..16]), "{list}");
    }
}

#[test]
fn only_one_agent_writes_a_journal() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::open(folder.path(), Timestamp(0)).unwrap();
    let second = Journal::open(folder.path(), Timestamp(0));
    assert!(
        matches!(second, Err(ChainError::InUse { .. })),
        "{second:?}"
    );
    drop(journal);
    assert!(Journal::open(folder.path(), Timestamp(0)).is_ok());
}

fn digest(name: &str) -> RunDigest {
    let begin = Begin {
        run: run(name),
        job: name.to_owned(),
        seed: 1,
        warrant: Warrant::default(),
        opening: None,
    };
    RunDigest::of(&begin, "researcher")
}

fn round(number: u32) -> (Question, Answered) {
    let question = digest("r").question(number, &Request::Moments);
    let answer = Answered::new("contribution", Cost::Rounds(1), format!("{number}"));
    (question, answer)
}

fn open(folder: &Path) -> Ledger {
    Ledger::open(folder, None).unwrap()
}

#[test]
fn a_run_of_which_nothing_came_counts_by_its_rounds_alone() {
    let folder = tempfile::tempdir().unwrap();
    let study = "a".repeat(64);
    {
        let mut ledger = open(folder.path());
        for name in ["r1", "r2"] {
            let study = Some(study.clone());
            ledger.begin(&digest(name), &run(name), study).unwrap();
            let (question, answer) = round(1);
            ledger.answer(&digest(name), question, answer).unwrap();
        }
        for _ in 0..2 {
            ledger.void(&digest("r1")).unwrap();
            // Of a run that this site does not know nothing is noted.
            ledger.void(&digest("r9")).unwrap();
        }
    }
    let entries = std::fs::read_to_string(folder.path().join("ledger.jsonl")).unwrap();
    assert_eq!(entries.matches("\"void\"").count(), 1);
    let used = open(folder.path()).used(&study, &digest("r3"), None);
    assert_eq!((used.runs, used.rounds), (1, 2));
}

#[test]
fn the_ledger_counts_for_each_study_what_its_runs_have_used_across_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (heart, lung) = ("a".repeat(64), "b".repeat(64));
    let asks = |grouping: &str, queries| Asks {
        grouping: grouping.to_owned(),
        queries,
    };
    {
        let mut ledger = open(folder.path());
        for (name, study) in [
            ("r1", Some(&heart)),
            ("r2", Some(&heart)),
            ("r3", Some(&lung)),
            ("r4", None),
            ("r5", Some(&heart)),
        ] {
            // The same run under two names of a coordinator's.
            for under in [name, "other"] {
                let begun = ledger.begin(&digest(name), &run(under), study.cloned());
                begun.unwrap();
            }
        }
        for name in ["r1", "r2", "r3", "r4"] {
            // The same answer again is no further round.
            for number in [1, 2, 2] {
                let (question, answer) = round(number);
                ledger.answer(&digest(name), question, answer).unwrap();
            }
        }
        ledger.ask(&digest("r1"), asks("f", 5)).unwrap();
        ledger.ask(&digest("r2"), asks("g", 7)).unwrap();
        ledger.ask(&digest("r2"), asks("g", 7)).unwrap();
    }
    let used = ledger::used(folder.path()).unwrap();
    assert_eq!(used[&heart], Limits::of([2, 4, 12, 2]));
    assert_eq!(used[&lung], Limits::of([1, 2, 0, 0]));
    assert_eq!(used.len(), 2);
    let ledger = open(folder.path());
    // The run itself does not count among the others, nor the grouping that it asks by.
    let second = ledger.used(&heart, &digest("r2"), None);
    assert_eq!(second, Limits::of([1, 2, 5, 0]));
    let by_another = ledger.used(&heart, &digest("r2"), Some(&asks("g", 7)));
    assert_eq!(by_another, Limits::of([1, 2, 5, 1]));
    let by_the_first = ledger.used(&heart, &digest("r2"), Some(&asks("f", 7)));
    assert_eq!(by_the_first, Limits::of([1, 2, 5, 0]));
    let none = ledger.used(&"c".repeat(64), &digest("r2"), None);
    assert_eq!(none, Limits::default());
    let so_far = ledger.so_far(&digest("r2"));
    assert_eq!(so_far.rounds, 2);
    assert!(so_far.kinds.contains("contribution"));
    let (question, answer) = round(2);
    assert_eq!(ledger.answered(&digest("r2"), &question), Some(&answer));
    assert_eq!(ledger.answered(&digest("r9"), &question), None);
    let names = ledger::runs(folder.path(), &heart).unwrap();
    assert_eq!(names, ["r1", "r2", "r5"].map(str::to_owned).into());
}

/// A folder with a ledger of one run, and where the ledger ended.
fn kept() -> (tempfile::TempDir, Head) {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = open(folder.path());
    ledger.begin(&digest("r1"), &run("r1"), None).unwrap();
    let (question, answer) = round(1);
    ledger.answer(&digest("r1"), question, answer).unwrap();
    let head = ledger.head().clone();
    (folder, head)
}

#[test]
fn a_ledger_that_was_cut_written_anew_or_deleted_stops_the_agent() {
    type Touch = fn(&Path);
    let touched: [(&str, Touch); 4] = [
        ("cut", |folder| {
            let path = folder.join("ledger.jsonl");
            let text = fs::read_to_string(&path).unwrap();
            let first = text.split_inclusive('\n').next().unwrap().to_owned();
            fs::write(path, first).unwrap();
        }),
        ("deleted", |folder| {
            fs::remove_file(folder.join("ledger.jsonl")).unwrap();
        }),
        ("written anew", |folder| {
            fs::remove_file(folder.join("ledger.jsonl")).unwrap();
            let mut ledger = open(folder);
            for name in ["r2", "r3", "r4", "r5", "r6"] {
                ledger.begin(&digest(name), &run(name), None).unwrap();
            }
        }),
        ("without its key", |folder| {
            fs::remove_file(folder.join("fingerprint.key")).unwrap();
        }),
    ];
    for (how, touch) in touched {
        let (folder, head) = kept();
        let mut journal = Journal::open(folder.path(), Timestamp(0)).unwrap();
        let entry = Entry::new(Timestamp(0), &run("r1"), 1, &failure());
        journal.append(&entry.with_ledger(&head)).unwrap();
        drop(journal);
        // After a restart the journal still knows.
        let journal = Journal::open(folder.path(), Timestamp(0)).unwrap();
        assert_eq!(journal.ledger(), Some(head));
        assert!(Ledger::open(folder.path(), journal.ledger().as_ref()).is_ok());
        touch(folder.path());
        let opened = Ledger::open(folder.path(), journal.ledger().as_ref());
        assert!(opened.is_err(), "{how}");
    }
}

#[test]
fn an_explanation_shows_every_message_with_its_bytes_and_its_rule() {
    let job = Job::parse(JOB).unwrap();
    let explanation = Explanation::new(
        &sample("simulation.toml"),
        &job,
        "researcher",
        &Limits::default(),
    );
    assert!(explanation.refusals.is_empty());
    let told: Vec<(&str, u64, u64)> = explanation
        .messages
        .iter()
        .map(|kind| (kind.kind, kind.bytes, kind.times))
        .collect();
    // Rows: age, four levels of cp, cp missing. Twice 21 numbers and 3 per round, of the metric and of five folds at once, and 20
    // rounds more for these; 6 x 3 and 1 per certificate; moments: 4 + 5 + 3; of three rules 4 cells and two rows of 6 votes, in
    // sample and held out, 4 of pairs, and 1.
    // Of words of 16 bytes: two counts that follow each other share one, a number of the data takes four.
    let wanted = [
        ("description", 16 * 3, 1),
        // Five counts, two sums of four words, and five counts.
        ("moments", 16 * 14, 1),
        ("spread", 16 * 6, 1),
        ("prepared", 0, 1),
        ("derivatives", 16 * 6 * 45, 70),
        ("contribution", 16 * 19, 3),
        ("assessment", 16 * (51 + 4 * 23), 1),
        ("refusal", 400_000, 1),
    ];
    assert_eq!(told, wanted);
    let words = 3 + 14 + 6 + 70 * 6 * 45 + 3 * 19 + 51 + 4 * 23;
    assert_eq!(explanation.bytes(), 16 * words);
    let text = explanation.to_string();
    assert!(text.contains("The policy admits it"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 130),
        "{text}"
    );
}

#[test]
fn an_explanation_says_of_each_message_whether_it_leaves_masked() {
    let job = Job::parse(JOB).unwrap();
    let explanation = Explanation::new(
        &sample("simulation.toml"),
        &job,
        "researcher",
        &Limits::default(),
    );
    assert!(explanation.refusals.is_empty());
    let of = |kind: &str| {
        let mut messages = explanation.messages.iter();
        messages.find(|message| message.kind == kind).unwrap()
    };
    let masked = "leaves masked: readable only as a sum over at least 3 sites";
    for kind in [
        "description",
        "moments",
        "derivatives",
        "contribution",
        "assessment",
    ] {
        assert!(
            of(kind).withheld.starts_with(masked),
            "{kind}: {}",
            of(kind).withheld
        );
        assert!(
            of(kind).worst.starts_with("Of this site alone nothing"),
            "{kind}"
        );
    }
    for kind in ["prepared", "refusal"] {
        assert!(
            !of(kind).withheld.contains("masked"),
            "{kind}: {}",
            of(kind).withheld
        );
    }
    let shown = explanation.to_string();
    assert!(
        shown.lines().all(|line| line.chars().count() <= 130),
        "{shown}"
    );
}

/// What an attack on a real site has shown (tests/hostile) stands there in words.
#[test]
fn an_explanation_says_what_each_message_can_tell_in_the_worst_case() {
    let explained = |text: &str, policy: &str| {
        let job = Job::parse(text).unwrap();
        let explanation = Explanation::new(&sample(policy), &job, "researcher", &Limits::default());
        let of = |kind: &str| {
            let mut messages = explanation.messages.iter();
            let found = messages.find(|message| message.kind == kind);
            found.map_or(String::new(), |message| message.worst.clone())
        };
        let shown = explanation.to_string();
        for heading in ["Closed by a rule", "Held by a brake only", "Not closed"] {
            assert!(shown.contains(heading), "{shown}");
        }
        (
            of("contribution"),
            of("prepared"),
            of("refusal"),
            of("trees"),
            shown,
        )
    };
    let (contribution, prepared, refusal, _, shown) = explained(JOB, "simulation.toml");
    assert!(contribution.contains("X'X") && contribution.contains("steepness"));
    assert!(
        contribution.contains("also where that is one patient"),
        "{contribution}"
    );
    assert_eq!(prepared, "Nothing of any patient.");
    assert!(refusal.contains("one yes or no a rule"), "{refusal}");
    assert!(
        shown.contains("A metric that parts patients by a step"),
        "{shown}"
    );
    let pooled = JOB.replace("rank = 3", "rank = 3\ncorrelation = 'pooled'");
    assert!(explained(&pooled, "simulation.toml").1.contains("X'X"));
    let (begin, _) = JOB.split_once("[unpsl]").unwrap();
    let forest = begin
        .replace("unpsl", "forest")
        .replace("\"numeric\"", "\"numeric\"\nrange = [0, 120]");
    let (.., trees, shown) = explained(
        &format!("{forest}[forest]\nscope = \"federated\"\n"),
        "forests.toml",
    );
    assert!(trees.contains("groups of 10 patients or more"), "{trees}");
    assert!(!shown.contains("X'X"), "{shown}");
}

#[test]
fn an_explanation_of_the_card_of_a_study_with_medians_tells_of_its_histograms() {
    let robust = "kind = \"numeric\"\nrange = [0, 120]\nimpute = \"median\"\n";
    let text = JOB.replacen("kind = \"numeric\"\n", robust, 1);
    assert_ne!(text, JOB);
    let kinds = |text: &str| {
        let (_, draft) = of_job(&Job::parse(text).unwrap(), "alice", &[]).unwrap();
        let study = pinned(&draft, |party| Some(nobody(party))).unwrap();
        let card = Job::parse(&Study::parse(&study).unwrap().card()).unwrap();
        let policy = sample("simulation.toml");
        Explanation::new(&policy, &card, "alice", &Limits::default()).messages
    };
    assert!(kinds(JOB).iter().all(|one| one.kind != "quantiles"));
    let with = kinds(&text);
    let place = with.iter().position(|one| one.kind == "quantiles").unwrap();
    let [counts, quantiles, sums] = &with[place - 1..=place + 1] else {
        panic!("three kinds");
    };
    assert_eq!((counts.kind, sums.kind), ("card_counts", "card_sums"));
    assert_eq!((quantiles.bytes, quantiles.times), (16 * 4096 / 2, 1));
    assert!(quantiles.withheld.starts_with("leaves masked"));
}

#[test]
fn an_explanation_names_every_rule_that_refuses() {
    let text = JOB.replace(
        "round_limit = 50",
        "round_limit = 5000\ncorrelation = 'pooled'",
    );
    let job = Job::parse(&text).unwrap();
    let explanation =
        Explanation::new(&sample("site.toml"), &job, "researcher", &Limits::default()).to_string();
    for rule in [
        "operators",
        "methods",
        "second_moments",
        "pair_sums",
        "rounds",
    ] {
        assert!(
            explanation.contains(&format!("\n  {rule}")),
            "{rule}\n{explanation}"
        );
    }
    assert!(explanation.contains("16 x 270 = 4,320"), "{explanation}");
    let anyone = Explanation::for_any_operator(
        &sample("simulation.toml"),
        &Job::parse(JOB).unwrap(),
        &Limits::default(),
    );
    assert!(anyone.refusals.is_empty());
    let nobody = Explanation::for_any_operator(
        &sample("site.toml"),
        &Job::parse(JOB).unwrap(),
        &Limits::default(),
    );
    assert_eq!(nobody.refusals[0].rule, "operators");
}
