//! Promise: what a command says is true, its exit code is documented, and nothing that was there is lost.

use kindred_tests::deployment::{Deployment, issue};
use kindred_tests::exit::{ENDED, GOING, UNREAD, USAGE};
use kindred_tests::programs::{Home, Process, Signal, coordinator, site_agent};
use kindred_tests::results::{names, result};
use kindred_tests::samples::DEMO_JOB;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// Few patients: a run takes a blink.
const PATIENTS: &str = "north=40,south=40,east=40,west=40";

/// Runs a command that nobody listens to; gives its exit code, and standard error where that is read.
fn unheard(home: &Home, program: &Path, arguments: &[&str], hears_errors: bool) -> (i32, String) {
    let errors = match hears_errors {
        true => Stdio::piped(),
        false => closed(),
    };
    let mut command = home.command(program);
    let command = command.args(arguments).stdout(closed()).stderr(errors);
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), said)
}

/// A pipe whose reader went away before anything was written.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn a_reader_that_has_enough_ends_a_command_quietly() {
    let deployment = Deployment::deserted(DEMO_JOB);
    let home = &deployment.home;
    home.write("job.toml", DEMO_JOB);
    home.write("of_study.toml", &deployment.of_study(DEMO_JOB));
    let site = ["--config", "north.toml"];
    let of_site = |command: &[&'static str]| [command, &site].concat();
    let with_job = |command: &[&'static str]| [command, &site, &["job.toml"]].concat();
    for arguments in [
        with_job(&["data", "check"]),
        with_job(&["policy", "explain"]),
        of_site(&["journal", "list"]),
        vec!["data", "dictionary", "job.toml"],
        vec!["synthesise", "--out", "more"],
        vec![
            "local",
            "job.toml",
            "--data",
            "data/north.csv",
            "--out",
            "alone",
        ],
    ] {
        let (code, said) = unheard(home, &site_agent(), &arguments, true);
        assert_eq!(code, UNREAD, "{arguments:?}: {said}");
        assert!(!said.contains("panicked"), "{arguments:?}: {said}");
        assert!(!said.contains("error:"), "{arguments:?}: {said}");
    }
    let operator = ["--config", "operator.toml"];
    for arguments in [
        [&["job", "list"][..], &operator].concat(),
        [&["job", "submit", "of_study.toml"][..], &operator].concat(),
        vec!["certificates", "init", "--folder", "more"],
    ] {
        let (code, said) = unheard(home, &coordinator(), &arguments, true);
        assert_eq!(code, UNREAD, "{arguments:?}: {said}");
        assert!(!said.contains("panicked"), "{arguments:?}: {said}");
    }
}

#[test]
fn a_simulation_that_nobody_listens_to_still_leaves_its_results() {
    let home = Home::with_patients(PATIENTS);
    home.write("job.toml", DEMO_JOB);
    let arguments = ["simulate", "job.toml", "--data", "data", "--out", "out"];
    let (code, _) = unheard(&home, &coordinator(), &arguments, false);
    assert_eq!(code, UNREAD);
    assert_eq!(result(&home.join("out"))["schema_version"], 1);
}

#[test]
fn a_folder_that_cannot_take_the_results_is_refused_before_the_job_is_submitted() {
    let deployment = Deployment::alone();
    deployment.home.write("job.toml", DEMO_JOB);
    deployment.home.write("thesis/chapter.txt", "mine");
    let arguments = ["submit", "job.toml", "--wait", "--out", "thesis"];
    let wanted = ["thesis", "chapter.txt", "not a result of a run"];
    deployment.job(&arguments).must_fail(USAGE, &wanted);
    let listed = deployment.job(&["list"]).must_succeed().stdout;
    assert_eq!(listed.lines().count(), 1, "{listed}");
    assert!(listed.starts_with("RUN  JOB  METHOD"), "{listed}");
    deployment
        .job(&["submit", "absent.toml"])
        .must_fail(USAGE, &["absent.toml"]);
}

#[test]
fn simulations_have_names_of_their_own_and_equal_seeds_give_equal_bits() {
    let home = Home::with_patients(PATIENTS);
    home.write("job.toml", DEMO_JOB);
    let simulate = |out: &str, more: &[&str]| {
        let arguments = ["simulate", "job.toml", "--data", "data", "--out", out];
        home.run(&coordinator(), &[&arguments, more].concat())
    };
    simulate("first", &[]).must_succeed();
    simulate("second", &[]).must_succeed();
    let [first, second] = ["first", "second"].map(|out| home.join(out));
    let run = |out: &Path| result(out)["run"].as_str().unwrap().to_owned();
    assert_ne!(run(&first), run(&second));
    for name in ["metric.npy", "metric.csv"] {
        let [first, second] = [&first, &second].map(|out| fs::read(out.join(name)).unwrap());
        assert!(first == second, "other bytes of {name}");
    }
    let before = run(&first);
    simulate("first", &[]).must_fail(USAGE, &[&before, "--force"]);
    simulate("first", &["--force"]).must_succeed();
    assert_ne!(run(&first), before);
    fs::write(first.join("notes.txt"), "mine").unwrap();
    simulate("first", &["--force"]).must_fail(USAGE, &["notes.txt"]);
    assert_eq!(fs::read(first.join("notes.txt")).unwrap(), b"mine");
    assert!(names(home.path()).iter().all(|name| !name.contains(".old")));
}

#[test]
fn the_tables_of_a_run_say_what_the_pages_say() {
    let home = Home::with_patients(PATIENTS);
    home.write("job.toml", DEMO_JOB);
    // Without a column of identifiers, patients have numbers.
    let arguments = [
        "local",
        "job.toml",
        "--data",
        "data/north.csv",
        "--out",
        "out",
    ];
    let ran = home.run(&site_agent(), &arguments).must_succeed();
    assert!(ran.stdout.contains("report: "), "{}", ran.stdout);
    let out = home.join("out");
    let table = |path: &str| -> Vec<Vec<String>> {
        let text = fs::read_to_string(out.join(path)).unwrap();
        let fields = |line: &str| line.split(',').map(str::to_owned).collect();
        text.lines().map(fields).collect()
    };
    let outcomes = table("patients/outcome.csv");
    assert_eq!(outcomes[0], ["patient", "code", "level"]);
    assert_eq!((&*outcomes[1][0], &*outcomes[40][0]), ("1", "40"));
    let neighbours = table("patients/neighbours.csv");
    assert_eq!(
        neighbours[0],
        ["patient", "rank", "neighbour", "squared_distance"]
    );
    let matrix: ndarray::Array2<f64> =
        kindred_tests::results::npy(&out.join("patients/matrix.npy"));
    let metric = kindred_tests::results::npy(&out.join("metric.npy"));
    let projected = matrix.dot(&metric);
    for row in &neighbours[1..20] {
        let place = |name: &str| name.parse::<usize>().unwrap() - 1;
        let between = &projected.row(place(&row[0])) - &projected.row(place(&row[2]));
        let found: f64 = row[3].parse().unwrap();
        assert!((found - between.dot(&between)).abs() < 1e-9, "{row:?}");
    }
    let written = table("metric.csv");
    let features = table("features.csv");
    assert_eq!(written[0][..3], ["name", "w1", "w2"]);
    for (row, values) in metric.rows().into_iter().enumerate() {
        assert_eq!(written[row + 1][0], features[row + 1][1]);
        let found: Vec<f64> = written[row + 1][1..]
            .iter()
            .map(|value| value.parse().unwrap())
            .collect();
        assert_eq!(found, values.to_vec());
    }
    let result = result(&out);
    assert_eq!(
        result["classes"],
        serde_json::json!(["without the outcome", "with the outcome"])
    );
    let files = result["files"].as_array().unwrap();
    assert!(files.contains(&Value::from("metric.csv")), "{files:?}");
    assert_eq!(result["operator"], Value::Null);
    assert!(result["ended"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn a_run_says_whose_it_was_and_when_and_one_that_has_ended_cannot_be_cancelled() {
    let deployment = Deployment::start();
    let home = &deployment.home;
    home.write("job.toml", &deployment.of_study(DEMO_JOB));
    let wait = [
        "submit", "job.toml", "--wait", "--token", "monday", "--out", "results",
    ];
    let ran = deployment.job(&wait).must_succeed();
    let run = ran.stdout.lines().next().unwrap().to_owned();
    assert!(ran.stderr.contains("ended: converged"), "{}", ran.stderr);
    // The same token is the same run, and its results replace their own copy.
    deployment.job(&wait).must_succeed();
    let left = result(&home.join("results"));
    assert_eq!(left["run"], *run);
    assert_eq!(left["operator"], "researcher");
    for key in ["submitted", "began", "ended"] {
        let moment = left[key].as_str().unwrap();
        assert!(
            moment.starts_with("20") && moment.ends_with('Z'),
            "{moment}"
        );
    }
    let page = fs::read_to_string(home.join("results/report.html")).unwrap();
    assert!(page.contains("submitted by researcher"));

    let wanted = ["KDR-ENDED", "has ended already: converged"];
    deployment.job(&["cancel", &run]).must_fail(ENDED, &wanted);

    let listed = deployment.job(&["list"]).must_succeed().stdout;
    assert!(
        listed.contains("converged") && listed.contains("unpsl"),
        "{listed}"
    );
    let json = deployment.job(&["list", "--json"]).must_succeed().stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["run"], *run);
    assert_eq!(json[0]["status"], "converged");
    assert_eq!(json[0]["ended"], left["ended"]);
    assert!(json[0]["seconds"].as_f64().unwrap() > 0.0);

    let other = deployment.submit(DEMO_JOB, &[]).to_string();
    deployment
        .job(&["watch", &other, "--out", "results"])
        .must_fail(USAGE, &[&run, "--force"]);
    deployment
        .job(&["watch", &other, "--out", "results", "--force"])
        .must_succeed();
    assert_eq!(result(&home.join("results"))["run"], *other);

    let list = |more: &[&str]| {
        let arguments = [&["journal", "list", "--config", "north.toml"], more].concat();
        home.run(&site_agent(), &arguments).must_succeed().stdout
    };
    let of_run = list(&[&run]);
    assert!(
        of_run.contains(&run) && !of_run.contains(&other),
        "{of_run}"
    );
    assert!(list(&[]).contains(&other));
    let total = |text: &str, kind: &str| -> u64 {
        let row = text.lines().find(|line| line.starts_with(kind)).unwrap();
        row.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let rounds = of_run.lines().filter(|line| line.contains(&run)).count();
    assert_eq!(total(&of_run, "all"), rounds as u64, "{of_run}");
    assert_eq!(total(&of_run, "description"), 1, "{of_run}");
}

#[test]
fn a_run_in_the_queue_says_so_and_how_many_come_before_it() {
    let deployment = Deployment::deserted(DEMO_JOB);
    let first = deployment.submit(DEMO_JOB, &[]);
    let second = deployment.submit(DEMO_JOB, &[]);
    let watch = |run: &str| -> Process {
        let arguments = ["job", "watch", run, "--config", "operator.toml"];
        let name = format!("watching-{run}");
        deployment.home.start(&name, &coordinator(), &arguments)
    };
    let mut watching = watch(second.as_str());
    watching.wait_for("queued: 1 run comes before it");
    let listed = deployment.job(&["list"]).must_succeed().stdout;
    assert!(listed.contains("queued behind 1"), "{listed}");
    assert!(listed.contains("waiting for sites"), "{listed}");
    deployment.job(&["cancel", first.as_str()]).must_succeed();
    watching.wait_for("waiting for sites: 0 of 4 sites connected");
    watching.signal(Signal::Interrupt);
    assert_eq!(watching.wait(), Some(GOING), "{}", watching.log());
}

#[test]
#[cfg(target_os = "linux")]
fn an_agent_that_is_stopped_says_so_and_leaves_in_good_order() {
    let mut deployment = Deployment::start();
    let north = deployment.agent("north");
    north.wait_for("joined the coordinator");
    north.signal(Signal::Terminate);
    assert_eq!(north.wait(), Some(0), "{}", north.log());
    assert!(
        north.log().contains("stopping, as asked"),
        "{}",
        north.log()
    );
    deployment.coordinator().wait_for("a site has left");
    deployment.agent("south").wait_for("joined the coordinator");
    deployment.kill_agent("south");
    deployment.coordinator().wait_for("lost a site");
    let log = deployment.coordinator_log();
    assert_eq!(log.matches("lost a site").count(), 1, "{log}");
    assert!(
        !log.contains("close_notify") && !log.contains("rustls"),
        "{log}"
    );
}

#[test]
fn synthetic_patients_are_never_written_over_unasked() {
    let home = Home::with_patients("north=40");
    let before = fs::read(home.join("data/north.csv")).unwrap();
    let again = [
        "synthesise",
        "--out",
        "data",
        "--sites",
        "north=50,south=40",
    ];
    home.run(&site_agent(), &again)
        .must_fail(USAGE, &["north.csv", "--force"]);
    assert_eq!(names(&home.join("data")), ["north.csv"]);
    assert_eq!(fs::read(home.join("data/north.csv")).unwrap(), before);
    home.run(&site_agent(), &[&again[..], &["--force"]].concat())
        .must_succeed();
    assert_ne!(fs::read(home.join("data/north.csv")).unwrap(), before);
}

#[test]
fn certificates_say_until_when_they_are_valid_and_none_outlives_its_authority() {
    let home = Home::new();
    issue(&home, &["init", "--days", "30"]);
    let issue = |more: &[&str]| {
        let arguments = ["certificates", "issue", "--folder", "certificates"];
        home.run(&coordinator(), &[&arguments, more].concat())
    };
    let ran = issue(&["--site", "north", "--days", "10"]).must_succeed();
    assert!(ran.stderr.contains("valid until 20"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("outlive"), "{}", ran.stderr);
    let ran = issue(&["--site", "south"]).must_succeed();
    assert!(
        ran.stderr.contains("outlive its authority"),
        "{}",
        ran.stderr
    );
    issue(&["--site", "east", "--days", "0"]).must_fail(USAGE, &["--days"]);
    assert!(!home.join("certificates/site-east").exists());
}
