//! Two studies, or more, over some of the same patients: the difference of their sums is that of the few patients, or of the few
//! hospitals, by whom they differ. A study names those that it renews, and its card compares them before it tells anything else.

use crate::studies::{FEATURE, METHOD, OF_STUDY, approve, hospitals, propose, study, submit, told};
use kindred_tests::deployment::{Deployment, SITES};
use kindred_tests::exit::{REFUSED, RUN, USAGE};
use kindred_tests::programs::{PATIENCE, Ran, coordinator, site_agent, until};
use std::fs;

/// So many patients come to a hospital, alike to its last one with a score.
fn come(deployment: &Deployment, site: &str, from: usize, count: usize) {
    let source = deployment.home.join(&format!("data/{site}.csv"));
    let table = fs::read_to_string(&source).unwrap();
    let names: Vec<&str> = table.lines().next().unwrap().split(',').collect();
    let place = names.iter().position(|name| *name == "score").unwrap();
    let score = |line: &str| -> Option<f64> { line.split(',').nth(place)?.parse().ok() };
    let like = table
        .lines()
        .rev()
        .find(|line| score(line).is_some())
        .unwrap();
    let rest = like.split_once(',').unwrap().1;
    let new = (from..from + count).map(|number| format!("{site}-new-{number},{rest}\n"));
    let table = table.clone() + &new.collect::<String>();
    fs::write(&source, table).unwrap();
}

/// A study that renews others.
fn renewing(deployment: &Deployment, name: &str, renews: &[&str], sites: &[&str]) -> String {
    let text = study(deployment, name, sites);
    text.replacen("methods = ", &format!("renews = {renews:?}\nmethods = "), 1)
}

fn shown(deployment: &Deployment, name: &str) -> String {
    let show = ["study", "show", name, "--config", "operator.toml"];
    deployment
        .home
        .run(&coordinator(), &show)
        .must_succeed()
        .stdout
}

fn until_shown(deployment: &Deployment, name: &str, standing: &str) {
    until(standing, PATIENCE, || {
        let wanted = format!("{name}: {standing}\n");
        shown(deployment, name).starts_with(&wanted).then_some(())
    });
}

/// Writes a study that all hospitals approve, and proposes it.
fn agreed(deployment: &Deployment, name: &str, text: &str) {
    let file = format!("{name}.study.toml");
    deployment.home.write(&file, text);
    for site in SITES {
        approve(deployment, site, &file).must_succeed();
    }
    propose(deployment, &file).must_succeed();
}

fn run_of(deployment: &Deployment, name: &str, out: &str) -> Ran {
    let job = format!("{METHOD}study = \"{name}.study.toml\"\n{OF_STUDY}");
    submit(deployment, &job, out)
}

/// Twelve patients come to one hospital: what two runs of a study tell differs by nothing.
#[test]
fn the_difference_of_two_sums_is_not_that_of_the_patients_who_came() {
    let deployment = hospitals();
    agreed(&deployment, "heart", &study(&deployment, "heart", &SITES));
    until_shown(&deployment, "heart", "open");
    run_of(&deployment, "heart", "before").must_succeed();
    come(&deployment, "west", 0, 12);
    run_of(&deployment, "heart", "after").must_succeed();
    assert_eq!(told(&deployment, "before"), told(&deployment, "after"));
}

#[test]
fn a_renewed_study_tells_of_twenty_new_patients_or_of_none() {
    let deployment = hospitals();
    agreed(&deployment, "heart", &study(&deployment, "heart", &SITES));
    until_shown(&deployment, "heart", "open");
    run_of(&deployment, "heart", "heart").must_succeed();
    come(&deployment, "west", 0, 2);
    come(&deployment, "north", 0, 3);

    // Who does not say that it is a renewal, or says it of another study or of other hospitals.
    let second = study(&deployment, "second", &SITES);
    deployment.home.write("unnamed.study.toml", &second);
    let wanted = [
        "patients of heart too, of the same hospitals",
        "wanted renews = [\"heart\"]",
    ];
    approve(&deployment, "east", "unnamed.study.toml").must_fail(REFUSED, &wanted);
    let other = renewing(&deployment, "second", &["heart", "lung"], &SITES);
    deployment.home.write("other.study.toml", &other);
    let wanted = [
        "renews: found \"lung\"",
        "studies that this site has approved",
    ];
    approve(&deployment, "east", "other.study.toml").must_fail(REFUSED, &wanted);
    let mut turned = SITES;
    turned.reverse();
    let turned = renewing(&deployment, "second", &["heart"], &turned);
    deployment.home.write("turned.study.toml", &turned);
    let wanted = [
        "found west, east, south, north",
        "in the order of the study \"heart\"",
    ];
    approve(&deployment, "east", "turned.study.toml").must_fail(REFUSED, &wanted);
    // Numbers of other ends: sums of both studies would differ by the patients beyond an end, however few.
    let wider = renewing(&deployment, "second", &["heart"], &SITES).replacen(
        FEATURE,
        &format!("{FEATURE}range = [-2000, 2000]\n"),
        1,
    );
    deployment.home.write("wider.study.toml", &wider);
    let wanted = [
        "range: found [-2000, 2000] of",
        "in the study \"heart\", from the same column",
    ];
    approve(&deployment, "east", "wider.study.toml").must_fail(REFUSED, &wanted);
    // Other folds part the patients anew.
    let second = renewing(&deployment, "second", &["heart"], &SITES);
    let parted = format!("parts = {{ folds = 7 }}\n{second}");
    deployment.home.write("parted.study.toml", &parted);
    let wanted = [
        "parts: found folds = 7, wanted folds = 5",
        "as in the study \"heart\" of some of the same patients",
    ];
    approve(&deployment, "east", "parted.study.toml").must_fail(REFUSED, &wanted);
    // Nor two ends under two names of one study.
    let twice =
        format!("{FEATURE}[[features]]\nname = \"again\"\nkind = \"numeric\"\nrange = [-1, 1]\n");
    let twice = renewing(&deployment, "second", &["heart"], &SITES).replacen(FEATURE, &twice, 1);
    deployment.home.write("twice.study.toml", &twice);
    let config = fs::read_to_string(deployment.home.join("east.toml")).unwrap();
    let mapped = format!("{config}\n[columns.again]\ncolumn = \"first_1\"\n");
    deployment.home.write("east.toml", &mapped);
    let wanted = ["range: found", "from the same column"];
    approve(&deployment, "east", "twice.study.toml").must_fail(REFUSED, &wanted);
    deployment.home.write("east.toml", &config);

    // Five new patients over all hospitals: the card ends before it counts anything else.
    let second = renewing(&deployment, "second", &["heart"], &SITES);
    agreed(&deployment, "second", &second);
    until_shown(&deployment, "second", "failed");
    let card = [
        "study",
        "card",
        "second",
        "--config",
        "operator.toml",
        "--out",
        "second",
    ];
    let wanted = "fewer than 20 patients over all hospitals are in this study and not in \"heart\"";
    deployment
        .home
        .run(&coordinator(), &card)
        .must_fail(RUN, &[wanted]);
    run_of(&deployment, "second", "refused").must_fail(USAGE, &["its card is not ready"]);
    let journal = ["journal", "list", "--config", "west.toml"];
    let journal = deployment
        .home
        .run(&site_agent(), &journal)
        .must_succeed()
        .stdout;
    let count = |kind: &str| journal.matches(&format!(" {kind} ")).count();
    // The first study had nothing to compare, and the second counted nothing.
    assert_eq!(
        (count("card_lots"), count("card_counts")),
        (1, 1),
        "{journal}"
    );
    let close = ["study", "close", "second", "--config", "operator.toml"];
    deployment.home.run(&coordinator(), &close).must_succeed();
    for site in SITES {
        until("the word of it", PATIENCE, || {
            let list = ["study", "list", "--config", &format!("{site}.toml")];
            let listed = deployment.home.run(&site_agent(), &list).must_succeed();
            listed.stdout.contains("second  closed").then_some(())
        });
    }

    // Forty, of whom few are one hospital's.
    for (site, count) in [("west", 1), ("north", 9), ("south", 10), ("east", 15)] {
        come(&deployment, site, 10, count);
    }
    let third = renewing(&deployment, "third", &["heart"], &SITES);
    agreed(&deployment, "third", &third);
    until_shown(&deployment, "third", "open");
    run_of(&deployment, "third", "third").must_succeed();
    let (before, after) = (told(&deployment, "heart").0, told(&deployment, "third").0);
    assert!((after - before - 40.0).abs() < 0.5, "{before}, {after}");
}

/// A hospital may let others read it, by its own word, for one study.
#[test]
fn a_hospital_that_two_studies_would_read_agrees_or_is_not_read() {
    let deployment = hospitals();
    let four = study(&deployment, "four", &SITES);
    deployment.home.write("four.study.toml", &four);
    for site in SITES {
        approve(&deployment, site, "four.study.toml").must_succeed();
    }
    let three = study(&deployment, "three", &SITES[..3]);
    deployment.home.write("three.study.toml", &three);
    let wanted = [
        "of \"four\"",
        "that tell the sums of west alone",
        "study consent",
    ];
    approve(&deployment, "north", "three.study.toml").must_fail(REFUSED, &wanted);
    let consent = |site: &str, study: &str, out: &str| {
        let config = format!("{site}.toml");
        let arguments = ["study", "consent", "--config", &config, "--out", out, study];
        deployment.home.run(&site_agent(), &arguments)
    };
    let with = |consents: &[&str]| {
        let own = [
            "study",
            "approve",
            "--config",
            "north.toml",
            "three.study.toml",
            "--consent",
        ];
        let arguments = [&own[..], consents].concat();
        deployment.home.run(&site_agent(), &arguments)
    };
    consent("west", "three.study.toml", "west.json").must_succeed();
    consent("west", "three.study.toml", "west.json").must_fail(1, &["west.json"]);
    consent("west", "four.study.toml", "four.json").must_succeed();
    consent("south", "three.study.toml", "south.json").must_succeed();
    deployment.home.write("torn.json", "{");
    // Of another study, of nobody who is read, of another certificate, changed, or none at all.
    with(&["four.json"]).must_fail(USAGE, &["found the study \"four\" with the digest"]);
    let wanted = ["the consent of south, a hospital that these studies do not expose"];
    with(&["west.json", "south.json"]).must_fail(USAGE, &wanted);
    let read = |name: &str| fs::read_to_string(deployment.home.join(name)).unwrap();
    let borrowed = read("south.json").replace("\"south\"", "\"west\"");
    deployment.home.write("borrowed.json", &borrowed);
    let wanted = [
        "found a word by sha256:",
        "as the studies name the certificate of west",
    ];
    with(&["borrowed.json"]).must_fail(USAGE, &wanted);
    let stranger = read("west.json").replace("\"west\"", "\"nowhere\"");
    deployment.home.write("stranger.json", &stranger);
    with(&["stranger.json"]).must_fail(USAGE, &["wanted of a hospital of these studies"]);
    with(&["torn.json"]).must_fail(USAGE, &["wanted a file of `study consent`"]);
    with(&["absent.json"]).must_fail(USAGE, &["absent.json"]);
    with(&["west.json"]).must_succeed();
    let kept = "sites/north/studies/three/consent.west.json";
    assert_eq!(read(kept), read("west.json"));
}
