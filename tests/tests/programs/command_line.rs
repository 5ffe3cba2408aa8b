//! Promise: wrong input ends with a clear error and a documented exit code, and leaves nothing.

use kindred_tests::deployment::{
    Deployment, free_port, issue, operator_config, site_config, tls_of,
};
use kindred_tests::exit::{CONNECTION, DATA, USAGE};
use kindred_tests::programs::{Home, Ran, coordinator, site_agent};
use kindred_tests::results::names;
use kindred_tests::samples::DEMO_JOB;
use protocol::progress::Ending;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, SystemTime};
use wire::certificates::{self, Role, Validity};

/// Few patients: these runs end before they begin.
const PATIENTS: &str = "north=40,south=40,east=40,west=40";
const DAY: Duration = Duration::from_secs(86_400);

/// A simulation of `job` on the folder `data`; it must leave nothing behind but its input.
#[track_caller]
fn simulate(home: &Home, job: &str) -> Ran {
    home.write("job.toml", job);
    let before = home.left();
    let arguments = ["simulate", "job.toml", "--data", "data", "--out", "out"];
    let ran = home.run(&coordinator(), &arguments);
    assert_eq!(home.left(), before, "{}", ran.stderr);
    assert_eq!(home.left_in_temp(), [] as [&str; 0], "{}", ran.stderr);
    assert_eq!(home.processes(), [] as [&str; 0], "{}", ran.stderr);
    ran
}

fn with_patients() -> Home {
    Home::with_patients(PATIENTS)
}

/// Rewrites one field of a site's file; rows count from 0 without the header.
fn change(home: &Home, site: &str, row: usize, column: &str, value: &str) {
    let path = home.join("data").join(format!("{site}.csv"));
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let place = lines[0].split(',').position(|name| name == column).unwrap();
    let mut fields: Vec<&str> = lines[row + 1].split(',').collect();
    fields[place] = value;
    lines[row + 1] = fields.join(",");
    fs::write(&path, lines.join("\n") + "\n").unwrap();
}

#[test]
fn a_job_with_an_unknown_key_is_told_its_line_and_the_nearest_known_key() {
    let job = DEMO_JOB.replace("lambda_sparsity", "lambda_sparsty");
    let line = job
        .lines()
        .position(|line| line.contains("sparsty"))
        .unwrap()
        + 1;
    simulate(&with_patients(), &job).must_fail(
        USAGE,
        &[
            "job.toml",
            &format!("line {line}"),
            "lambda_sparsty",
            "did you mean \"lambda_sparsity\"?",
        ],
    );
}

#[test]
fn a_job_that_names_a_site_twice_is_told_which() {
    let job = DEMO_JOB.replace("\"south\"", "\"north\"");
    let wanted = ["sites", "\"north\" twice", "each site once"];
    simulate(&with_patients(), &job).must_fail(USAGE, &wanted);
}

#[test]
fn a_job_of_ones_own_needs_data_and_is_told_the_files() {
    let home = Home::new();
    home.write("job.toml", DEMO_JOB);
    home.run(&coordinator(), &["simulate", "job.toml"])
        .must_fail(USAGE, &["--data", "north.csv", "west.csv"]);
    assert_eq!(home.left(), ["job.toml"]);
}

#[test]
fn a_column_that_a_site_does_not_have_is_named_with_site_and_file() {
    let home = with_patients();
    for site in ["south", "east", "west"] {
        let path = home.join("data").join(format!("{site}.csv"));
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("irrelevant_1", "unimportant_1")).unwrap();
    }
    let ran = simulate(&home, DEMO_JOB).must_fail(
        DATA,
        &[
            "does not fit the study",
            "irrelevant_1",
            "south",
            "east",
            "west",
            "south.csv",
        ],
    );
    assert!(!ran.stderr.contains("north:"), "{}", ran.stderr);
}

#[test]
fn text_in_a_numeric_column_is_told_by_file_row_and_column_without_the_text() {
    let home = with_patients();
    change(&home, "east", 6, "first_3", "unclear");
    let ran = simulate(&home, DEMO_JOB).must_fail(
        DATA,
        &[
            "does not fit the study",
            "east",
            "east.csv",
            "line 8",
            "first_3",
            "found text of 7 characters",
            "wanted a number",
        ],
    );
    assert!(!ran.stderr.contains("unclear"), "{}", ran.stderr);
}

#[test]
fn a_level_that_is_not_in_the_list_is_told_by_row_with_the_list() {
    let home = with_patients();
    change(&home, "west", 0, "grade", "enormous");
    let ran = simulate(&home, DEMO_JOB).must_fail(
        DATA,
        &[
            "does not fit the study",
            "west.csv",
            "line 2",
            "grade",
            "not in the list",
            "\"low\", \"middle\", \"high\"",
        ],
    );
    assert!(!ran.stderr.contains("enormous"), "{}", ran.stderr);
}

#[test]
fn an_outcome_with_one_class_is_told_with_its_site() {
    let home = with_patients();
    let path = home.join("data/south.csv");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace(",negative", ",positive")).unwrap();
    let wanted = ["KDR-COHORT", "south", "class", "one class only"];
    simulate(&home, DEMO_JOB).must_fail(DATA, &wanted);
}

#[test]
fn a_site_that_does_not_fit_ends_the_run_and_names_its_row() {
    let home = with_patients();
    change(&home, "east", 6, "first_3", "unclear");
    let ran = simulate(&home, DEMO_JOB);
    let ran = ran.must_fail(
        DATA,
        &[
            "does not fit the study",
            "east",
            "east.csv",
            "line 8",
            "first_3",
        ],
    );
    assert!(!ran.stderr.contains("unclear"), "{}", ran.stderr);
}

#[test]
fn every_absent_file_of_a_site_is_named_at_once() {
    let home = with_patients();
    fs::remove_file(home.join("data/south.csv")).unwrap();
    fs::remove_file(home.join("data/west.csv")).unwrap();
    simulate(&home, DEMO_JOB).must_fail(DATA, &["south, west", "data/SITE.csv"]);
}

#[test]
fn a_port_in_use_is_named_by_a_simulation_and_by_a_coordinator() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = taken.local_addr().unwrap();
    let port = address.port().to_string();
    let home = Home::new();
    home.run(
        &coordinator(),
        &["simulate", "--out", "out", "--port", &port],
    )
    .must_fail(CONNECTION, &[&address.to_string(), "--port"]);
    assert_eq!(home.left(), [] as [&str; 0]);
    assert_eq!(home.left_in_temp(), [] as [&str; 0]);

    issue(&home, &["init"]);
    let hosts = ["issue", "--coordinator", "centre", "--hosts", "127.0.0.1"];
    issue(&home, &hosts);
    let tls = tls_of("coordinator-centre");
    home.write(
        "coordinator.toml",
        &format!("listen = \"{address}\"\nfolder = \"kept\"\n\n{tls}"),
    );
    let ran = home
        .run(&coordinator(), &["serve", "--config", "coordinator.toml"])
        .must_fail(CONNECTION, &[&address.to_string(), "using the port"]);
    let said = ran.stderr.matches("Address already in use").count();
    assert_eq!(said, 1, "{}", ran.stderr);
}

#[test]
fn a_job_file_that_is_not_there_is_named() {
    let home = Home::new();
    home.run(&coordinator(), &["simulate", "absent.toml"])
        .must_fail(USAGE, &["absent.toml could not be read"]);
    assert_eq!(home.left(), [] as [&str; 0]);
}

#[test]
fn an_output_folder_with_other_files_stays_as_it_is() {
    let home = Home::new();
    home.write("out/thesis.txt", "mine");
    home.run(&coordinator(), &["simulate", "--out", "out"])
        .must_fail(USAGE, &["out", "not a result of a run"]);
    assert_eq!(home.left(), ["out"]);
    assert_eq!(names(&home.join("out")), ["thesis.txt"]);
    assert_eq!(home.left_in_temp(), [] as [&str; 0]);
}

#[test]
fn sites_that_are_not_there_are_waited_for_by_name_while_others_run() {
    let mut deployment = Deployment::deserted(DEMO_JOB);
    deployment.start_agent("north");
    let run = deployment.submit(DEMO_JOB, &[]);
    let mut watch = deployment.watch(&run);
    let waits = watch.until("the others are awaited", |run| run.sites_connected == 1);
    assert_eq!(waits.away, ["south", "east", "west"]);
    assert_eq!(waits.phase, "waiting for sites");
    for site in ["south", "east", "west"] {
        deployment.start_agent(site);
    }
    watch.until("the run's end", |run| run.ending == Some(Ending::Converged));
}

#[test]
fn a_job_is_submitted_to_a_coordinator_that_is_still_starting() {
    let mut deployment = Deployment::deserted(DEMO_JOB);
    deployment
        .home
        .write("job.toml", &deployment.of_study(DEMO_JOB));
    deployment.kill_coordinator();
    let arguments = ["job", "submit", "job.toml", "--config", "operator.toml"];
    let home = &deployment.home;
    let mut submitting = home.start("submitting", &coordinator(), &arguments);
    submitting.wait_for("nobody answers at");
    deployment.start_coordinator();
    assert_eq!(submitting.wait(), Some(0), "{}", submitting.log());
    // Said once, however often it tried.
    assert_eq!(submitting.log().matches("nobody answers at").count(), 1);
}

/// An agent with the credentials of `party` at a coordinator that runs.
fn join(deployment: &Deployment, site: &str, party: &str) -> Ran {
    let config = site_config(site, deployment.port(), party);
    deployment.home.write("other.toml", &config);
    deployment
        .home
        .run(&site_agent(), &["serve", "--config", "other.toml"])
}

/// `job list` with the credentials of `party`.
fn list(deployment: &Deployment, party: &str) -> Ran {
    let config = operator_config(deployment.port(), party);
    deployment.home.write("other.toml", &config);
    let arguments = ["job", "list", "--config", "other.toml"];
    deployment.home.run(&coordinator(), &arguments)
}

#[test]
fn expired_foreign_and_wrong_certificates_are_told_apart() {
    let deployment = Deployment::alone();
    let now = SystemTime::now();
    let past = Validity {
        from: now - 9 * DAY,
        until: now - DAY,
    };
    let own = deployment.home.join("certificates");
    certificates::issue(&own, &Role::Site, "late", past).unwrap();
    certificates::issue(&own, &Role::Operator, "late", past).unwrap();
    let foreign = deployment.home.join("certificates/foreign");
    certificates::init(&foreign, Validity::days(2)).unwrap();
    certificates::issue(&foreign, &Role::Site, "north", Validity::days(2)).unwrap();
    certificates::issue(&foreign, &Role::Operator, "stranger", Validity::days(2)).unwrap();

    join(&deployment, "late", "site-late").must_fail(CONNECTION, &["not valid now"]);
    list(&deployment, "operator-late").must_fail(CONNECTION, &["KDR-EXPIRED", "not valid now"]);
    join(&deployment, "north", "foreign/site-north")
        .must_fail(CONNECTION, &["another authority", "ca.pem"]);
    list(&deployment, "foreign/operator-stranger")
        .must_fail(CONNECTION, &["KDR-AUTHORITY", "another authority"]);
    join(&deployment, "north", "operator-researcher").must_fail(CONNECTION, &["operator"]);
    // Another hospital's certificate is not this site's, whatever else is right.
    let wanted =
        "found kindred://site/south in this party's certificate, wanted kindred://site/north";
    join(&deployment, "north", "site-south").must_fail(CONNECTION, &[wanted]);
    assert!(!deployment.coordinator_log().contains("a site joined"));
    list(&deployment, "site-north").must_fail(CONNECTION, &["KDR-ROLE", "site"]);
}

#[test]
fn a_site_cannot_submit() {
    let deployment = Deployment::alone();
    list(&deployment, "site-north");
    deployment.home.write("job.toml", DEMO_JOB);
    let arguments = ["job", "submit", "job.toml", "--config", "other.toml"];
    deployment
        .home
        .run(&coordinator(), &arguments)
        .must_fail(CONNECTION, &["KDR-ROLE", "site"]);
    let listed = deployment.job(&["list"]).must_succeed().stdout;
    assert_eq!(listed.lines().count(), 1, "a run was begun: {listed}");
}

#[test]
fn a_second_agent_on_a_folder_and_a_run_that_is_not_there_are_named() {
    let mut deployment = Deployment::alone();
    deployment.start_agent("north");
    deployment.agent("north").wait_for("joined the coordinator");
    join(&deployment, "north", "site-north")
        .must_fail(USAGE, &["journal.jsonl is in use by another process"]);
    let words = [
        "journal",
        "verify",
        "0123456789ab",
        "--config",
        "north.toml",
    ];
    deployment.home.run(&site_agent(), &words).must_fail(
        USAGE,
        &["run 0123456789ab", "a run that this site took part in"],
    );
}

#[test]
fn a_coordinator_that_is_not_there_is_named() {
    let deployment = Deployment::prepare();
    let address = format!("127.0.0.1:{}", deployment.port());
    deployment
        .job(&["list"])
        .must_fail(CONNECTION, &["KDR-UNREACHABLE", &address]);
}

#[test]
fn certificates_are_never_written_over_and_a_coordinator_needs_its_hosts() {
    let home = Home::new();
    issue(&home, &["init"]);
    let key = fs::read(home.join("certificates/authority/key.pem")).unwrap();
    let run = |arguments: &[&str]| {
        let mut all = vec!["certificates"];
        all.extend(arguments);
        all.extend(["--folder", "certificates"]);
        home.run(&coordinator(), &all)
    };
    run(&["init"]).must_fail(USAGE, &["authority", "never written over"]);
    assert_eq!(
        key,
        fs::read(home.join("certificates/authority/key.pem")).unwrap()
    );
    let ran = run(&["issue", "--coordinator", "centre"]);
    assert_ne!(ran.code, Some(0));
    assert!(ran.stderr.contains("--hosts"), "{}", ran.stderr);
    run(&["issue"]).must_fail(USAGE, &["--site"]);
    assert_eq!(names(&home.join("certificates")), ["authority"]);
}

#[test]
fn a_configuration_with_an_unknown_key_is_told_the_nearest() {
    let home = Home::new();
    let site = site_config("north", free_port(), "site-north").replace("methods", "method");
    home.write("site.toml", &site);
    home.run(&site_agent(), &["serve", "--config", "site.toml"])
        .must_fail(USAGE, &["site.toml", "did you mean \"methods\"?"]);
    let site = site_config("north", free_port(), "site-north").replace("folder =", "fodler =");
    home.write("site.toml", &site);
    let ran = home
        .run(&site_agent(), &["serve", "--config", "site.toml"])
        .must_fail(USAGE, &["did you mean \"folder\"?"]);
    assert_eq!(ran.stderr.lines().count(), 2, "{}", ran.stderr);
    home.write("coordinator.toml", "lisen = \"127.0.0.1:1\"\n");
    home.run(&coordinator(), &["serve", "--config", "coordinator.toml"])
        .must_fail(USAGE, &["coordinator.toml", "did you mean \"listen\"?"]);
    assert_eq!(home.left(), ["coordinator.toml", "site.toml"]);
}

#[test]
fn help_lists_every_command_of_both_programs() {
    let home = Home::new();
    let help = |program, arguments: &[&str], wanted: &[&str]| {
        let text = home.run(program, arguments).must_succeed().stdout;
        for command in wanted {
            let listed = text
                .lines()
                .any(|line| line.trim_start().starts_with(command));
            assert!(listed, "no {command} in:\n{text}");
        }
    };
    let (coordinator, site_agent) = (coordinator(), site_agent());
    help(
        &coordinator,
        &["--help"],
        &["simulate", "serve", "job", "certificates"],
    );
    let job = ["submit", "watch", "cancel", "result", "list"];
    help(&coordinator, &["job", "--help"], &job);
    help(
        &coordinator,
        &["certificates", "--help"],
        &["init", "issue"],
    );
    let options = ["--data", "--out", "--seed", "--policy", "--port"];
    help(&coordinator, &["simulate", "--help"], &options);
    help(
        &site_agent,
        &["--help"],
        &["serve", "data", "policy", "journal", "synthesise"],
    );
    help(&site_agent, &["policy", "--help"], &["explain", "lowered"]);
    help(&site_agent, &["journal", "--help"], &["list", "verify"]);
}
