//! Everything at once, again and again: the attacks of the other files on one running federation, in which an honest
//! operator submits the same job every few seconds. Every one of these runs ends with the bits of an undisturbed run, or
//! with a failure that names the culprit.
//!
//! By itself it takes less than a minute; `KINDRED_SOAK_SECONDS=1800` makes it half an hour, and
//! `KINDRED_SOAK_PAUSE=10` submits every ten seconds.

use crate::member::{self, Member};
use crate::stranger::{many_streams, reply_to_no_run, second_holder};
use kindred_tests::deployment::{Deployment, SITES, issue, site_config};
use kindred_tests::programs::{Ran, coordinator};
use kindred_tests::samples::demo_job;
use kindred_tests::studies::{STUDY, of_study};
use protocol::message::Answer;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use wire::OperatorClient;

/// Memory of the coordinator, at most, whatever is tried.
const RESIDENT_MAX: u64 = 400 << 20;
/// A second holder of a certificate costs its site a long wait, so this attack is rare.
const HOLDER_EVERY: Duration = Duration::from_secs(300);

/// Where strangers call from.
const ELSEWHERE: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 2), 0));

fn seconds(variable: &str, default: u64) -> Duration {
    let set = std::env::var(variable)
        .ok()
        .and_then(|text| text.parse().ok());
    Duration::from_secs(set.unwrap_or(default))
}

/// What the honest operator met.
#[derive(Debug, Default)]
struct Tally {
    same_bits: u32,
    named: Vec<String>,
    wrong: Vec<String>,
}

/// The federation: four agents whose policies allow a whole afternoon of runs, a member with a certificate that no honest
/// job names, and a second operator.
fn federation() -> Deployment {
    let mut deployment = Deployment::prepare();
    for site in SITES {
        let text = site_config(site, deployment.port(), &format!("site-{site}"));
        let budgets = "runs_max = 1000000\nrounds_max = 100000000\n";
        deployment
            .home
            .write(&format!("{site}.toml"), &(text + budgets));
    }
    issue(&deployment.home, &["issue", "--site", "stray"]);
    deployment.admit_rival();
    deployment.start_coordinator();
    for site in SITES {
        deployment.start_agent(site);
    }
    let draft = of_study(&honest_job()).draft;
    let limits = |one: &&str| one.starts_with("limits = ");
    let known = draft.lines().find(limits).unwrap();
    let wide = "limits = { runs = 1000000, rounds = 100000000, queries = 0 }";
    deployment.open_study(STUDY, &draft.replacen(known, wide, 1));
    deployment
}

fn honest_job() -> String {
    demo_job(&["round_limit = 20"], "")
}

/// Submits the honest job under a token of its own and waits; gives the bytes of the metric.
fn honest(deployment: &Deployment, number: u32) -> (Ran, Option<Vec<u8>>) {
    let (token, out) = (format!("honest-{number}"), format!("honest-{number}"));
    let arguments = [
        "submit",
        "honest.toml",
        "--token",
        &token,
        "--wait",
        "--out",
        &out,
    ];
    let ran = deployment.job(&arguments);
    let metric = std::fs::read(deployment.home.join(&out).join("metric.npy")).ok();
    let _ = std::fs::remove_dir_all(deployment.home.join(&out));
    (ran, metric)
}

/// The honest operator, until `until`.
fn submit_again_and_again(deployment: &Deployment, until: Instant, undisturbed: &[u8]) -> Tally {
    let pause = seconds("KINDRED_SOAK_PAUSE", 4);
    let mut tally = Tally::default();
    let mut number = 1;
    while Instant::now() < until {
        let next = Instant::now() + pause;
        let (ran, metric) = honest(deployment, number);
        match (ran.code, metric) {
            (Some(0), Some(metric)) if metric == undisturbed => tally.same_bits += 1,
            (Some(0), _) => tally
                .wrong
                .push(format!("run {number}: other bits: {}", ran.stdout)),
            _ if names_a_culprit(&ran.stderr) => {
                tally
                    .named
                    .push(format!("run {number}: {}", ran.stderr.trim()));
            }
            (code, _) => tally
                .wrong
                .push(format!("run {number}: {code:?}: {}", ran.stderr)),
        }
        number += 1;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    tally
}

/// A refusal by a budget names sites too, but no culprit.
fn names_a_culprit(problem: &str) -> bool {
    !problem.contains("KDR-POLICY") && SITES.iter().any(|site| problem.contains(site))
}

/// How long the coordinator takes to answer an operator, again and again.
fn ask_again_and_again(deployment: &Deployment, over: &AtomicBool) -> Vec<Duration> {
    let runtime = Runtime::new().unwrap();
    let dial = deployment.dial("operator-researcher");
    let mut took = Vec::new();
    let mut client = None;
    while !over.load(Ordering::Relaxed) {
        if client.is_none() {
            client = runtime.block_on(OperatorClient::connect(&dial)).ok();
        }
        if let Some(asking) = &client {
            let began = Instant::now();
            match runtime.block_on(asking.list()) {
                Ok(_) => took.push(began.elapsed()),
                Err(_) => client = None,
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    took
}

/// A second operator: jobs that are none, or of no study, or of the honest operator's, a study of members that lie, and the honest
/// operator's runs.
fn rival(deployment: &Deployment, round: u32) {
    let unknown: String = (0..5_000)
        .map(|key| format!("key_{key} = {key}\n"))
        .collect();
    let others = member::job("")
        .replace("\"west\"", "\"stray\"")
        .replace("\"east\", ", "");
    let extreme = member::job("penalty = 1e-300\nlambda_correlation = 1e300");
    let of_others = deployment.of_study(&honest_job());
    // A study that waits for members that lie.
    let draft = of_study(&others)
        .draft
        .replacen(STUDY, &format!("stray-{round}"), 1);
    let file = format!("stray-{round}.toml");
    deployment
        .home
        .write("stray.draft.toml", &draft.replace("researcher", "rival"));
    for arguments in [
        [
            "draft",
            "stray.draft.toml",
            "--certificates",
            "certificates",
            "--out",
            &file,
        ]
        .as_slice(),
        &["propose", &file, "--config", "rival.toml"],
    ] {
        let all = [&["study"], arguments].concat();
        let ran = deployment.home.run(&coordinator(), &all);
        // Of the rival's runs only so many wait at once.
        let is_busy = ran.stderr.contains("KDR-BUSY");
        assert!(ran.code == Some(0) || is_busy, "{}", ran.stderr);
    }
    for (kind, job) in [unknown, others, of_others, extreme].iter().enumerate() {
        let name = format!("rival-{kind}.toml");
        deployment.home.write(&name, job);
        let token = format!("rival-{round}-{kind}");
        deployment.job_by_rival(&["submit", &name, "--token", &token]);
    }
    for number in 1..4 {
        let run = wire::run_id(
            &protocol::name::OperatorName::new("researcher").unwrap(),
            &format!("honest-{number}"),
        );
        let run = run.unwrap().to_string();
        for verb in ["cancel", "result"] {
            let ran = deployment.job_by_rival(&[verb, &run]);
            assert_ne!(
                ran.code,
                Some(0),
                "the rival did {verb} a run of the researcher's"
            );
        }
    }
    deployment.job_by_rival(&["list"]);
}

/// Strangers and a certified nobody at the port.
fn strangers(deployment: &Deployment, runtime: &Runtime) {
    let address = deployment.address();
    let idle = runtime.block_on(idle_from_elsewhere(address, 1_500));
    let stray = deployment.credentials("site-stray");
    runtime.block_on(async {
        let _ = many_streams(address, &stray, 5_000).await;
        let _ = reply_to_no_run(address, &stray, 64 << 20).await;
    });
    drop(idle);
}

/// Connections of another address of this machine that never say a word: places at the port go by address.
async fn idle_from_elsewhere(address: SocketAddr, count: usize) -> Vec<TcpStream> {
    let mut idle = Vec::new();
    for _ in 0..count {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(ELSEWHERE).unwrap();
        let connecting = tokio::time::timeout(Duration::from_secs(1), socket.connect(address));
        match connecting.await {
            Ok(Ok(stream)) => idle.push(stream),
            _ => break,
        }
    }
    idle
}

fn print_latencies(mut took: Vec<Duration>) {
    took.sort();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
    println!(
        "{} questions of an operator: half in {:?}, 99 of 100 in {:?}, all in {:?}",
        took.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
    assert!(at(0.5) < Duration::from_millis(100), "{:?}", at(0.5));
}

#[test]
fn an_honest_job_ends_with_its_bits_or_names_the_culprit_whatever_is_tried_meanwhile() {
    let deployment = federation();
    let honest_job = deployment.of_study(&honest_job());
    deployment.home.write("honest.toml", &honest_job);
    let (ran, undisturbed) = honest(&deployment, 0);
    let undisturbed = undisturbed.unwrap_or_else(|| panic!("{}{}", ran.stdout, ran.stderr));
    let until = Instant::now() + seconds("KINDRED_SOAK_SECONDS", 40);
    let over = AtomicBool::new(false);
    let (rounds, resident) = (AtomicU32::new(0), Mutex::new(0_u64));
    // A liar answers where a job names it, and says something else than it is asked.
    let _liar = Member::attend(&deployment, "stray", |_| Some(Answer::Correlated));
    let (tally, took) = std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask_again_and_again(&deployment, &over));
        scope.spawn(|| {
            let runtime = Runtime::new().unwrap();
            while !over.load(Ordering::Relaxed) {
                strangers(&deployment, &runtime);
                let mut most = resident.lock().unwrap();
                *most = (*most).max(deployment.coordinator_bytes());
            }
        });
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                rival(&deployment, rounds.fetch_add(1, Ordering::Relaxed));
                std::thread::sleep(Duration::from_secs(1));
            }
        });
        scope.spawn(|| {
            let runtime = Runtime::new().unwrap();
            let mut last = Instant::now();
            while !over.load(Ordering::Relaxed) {
                if last.elapsed() > HOLDER_EVERY {
                    let dial = deployment.dial("site-west");
                    runtime.block_on(second_holder(&dial, Duration::from_millis(500)));
                    last = Instant::now();
                }
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        let tally = submit_again_and_again(&deployment, until, &undisturbed);
        over.store(true, Ordering::Relaxed);
        (tally, asking.join().unwrap())
    });
    let resident = *resident.lock().unwrap();
    println!(
        "{} honest runs with the undisturbed bits, {} failed and named the culprit, {} wrong; {} rounds of the rival; \
         the coordinator took at most {} MB",
        tally.same_bits,
        tally.named.len(),
        tally.wrong.len(),
        rounds.load(Ordering::Relaxed),
        resident >> 20
    );
    print_latencies(took);
    for named in &tally.named {
        println!("{named}");
    }
    assert!(tally.wrong.is_empty(), "{:#?}", tally.wrong);
    assert!(tally.same_bits > 0, "no honest run came through");
    assert!(resident < RESIDENT_MAX, "{resident}");
    assert!(Path::new(&deployment.home.join("coordinator")).is_dir());
}
