//! Promise: at the bedside a page says what `similar` and `predict` say of a patient, with what is written into a form; nobody is let in
//! who was not meant, and neither an address nor the log holds anything of a patient.

use kindred_tests::deployment::{certify, site_config};
use kindred_tests::exit::{CONNECTION, JOURNAL, USAGE};
use kindred_tests::programs::{Home, Signal, site_agent};
use kindred_tests::samples::demo_job;
use kindred_tests::visitor::{Visitor, encoded, learn_alone, listening};
use serde_json::Value;
use std::fs;

/// What a run of the site is called here.
pub(crate) const RUN: &str = "0123456789ab";
const HOSTILE: &str = "<b>Chest</b> \\\"pain\\\" & more";
const FORM: &str = "Content-Type: application/x-www-form-urlencoded";

/// A site with a run that was learned from its patients alone.
pub(crate) struct Hospital {
    pub(crate) home: Home,
    port: u16,
}

impl Hospital {
    fn new(outcome: &str, job: &str, pages: &str) -> Self {
        Self::at(Home::with_outcome("north=160", outcome), job, pages)
    }

    /// The same, with patients of its own.
    pub(crate) fn at(home: Home, job: &str, pages: &str) -> Self {
        certify(&home);
        home.write("job.toml", job);
        learn_alone(&home, RUN);
        let (port, table) = listening();
        let config = site_config("north", 1, "site-north");
        home.write("north.toml", &format!("{config}{table}{pages}"));
        Self { home, port }
    }

    fn classes() -> Self {
        Self::new("class", &demo_job(&["round_limit = 30"], ""), "")
    }

    pub(crate) fn survival() -> Self {
        let job = include_str!("../../../deploy/jobs/demo-regression-survival.toml");
        // As the site declares them.
        let line = |line: &str| match line.starts_with("range = ") {
            true => "range = [-1000, 1000]\n".to_owned(),
            false => format!("{line}\n"),
        };
        let job: String = job.lines().map(line).collect();
        Self::new("survival", &job, "")
    }

    fn visit(&self) -> Visitor {
        Visitor::start(&self.home, "north.toml", self.port)
    }

    /// The pages, with a browser that has not been let in.
    pub(crate) fn outside(&self) -> Visitor {
        Visitor::outside(&self.home, "north.toml", self.port)
    }

    /// The identifiers of the patients.
    pub(crate) fn patients(&self) -> Vec<String> {
        let table = fs::read_to_string(self.home.join("data/north.csv")).unwrap();
        let header = table.lines().next().unwrap();
        let place = header
            .split(',')
            .position(|name| name == "patient")
            .unwrap();
        let rows = table.lines().skip(1);
        rows.map(|line| line.split(',').nth(place).unwrap().to_owned())
            .collect()
    }

    /// What the command says.
    fn command(&self, arguments: &[&str]) -> String {
        let own = [RUN, "--config", "north.toml"];
        let all = [&arguments[..1], &own, &arguments[1..]].concat();
        self.home.run(&site_agent(), &all).must_succeed().stdout
    }
}

fn find(patient: &str) -> Vec<(&str, &str)> {
    vec![("patient", patient), ("by", "run"), ("k", "10")]
}

/// Text of a page without its marks.
fn text(page: &str) -> String {
    let mut words = String::new();
    let mut is_mark = false;
    for letter in page.chars() {
        match letter {
            '<' => is_mark = true,
            '>' => {
                is_mark = false;
                words.push(' ');
            }
            letter if !is_mark => words.push(letter),
            _ => {}
        }
    }
    words
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&amp;", "&")
}

#[test]
fn a_patient_of_the_hospital_is_answered_as_by_the_commands() {
    let hospital = Hospital::classes();
    let patient = hospital.patients().swap_remove(41);
    let mut visitor = hospital.visit();
    visitor.get("/").must(
        200,
        &[
            "Patients like this one",
            &format!("/run/{RUN}"),
            "not a medical device",
        ],
    );
    visitor.get(&format!("/run/{RUN}")).must(
        200,
        &["Identifier", "first_1", "Leave empty what is not known"],
    );
    let (path, page) = visitor.follow(&format!("/run/{RUN}/find"), &find(&patient));
    let said = hospital.command(&[
        "similar",
        "--patient",
        &patient,
        "--json",
        "--csv",
        "similar.csv",
    ]);
    let said: Value = serde_json::from_str(&said).unwrap();
    let one = &said["queries"][0];
    // The outcomes, those similar, and how unusual the patient is.
    let share = &one["fared"]["classes"][1];
    let words = format!("{} of 10", share["patients"]);
    let own = text(&page.body);
    assert!(own.contains(&words), "{words}: {own}");
    for case in one["cases"].as_array().unwrap() {
        assert!(own.contains(case["patient"].as_str().unwrap()));
    }
    for heading in [
        "Predicted chances",
        "How sure this is",
        "Predicted and observed",
        "Map of the cohort",
        "What if",
        "At the other hospitals",
    ] {
        assert!(page.body.contains(heading), "{heading}");
    }
    assert!(own.contains("farther from its 10 nearest than"));
    // The table is that of the command, to the byte.
    let table = visitor.get(&format!("{path}/similar.csv"));
    assert_eq!(table.header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(
        table.body,
        fs::read_to_string(hospital.home.join("similar.csv")).unwrap()
    );
}

#[test]
fn a_patient_of_a_form_is_answered_as_one_of_a_file_and_a_changed_value_changes_the_answer() {
    let hospital = Hospital::survival();
    let mut visitor = hospital.visit();
    let table = fs::read_to_string(hospital.home.join("data/north.csv")).unwrap();
    let (header, row) = (
        table.lines().next().unwrap(),
        table.lines().nth(20).unwrap(),
    );
    let cells: Vec<(&str, &str)> = header.split(',').zip(row.split(',')).collect();
    let new: Vec<&(&str, &str)> = cells
        .iter()
        .filter(|(name, _)| *name != "patient")
        .collect();
    let join = |of: fn(&(&str, &str)) -> String| {
        new.iter()
            .map(|cell| of(cell))
            .collect::<Vec<_>>()
            .join(",")
    };
    hospital.home.write(
        "new.csv",
        &format!(
            "{}\n{}\n",
            join(|cell| cell.0.to_owned()),
            join(|cell| cell.1.to_owned())
        ),
    );
    // The form asks for what the job names, in its order.
    let page = visitor.get(&format!("/run/{RUN}")).body;
    let labels: Vec<&str> = page
        .split("<label for=\"f")
        .skip(1)
        .filter(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
        .map(|rest| {
            let label = rest.split_once("\">").unwrap().1;
            label.split("</label>").next().unwrap()
        })
        .collect();
    let fields: Vec<String> = (0..labels.len()).map(|place| format!("f{place}")).collect();
    let value = |label: &&str| cells.iter().find(|(name, _)| name == label).unwrap().1;
    let mut form: Vec<(&str, &str)> = fields
        .iter()
        .map(String::as_str)
        .zip(labels.iter().map(value))
        .collect();
    form.extend([("by", "run"), ("k", "10")]);
    let (path, page) = visitor.follow(&format!("/run/{RUN}/new"), &form);
    let said = hospital.command(&[
        "similar",
        "--new",
        "new.csv",
        "--csv",
        "similar.csv",
        "--json",
    ]);
    let said: Value = serde_json::from_str(&said).unwrap();
    let own = text(&page.body);
    let nearest = said["queries"][0]["cases"].as_array().unwrap();
    assert!(
        nearest
            .iter()
            .all(|case| own.contains(case["patient"].as_str().unwrap())),
        "{own}"
    );
    let ranks = |table: &str| -> Vec<String> {
        table
            .lines()
            .map(|line| line.split(',').skip(1).collect::<Vec<_>>().join(","))
            .collect()
    };
    let table = visitor.get(&format!("{path}/similar.csv")).body;
    let wanted = fs::read_to_string(hospital.home.join("similar.csv")).unwrap();
    assert_eq!(ranks(&table), ranks(&wanted));
    for words in [
        "number at risk",
        "Predicted chances",
        "Predicted and observed",
    ] {
        assert!(page.body.contains(words), "{words}");
    }
    // What was predicted is what the command predicts.
    let predicted = hospital.command(&["predict", "--new", "new.csv", "--json"]);
    let predicted: Value = serde_json::from_str(&predicted).unwrap();
    let predicted = predicted["new"][0]["predicted"].as_str().unwrap();
    assert!(
        own.contains(&format!("Predicted: {predicted}.")),
        "{predicted}"
    );
    // Nothing changed is no question; one value changed shows what changes.
    let same: Vec<(&str, &str)> = form[..labels.len()].to_vec();
    visitor
        .post(&format!("{path}/what-if"), &same)
        .must(422, &["No value was changed"]);
    let mut other = same.clone();
    other[0].1 = "2.5";
    let (changed, page) = visitor.follow(&format!("{path}/what-if"), &other);
    let own = text(&page.body);
    for words in [
        "What changes",
        labels[0],
        "2.5",
        "before",
        "after",
        "are the same patients",
    ] {
        assert!(own.contains(words), "{words}: {own}");
    }
    // A value that cannot be read is named by its field, and not lost.
    other[0].1 = "high <i>";
    let wrong = visitor.post(&format!("{changed}/what-if"), &other);
    let wrong = wrong.must(
        422,
        &[
            "1 of the fields below cannot be used",
            "wanted a number",
            "value=\"high &lt;i&gt;\"",
        ],
    );
    assert!(!wrong.body.contains("high <i>"));
}

#[test]
fn what_cannot_be_meant_is_said_and_no_mark_of_a_label_is_one_of_the_page() {
    let job = demo_job(&["round_limit = 5"], "");
    let job = job.replace(
        "[outcome]\n",
        &format!("[outcome]\nlabel = \"{HOSTILE}\"\n"),
    );
    let job = job.replacen(
        "name = \"first_1\"\n",
        "name = \"first_1\"\nlabel = \"<script>alert(1)</script>\"\nrange = [-1000, 1000]\n",
        1,
    );
    let hospital = Hospital::new("class", &job, "");
    let mut visitor = hospital.visit();
    let forms = visitor
        .get(&format!("/run/{RUN}"))
        .must(200, &["-1000 to 1000"])
        .body;
    let patient = hospital.patients().swap_remove(3);
    let (_, page) = visitor.follow(&format!("/run/{RUN}/find"), &find(&patient));
    for page in [&forms, &page.body, &visitor.get("/").body] {
        assert!(
            !page.contains("<script") && !page.contains("<b>Chest"),
            "{page}"
        );
    }
    assert!(text(&page.body).contains("<script>alert(1)</script>"));
    let path = format!("/run/{RUN}/find");
    visitor
        .post(&path, &find("nobody-at-all"))
        .must(422, &["No patient of the cohort has this identifier"]);
    for (by, k, wanted) in [
        ("chance", "10", "not one of the list"),
        ("run", "0", "Wanted 1 to 100"),
        ("run", "many", "Wanted 1 to 100"),
        ("personal", "10", "no personal metric here yet"),
    ] {
        let fields = [("patient", patient.as_str()), ("by", by), ("k", k)];
        visitor.post(&path, &fields).must(422, &[wanted]);
    }
    let new = format!("/run/{RUN}/new");
    let both = [("by", "run"), ("k", "10")];
    visitor
        .post(&new, &both)
        .must(422, &["At least one value is needed"]);
    let beyond = [both.as_slice(), &[("f0", "1001")]].concat();
    visitor.post(&new, &beyond).must(
        422,
        &["wanted a number from -1000 to 1000", "value=\"1001\""],
    );
    for path in [
        "/run/absent",
        "/run/..",
        "/run/%2e%2e%2f%2e%2e",
        "/answer/0",
        "/nowhere",
        "/study/absent",
        "/left/absent",
    ] {
        let reply = visitor.get(path);
        assert!(
            matches!(reply.status, 404 | 422),
            "{path}: {}",
            reply.status
        );
    }
    assert_eq!(visitor.send("DELETE", "/", &[], "").status, 415);
    assert_eq!(visitor.get(&path).status, 405);
}

#[test]
fn nobody_is_let_in_who_was_not_meant_and_every_answer_is_sealed() {
    let hospital = Hospital::classes();
    let patient = hospital.patients().swap_remove(0);
    let mut visitor = hospital.visit();
    visitor.get(&format!("/run/{RUN}"));
    let (answer, _) = visitor.follow(&format!("/run/{RUN}/find"), &find(&patient));
    // Another name, as of a site that points its own name here.
    for host in [
        "evil.example",
        "evil.example:80",
        "127.0.0.1",
        "127.0.0.1:1",
    ] {
        let reply = visitor.send("GET", "/", &[&format!("Host: {host}")], "");
        assert_eq!(reply.status, 421, "{host}");
        assert!(!reply.body.contains("north"), "{}", reply.body);
    }
    let localhost = format!("Host: localhost:{}", hospital.port);
    assert_eq!(visitor.send("GET", "/", &[&localhost], "").status, 200);
    // A form without its token, with that of nobody, or from another browser.
    let path = format!("/run/{RUN}/find");
    let form = encoded(&find(&patient));
    for body in [
        form.clone(),
        format!("token=&{form}"),
        format!("token={}&{form}", "0".repeat(32)),
    ] {
        visitor
            .send("POST", &path, &[FORM], &body)
            .must(403, &["not of this browser"]);
    }
    let cookie = std::mem::take(&mut visitor.cookie);
    for path in ["/", &answer, &path, "/enter/", "/enter/0123"] {
        visitor
            .send("GET", path, &[], "")
            .must(403, &["Open the address that the program printed"]);
    }
    assert_eq!(visitor.post(&path, &find(&patient)).status, 403);
    let (first, enter) = (cookie.clone(), visitor.enter.clone());
    let entered = visitor.get(&enter);
    let flags = entered.header("set-cookie").to_owned();
    assert!(
        flags.contains("; HttpOnly; SameSite=Strict") && !flags.contains("Secure"),
        "{flags}"
    );
    visitor.cookie = flags.split(';').next().unwrap().to_owned();
    assert_ne!(visitor.cookie, first);
    // Another browser of the same machine sees no answer of the first, and cannot use its token.
    assert_eq!(visitor.get(&answer).status, 404);
    assert_eq!(visitor.post(&path, &find(&patient)).status, 403);
    visitor.cookie = first;
    assert_eq!(visitor.get(&answer).status, 200);
    // A body of another kind, or that is too large.
    let large = format!("token={}&patient={}", visitor.token, "a".repeat(300 * 1024));
    assert_eq!(visitor.send("POST", &path, &[FORM], &large).status, 413);
    assert_eq!(
        visitor
            .send("POST", &path, &["Content-Type: application/json"], "{}")
            .status,
        415
    );
    for path in ["/", "/nowhere", "/page.css", &answer] {
        let reply = visitor.get(path);
        let policy = reply.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'; style-src 'self'")
                && !policy.contains("unsafe"),
            "{path}: {policy}"
        );
        assert_eq!(reply.header("cache-control"), "no-store", "{path}");
        assert_eq!(reply.header("referrer-policy"), "no-referrer", "{path}");
        assert_eq!(reply.header("x-content-type-options"), "nosniff", "{path}");
        assert!(
            !reply.body.contains(" style=") && !reply.body.contains("<style"),
            "{path}"
        );
    }
    // Neither an address nor the log holds a patient.
    let log = visitor.pages.log();
    assert!(log.contains("looked for similar patients"), "{log}");
    let is_long = |patient: &&String| patient.len() > 3;
    let known = hospital.patients();
    for patient in known.iter().filter(is_long) {
        assert!(
            !log.contains(patient.as_str()) && !answer.contains(patient.as_str()),
            "{patient}: {log}"
        );
    }
    assert!(!log.contains(&answer));
    // The audit log has the acts, also while the pages are served, and it cannot be touched unseen.
    let audit = |words: &[&str]| {
        let words = [&["audit"], words, &["--config", "north.toml"]].concat();
        hospital.home.run(&site_agent(), &words)
    };
    let listed = audit(&["list", "--json"]).must_succeed().stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let acts = listed["entries"].as_array().unwrap();
    let searched = |act: &Value| {
        act["did"] == "searched" && act["run"] == RUN && act["user"] == "this machine"
    };
    assert!(!acts.is_empty() && acts.iter().all(searched), "{listed}");
    let path = hospital.home.join("sites/north/audit.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    for patient in known.iter().filter(is_long) {
        assert!(!whole.contains(patient.as_str()), "{patient}");
    }
    audit(&["verify"]).must_succeed();
    visitor.pages.signal(Signal::Terminate);
    assert_eq!(visitor.pages.wait(), Some(0));
    assert!(visitor.pages.log().contains("stopping, as asked"));
    fs::write(&path, whole.replace("searched", "verified")).unwrap();
    audit(&["verify"]).must_fail(JOURNAL, &["audit.jsonl, entry 1"]);
    let again = ["pages", "--config", "north.toml"];
    let again = hospital.home.run(&site_agent(), &again);
    again.must_fail(JOURNAL, &["audit.jsonl, entry 1"]);
    std::fs::remove_file(&path).unwrap();
    let gone = [
        "audit.jsonl could not be opened",
        "never started, or the file is gone",
    ];
    audit(&["verify"]).must_fail(JOURNAL, &gone);
}

#[test]
fn behind_the_proxy_the_user_is_known_by_its_header_and_by_nothing_else() {
    let table = "hosts = [\"kindred.hospital.example\"]\n[pages.proxy]\nuser_header = \"X-Remote-User\"\npassword_file = \"secret\"\n";
    let hospital = Hospital::new("class", &demo_job(&["round_limit = 5"], ""), table);
    hospital.home.write("secret", "short\n");
    let serve = ["pages", "--config", "north.toml"];
    let short = hospital.home.run(&site_agent(), &serve);
    short.must_fail(USAGE, &["has 5 characters, wanted at least 16"]);
    let secret = "a secret of the proxy alone";
    hospital.home.write("secret", &format!("{secret}\n"));
    let mut visitor = hospital.outside();
    assert!(
        visitor
            .pages
            .log()
            .contains("https://kindred.hospital.example/")
    );
    let host = "Host: kindred.hospital.example";
    let (proof, user) = (
        format!("X-Kindred-Proxy: {secret}"),
        "X-Remote-User: dr.grey",
    );
    let get = |visitor: &Visitor, lines: &[&str]| visitor.send("GET", "/", lines, "");
    get(&visitor, &[host, user]).must(403, &["Only the proxy of these pages"]);
    get(&visitor, &[host, user, "X-Kindred-Proxy: guess"])
        .must(403, &["Only the proxy of these pages"]);
    get(&visitor, &[host, &proof]).must(403, &["does not say who asks"]);
    get(&visitor, &[host, &proof, user, "X-Remote-User: chief"])
        .must(403, &["does not say who asks"]);
    let reply = get(&visitor, &[host, &proof, user]).must(200, &["Kindred at north, dr.grey"]);
    assert!(
        reply
            .header("set-cookie")
            .ends_with("SameSite=Strict; Secure")
    );
    visitor.cookie = reply
        .header("set-cookie")
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    // A session is of its user.
    let other =
        get(&visitor, &[host, &proof, "X-Remote-User: dr.bailey"]).must(200, &["dr.bailey"]);
    assert!(!other.header("set-cookie").is_empty());
    let page = visitor.send("GET", &format!("/run/{RUN}"), &[host, &proof, user], "");
    let token = page
        .body
        .split_once("name=\"token\" value=\"")
        .unwrap()
        .1
        .split('"')
        .next()
        .unwrap()
        .to_owned();
    let patient = hospital.patients().swap_remove(5);
    let body = format!("token={token}&{}", encoded(&find(&patient)));
    let sent = visitor.send(
        "POST",
        &format!("/run/{RUN}/find"),
        &[host, &proof, user, FORM],
        &body,
    );
    assert_eq!(sent.status, 303, "{}", sent.body);
    let log = visitor.pages.log();
    assert!(
        log.contains("user=\"dr.grey\"") || log.contains("user=dr.grey"),
        "{log}"
    );
    assert!(!log.contains(secret), "{log}");
    // The port is taken.
    let taken = hospital.home.run(&site_agent(), &serve);
    taken.must_fail(CONNECTION, &["could not listen on 127.0.0.1:"]);
}
