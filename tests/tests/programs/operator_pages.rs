//! Promise: at the coordinator's pages an operator sees their own studies and runs as they go, cancels them, and checks a job by the parser
//! of the commands. Nobody else does.

use kindred_tests::deployment::{Deployment, SITES, free_port};
use kindred_tests::programs::{PATIENCE, Signal, coordinator, until};
use kindred_tests::samples::demo_job;
use kindred_tests::studies::{OfStudy, STUDY, of_study};
use kindred_tests::visitor::{Browser, encoded};
use std::fs;

const FORM: &str = "Content-Type: application/x-www-form-urlencoded";
const TITLE: &str = "<i>Which</i> patients";

/// A deployment whose coordinator has pages by this table, without its port, and a browser that has not been let in.
pub(crate) fn deployment(table: &str) -> (Deployment, Browser) {
    let mut deployment = Deployment::prepare();
    let port = free_port();
    let config = fs::read_to_string(deployment.home.join("coordinator.toml")).unwrap();
    let pages = format!("{config}\n[pages]\nlisten = \"127.0.0.1:{port}\"\n{table}");
    deployment.home.write("coordinator.toml", &pages);
    deployment.admit_rival();
    deployment.home.write("secret", &format!("{SECRET}\n"));
    deployment.start_coordinator();
    for site in SITES {
        deployment.start_agent(site);
    }
    let said = deployment.home.join("coordinator/pages.address");
    let said = fs::read_to_string(said).unwrap();
    (deployment, Browser::outside(port, &said))
}

pub(crate) const OWN: &str = "operator = \"researcher\"\n";
const SECRET: &str = "a secret of the proxy alone";
const PROXY: &str = "hosts = [\"kindred.example\"]\n[pages.proxy]\nuser_header = \"x-remote-user\"\npassword_file = \"secret\"\n";

/// Opens the study of a job's patients under a hostile title; gives the job as one of it.
pub(crate) fn open(deployment: &Deployment, job: &str) -> String {
    let OfStudy { own, draft } = of_study(job);
    let (before, after) = draft.split_once("title = \"").unwrap();
    let (_, after) = after.split_once("\"\n").unwrap();
    let draft = format!("{before}title = \"{TITLE}\"\n{after}");
    deployment.open_study(STUDY, &draft);
    own
}

/// Submits a job of the study; gives the run.
pub(crate) fn submit(deployment: &Deployment, own: &str) -> String {
    let file = format!("study = \"{STUDY}.study.toml\"");
    let job = own.replacen(&format!("study = \"{STUDY}\""), &file, 1);
    deployment.home.write("job.toml", &job);
    let ran = deployment.job(&["submit", "job.toml"]).must_succeed();
    ran.stdout.trim().to_owned()
}

#[test]
fn an_operator_sees_their_studies_and_runs_as_they_go() {
    let (mut deployment, mut browser) = deployment(OWN);
    entered(&mut deployment, &mut browser);
    let job = open(&deployment, &demo_job(&["round_limit = 30"], ""));
    browser.get("/").must(
        200,
        &[
            "&lt;i&gt;Which&lt;/i&gt; patients",
            "patients: open, until",
            "4 of 4 hospitals have approved it.",
            "<span class=\"status here\">connected</span>",
            env!("CARGO_PKG_VERSION"),
        ],
    );
    let page = format!("/study/{STUDY}");
    browser.get(&page).must(
        200,
        &[
            "at most ",
            "digest sha256:",
            "rounds of all runs",
            "[[features]]",
        ],
    );
    browser
        .get(&format!("{page}/card"))
        .must(200, &["<table class=\"wide card", "first_1"]);
    // Who is away is named, and the page says the same without its script.
    deployment.kill_agent("west");
    let run = submit(&deployment, &job);
    let here = format!("/run/{run}");
    let waits = "aiting for west (not connected) since ";
    let waiting = until("the run to wait for west", PATIENCE, || {
        let reply = browser.get(&here);
        let all = ["3 of 4 hospitals connected", waits];
        all.iter()
            .all(|text| reply.body.contains(text))
            .then_some(reply)
    });
    assert!(waiting.body.contains(&format!("data-live=\"{here}/live\"")));
    let home = browser.get("/").must(200, &[waits, "1 run is under way"]);
    assert!(home.body.contains("<span class=\"status away\">20"));
    deployment.start_agent("west");
    let events = live(&browser, &here);
    let states: Vec<String> = events.split("event: state\n").skip(1).map(data).collect();
    assert!(states.len() > 2, "{events}");
    assert!(
        events.ends_with("event: ended\ndata: ended\n\n"),
        "{events}"
    );
    let drawn = |state: &&String| state.contains("<svg");
    let last = states
        .iter()
        .rfind(drawn)
        .unwrap_or_else(|| panic!("{events}"));
    for text in [
        "scope=\"col\">objective</th>",
        "<svg",
        "4 of 4 hospitals connected",
    ] {
        assert!(last.contains(text), "wanted {text} in {last}");
    }
    looked_back(&deployment, &mut browser, &run, last);
}

/// The text of an event.
fn data(event: &str) -> String {
    let lines = event.split("\n\n").next().unwrap().lines();
    let lines: Vec<&str> = lines
        .filter_map(|line| line.strip_prefix("data: "))
        .collect();
    lines.join("\n")
}

/// Whoever has the address of this start is let in, and the log does not have it.
fn entered(deployment: &mut Deployment, browser: &mut Browser) {
    let closed = browser.get("/").must(403, &["pages.address"]);
    assert!(!closed.body.contains("researcher"), "{}", closed.body);
    let policy = closed.header("content-security-policy").to_owned();
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "connect-src 'self'",
    ] {
        assert!(
            policy.contains(part) && !policy.contains("unsafe"),
            "{policy}"
        );
    }
    browser.enter();
    let key = browser.enter.rsplit('/').next().unwrap().to_owned();
    assert!(key.len() == 32 && !deployment.coordinator_log().contains(&key));
    let file = deployment.home.join("coordinator/pages.address");
    let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(file).unwrap());
    assert_eq!(mode & 0o777, 0o600);
    let wanted = [
        "No study names you",
        "No run is under way",
        "the operator researcher",
    ];
    browser.get("/").must(200, &wanted);
    browser
        .get("/nowhere")
        .must(404, &["There is no such page"]);
    browser.get("/study/nowhere").must(404, &["names you"]);
}

/// Follows a run to its end; gives the events.
fn live(browser: &Browser, here: &str) -> String {
    let followed = browser.send("GET", &format!("{here}/live"), &[], "");
    assert_eq!(followed.status, 200, "{}", followed.body);
    assert_eq!(followed.header("content-type"), "text/event-stream");
    followed.body
}

/// What the page of a run says once it has ended, after it was last seen so.
fn looked_back(deployment: &Deployment, browser: &mut Browser, run: &str, last: &str) {
    let ended = browser.get(&format!("/run/{run}"));
    let ended = ended.must(200, &[" after ", "Save the report", "job result"]);
    assert!(!ended.body.contains("data-live"));
    // The round that was seen last has the objective of the run's own table.
    let out = format!("found-{run}");
    let fetch = ["result", run, "--out", &out];
    deployment.job(&fetch).must_succeed();
    let rounds = fs::read_to_string(deployment.home.join(&format!("{out}/rounds.csv"))).unwrap();
    let objectives: Vec<String> = rounds
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').nth(1)?.parse::<f64>().ok())
        .map(|objective| format!("<td>{objective:.3e}</td>"))
        .collect();
    let seen = objectives.iter().filter(|one| last.contains(*one)).count();
    assert!(seen > 2, "{objectives:?}\n{last}");
    // The report is that of the command.
    let report = browser.get(&format!("/run/{run}/report"));
    report.must(200, &["section class=\"answer\"", "For the auditor"]);
    let saved = browser.get(&format!("/run/{run}/report.html"));
    assert!(
        saved
            .header("content-disposition")
            .starts_with("attachment")
    );
    let file = fs::read_to_string(deployment.home.join(&format!("{out}/report.html"))).unwrap();
    assert_eq!(saved.body, file);
}

#[test]
fn a_run_is_cancelled_by_its_operator_alone_and_for_sure() {
    let (mut deployment, mut browser) = deployment(OWN);
    browser.enter();
    let own = open(
        &deployment,
        &demo_job(&["round_limit = 2000", "tolerance = 1e-9"], ""),
    );
    // Rounds go on until the end of the test.
    deployment.kill_agent("west");
    let run = submit(&deployment, &own);
    let (here, cancel) = (format!("/run/{run}"), format!("/run/{run}/cancel"));
    browser.get(&here).must(200, &["Cancel this run"]);
    let sure = [("sure", "on")];
    for body in [
        encoded(&sure),
        format!("token=&{}", encoded(&sure)),
        format!("token={}&{}", "0".repeat(32), encoded(&sure)),
    ] {
        let refused = browser.send("POST", &cancel, &[FORM], &body);
        refused.must(403, &["not of this browser"]);
    }
    browser.post(&cancel, &[]).must(422, &["Tick the box"]);
    assert_eq!(browser.get(&cancel).status, 405);
    let shown = deployment.job(&["show", &run]).must_succeed().stdout;
    assert!(shown.contains("waiting for"), "{shown}");
    let (path, ended) = browser.follow(&cancel, &sure);
    assert_eq!(path, here);
    ended.must(200, &["Cancelled after"]);
    let shown = deployment.job(&["show", &run]).must_succeed().stdout;
    assert!(shown.contains("cancelled"), "{shown}");
    // The audit has it as it has the command's.
    let audit = ["audit", "list", "--config", "coordinator.toml"];
    let audit = deployment
        .home
        .run(&coordinator(), &audit)
        .must_succeed()
        .stdout;
    assert!(audit.contains("cancelled"), "{audit}");
    browser
        .get(&format!("{here}/report"))
        .must(404, &["left no report: cancelled"]);
    // Pages end with the coordinator.
    deployment.coordinator().signal(Signal::Terminate);
    assert_eq!(deployment.coordinator().wait(), Some(0));
}

#[test]
fn behind_the_proxy_each_operator_has_their_own() {
    let (mut deployment, mut browser) = deployment(PROXY);
    let own = open(&deployment, &demo_job(&["round_limit = 20"], ""));
    deployment.kill_agent("west");
    let run = submit(&deployment, &own);
    let host = "Host: kindred.example";
    let proof = format!("X-Kindred-Proxy: {SECRET}");
    let by = |browser: &Browser, user: &str, path: &str| {
        let user = format!("X-Remote-User: {user}");
        browser.send("GET", path, &[host, &proof, &user], "")
    };
    let here = format!("/run/{run}");
    by(&browser, "researcher", "/").must(200, &["1 run is under way", &here]);
    until("the run to wait for west alone", PATIENCE, || {
        let page = by(&browser, "researcher", &here);
        page.body.contains("Waiting for west").then_some(())
    });
    let other = by(&browser, "rival", "/").must(200, &["No study names you", "No run"]);
    assert!(!other.body.contains(&run) && !other.body.contains(STUDY));
    for path in [
        here.clone(),
        format!("{here}/live"),
        format!("{here}/report"),
        format!("{here}/report.html"),
        format!("/study/{STUDY}"),
        format!("/study/{STUDY}/card"),
        format!("/study/{STUDY}/job"),
    ] {
        let found = by(&browser, "rival", &path);
        assert_eq!(found.status, 404, "{path}: {}", found.body);
    }
    by(&browser, "no operator", "/").must(403, &["names no operator"]);
    let alone = browser.send("GET", "/", &[host, "X-Remote-User: researcher"], "");
    alone.must(403, &["Only the proxy"]);
    // A rival's form ends nothing.
    let entered = by(&browser, "rival", "/job");
    browser.keep_cookie(&entered);
    let token = entered
        .body
        .split_once("name=\"token\" value=\"")
        .unwrap()
        .1;
    let token = token.split('"').next().unwrap();
    let body = encoded(&[("token", token), ("sure", "on")]);
    let lines = [host, &proof, "X-Remote-User: rival", FORM];
    let refused = browser.send("POST", &format!("{here}/cancel"), &lines, &body);
    refused.must(404, &["found no run"]);
    let job = encoded(&[("token", token), ("job", &format!("study = \"{STUDY}\"\n"))]);
    let checked = browser.send("POST", "/job/check", &lines, &job);
    assert!(!checked.body.contains(TITLE) && !checked.body.contains("first_1"));
    let shown = deployment.job(&["show", &run]).must_succeed().stdout;
    assert!(shown.contains("waiting for west"), "{shown}");
}

#[test]
fn a_job_is_checked_by_the_parser_of_the_commands() {
    let (deployment, mut browser) = deployment(OWN);
    browser.enter();
    let own = open(&deployment, &demo_job(&["round_limit = 20"], ""));
    let begun = browser.get(&format!("/study/{STUDY}/job"));
    begun.must(200, &["&lt;i&gt;Which", "method = ", "id=\"found\""]);
    // What is wrong is what the command says is wrong, at the same lines.
    let wrong = own.replacen("round_limit", "round_limits", 1);
    deployment.home.write(
        "wrong.toml",
        &wrong.replacen(
            &format!("study = \"{STUDY}\""),
            &format!("study = \"{STUDY}.study.toml\""),
            1,
        ),
    );
    let check = ["job", "check", "wrong.toml"];
    let said = deployment.home.run(&coordinator(), &check).stderr;
    let problem = said
        .lines()
        .find(|line| line.contains("round_limits"))
        .unwrap();
    let problem = problem.trim().replace('"', "&quot;");
    let found = browser.post("/job/check", &[("job", &wrong)]);
    let found = found.must(200, &["This cannot be submitted", &problem]);
    assert!(!found.body.contains("<html"), "{}", found.body);
    let page = browser.post("/job", &[("job", &wrong)]);
    page.must(422, &[&problem, "round_limits"]);
    let hostile = browser.post(
        "/job/check",
        &[("job", "name = \"</textarea><script>\"\n[x]")],
    );
    assert!(!hostile.body.contains("<script"), "{}", hostile.body);
    let hostile = browser.post("/job", &[("job", "</textarea><script>alert(1)</script>")]);
    assert!(!hostile.body.contains("<script>"), "{}", hostile.body);
    // One that can be submitted is saved with its study, and the command takes it so.
    let good = [("job", own.as_str())];
    browser
        .post("/job", &good)
        .must(200, &["The job can be read", "as its hospitals approve it"]);
    let refused = browser.send("POST", "/job/check", &[FORM], &encoded(&good));
    refused.must(403, &["not of this browser"]);
    let saved = browser.post("/job/file", &good);
    assert!(saved.header("content-disposition").contains("job.toml"));
    deployment.home.write("saved.toml", &saved.body);
    let ran = deployment.job(&["submit", "saved.toml"]).must_succeed();
    browser
        .get(&format!("/study/{STUDY}"))
        .must(200, &[&format!("/run/{}", ran.stdout.trim())]);
}
