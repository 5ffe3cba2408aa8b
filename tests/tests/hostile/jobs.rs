//! An operator's jobs, a clock that jumps, and a second coordinator: what could stop the coordinator, or keep
//! it from others.

use crate::member;
use kindred_tests::deployment::{Deployment, SITES, WAITS, free_port};
use kindred_tests::programs::{PATIENCE, Process, coordinator, until};
use kindred_tests::results::names;
use kindred_tests::samples::demo_job;
use kindred_tests::studies::{STUDY, of_study};
use protocol::name::RunId;
use protocol::progress::Progress;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use wire::{ConnectionError, OperatorClient};

/// An operator's connection without the checks that our own program makes first.
fn raw(deployment: &Deployment) -> (Runtime, OperatorClient) {
    let dial = deployment.dial("operator-researcher");
    let runtime = Runtime::new().unwrap();
    let client = runtime.block_on(OperatorClient::connect(&dial)).unwrap();
    (runtime, client)
}

fn code(error: &ConnectionError) -> String {
    format!("{}: {error}", error.code())
}

/// A job for sites that never come.
fn waiting() -> String {
    member::job("")
}

/// The sites have opened a study of two operators, and have left.
fn deserted() -> Deployment {
    let mut deployment = Deployment::start();
    open_and_leave(&mut deployment);
    deployment
}

fn open_and_leave(deployment: &mut Deployment) {
    deployment.admit_rival();
    let draft = of_study(&waiting()).draft;
    let operators = "operators = [\"researcher\"]";
    assert!(draft.contains(operators), "{draft}");
    let both = draft.replace(operators, "operators = [\"researcher\", \"rival\"]");
    deployment.open_study(STUDY, &both);
    deployment.desert();
}

/// A job of the study, as it travels.
fn joined(deployment: &Deployment, job: &str) -> String {
    let own = deployment.of_study(job);
    wire::jobs::with_study(&deployment.home.join("job.toml"), own).unwrap()
}

#[test]
fn settings_that_no_run_can_keep_finite_are_refused_and_the_coordinator_lives() {
    let mut deployment = Deployment::alone();
    let job = member::job(
        "consensus = \"admm\"\npenalty = 1e-300\nlambda_correlation = 1e300\nlambda_sparsity = 1e300",
    )
    .replace("lambda_sparsity = 0.001\n", "");
    let (runtime, client) = raw(&deployment);
    match runtime.block_on(client.submit(&job, 1, "finite")) {
        Ok(run) => {
            let ended = deployment.job(&["watch", run.as_str(), "--out", "out"]);
            println!("ran: {:?} {}{}", ended.code, ended.stdout, ended.stderr);
            let listed = deployment.job(&["list"]);
            println!("list: {:?} {}{}", listed.code, listed.stdout, listed.stderr);
            deployment.kill_coordinator();
            deployment.start_coordinator();
            let listed = deployment.job(&["list"]);
            println!("after a restart: {:?} {}", listed.code, listed.stderr);
            panic!("the job was accepted");
        }
        Err(error) => {
            let text = code(&error);
            for key in [
                "KDR-JOB",
                "penalty",
                "lambda_correlation",
                "lambda_sparsity",
            ] {
                assert!(text.contains(key), "{text}");
            }
        }
    }
    deployment.job(&["list"]).must_succeed();
}

#[test]
fn a_job_of_unknown_keys_does_not_keep_others_waiting() {
    let deployment = Deployment::alone();
    let keys = |bytes: usize| -> String {
        let lines = (0..).map(|number| format!("key_{number:08} = 1\n"));
        let mut text = String::new();
        for line in lines {
            if text.len() + line.len() > bytes {
                break;
            }
            text += &line;
        }
        text
    };
    for bytes in [250_000, 600_000] {
        let (runtime, client) = raw(&deployment);
        let (other, beside) = raw(&deployment);
        let text = keys(bytes);
        let began = Instant::now();
        let submitted = runtime.spawn(async move { client.submit(&text, 1, "keys").await });
        std::thread::sleep(Duration::from_millis(100));
        let asked = Instant::now();
        other.block_on(beside.list()).unwrap();
        let waited = asked.elapsed();
        let answer = runtime.block_on(submitted).unwrap();
        println!(
            "{bytes} bytes: refused after {:?}, another operator waited {waited:?}",
            began.elapsed()
        );
        let error = answer.unwrap_err();
        assert!(code(&error).starts_with("KDR-"), "{error}");
        assert!(waited < Duration::from_secs(1), "{waited:?}");
    }
}

#[test]
fn brackets_within_brackets_do_not_end_the_coordinator() {
    let deployment = Deployment::alone();
    let (runtime, client) = raw(&deployment);
    let deep = [
        format!("x = {}", "[".repeat(200_000)),
        format!("x = {}", "{a=".repeat(60_000)),
        format!("{}b = 1", "a.".repeat(100_000)),
        format!("[{}a]", "a.".repeat(100_000)),
    ];
    for (number, job) in deep.iter().enumerate() {
        let refused = runtime.block_on(client.submit(job, 1, "deep")).unwrap_err();
        println!("{number}: {}", code(&refused));
        deployment.job(&["list"]).must_succeed();
    }
}

#[test]
fn an_operator_who_fills_the_queue_does_not_keep_out_another() {
    let deployment = deserted();
    let (runtime, client) = raw(&deployment);
    let text = joined(&deployment, &waiting());
    let mut taken = 0;
    let refused = loop {
        let token = format!("token-{taken}");
        match runtime.block_on(client.submit(&text, 1, &token)) {
            Ok(_) => taken += 1,
            Err(error) => break error,
        }
    };
    println!("{taken} jobs were taken, then: {}", code(&refused));
    let text = deployment.of_study(&waiting());
    let text = text.replace("name = \"attacked\"", "name = \"another\"");
    deployment.home.write("another.toml", &text);
    deployment
        .job_by_rival(&["submit", "another.toml"])
        .must_succeed();
    assert!(code(&refused).starts_with("KDR-BUSY"), "{refused}");
    // The next run is the other operator's.
    let first = runtime.block_on(client.list()).unwrap();
    let is_active = |run: &&Progress| run.ending.is_none() && run.phase != "queued";
    let active = first.iter().find(is_active).unwrap();
    runtime.block_on(client.cancel(&active.run)).unwrap();
    until("the other operator's run to begin", PATIENCE, || {
        let listed = deployment.job_by_rival(&["list"]).must_succeed().stdout;
        listed.contains("waiting for sites").then_some(())
    });
}

#[test]
fn long_jobs_do_not_make_lists_slow() {
    let deployment = Deployment::alone();
    let (runtime, client) = raw(&deployment);
    let padding = format!("# {}\n", "x".repeat(98)).repeat(39_000);
    let mut taken = 0;
    for number in 0..20 {
        let job = waiting() + &padding;
        let token = format!("long-{number}");
        match runtime.block_on(client.submit(&job, 1, &token)) {
            Ok(_) => taken += 1,
            Err(error) => {
                println!("{}", code(&error).chars().take(200).collect::<String>());
                break;
            }
        }
    }
    let asked = Instant::now();
    runtime.block_on(client.list()).unwrap();
    println!(
        "{taken} jobs of {} bytes taken; a list took {:?}",
        padding.len(),
        asked.elapsed()
    );
    assert_eq!(taken, 0);
}

#[test]
fn a_run_is_its_operators_own() {
    let deployment = deserted();
    let run = deployment.submit(&waiting(), &[]);
    let listed = deployment.job_by_rival(&["list"]).must_succeed();
    println!("another operator's list: {:?}", listed.stdout);
    let watched = raw_rival_watch(&deployment, &run);
    let fetched = deployment.job_by_rival(&["result", run.as_str(), "--out", "stolen"]);
    let cancelled = deployment.job_by_rival(&["cancel", run.as_str()]);
    println!(
        "watch: {watched:?}; cancel: {:?} {}",
        cancelled.code, cancelled.stderr
    );
    assert_eq!(listed.stdout.lines().count(), 1, "{}", listed.stdout);
    for stderr in [&fetched.stderr, &cancelled.stderr, &watched.unwrap_err()] {
        assert!(stderr.contains("found no run"), "{stderr}");
    }
    let own = deployment.job(&["list"]).must_succeed().stdout;
    assert!(own.contains("waiting for sites"), "{own}");
    // Nor once it has ended.
    deployment.job(&["cancel", run.as_str()]).must_succeed();
    let fetched = deployment.job_by_rival(&["result", run.as_str(), "--out", "stolen"]);
    assert!(
        fetched.stderr.contains("found no run"),
        "{}",
        fetched.stderr
    );
}

fn raw_rival_watch(deployment: &Deployment, run: &RunId) -> Result<(), String> {
    let dial = deployment.dial("operator-rival");
    Runtime::new().unwrap().block_on(async {
        let client = OperatorClient::connect(&dial).await.unwrap();
        client
            .watch(run)
            .await
            .map(drop)
            .map_err(|error| code(&error))
    })
}

#[test]
fn a_second_coordinator_on_the_folder_is_refused() {
    let mut deployment = Deployment::alone();
    let port = free_port();
    let text = fs::read_to_string(deployment.home.join("coordinator.toml")).unwrap();
    let text = text.replace(&deployment.port().to_string(), &port.to_string());
    deployment.home.write("second.toml", &text);
    let arguments = ["serve", "--config", "second.toml"];
    let mut second = deployment.home.start("second", &coordinator(), &arguments);
    let ended = until(
        "the second coordinator to serve or to end",
        PATIENCE,
        || {
            second
                .ended()
                .map(Some)
                .or_else(|| second.log().contains(WAITS).then_some(None))
        },
    );
    println!("{ended:?}: {}", second.log());
    let ended = ended.expect("a second coordinator serves the folder");
    assert_eq!(ended.code(), Some(2));
    assert!(
        second.log().contains("another coordinator"),
        "{}",
        second.log()
    );
    // The folder is free once the first is gone, even where it was killed.
    deployment.kill_coordinator();
    deployment.start_coordinator();
}

#[test]
fn a_clock_that_jumps_forward_fails_no_run() {
    let mut deployment = Deployment::prepare();
    let home = &deployment.home;
    let shift = home.write("shift", "0");
    let library = clock(home.path());
    let preload = format!("LD_PRELOAD={}", library.display());
    let shifted = format!("SHIFT={}", shift.display());
    let program = coordinator();
    let program = program.to_str().unwrap();
    let arguments = [
        &preload,
        &shifted,
        program,
        "serve",
        "--config",
        "coordinator.toml",
    ];
    let mut process: Process = home.start("shifted", Path::new("/usr/bin/env"), &arguments);
    process.wait_for(WAITS);
    SITES
        .into_iter()
        .for_each(|site| deployment.start_agent(site));
    open_and_leave(&mut deployment);
    let run = deployment.submit(&waiting(), &[]);
    let mut watch = deployment.watch(&run);
    let before = watch.until("the run to wait", |run| run.phase == "waiting for sites");
    deployment.home.write("shift", "7200");
    std::thread::sleep(Duration::from_secs(3));
    let listed = deployment.job(&["list"]).must_succeed().stdout;
    println!("before {before:?}; two hours later: {listed}");
    assert!(listed.contains("waiting for sites"), "{listed}");
    assert!(before.waiting_since.is_some(), "{before:?}");
}

/// A library that moves the clock on the wall by the seconds in the file SHIFT.
fn clock(folder: &Path) -> std::path::PathBuf {
    let source = folder.join("clock.c");
    fs::write(
        &source,
        "#define _GNU_SOURCE\n#include <time.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
         #include <unistd.h>\n#include <sys/syscall.h>\n\
         int clock_gettime(clockid_t id, struct timespec *t) {\n\
         long r = syscall(SYS_clock_gettime, id, t);\n\
         if (id == CLOCK_REALTIME) {\n\
         const char *path = getenv(\"SHIFT\"); FILE *f = path ? fopen(path, \"r\") : 0; long s = 0;\n\
         if (f) { if (fscanf(f, \"%ld\", &s) == 1) t->tv_sec += s; fclose(f); } }\n\
         return (int)r; }\n",
    )
    .unwrap();
    let library = folder.join("clock.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status()
        .unwrap();
    assert!(built.success());
    library
}

#[test]
fn nobody_else_reads_the_coordinators_files() {
    let mut deployment = deserted();
    deployment.submit(&waiting(), &[]);
    let folder = deployment.home.join("coordinator");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let modes = || -> Vec<(String, u32)> {
        names(&folder)
            .into_iter()
            .map(|name| (name.clone(), mode(&folder.join(name))))
            .collect()
    };
    println!("{:o} {:?}", mode(&folder), modes());
    let must_be_closed = || {
        assert_eq!(mode(&folder), 0o700);
        for (name, mode) in modes() {
            assert_eq!(mode, 0o600, "{name}");
        }
    };
    must_be_closed();
    // What somebody opened is closed again.
    deployment.kill_coordinator();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let store = folder.join("coordinator.sqlite");
    fs::set_permissions(&store, fs::Permissions::from_mode(0o644)).unwrap();
    deployment.start_coordinator();
    must_be_closed();
    let log = deployment.coordinator_log();
    assert!(log.contains("could read"), "{log}");
}

#[test]
fn what_a_run_stored_of_the_sites_answers_is_gone_once_it_has_ended() {
    let mut deployment = Deployment::start();
    let run = deployment.submit(&demo_job(&["round_limit = 40"], ""), &[]);
    let mut watch = deployment.watch(&run);
    watch.until_round(1);
    deployment.kill_agent("west");
    let folder = deployment.home.join("coordinator");
    // Answers of rounds: their kind, and how many words follow, which are more than the messages that a result counts.
    let kind = b"derivatives\x10";
    let holding = || -> Vec<String> {
        let holds = |file: &String| {
            let content = fs::read(folder.join(file)).unwrap();
            let mut parts = content.windows(kind.len() + 1);
            parts.any(|part| part.starts_with(kind) && part[kind.len()] > 127)
        };
        names(&folder).into_iter().filter(holds).collect()
    };
    assert_ne!(holding(), Vec::<String>::new(), "nothing to look for");
    deployment.start_agent("west");
    watch.until("the run to end", |run| run.ending.is_some());
    assert_eq!(holding(), Vec::<String>::new());
}
