//! Promise: at the hospital's desk a study is reviewed and approved behind its typed name, and what left, what is left, and what the other
//! hospitals say is what the commands say.

use kindred_tests::deployment::{Deployment, operator_config};
use kindred_tests::programs::{PATIENCE, coordinator, site_agent, until};
use kindred_tests::samples::demo_job;
use kindred_tests::studies::{OfStudy, STUDY, of_study};
use kindred_tests::visitor::{Visitor, listening};
use std::fs;

/// A deployment in which north has pages, and an operator for them.
pub(crate) fn deployment() -> (Deployment, u16) {
    let deployment = Deployment::start();
    let (port, table) = listening();
    let folder = "certificates/operator-researcher";
    let operator = format!(
        "[pages.operator]\ncertificate = \"{folder}/certificate.pem\"\nkey = \"{folder}/key.pem\"\n"
    );
    let config = fs::read_to_string(deployment.home.join("north.toml")).unwrap();
    deployment
        .home
        .write("north.toml", &format!("{config}{table}{operator}"));
    (deployment, port)
}

fn at_north(deployment: &Deployment, arguments: &[&str]) -> String {
    let all = [arguments, &["--config", "north.toml"]].concat();
    deployment
        .home
        .run(&site_agent(), &all)
        .must_succeed()
        .stdout
}

/// Proposes a study, which every hospital but north approves by its command.
pub(crate) fn propose(deployment: &Deployment, draft: &str) {
    let home = &deployment.home;
    home.write("draft.toml", draft);
    let out = format!("{STUDY}.study.toml");
    let drafting = [
        "study",
        "draft",
        "draft.toml",
        "--certificates",
        "certificates",
        "--out",
        &out,
    ];
    home.run(&coordinator(), &drafting).must_succeed();
    home.run(
        &coordinator(),
        &["study", "propose", &out, "--config", "operator.toml"],
    )
    .must_succeed();
    for site in ["south", "east", "west"] {
        let config = format!("{site}.toml");
        let approving = [
            "study",
            "approve",
            "--confirm-units",
            "--config",
            &config,
            &out,
        ];
        home.run(&site_agent(), &approving).must_succeed();
    }
}

#[test]
fn a_study_is_approved_behind_its_name_and_its_pages_say_what_the_commands_say() {
    let (deployment, port) = deployment();
    let mut visitor = Visitor::start(&deployment.home, "north.toml", port);
    visitor
        .get("/")
        .must(200, &["No run has left anything to compare by yet"]);
    visitor
        .get("/studies")
        .must(200, &["No study waits", "Valid until"]);
    visitor
        .get("/left")
        .must(200, &["Nothing has left this hospital yet"]);
    let job = demo_job(&["round_limit = 20"], "");
    let OfStudy { own, draft } = of_study(&job);
    let draft = draft.replacen("title = \"", "title = \"<i>Which</i> ", 1);
    propose(&deployment, &draft);
    let page = format!("/study/{STUDY}");
    until("the study to be proposed", PATIENCE, || {
        (visitor.get(&page).status == 200).then_some(())
    });
    visitor.get("/studies").must(200, &["1 study waits"]);
    // The whole review, as the command prints it.
    let review = visitor
        .get(&page)
        .must(200, &["Type the name of the study"]);
    assert!(!review.body.contains("<i>Which"));
    let printed = at_north(&deployment, &["study", "review", STUDY]);
    for line in printed
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let line = line
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            .replace('"', "&quot;");
        assert!(review.body.contains(&line), "{line}");
    }
    visitor
        .get(&format!("{page}/data"))
        .must(200, &["The data fits the study", "first_1", "The study"]);
    // Only by its typed name, and only as it was shown.
    let digest = review
        .body
        .split_once("name=\"digest\" value=\"")
        .unwrap()
        .1;
    let digest = digest.split('"').next().unwrap().to_owned();
    visitor.get(&page);
    let approve = format!("{page}/approve");
    for (typed, digest, wanted) in [
        ("", digest.as_str(), "is not that of the study"),
        ("Patients", &digest, "is not that of the study"),
        (STUDY, "0000", "has changed since you saw it"),
    ] {
        visitor
            .post(&approve, &[("typed", typed), ("digest", digest)])
            .must(422, &["Nothing was approved", wanted]);
    }
    assert!(at_north(&deployment, &["study", "list"]).contains("waits for approval"));
    let fields = [
        ("typed", STUDY),
        ("digest", digest.as_str()),
        ("units", "yes"),
    ];
    let (_, approved) = visitor.follow(&approve, &fields);
    approved.must(
        200,
        &[
            "This hospital has approved the study",
            "What is left",
            "queries",
        ],
    );
    assert!(at_north(&deployment, &["study", "list"]).contains("at most"));
    visitor
        .post(&approve, &fields)
        .must(422, &["has approved the study before"]);
    let open = |visitor: &mut Visitor| visitor.get(&page).body.contains("open until").then_some(());
    until("the study to open", PATIENCE, || open(&mut visitor));
    what_left(&deployment, &mut visitor, &own);
}

/// After a run of the study: the journal, Table 1, the checkup and the other hospitals.
fn what_left(deployment: &Deployment, visitor: &mut Visitor, own: &str) {
    let job = own.replacen(
        &format!("study = {STUDY:?}"),
        &format!("study = \"{STUDY}.study.toml\""),
        1,
    );
    deployment.home.write("job.toml", &job);
    let ran = deployment
        .job(&["submit", "job.toml", "--wait", "--out", "out"])
        .must_succeed();
    let run = ran.stderr.split_once("run ").map(|(_, rest)| {
        rest.chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect::<String>()
    });
    let left = visitor.get("/left").must(200, &["Verified: all"]);
    // Totals by kind of the newest run are those of the command.
    let run = match run.filter(|run| left.body.contains(&format!("/left/{run}"))) {
        Some(run) => run,
        None => left
            .body
            .split_once("/left/")
            .unwrap()
            .1
            .split('"')
            .next()
            .unwrap()
            .to_owned(),
    };
    let one = visitor
        .get(&format!("/left/{run}"))
        .must(200, &["By kind of message"]);
    let listed = at_north(deployment, &["journal", "list", &run]);
    let totals = listed.split("\nkind ").nth(1).unwrap();
    for line in totals.lines().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (kind, bytes) = (words[0], words[words.len() - 1].parse().unwrap());
        assert!(kind == "all" || one.body.contains(kind), "{line}");
        let bytes = report::grouped(bytes);
        assert!(one.body.contains(&bytes), "{line}: {}", one.body);
    }
    let verified = visitor
        .post(&format!("/left/{run}/verify"), &[])
        .must(200, &["Verified: every question"]);
    let printed = at_north(deployment, &["journal", "verify", &run]);
    let sentence = printed.lines().last().unwrap();
    assert!(
        verified
            .body
            .contains(sentence.split(". Digest").next().unwrap()),
        "{sentence}"
    );
    visitor.get(&format!("/study/{STUDY}/table-1")).must(
        200,
        &[
            "This hospital",
            "All hospitals",
            "130 patients of 1",
            "350 patients of 4",
        ],
    );
    visitor.get("/checkup").must(200, &["Look now"]);
    visitor
        .post("/checkup", &[])
        .must(200, &["What was found", "certificate", "passed"]);
    elsewhere(deployment, visitor, &run);
}

/// The other hospitals are asked on a button, which says what it costs; the answer is that of the command.
fn elsewhere(deployment: &Deployment, visitor: &mut Visitor, run: &str) {
    visitor.get(&format!("/run/{run}"));
    let table = fs::read_to_string(deployment.home.join("data/north.csv")).unwrap();
    let header = table.lines().next().unwrap();
    let row = table.lines().nth(11).unwrap();
    let place = header
        .split(',')
        .position(|name| name == "patient")
        .unwrap();
    let patient = row.split(',').nth(place).unwrap();
    let fields = [("patient", patient), ("by", "run"), ("k", "10")];
    let (answer, page) = visitor.follow(&format!("/run/{run}/find"), &fields);
    page.must(
        200,
        &[
            "costs 1 query of the study",
            "are left at this hospital",
            "Ask the other hospitals",
        ],
    );
    let left = |deployment: &Deployment| -> u64 {
        let budget = at_north(deployment, &["study", "budget", STUDY]);
        let line = budget
            .lines()
            .find(|line| line.trim().starts_with("queries"))
            .unwrap()
            .to_owned();
        line.split_whitespace().last().unwrap().parse().unwrap()
    };
    let before = left(deployment);
    visitor.follow(&format!("{answer}/elsewhere"), &[]);
    let page = until("the other hospitals to answer", PATIENCE, || {
        let page = visitor.get(&answer);
        assert_eq!(page.status, 200);
        page.body
            .contains("How similar patients fared")
            .then_some(page)
    });
    assert_eq!(left(deployment), before - 1);
    deployment
        .home
        .write("new.csv", &format!("{header}\n{row}\n"));
    deployment.home.write(
        "operator.toml",
        &operator_config(deployment.port(), "operator-researcher"),
    );
    let asked = deployment
        .job(&["ask", "neighbours", run, "--new", "new.csv"])
        .must_succeed();
    let sentence = asked
        .stdout
        .lines()
        .find(|line| line.starts_with("Patient 1:"))
        .unwrap_or_default();
    assert!(
        page.body.contains(sentence.trim_start_matches("Patient 1")) && !sentence.is_empty(),
        "{}\n{}",
        asked.stdout,
        page.body
    );
}
