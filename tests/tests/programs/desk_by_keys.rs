//! Promise: at the hospital's desk a study is reviewed and approved in a browser by keys alone, and the others are asked so. Every page of the
//! desk is read on every screen.

use crate::browser::look;
use crate::hospital_desk::{deployment, propose};
use kindred_tests::chromium::{Chromium, Key};
use kindred_tests::deployment::Deployment;
use kindred_tests::programs::{PATIENCE, until};
use kindred_tests::samples::demo_job;
use kindred_tests::studies::{OfStudy, STUDY, of_study};
use kindred_tests::visitor::Visitor;
use std::fs;

#[test]
fn a_study_is_approved_and_the_others_are_asked_by_keys_alone() {
    let (deployment, port) = deployment();
    let Some(chromium) = Chromium::start(&deployment.home) else {
        return;
    };
    let visitor = Visitor::outside(&deployment.home, "north.toml", port);
    chromium.open(&visitor.address(&visitor.enter));
    chromium.must_say(&["No run has left anything to compare by yet"]);
    look(&chromium, "desk-no-run");
    for (way, said) in [
        ("What left", "Nothing has left this hospital yet"),
        ("Studies", "No study waits"),
    ] {
        follow(&chromium, way, &[said]);
    }
    // What north's configuration does not say, whoever approves must.
    let named = "name = \"first_1\"\n";
    let job = demo_job(&["round_limit = 20"], "");
    let job = job.replacen(named, &format!("{named}unit = \"mg/dl\"\n"), 1);
    let OfStudy { own, draft } = of_study(&job);
    let draft = draft.replacen("title = \"", "title = \"<i>Which</i> ", 1);
    propose(&deployment, &draft);
    reloaded_until(&chromium, &visitor.address("/studies"), "1 study waits");
    look(&chromium, "desk-studies");
    follow(&chromium, "<i>Which</i>", &["has not approved the study"]);
    look(&chromium, "desk-review");
    assert_eq!(
        chromium.evaluate("document.querySelector('i') === null"),
        true
    );
    approve(&chromium);
    reloaded_until(
        &chromium,
        &visitor.address(&format!("/study/{STUDY}")),
        "open until",
    );
    let file = format!("study = \"{STUDY}.study.toml\"");
    let job = own.replacen(&format!("study = {STUDY:?}"), &file, 1);
    deployment.home.write("job.toml", &job);
    let submitting = ["submit", "job.toml", "--wait", "--out", "out"];
    deployment.job(&submitting).must_succeed();
    what_left(&chromium);
    elsewhere(&deployment, &chromium);
}

/// Follows a link by its name to a page that says this.
#[track_caller]
fn follow(chromium: &Chromium, link: &str, wanted: &[&str]) {
    assert_eq!(chromium.tab_to(link), "link");
    chromium.go(Key::Enter);
    chromium.must_say(wanted);
}

/// Opens a page until it says so.
#[track_caller]
fn reloaded_until(chromium: &Chromium, address: &str, wanted: &str) {
    until(wanted, PATIENCE, || {
        chromium.open(address);
        chromium.words().contains(wanted).then_some(())
    });
}

/// Reads the data against the study, then approves it by its typed name, after another.
fn approve(chromium: &Chromium) {
    follow(
        chromium,
        "The data of this hospital against the study",
        &["The data fits the study"],
    );
    look(chromium, "desk-data");
    follow(chromium, "The study", &["Approve"]);
    chromium.tab_to("Type the name of the study");
    chromium.write("Patients");
    chromium.go(Key::Enter);
    chromium.must_say(&["Nothing was approved", "is not that of the study"]);
    look(chromium, "desk-wrong");
    chromium.tab_to("Type the name of the study");
    chromium.write(STUDY);
    assert_eq!(chromium.tab_back_to("are in the study's units"), "checkbox");
    chromium.press(Key::Space);
    chromium.tab_to("Approve the study");
    chromium.go(Key::Space);
    chromium.must_say(&["This hospital has approved the study", "What is left"]);
    look(chromium, "desk-approved");
}

/// After a run of the study: the journal, Table 1 and the checkup.
fn what_left(chromium: &Chromium) {
    follow(
        chromium,
        "Table 1 of this hospital",
        &["This hospital", "All hospitals"],
    );
    look(chromium, "desk-table-1");
    follow(chromium, "Studies", &["Approved", "Valid until"]);
    look(chromium, "desk-studies-approved");
    follow(chromium, "What left", &["Verified: all"]);
    look(chromium, "desk-left");
    // The first stop after the ways to the pages is the newest run.
    chromium.tab_to("Checkup");
    chromium.press(Key::Tab);
    chromium.go(Key::Enter);
    chromium.must_say(&["By kind of message"]);
    chromium.tab_to("Verify the run");
    chromium.go(Key::Space);
    chromium.must_say(&["Verified: every question"]);
    look(chromium, "desk-left-verified");
    follow(chromium, "Checkup", &["It changes nothing"]);
    look(chromium, "desk-checkup");
    chromium.tab_to("Look now");
    chromium.go(Key::Space);
    chromium.must_say(&["What was found", "certificate"]);
    look(chromium, "desk-checkup-found");
}

/// Asks the other hospitals about a patient.
fn elsewhere(deployment: &Deployment, chromium: &Chromium) {
    let table = fs::read_to_string(deployment.home.join("data/north.csv")).unwrap();
    let patient = table.lines().nth(11).unwrap().split(',').next().unwrap();
    follow(chromium, "Patients", &["Compare by"]);
    follow(chromium, "<i>Which</i>", &["A patient of this hospital"]);
    chromium.tab_to("Identifier");
    chromium.write(patient);
    chromium.go(Key::Enter);
    chromium.must_say(&["costs 1 query of the study"]);
    look(chromium, "bedside-elsewhere-offer");
    chromium.tab_to("Ask the other hospitals");
    chromium.go(Key::Space);
    until("the other hospitals to answer", PATIENCE, || match chromium
        .words()
        .contains("How similar patients fared")
    {
        true => Some(()),
        false => {
            follow(chromium, "Look again", &["At the other hospitals"]);
            None
        }
    });
    look(chromium, "bedside-elsewhere");
}
