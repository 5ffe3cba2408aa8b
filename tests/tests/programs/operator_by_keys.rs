//! Promise: at the coordinator's pages a job is written, a run is watched to its end and another cancelled, in a browser by keys alone. What
//! changes comes by itself, and every page is read on every screen.

use crate::browser::look;
use crate::operator_pages::{OWN, deployment, open, submit};
use kindred_tests::chromium::{Chromium, Key};
use kindred_tests::deployment::Deployment;
use kindred_tests::samples::demo_job;
use kindred_tests::studies::of_study;

#[test]
fn a_job_is_written_and_runs_are_watched_and_cancelled_by_keys_alone() {
    let (mut deployment, visitor) = deployment(OWN);
    let Some(chromium) = Chromium::start(&deployment.home) else {
        return;
    };
    chromium.open(&visitor.address("/"));
    chromium.must_say(&["pages.address"]);
    look(&chromium, "operator-closed");
    chromium.open(&visitor.address(&visitor.enter));
    chromium.must_say(&["No study names you", "No run is under way"]);
    look(&chromium, "operator-none");
    let quick = open(&deployment, &demo_job(&["round_limit = 30"], ""));
    let endless = demo_job(&["round_limit = 2000", "tolerance = 1e-9"], "");
    let endless = of_study(&endless).own;
    chromium.open(&visitor.address("/"));
    follow(&chromium, "<i>Which</i> patients", &["[[features]]"]);
    look(&chromium, "operator-study");
    write(&chromium);
    let run = submit(&deployment, &endless);
    cancelled(
        &mut deployment,
        &chromium,
        &visitor.address(&format!("/run/{run}")),
    );
    let run = submit(&deployment, &quick);
    watched(
        &mut deployment,
        &chromium,
        &visitor.address(&format!("/run/{run}")),
    );
    follow(
        &chromium,
        "Studies and runs",
        &["No run is under way", "cancelled", "connected"],
    );
    look(&chromium, "operator-home");
    chromium.open(&visitor.address("/run/absent"));
    look(&chromium, "operator-absent");
}

#[track_caller]
fn follow(chromium: &Chromium, link: &str, wanted: &[&str]) {
    assert_eq!(chromium.tab_to(link), "link");
    chromium.go(Key::Enter);
    chromium.must_say(wanted);
}

/// Writes a job of the study, of which what is wrong shows as it is typed.
fn write(chromium: &Chromium) {
    follow(chromium, "Card: Table 1", &["first_1"]);
    look(chromium, "operator-card");
    chromium.leave(|| {
        chromium.evaluate("history.back()");
    });
    follow(chromium, "Write a job", &["The job can be read"]);
    look(chromium, "operator-job");
    chromium.evaluate("window.isSame = true");
    chromium.tab_to("The job");
    chromium.to_the_end();
    chromium.write("round_limits = 20");
    let says =
        |text: &str| format!("document.getElementById('found').innerText.includes({text:?})");
    chromium.wait_for(&says("This cannot be submitted"));
    chromium.wait_for(&says("round_limits"));
    look(chromium, "operator-job-wrong");
    // Paper shows no form, so the focus was lost on it.
    chromium.tab_to("The job");
    chromium.to_the_end();
    for _ in 0.."s = 20".len() {
        chromium.press(Key::Backspace);
    }
    chromium.write(" = 20");
    chromium.wait_for(&says("The job can be read"));
    assert_eq!(chromium.evaluate("window.isSame"), true, "another page");
    // The button says the same.
    chromium.tab_to("Check");
    chromium.go(Key::Enter);
    chromium.must_say(&["The job can be read", "as its hospitals approve it"]);
}

/// Watches a run that waits for a hospital, then cancels it for sure.
fn cancelled(deployment: &mut Deployment, chromium: &Chromium, run: &str) {
    chromium.open(run);
    chromium.evaluate("window.isSame = true");
    chromium.wait_for("document.querySelectorAll('.live tbody tr').length > 3");
    deployment.kill_agent("west");
    chromium.wait_for("document.body.innerText.includes('aiting for west (not connected)')");
    assert_eq!(chromium.evaluate("window.isSame"), true, "another page");
    look(chromium, "operator-run-live");
    chromium.tab_to("Cancel this run");
    chromium.press(Key::Space);
    chromium.tab_to("Cancel the run");
    // Without the tick the browser sends nothing, and leads to the box.
    chromium.press(Key::Space);
    let (name, role) = chromium.focus();
    assert!(
        name.contains("for all hospitals") && role == "checkbox",
        "{role} {name}"
    );
    chromium.press(Key::Space);
    chromium.tab_to("Cancel the run");
    chromium.go(Key::Enter);
    chromium.must_say(&["Cancelled after"]);
    look(chromium, "operator-run-cancelled");
}

/// Watches a run to its end, at which the page changes to what the run has left.
fn watched(deployment: &mut Deployment, chromium: &Chromium, run: &str) {
    chromium.open(run);
    chromium.wait_for("document.body.innerText.includes('aiting for west (not connected)')");
    // What is noted here outlives the page.
    chromium.evaluate(
        "new MutationObserver(() => { sessionStorage.drawn = 1 + Number(sessionStorage.drawn ?? 0); }) \
         .observe(document.querySelector('[data-live]'), { childList: true })",
    );
    deployment.start_agent("west");
    chromium
        .wait_for("!document.querySelector('[data-live]') && document.readyState === 'complete'");
    chromium.must_say(&[" after ", "Save the report"]);
    let drawn = chromium.evaluate("Number(sessionStorage.drawn)");
    assert!(
        drawn.as_u64() > Some(1),
        "drawn {drawn} times before its end"
    );
    look(chromium, "operator-run-ended");
    assert_eq!(chromium.tab_to("Save the report"), "link");
    assert_eq!(chromium.tab_back_to("Report"), "link");
    chromium.go(Key::Enter);
    chromium.must_say(&["For the auditor"]);
    look(chromium, "operator-report");
}
