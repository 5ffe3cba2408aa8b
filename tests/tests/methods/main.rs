//! Promises that every method keeps. Each is one function over a sample job, and [`Method::NAMES`] says of which methods
//! there must be samples: a new method fails here until it has one.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test panics, and says what it found

mod named;
mod play;
mod results;
mod samples;
mod secrets;

use kindred_tests::deployment::certify;
use kindred_tests::federation::{NOW, RUN, worker};
use kindred_tests::programs::Home;
use kindred_tests::studies::Proposed;
use play::{Heard, OPERATOR, PATIENTS, Played, Weather, operator, play};
use privacy::sums::WORD_BYTES;
use privacy::{Disclosure, Limits, Permission};
use protocol::message::unpsl::{self, Contribution};
use protocol::message::{Answer, Closed};
use protocol::method::Method;
use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use samples::{SITES, Sample, config, samples, table};
use secrets::{Secrets, numbers};
use site_agent::books::chain;
use site_agent::config::SiteConfig;
use site_agent::explain::Explanation;
use site_agent::explain::kinds::MessageKind;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// "A few hundred bytes of framing a message", as `policy explain` has it.
const FRAMING: u64 = 400;

/// Methods of a study that hospitals have approved, with certificates: real processes play them (`programs/card.rs`), and the
/// simulated world (`protocol/card.rs`).
const OF_STUDIES: [&str; 1] = ["card"];

fn of_every_sample(promise: impl Fn(&Sample)) {
    samples().iter().for_each(promise);
}

#[test]
fn every_method_has_a_sample_and_every_permission_a_sample_that_needs_it() {
    let samples = samples();
    let methods = samples.iter().map(|one| one.job.method.name());
    let methods: BTreeSet<&str> = methods.chain(OF_STUDIES).collect();
    assert_eq!(methods, Method::NAMES.iter().copied().collect());
    let needed = samples
        .iter()
        .map(|one| one.job.facts("researcher").permissions);
    assert_eq!(
        needed.flatten().collect::<BTreeSet<_>>(),
        Permission::ALL.into()
    );
}

#[test]
fn explain_lists_every_kind_of_message_in_the_journal_and_none_that_an_honest_run_never_sends() {
    of_every_sample(|sample| {
        let played = play(sample, PATIENTS, Weather::Calm);
        let explained = explained(sample);
        let wanted: BTreeSet<&str> = explained
            .keys()
            .copied()
            .filter(|one| *one != "refusal")
            .collect();
        for site in SITES {
            let mut sent: BTreeMap<String, u64> = BTreeMap::new();
            for entry in played.journal(site) {
                let kind = explained
                    .get(entry.kind.as_str())
                    .unwrap_or_else(|| panic!("{sample}: {} is not explained", entry.kind));
                let most = kind.bytes + FRAMING;
                let (found, kind) = (entry.bytes, entry.kind);
                assert!(
                    found <= most,
                    "{sample}: a {kind} of {found} bytes, at most {most} are explained"
                );
                *sent.entry(kind).or_default() += 1;
            }
            let found: BTreeSet<&str> = sent.keys().map(String::as_str).collect();
            assert_eq!(found, wanted, "{sample}");
            for (kind, times) in &sent {
                let most = explained[kind.as_str()].times;
                assert!(
                    *times <= most,
                    "{sample}: {times} of {kind}, at most {most} are explained"
                );
            }
        }
    });
}

/// What `policy explain` says of a sample's messages at a site, by their kinds.
fn explained(sample: &Sample) -> BTreeMap<&'static str, MessageKind> {
    let text = config(SITES[0], &Permission::ALL.into());
    let config = SiteConfig::parse(&text, Path::new("")).unwrap();
    let explanation = Explanation::new(&config.policy, &sample.job, OPERATOR, &Limits::default());
    assert_eq!(explanation.refusals, [], "{sample}");
    let messages = explanation.messages.into_iter();
    messages.map(|message| (message.kind, message)).collect()
}

#[test]
fn explain_says_exactly_how_long_the_largest_words_of_a_kind_are() {
    of_every_sample(|sample| {
        let explained = explained(sample);
        let mut longest: BTreeMap<&str, u64> = BTreeMap::new();
        for heard in play(sample, PATIENTS, Weather::Calm).heard {
            if let Answer::Covered(covered) = &heard.answer {
                let bytes = (covered.words.as_slice().len() * WORD_BYTES) as u64;
                let most = longest.entry(covered.kind).or_default();
                *most = bytes.max(*most);
            }
        }
        assert!(longest.contains_key("description"), "{sample}");
        for (kind, found) in longest {
            let wanted = explained[kind].bytes;
            assert_eq!(found, wanted, "{sample}: {kind}");
        }
    });
}

#[test]
fn no_frame_of_a_run_holds_a_value_of_any_patient() {
    of_every_sample(|sample| {
        let played = play(sample, PATIENTS, Weather::Calm);
        let secrets = Secrets::of(sample, &played);
        assert!(secrets.count() > 5_000, "{sample}: {}", secrets.count());
        let mut bytes = 0;
        for heard in &played.heard {
            let sent = heard.frames.concat();
            let found = secrets.found_in(&sent);
            assert!(
                found.is_empty(),
                "{sample}: {:?} holds the value of {found:?}",
                heard.answer
            );
            bytes += sent.len();
        }
        println!(
            "{sample}: {} values in {bytes} bytes: none",
            secrets.count()
        );
    });
}

#[test]
fn a_value_that_leaves_is_found() {
    let mut secrets = Secrets::default();
    secrets.add_number(20.4019, "north, row 1");
    secrets.add(b"north-0001".to_vec(), "north, name 1");
    let contribution = |value| {
        let contribution = Contribution {
            matrix: ndarray::Array2::from_elem((3, 2), value),
            objective: 0.5,
            iterations: 1,
            products: None,
        };
        wire::encode_answer(&Answer::Unpsl(unpsl::Answer::Contribution(contribution)))
    };
    assert!(!secrets.found_in(&contribution(20.4019)).is_empty());
    assert!(secrets.found_in(&contribution(20.4018)).is_empty());
    assert!(!secrets.found_in(b"row of north-0001").is_empty());
    assert!(!secrets.found_in(b"the value 20.4019.").is_empty());
}

/// Where `policy explain` names no size that depends on the data, tenfold patients make a message no longer than a few counts
/// of more digits do.
#[test]
fn what_a_site_sends_does_not_grow_with_its_patients() {
    of_every_sample(|sample| {
        let explained = explained(sample);
        let [few, many] = [60, 600].map(|patients| longest(&play(sample, patients, Weather::Calm)));
        for (kind, few) in &few {
            if explained[kind].shape.contains("up to") {
                continue;
            }
            let many = &many[kind];
            assert_eq!(few.numbers, many.numbers, "{sample}: {kind}");
            // A byte for every four of the patients who are more.
            let grown = many.bytes.abs_diff(few.bytes);
            assert!(4 * grown < 540, "{sample}: {kind} grew by {grown} bytes");
            assert!(many.bytes >= 8 * many.numbers, "{sample}: {kind}");
        }
    });
}

/// A message of a kind.
struct Longest {
    bytes: usize,
    numbers: usize,
}

/// The longest message of each kind.
fn longest(played: &Played) -> BTreeMap<&'static str, Longest> {
    let mut all: BTreeMap<&str, Longest> = BTreeMap::new();
    for heard in &played.heard {
        let bytes = heard.frames.iter().map(bytes::Bytes::len).sum();
        let numbers = numbers(&heard.answer);
        let one = all
            .entry(heard.answer.kind())
            .or_insert(Longest { bytes, numbers });
        one.bytes = one.bytes.max(bytes);
        one.numbers = one.numbers.max(numbers);
    }
    all
}

#[test]
fn agents_that_are_killed_in_every_exchange_leave_the_bits_of_an_undisturbed_run() {
    of_every_sample(|sample| {
        same_bits_as_in_a_calm(sample, Weather::AgentsAreKilled);
    });
}

#[test]
fn a_coordinator_that_is_killed_in_every_exchange_leaves_the_bits_of_an_undisturbed_run() {
    of_every_sample(|sample| {
        same_bits_as_in_a_calm(sample, Weather::CoordinatorIsKilled);
    });
}

#[test]
fn what_a_site_hears_again_in_any_order_changes_nothing_and_is_counted_once() {
    of_every_sample(|sample| {
        let (calm, pestered) = same_bits_as_in_a_calm(sample, Weather::SitesArePestered);
        for site in SITES {
            let lines = |played: &Played| (played.journal(site).len(), played.in_the_ledger(site));
            assert_eq!(lines(&calm), lines(&pestered), "{sample}");
        }
    });
}

/// A run that is over begins again, and whoever has its place asks after each exchange that closed what was asked in any.
#[test]
fn a_thousand_questions_of_a_run_that_is_over_get_the_same_bytes_or_none_and_cost_nothing() {
    of_every_sample(|sample| {
        let played = play(sample, PATIENTS, Weather::Calm);
        let mut draw = ChaCha8Rng::seed_from_u64(3);
        let site = SITES[0];
        let before = played.in_the_ledger(site);
        let heard: Vec<&Heard> = played.heard_of(site).collect();
        let mut worker = play::worker(&played.home, site);
        worker.begin(played.begin.clone(), Ok(operator()));
        let (mut same, asked) = (0, 1 + 1_000 / played.records.len());
        for record in &played.records {
            let closed = Closed::new(played.begin.run.clone(), record.clone());
            worker.follow(&closed, NOW).unwrap();
            let next = heard
                .iter()
                .find(|one| one.ask.exchange == record.exchange + 1);
            for turn in 0..asked {
                let one = match (turn, next) {
                    (0, Some(next)) => next,
                    _ => heard.choose(&mut draw).unwrap(),
                };
                let reply = worker.answer(&one.ask, NOW).unwrap().unwrap();
                let kind = reply.answer.kind();
                if !["refusal", "failure"].contains(&kind) {
                    let is_same = reply.answer.chunks().eq(one.sealed.chunks());
                    assert!(is_same, "{sample}: another {kind}");
                    same += 1;
                }
            }
        }
        let least = played.records.len() - 2;
        assert!(same >= least, "{sample}: only {same} answers");
        drop(worker);
        assert_eq!(played.in_the_ledger(site), before, "{sample}");
    });
}

/// The run in this weather leaves what it leaves in a calm.
fn same_bits_as_in_a_calm(sample: &Sample, weather: Weather) -> (Played, Played) {
    let calm = play(sample, PATIENTS, Weather::Calm);
    let disturbed = play(sample, PATIENTS, weather);
    assert!(disturbed.heard.len() >= calm.heard.len(), "{sample}");
    let is_learnt = calm.result.has_model();
    assert!(is_learnt, "{sample}: {:?}", calm.result.ending);
    let assessed = calm.result.pooled.assessment.is_some();
    let wanted = explained(sample).contains_key("assessment");
    assert_eq!(assessed, wanted, "{sample}");
    assert_eq!(calm.result.ending, disturbed.result.ending, "{sample}");
    assert!(
        calm.left() == disturbed.left(),
        "{sample}: other bits than in a calm"
    );
    (calm, disturbed)
}

/// The frozen patients are not there, and nobody finds out.
#[test]
fn a_permission_that_is_refused_refuses_the_job_before_anything_is_read() {
    of_every_sample(|sample| {
        let needs = sample.job.facts("researcher").permissions;
        if needs.is_empty() {
            return;
        }
        let (home, study) = play::opened(sample, PATIENTS);
        let job = study.job(&sample.text);
        for needed in needs {
            let mut others = BTreeSet::from(Permission::ALL);
            others.remove(&needed);
            let mut worker = worker(&config(SITES[0], &others), &home, NOW);
            match study.describe(&mut worker, RUN, &job, 5) {
                Answer::Refused(refusal) => assert_eq!(refusal.rule, needed.name(), "{sample}"),
                other => panic!("{sample}: {other:?} without {}", needed.name()),
            }
        }
    });
}

/// Three patients of one class, of whom none had an event: a policy's minimum speaks, and nothing is said of classes.
#[test]
fn a_site_of_few_patients_is_refused_by_its_policy_before_its_data_complains() {
    of_every_sample(|sample| {
        let home = Home::new();
        certify(&home);
        let all = table(SITES[0], PATIENTS);
        let is_plain = |line: &&str| {
            line.split(',').nth(1) == Some("0") && line.split(',').nth(4) == Some("0")
        };
        let few: Vec<&str> = all
            .lines()
            .take(1)
            .chain(all.lines().filter(is_plain).take(3))
            .collect();
        home.write(&format!("data/{}.csv", SITES[0]), &(few.join("\n") + "\n"));
        let mut worker = worker(&config(SITES[0], &Permission::ALL.into()), &home, NOW);
        let study = Proposed::of(&sample.text, &home);
        // A level that so few hold is no outcome: nobody is left to be frozen, which the site alone hears.
        if let Err(error) = study.approve(&home, SITES[0]) {
            assert!(
                error.to_string().contains("found no patient"),
                "{sample}: {error}"
            );
            return;
        }
        match study.introduce(&mut worker) {
            Answer::Refused(refusal) => {
                assert!(refusal.rule.contains("patients_min"), "{sample}: {refusal}")
            }
            other => panic!("{sample}: {other:?}"),
        }
    });
}

#[test]
fn an_answer_shows_its_kind_alone_and_a_question_names_it() {
    of_every_sample(|sample| {
        for heard in play(sample, PATIENTS, Weather::Calm).heard {
            let kind = heard.answer.kind();
            assert_eq!(format!("{:?}", heard.answer), kind, "{sample}");
            assert_eq!(
                format!("{:?}", heard.sealed),
                format!("Sealed({kind:?})"),
                "{sample}"
            );
            assert_eq!(heard.ask.request.answer_kind(), kind, "{sample}");
        }
    });
}

#[test]
fn a_question_counts_the_rounds_that_its_answer_costs() {
    of_every_sample(|sample| {
        let played = play(sample, PATIENTS, Weather::Calm);
        for site in SITES {
            let asked = played
                .heard_of(site)
                .map(|heard| heard.ask.request.rounds());
            let asked: u64 = asked.sum();
            assert_eq!(played.rounds(site), asked, "{sample}");
        }
    });
}

#[test]
fn the_journal_has_the_digest_of_the_very_bytes_that_left() {
    of_every_sample(|sample| {
        let played = play(sample, PATIENTS, Weather::Calm);
        for site in SITES {
            let journal = played.journal(site);
            assert_eq!(journal.len(), played.heard_of(site).count(), "{sample}");
            for (entry, heard) in journal.iter().zip(played.heard_of(site)) {
                let kind = heard.answer.kind();
                let left = heard.left();
                let left =
                    left.unwrap_or_else(|| panic!("{sample}: a part of a {kind} never left"));
                assert_eq!(entry.kind, kind, "{sample}");
                assert_eq!(entry.exchange, heard.ask.exchange, "{sample}: a {kind}");
                assert_eq!(entry.bytes, left.len() as u64, "{sample}: a {kind}");
                assert_eq!(entry.digest, chain::digest(&left), "{sample}: a {kind}");
            }
        }
    });
}
