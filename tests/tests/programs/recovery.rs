//! Promise: whoever is lost, a run waits for who is away, says so, and goes on to the same bytes.
//!
//! The deployed form: a coordinator, four agents and an operator, each a process of its own with a
//! certificate of its own. Processes are killed and stopped in the middle of rounds.

use kindred_tests::deployment::{Deployment, PATIENTS, SITES, site_config};
use kindred_tests::exit::{GOING, USAGE};
use kindred_tests::programs::{Home, Process, Signal, coordinator, site_agent, until};
use kindred_tests::results::result;
use kindred_tests::samples::{demo_job, demo_of_forests};
use kindred_tests::studies::{OfStudy, STUDY, of_study};
use protocol::name::RunId;
use protocol::progress::Progress;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A dead site is noticed within this.
const NOTICED: Duration = Duration::from_secs(5);

/// Fifty rounds, of milliseconds each: time enough to kill somebody in the middle.
fn many_rounds() -> String {
    let unpsl = [
        "consensus = \"admm\"",
        "tolerance_relative = 1e-5",
        "round_limit = 1800",
    ];
    demo_job(&unpsl, "")
}

/// Waits for the end of a run by the command line, and fetches what it leaves.
#[track_caller]
fn results(deployment: &Deployment, run: &RunId, code: i32) -> PathBuf {
    let out = format!("results-{run}");
    let ran = deployment.job(&["watch", run.as_str(), "--out", &out]);
    assert_eq!(ran.code, Some(code), "{}{}", ran.stdout, ran.stderr);
    deployment.home.join(&out)
}

#[test]
fn an_agent_that_is_killed_in_a_round_and_started_again_rejoins_and_no_round_is_lost() {
    let mut deployment = Deployment::start();
    let run = deployment.submit(&many_rounds(), &[]);
    let mut watch = deployment.watch(&run);
    watch.until_round(5);
    deployment.kill_agent("south");
    let lost = watch.until("the loss is seen", |progress| progress.sites_connected == 3);
    deployment.start_agent("south");
    watch.until("rounds after the return", |progress| {
        progress.sites_connected == 4 && progress.course.round > lost.course.round + 1
    });
    let result = result(&results(&deployment, &run, 0));
    assert_eq!(result["status"], "converged");
    let verified = deployment.home.run(
        &site_agent(),
        &["journal", "verify", "--config", "south.toml"],
    );
    verified.must_succeed();
}

#[test]
fn a_run_waits_for_an_agent_that_is_killed_also_over_a_restart_and_another_goes_first() {
    let mut deployment = Deployment::prepare();
    for site in SITES {
        // So that sums of two studies may tell one hospital's.
        let config = site_config(site, deployment.port(), &format!("site-{site}"));
        let config = config + "sites_min = 1\n";
        deployment.home.write(&format!("{site}.toml"), &config);
    }
    deployment.start_coordinator();
    SITES
        .into_iter()
        .for_each(|site| deployment.start_agent(site));
    let others = many_rounds()
        .replace(", \"west\"", "")
        .replace("1800", "20");
    assert_ne!(others, many_rounds());
    let OfStudy { own, draft } = of_study(&others);
    let named = |name: &str| format!("name = {name:?}\n");
    deployment.open_study("three", &draft.replacen(&named(STUDY), &named("three"), 1));
    let run = deployment.submit(&many_rounds(), &[]);
    let mut watch = deployment.watch(&run);
    watch.until_round(5);
    deployment.kill_agent("west");
    watch.until("west is waited for", |run| run.away == ["west"]);
    // A run of the other three goes first, and the one that waits goes on where it was.
    let word = |word: &str| format!("study = {word:?}");
    let own = own.replacen(&word(STUDY), &word("three.study.toml"), 1);
    let other = deployment.submit(&own, &[]);
    results(&deployment, &other, 0);
    deployment.kill_coordinator();
    deployment.start_coordinator();
    let mut watch = deployment.watch(&run);
    watch.until("west is still waited for", |run| {
        run.away.contains(&"west".to_owned()) && run.ending.is_none()
    });
    deployment.start_agent("west");
    let result = result(&results(&deployment, &run, 0));
    assert_eq!(result["status"], "converged");
}

#[test]
fn a_coordinator_that_is_killed_in_a_round_goes_on_to_the_same_bytes() {
    let job = many_rounds();
    // Offsets follow from the keys of the sites: the same sites are asked twice.
    let mut deployment = Deployment::start();
    let undisturbed = deployment.submit(&job, &["--seed", "3"]);
    let wanted = results(&deployment, &undisturbed, 0);
    let run = deployment.submit(&job, &["--seed", "3", "--token", "again"]);
    // The second of the questions that lead, and a round of ADMM.
    for round in [2, 30] {
        deployment.watch(&run).until_round(round);
        deployment.kill_coordinator();
        deployment.start_coordinator();
    }
    let found = results(&deployment, &run, 0);
    for name in ["metric.npy", "features.csv"] {
        let [found, wanted] = [&found, &wanted].map(|folder| fs::read(folder.join(name)).unwrap());
        assert!(found == wanted, "other bytes of {name} after a restart");
    }
    let (found, wanted) = (result(&found), result(&wanted));
    for key in ["rounds", "objective", "primal_residual", "dual_residual"] {
        assert_eq!(found[key], wanted[key], "{key}");
    }
}

#[test]
fn a_choice_goes_on_to_the_same_bytes_whoever_is_killed_in_it() {
    let keys = [
        "lambda_sparsity = [0.003, 0.01, 0.03]",
        "neighbours = [1, 5]",
        "folds = 3",
    ];
    let job = demo_job(&keys, "");
    // Folds follow from the keys of the sites: the same sites are asked twice.
    let mut deployment = Deployment::start();
    let undisturbed = deployment.submit(&job, &["--seed", "3"]);
    let wanted = results(&deployment, &undisturbed, 0);
    let run = deployment.submit(&job, &["--seed", "3", "--token", "again"]);
    let choosing = |deployment: &Deployment, fits: u32| {
        let done =
            |progress: &Progress| progress.phase == "choosing" && progress.course.round >= fits;
        deployment.watch(&run).until("fits of the choice", done);
    };
    choosing(&deployment, 1);
    deployment.kill_agent("south");
    deployment.start_agent("south");
    choosing(&deployment, 4);
    deployment.kill_coordinator();
    deployment.start_coordinator();
    let found = results(&deployment, &run, 0);
    let metric = |folder: &PathBuf| fs::read(folder.join("metric.npy")).unwrap();
    assert!(
        metric(&found) == metric(&wanted),
        "other bytes after restarts"
    );
    assert_eq!(result(&found)["selection"], result(&wanted)["selection"]);
}

/// A common forest of so many trees that each of its exchanges can be disturbed.
fn many_trees() -> String {
    let head = demo_of_forests(1_000);
    let forest = "[forest]\ntrees = 8000\nscope = \"federated\"\nimportance = false\n";
    format!("{head}{forest}")
}

#[test]
fn agents_and_a_coordinator_that_are_killed_while_a_forest_grows_and_is_judged_leave_the_same_forest()
 {
    let mut deployment = Deployment::start();
    let job = many_trees();
    let undisturbed = deployment.submit(&job, &["--seed", "3"]);
    let wanted = results(&deployment, &undisturbed, 0);
    let wanted = ["forest.bin", "result.json"].map(|name| fs::read(wanted.join(name)).unwrap());

    let run = deployment.submit(&job, &["--seed", "3", "--token", "again"]);
    let phase = |deployment: &Deployment, phase: &str| {
        deployment
            .watch(&run)
            .until(phase, |progress| progress.phase == phase);
    };
    phase(&deployment, "growing");
    deployment.kill_agent("south");
    deployment.start_agent("south");
    phase(&deployment, "judging");
    deployment.kill_agent("east");
    deployment.kill_coordinator();
    deployment.start_coordinator();
    deployment.start_agent("east");
    let found = results(&deployment, &run, 0);
    assert!(
        fs::read(found.join("forest.bin")).unwrap() == wanted[0],
        "another forest after restarts"
    );
    let wanted: serde_json::Value = serde_json::from_slice(&wanted[1]).unwrap();
    let found = result(&found);
    assert_eq!(found["status"], "completed");
    assert_eq!(found["errors"], wanted["errors"]);
    assert!(!found["errors"].as_array().unwrap().is_empty());
}

#[test]
fn who_watches_a_run_sees_its_end_though_the_coordinator_is_away_for_seconds() {
    let mut deployment = Deployment::start();
    let run = deployment.submit(&many_rounds(), &[]);
    let words = [
        "job",
        "watch",
        run.as_str(),
        "--config",
        "operator.toml",
        "--out",
        "watched",
    ];
    let mut watching = deployment.home.start("watching", &coordinator(), &words);
    deployment.watch(&run).until_round(5);
    watching.wait_for("rounds:");
    deployment.kill_coordinator();
    std::thread::sleep(Duration::from_secs(3));
    deployment.start_coordinator();
    assert_eq!(watching.wait(), Some(0), "{}", watching.log());
    assert_eq!(
        result(&deployment.home.join("watched"))["status"],
        "converged"
    );
}

#[test]
fn a_site_that_falls_silent_is_noticed_in_five_seconds_and_taken_back_when_it_wakes() {
    let mut deployment = Deployment::start();
    let run = deployment.submit(&many_rounds(), &[]);
    let mut watch = deployment.watch(&run);
    watch.until_round(5);
    let stopped = Instant::now();
    deployment.agent("north").signal(Signal::Stop);
    watch.within(NOTICED, "the silence is noticed", |progress| {
        progress.sites_connected == 3
    });
    println!("noticed after {:.1} s", stopped.elapsed().as_secs_f64());
    deployment.agent("north").signal(Signal::Continue);
    let result = result(&results(&deployment, &run, 0));
    assert_eq!(result["status"], "converged");
}

#[test]
fn one_token_is_one_run_and_watching_leaves_the_run_alone_and_cancelling_ends_it() {
    let deployment = Deployment::start();
    let job = many_rounds();
    let run = deployment.submit(&job, &["--token", "monday"]);
    assert_eq!(run, deployment.submit(&job, &["--token", "monday"]));
    deployment
        .job(&["submit", "job.toml", "--token", "monday", "--seed", "2"])
        .must_fail(USAGE, &["KDR-TOKEN", "token"]);

    let mut watch = deployment.watch(&run);
    watch.until_round(5);
    let arguments = ["job", "watch", run.as_str(), "--config", "operator.toml"];
    let mut watching = deployment
        .home
        .start("watching", &coordinator(), &arguments);
    watching.wait_for("sites connected");
    watching.signal(Signal::Interrupt);
    assert_eq!(watching.wait(), Some(GOING));
    let again = format!("the run goes on. `job watch {run} --config operator.toml`");
    watching.wait_for(&again);
    assert!(!deployment.home.join(&format!("kindred-{run}")).exists());
    deployment
        .job(&["result", run.as_str()])
        .must_fail(GOING, &["KDR-RUNNING"]);
    let before = watch.until_round(6).course.round;
    watch.until_round(before + 2);

    deployment.job(&["cancel", run.as_str()]).must_succeed();
    let result = result(&results(&deployment, &run, 130));
    assert_eq!(result["status"], "cancelled");
    let list = deployment.job(&["list"]).must_succeed().stdout;
    // The run that opened the study is there too.
    assert_eq!(list.lines().count(), 3, "{list}");
    assert!(list.contains("cancelled"), "{list}");
    deployment.job(&["cancel", run.as_str()]).must_succeed();
    deployment
        .job(&["cancel", "0123456789ab"])
        .must_fail(USAGE, &["KDR-RUN", "0123456789ab"]);
}

/// A simulation on the patients of `home` that has begun its rounds.
fn simulation(home: &Home) -> Process {
    let job = many_rounds().replace("1e-5", "1e-12");
    home.write("job.toml", &job);
    let arguments = ["simulate", "job.toml", "--data", "data", "--out", "out"];
    let mut simulation = home.start("simulation", &coordinator(), &arguments);
    simulation.wait_for("rounds:");
    assert_eq!(home.processes().len(), 4, "{:?}", home.processes());
    simulation
}

#[test]
#[cfg(target_os = "linux")]
fn an_interrupted_simulation_leaves_no_process_and_nothing_half_written() {
    let home = Home::with_patients(PATIENTS);
    let mut simulation = simulation(&home);
    simulation.signal(Signal::Interrupt);
    assert_eq!(simulation.wait(), Some(130), "{}", simulation.log());
    assert_eq!(home.processes(), [] as [&str; 0]);
    assert_eq!(home.left_in_temp(), [] as [&str; 0]);
    let mut left = home.left();
    left.retain(|name| name != "out");
    assert_eq!(left, ["data", "job.toml", "simulation.log"]);
    if home.join("out").exists() {
        assert_eq!(result(&home.join("out"))["status"], "cancelled");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_agents_of_a_simulation_that_is_killed_end_by_themselves() {
    let home = Home::with_patients(PATIENTS);
    let simulation = simulation(&home);
    simulation.kill();
    until("all agents to end", Duration::from_secs(10), || {
        home.processes().is_empty().then_some(())
    });
    assert!(!home.join("out").exists());
}

#[test]
#[cfg(target_os = "linux")]
fn a_simulation_whose_agent_is_killed_says_so_and_ends() {
    let home = Home::with_patients(PATIENTS);
    let mut simulation = simulation(&home);
    let killed = home.kill_process_with("/sites/east/");
    assert_eq!(killed, 1);
    assert_eq!(simulation.wait(), Some(1), "{}", simulation.log());
    assert!(simulation.log().contains("east"), "{}", simulation.log());
    assert_eq!(home.processes(), [] as [&str; 0]);
}
