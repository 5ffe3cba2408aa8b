//! Promise: at the bedside everything is done in a browser by keys alone, whatever is wrong is said, and nothing that a name or a label holds
//! is run.

use crate::bedside::{Hospital, RUN};
use crate::browser::look;
use kindred_tests::chromium::{Chromium, Key};
use kindred_tests::programs::Home;
use kindred_tests::samples::demo_job;
use std::fs;

/// What would be run, if a page took it for its own.
const SCRIPT: &str = "<script>window.isRun = 1</script>";
/// The same, once it has left the quotes around it.
const QUOTED: &str = "\"'><img src=/x onerror=\"window.isRun = 1\">";

/// A hospital whose study, labels, levels and patients have such names; gives one of the patients as well.
fn hostile() -> (Hospital, String) {
    let home = Home::with_outcome("north=160", "class");
    let table = fs::read_to_string(home.join("data/north.csv")).unwrap();
    let doubled = QUOTED.replace('"', "\"\"");
    let renamed = table.replacen("north-0007,", &format!("\"{doubled}\","), 1);
    assert_ne!(table, renamed);
    home.write("data/north.csv", &renamed);
    let job = demo_job(&["round_limit = 30"], "");
    let label = |job: &str, before: &str, label: &str| {
        let labelled = format!("{before}label = {label:?}\n");
        job.replacen(before, &labelled, 1)
    };
    let job = label(&job, "[outcome]\n", QUOTED);
    let job = label(&job, "name = \"first_1\"\n", SCRIPT);
    let job = job.replacen(
        SCRIPT,
        &format!("{SCRIPT}\"\nrange = [-1000, 1000]\nunit = \"{SCRIPT}"),
        1,
    );
    let levels = format!(
        "levels = [\"low\", \"middle\", \"high\"]\nlevel_labels = {{ low = {SCRIPT:?}, high = {QUOTED:?} }}\n"
    );
    let job = job.replacen("levels = [\"low\", \"middle\", \"high\"]\n", &levels, 1);
    (Hospital::at(home, &job, ""), QUOTED.to_owned())
}

/// Looks at the page, of which nothing was run.
#[track_caller]
fn looked(chromium: &Chromium, name: &str) {
    look(chromium, name);
    let is_clean =
        "window.isRun === undefined && !document.images.length && !document.scripts.length";
    assert_eq!(chromium.evaluate(is_clean), true, "{name}");
}

#[test]
fn a_patient_is_found_described_and_changed_by_keys_alone() {
    let (hospital, patient) = hostile();
    let visitor = hospital.outside();
    let Some(chromium) = Chromium::start(&hospital.home) else {
        return;
    };
    chromium.open(&visitor.address("/"));
    chromium.must_say(&["Open the address that the program printed"]);
    looked(&chromium, "bedside-closed");
    chromium.open(&visitor.address(&visitor.enter));
    chromium.must_say(&["Patients like this one", "Nothing leaves the hospital"]);
    looked(&chromium, "bedside-start");
    // The first stop of every page leads past its ways to the others.
    chromium.press(Key::Tab);
    assert_eq!(chromium.focus().0, "To the content");
    assert_eq!(chromium.tab_to(QUOTED), "link");
    chromium.go(Key::Enter);
    looked(&chromium, "bedside-forms");
    find(&chromium, &patient);
    looked(&chromium, "bedside-answer");
    change(&chromium);
    // The same patient again, from the answer.
    chromium.tab_to("Ask about another patient");
    chromium.go(Key::Enter);
    describe(&chromium);
    chromium.open(&visitor.address("/nowhere"));
    chromium.must_say(&["There is no such page"]);
    looked(&chromium, "bedside-absent");
}

/// Finds a patient, after one who is not there, by a distance of the list.
fn find(chromium: &Chromium, patient: &str) {
    chromium.tab_to("Identifier");
    chromium.write("nobody-at-all");
    chromium.tab_to("Compare by");
    chromium.write("Eu");
    chromium.tab_to("Similar patients");
    chromium.write_over("7");
    chromium.go(Key::Enter);
    chromium.must_say(&["No patient of the cohort has this identifier"]);
    looked(chromium, "bedside-nobody");
    // What was written and chosen is still there.
    chromium.tab_to("Identifier");
    assert_eq!(value(chromium), "nobody-at-all");
    chromium.write_over(patient);
    assert_eq!(chromium.tab_to("Compare by"), "combobox");
    assert_eq!(value(chromium), "euclidean");
    chromium.press(Key::Down);
    assert_eq!(value(chromium), "manhattan");
    chromium.tab_to("Similar patients");
    assert_eq!(value(chromium), "7");
    chromium.write_over("101");
    chromium.go(Key::Enter);
    chromium.must_say(&["Wanted 1 to 100 similar patients."]);
    chromium.tab_to("Similar patients");
    chromium.write_over("7");
    chromium.tab_to("Find similar patients");
    chromium.go(Key::Space);
    chromium.must_say(&[
        patient,
        "of the 7 patients",
        "Compared by Manhattan distance",
    ]);
}

/// Changes a value of the answer's patient, after one that cannot be, and takes another away.
fn change(chromium: &Chromium) {
    let change = |wanted: &str, write: &str| {
        chromium.tab_to(wanted);
        chromium.write_over(write);
    };
    chromium.tab_to("Change a value and see what changes");
    chromium.press(Key::Space);
    chromium.tab_to("See what changes");
    chromium.go(Key::Enter);
    chromium.must_say(&["No value was changed"]);
    looked(chromium, "bedside-unchanged");
    chromium.leave(|| {
        chromium.evaluate("history.back()");
    });
    chromium.tab_to("Change a value and see what changes");
    chromium.press(Key::Enter);
    change(SCRIPT, "high <i>");
    chromium.go(Key::Enter);
    chromium.must_say(&["1 of the fields below cannot be used", "wanted a number"]);
    looked(chromium, "bedside-what-if-wrong");
    corrected(chromium, "high <i>", "2.5");
    chromium.tab_to("grade");
    chromium.write("unk");
    chromium.tab_back_to(SCRIPT);
    assert_eq!(value(chromium), "2.5");
    chromium.tab_to("See what changes");
    chromium.go(Key::Space);
    chromium.must_say(&[
        "What changes",
        "2.5",
        "before",
        "after",
        "are the same patients",
    ]);
    looked(chromium, "bedside-what-if");
}

/// Describes a patient by nothing at all, then by a few features.
fn describe(chromium: &Chromium) {
    // The second button of this name is that of the second form.
    let send = || {
        chromium.tab_to("grade");
        chromium.tab_to("Find similar patients");
        chromium.go(Key::Enter);
    };
    send();
    chromium.must_say(&["At least one value is needed"]);
    chromium.tab_to(SCRIPT);
    chromium.write("1001");
    send();
    chromium.must_say(&["wanted a number from -1000 to 1000"]);
    looked(chromium, "bedside-forms-wrong");
    corrected(chromium, "1001", "2.5");
    chromium.tab_to("first_2");
    chromium.write("3");
    chromium.tab_to("grade");
    assert_eq!(value(chromium), "");
    send();
    chromium.must_say(&[
        "Patients similar to this patient",
        "Missing for this patient",
    ]);
    looked(chromium, "bedside-described");
}

/// Goes by the link of what is wrong to its field, and writes over what is in it.
fn corrected(chromium: &Chromium, wrong: &str, right: &str) {
    assert_eq!(chromium.tab_to(SCRIPT), "link");
    chromium.press(Key::Enter);
    assert_eq!(chromium.focus().1, "textbox");
    assert_eq!(value(chromium), wrong);
    chromium.write_over(right);
}

/// What the field with the focus holds.
#[track_caller]
fn value(chromium: &Chromium) -> String {
    let value = chromium.evaluate("document.activeElement.value");
    value.as_str().unwrap().to_owned()
}

#[test]
fn a_survival_is_read_on_every_screen() {
    let hospital = Hospital::survival();
    let visitor = hospital.outside();
    let Some(chromium) = Chromium::start(&hospital.home) else {
        return;
    };
    chromium.open(&visitor.address(&visitor.enter));
    chromium.open(&visitor.address(&format!("/run/{RUN}")));
    chromium.tab_to("Identifier");
    chromium.write(&hospital.patients()[20]);
    chromium.go(Key::Enter);
    chromium.must_say(&["number at risk", "Predicted chances"]);
    looked(&chromium, "bedside-survival");
}
