//! Promise: a study waits for the hospital that is away, whose disk is full or whose files were changed, and says for whom; it
//! goes on to the same bits, and nobody else is hurt.

use crate::studies::{HEAD, PATIENTS, at_site, draft, study, until_shown};
use kindred_tests::deployment::{Deployment, SITES, Watch};
use kindred_tests::exit::USAGE;
use kindred_tests::programs::{PATIENCE, coordinator, site_agent, until};
use protocol::job::Job;
use protocol::limits::PROPOSED_PER_OPERATOR_MAX;
use protocol::name::RunId;
use protocol::time::Timestamp;
use serde_json::Value;
use site_agent::config::SiteConfig;
use site_agent::studies::approved;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Many rounds, of milliseconds each.
pub(crate) const METRIC: &str = "name = \"metric\"\nmethod = \"unpsl\"\nstudy = \"demo.study.toml\"\noutcome = \"class\"\n\
    [unpsl]\nrank = 1\nlambda_sparsity = 0.001\nconsensus = \"admm\"\ntolerance_relative = 1e-12\nround_limit = 300\n";
pub(crate) const SEED: [&str; 2] = ["--seed", "3"];
/// A shell that runs the agent where no file may have more than a few bytes.
const FULL: &str =
    "(trap '' XFSZ; ulimit -f 1; \"$0\" \"$@\"; echo \"it ended with $?\") 2>&1 | cat";

/// Four hospitals, and a study that all but north have approved.
fn proposed() -> Deployment {
    proposed_to(Deployment::start())
}

/// A study that all hospitals of a deployment but north have approved.
fn proposed_to(deployment: Deployment) -> Deployment {
    let text = format!("{HEAD}{PATIENTS}").replace("rounds = 200", "rounds = 5000");
    draft(&deployment, &text, "demo.study.toml").must_succeed();
    study(&deployment, &["propose", "demo.study.toml"]).must_succeed();
    for site in &SITES[1..] {
        at_site(&deployment, site, &["approve", "demo.study.toml"]).must_succeed();
    }
    deployment
}

/// Four hospitals of an open study.
pub(crate) fn open() -> Deployment {
    opened(Deployment::start())
}

/// A deployment whose agents run, once a study is open.
pub(crate) fn opened(deployment: Deployment) -> Deployment {
    let deployment = proposed_to(deployment);
    at_site(&deployment, "north", &["approve", "demo.study.toml"]).must_succeed();
    until_shown(&deployment, "demo: open\n");
    deployment
}

/// What a run has learned, once it has.
pub(crate) fn metric(deployment: &Deployment, run: &RunId) -> Vec<u8> {
    let out = format!("results-{run}");
    let watch = ["watch", run.as_str(), "--out", &out];
    deployment.job(&watch).must_succeed();
    fs::read(deployment.home.join(&out).join("metric.npy")).unwrap()
}

/// A run, undisturbed, and one of the same job in the middle of its rounds.
pub(crate) fn in_rounds(deployment: &Deployment) -> (Vec<u8>, RunId) {
    let undisturbed = deployment.submit(METRIC, &SEED);
    let wanted = metric(deployment, &undisturbed);
    let again = [&SEED[..], &["--token", "again"]].concat();
    let run = deployment.submit(METRIC, &again);
    deployment.watch(&run).until_round(20);
    (wanted, run)
}

fn until_away(deployment: &Deployment, run: &RunId, site: &str) -> u32 {
    let mut watch: Watch = deployment.watch(run);
    let away = watch.until("the site is away", |run| {
        run.away == [site] && run.ending.is_none()
    });
    away.course.round
}

fn all_answers_follow(deployment: &Deployment) {
    for site in SITES {
        at_site(deployment, site, &["audit", "demo"]).must_succeed();
    }
}

/// Once a site is back, its run learns the metric that it learned undisturbed, and every hospital's answers follow.
fn must_go_on(deployment: &mut Deployment, site: &'static str, (run, wanted): (&RunId, &[u8])) {
    deployment.start_agent(site);
    assert!(
        metric(deployment, run) == wanted,
        "other bits after {site} was away"
    );
    all_answers_follow(deployment);
}

#[test]
fn a_run_waits_in_its_middle_for_a_hospital_that_is_away_and_goes_on_to_the_same_bits() {
    let mut deployment = open();
    let (wanted, run) = in_rounds(&deployment);
    deployment.kill_agent("west");
    let watch = ["job", "watch", run.as_str(), "--config", "operator.toml"];
    let mut watching = deployment.home.start("watch", &coordinator(), &watch);
    watching.wait_for("waiting for west (not connected) since");
    until_shown(
        &deployment,
        &format!("\nrun {run} waits for west, not connected, since "),
    );
    deployment
        .agent("north")
        .wait_for("the run waits for west, not connected");
    let round = until_away(&deployment, &run, "west");
    std::thread::sleep(Duration::from_secs(3));
    deployment.kill_coordinator();
    deployment.start_coordinator();
    // No round closes without it, also after all have started again.
    assert_eq!(until_away(&deployment, &run, "west"), round);
    must_go_on(&mut deployment, "west", (&run, &wanted));
}

#[test]
fn a_full_disk_leaves_nothing_half_written_and_a_study_goes_on_once_there_is_room() {
    let mut deployment = proposed();
    let agent = site_agent();
    let agent = agent.to_str().unwrap();
    let approve = [
        "study",
        "approve",
        "--config",
        "north.toml",
        "demo.study.toml",
    ];
    let in_shell = [&["-c", FULL, agent], &approve[..]].concat();
    let said = deployment
        .home
        .run(Path::new("/bin/sh"), &in_shell)
        .must_succeed();
    for wanted in ["could not be written", "File too large", "it ended with 1"] {
        assert!(said.stdout.contains(wanted), "{}", said.stdout);
    }
    let studies = deployment.home.join("sites/north/studies");
    assert_eq!(fs::read_dir(studies).unwrap().count(), 0);
    until_shown(
        &deployment,
        "demo: proposed, waiting for the approval of north",
    );
    at_site(&deployment, "north", &["approve", "demo.study.toml"]).must_succeed();
    until_shown(&deployment, "demo: open\n");

    let (wanted, run) = in_rounds(&deployment);
    deployment.kill_agent("north");
    let serve = ["serve", "--config", "north.toml"];
    let in_shell = [&["-c", FULL, agent], &serve[..]].concat();
    let mut full = deployment
        .home
        .start("full", Path::new("/bin/sh"), &in_shell);
    full.wait();
    for wanted in ["File too large", "it ended with 1"] {
        assert!(full.log().contains(wanted), "{}", full.log());
    }
    until_away(&deployment, &run, "north");
    must_go_on(&mut deployment, "north", (&run, &wanted));
}

#[test]
fn a_hospital_whose_snapshot_was_changed_answers_nothing_of_that_study_alone() {
    let mut deployment = open();
    let text = format!("{HEAD}renews = [\"demo\"]\n{PATIENTS}")
        .replace("\"demo\"\ntitle", "\"other\"\ntitle");
    draft(&deployment, &text, "other.study.toml").must_succeed();
    study(&deployment, &["propose", "other.study.toml"]).must_succeed();
    for site in SITES {
        at_site(&deployment, site, &["approve", "other.study.toml"]).must_succeed();
    }
    until("the other study to open", PATIENCE, || {
        let shown = study(&deployment, &["show", "other"]).must_succeed();
        shown.stdout.contains("other: open\n").then_some(())
    });
    let snapshot = deployment
        .home
        .join("sites/west/studies/demo/snapshot.parquet");
    let kept = fs::read(&snapshot).unwrap();
    let mut changed = kept.clone();
    let middle = kept.len() / 2;
    changed[middle] ^= 1;
    fs::write(&snapshot, changed).unwrap();

    let run = deployment.submit(METRIC, &SEED);
    deployment.watch(&run).until("west is waited for", |run| {
        run.waiting_for == ["west"] && run.away.is_empty() && run.ending.is_none()
    });
    let west = deployment.agent("west");
    west.wait_for("answers nothing of a study whose files were changed");
    assert!(
        west.log().contains("studies/demo/snapshot.parquet"),
        "{}",
        west.log()
    );
    deployment.job(&["cancel", run.as_str()]).must_succeed();
    // The other study goes on, at the same agent.
    let of_other = METRIC
        .replace("demo.study", "other.study")
        .replace("= 300", "= 20");
    let other = deployment.submit(&of_other, &SEED);
    metric(&deployment, &other);
    assert!(deployment.agent("west").ended().is_none());

    let run = deployment.submit(METRIC, &[]);
    let waits = |run: &protocol::progress::Progress| run.waiting_for == ["west"];
    deployment.watch(&run).until("west is waited for", waits);
    fs::write(&snapshot, kept).unwrap();
    deployment.kill_agent("west");
    deployment.start_agent("west");
    metric(&deployment, &run);
    all_answers_follow(&deployment);
}

#[test]
fn a_hospital_whose_clock_is_beyond_the_last_day_refuses_by_name_and_books_nothing() {
    let deployment = open();
    let path = deployment.home.join("job.toml");
    let text = wire::jobs::with_study(&path, METRIC.to_owned()).unwrap();
    let job = Job::parse(&text).unwrap();
    let config = SiteConfig::open(&deployment.home.join("north.toml")).unwrap();
    let ledger = deployment.home.join("sites/north/ledger.jsonl");
    let before = fs::read(&ledger).unwrap();
    let year = 365 * 24 * 60 * 60 * 1_000;
    let late = approved(&config, &job, Timestamp(131 * year))
        .unwrap()
        .unwrap_err();
    assert_eq!(late.rule, "study");
    assert_eq!(late.text, "the study \"demo\" ended on 2099-12-31");
    assert_eq!(fs::read(&ledger).unwrap(), before);
    // A clock that is right again is all that it takes.
    assert!(
        approved(&config, &job, Timestamp(60 * year))
            .unwrap()
            .is_ok()
    );
    let run = deployment.submit(METRIC, &SEED);
    metric(&deployment, &run);
}

/// Before there was a limit, 64 such texts filled the places of every hospital, and no other study could be proposed to it.
#[test]
fn an_operator_who_proposes_and_cancels_without_end_leaves_room_for_others() {
    let deployment = Deployment::start();
    let propose = |number: u64| {
        let name = format!("flood{number}");
        let text =
            format!("{HEAD}{PATIENTS}").replace("\"demo\"\ntitle", &format!("{name:?}\ntitle"));
        let file = format!("{name}.study.toml");
        draft(&deployment, &text, &file).must_succeed();
        study(&deployment, &["propose", &file])
    };
    for number in 0..PROPOSED_PER_OPERATOR_MAX {
        propose(number).must_succeed();
        let listed = deployment.job(&["list", "--json"]).must_succeed();
        let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
        let runs = listed.as_array().unwrap();
        let waits = runs.iter().find(|run| run["ended"].is_null()).unwrap();
        let waits = waits["run"].as_str().unwrap();
        deployment.job(&["cancel", waits]).must_succeed();
    }
    let next = || propose(PROPOSED_PER_OPERATOR_MAX);
    next().must_fail(
        USAGE,
        &["8 studies that you have proposed are not open yet"],
    );
    study(&deployment, &["close", "flood0"]).must_succeed();
    next().must_succeed();
}
