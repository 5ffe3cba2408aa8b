//! What many hospitals cost a coordinator: `cargo bench -p kindred-tests --bench load -- 25 200`. `KINDRED_LOAD_ROUNDS=10` takes
//! fewer rounds. It starts the program that `cargo build --release` makes. The hospitals' agents are tasks of this process, and speak to it over its port: each has
//! its own certificate, keys, policy, books and patients.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // a measurement speaks by it

use kindred_tests::deployment::{Deployment, issue, tls_of};
use kindred_tests::draws::Draws;
use kindred_tests::needs::coordinator_bytes;
use kindred_tests::programs::{Home, coordinator, until};
use kindred_tests::results::result;
use protocol::job::Job;
use protocol::study;
use serde_json::Value;
use site_agent::config::SiteConfig;
use site_agent::run::driver::{self, Seen};
use std::fmt::Write as _;
use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Runtime;

/// Hospitals, where the command line does not say.
const HOSPITALS: [usize; 4] = [25, 50, 100, 200];
const STUDY: &str = "load";
const PATIENTS: usize = 60;
const FEATURES: usize = 100;
const RANK: usize = 16;
/// Rounds, where the environment does not say.
const ROUNDS: u32 = 50;
/// Connections of strangers that never say a word.
const IDLE: usize = 2_000;
/// No wait is longer.
const PATIENCE: Duration = Duration::from_secs(900);

fn main() {
    let named = std::env::args().filter_map(|one| one.parse().ok());
    let named: Vec<usize> = named.collect();
    let all = match named.is_empty() {
        true => HOSPITALS.to_vec(),
        false => named,
    };
    println!(
        "{PATIENTS} patients a hospital, {FEATURES} features, rank {RANK}, masked and checked"
    );
    let rounds = std::env::var("KINDRED_LOAD_ROUNDS").ok();
    let rounds = rounds.map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    for (place, hospitals) in all.into_iter().enumerate() {
        let load = Load::begin(hospitals, rounds);
        load.measure();
        if place == 0 {
            load.among_strangers();
        }
    }
}

/// A coordinator with a study of many hospitals, whose agents attend.
struct Load {
    hospitals: usize,
    rounds: u32,
    /// They end first.
    _agents: Runtime,
    deployment: Deployment,
}

impl Load {
    /// Certificates, patients, agents, and the study, which opens.
    fn begin(hospitals: usize, rounds: u32) -> Self {
        let names = (0..hospitals).map(|one| format!("hospital-{one:03}"));
        let names: Vec<String> = names.collect();
        let mut deployment = Deployment::alone();
        let home = &deployment.home;
        for (place, name) in names.iter().enumerate() {
            issue(home, &["issue", "--site", name]);
            home.write(&format!("data/{name}.csv"), &table(place));
            let config = config(name, deployment.port());
            home.write(&format!("{name}.toml"), &config);
        }
        let agents = Runtime::new().unwrap();
        names.iter().for_each(|name| attend(&agents, home, name));
        let job = Job::parse(&job(&names, rounds)).unwrap_or_else(|errors| panic!("{errors}"));
        let (own, draft) = study::of_job(&job, "researcher", &[]).unwrap();
        let file = format!("study = \"{STUDY}.study.toml\"");
        home.write(
            "job.toml",
            &own.replacen(&format!("study = {STUDY:?}"), &file, 1),
        );
        let empty = megabytes(deployment.coordinator().peak_bytes());
        deployment.propose(STUDY, &draft);
        let (began, open) = (Instant::now(), format!("{STUDY}: open\n"));
        until("the study to open", PATIENCE, || {
            let show = ["study", "show", STUDY, "--config", "operator.toml"];
            let shown = deployment.home.run(&coordinator(), &show).must_succeed();
            shown.stdout.starts_with(&open).then_some(())
        });
        let seconds = began.elapsed().as_secs_f64();
        let peak = megabytes(deployment.coordinator().peak_bytes());
        println!(
            "{hospitals} hospitals: {empty:.0} MB without them; the study opens in {seconds:.1} s, {peak:.0} MB"
        );
        Self {
            hospitals,
            rounds,
            deployment,
            _agents: agents,
        }
    }

    /// A run of exactly so many rounds: its result is there, and what it took.
    fn measure(&self) {
        let coordinator = self.deployment.running();
        let busy = coordinator.busy_seconds();
        coordinator.forget_peak();
        let rest = coordinator.resident_bytes();
        let seconds = self.submit("alone");
        let busy = coordinator.busy_seconds() - busy;
        let found = result(&self.deployment.home.join("alone"));
        let of_all = |key: &str| -> f64 {
            let sites = found["sites"].as_array().unwrap();
            let all = sites.iter().map(|site| site[key].as_f64().unwrap());
            all.sum::<f64>() / (self.hospitals as f64 * f64::from(self.rounds) * 1e3)
        };
        let (sent, received) = (of_all("bytes_sent"), of_all("bytes_received"));
        println!(
            "  {} rounds of {seconds:.2} s; the coordinator computes for {busy:.1} s in all; a hospital sends {sent:.0} kB a round and receives \
             {received:.0} kB",
            self.rounds
        );
        println!(
            "  coordinator: {:.0} MB before, at most {:.0} MB in the run; the formula says {:.0} MB",
            megabytes(rest),
            megabytes(coordinator.peak_bytes()),
            megabytes(self.formula(&found))
        );
    }

    /// What the coordinator should need at most.
    fn formula(&self, found: &Value) -> u64 {
        let kinds = found["sites"][0]["messages"].as_array().unwrap().iter();
        let bytes =
            kinds.map(|kind| kind["bytes"].as_u64().unwrap() / kind["count"].as_u64().unwrap());
        coordinator_bytes(self.hospitals as u64, bytes.max().unwrap())
    }

    /// The same run next to strangers who connect and never say a word: operators are answered, and it ends.
    fn among_strangers(&self) {
        let (over, most) = (AtomicBool::new(false), AtomicUsize::new(0));
        let (mut took, mut seconds) = (Vec::new(), 0.0);
        std::thread::scope(|scope| {
            scope.spawn(|| Runtime::new().unwrap().block_on(self.idle(&over, &most)));
            let run = scope.spawn(|| {
                let seconds = self.submit("among");
                over.store(true, Ordering::Relaxed);
                seconds
            });
            while !run.is_finished() {
                let began = Instant::now();
                self.deployment.job(&["list"]).must_succeed();
                took.push(began.elapsed());
                std::thread::sleep(Duration::from_millis(500));
            }
            seconds = run.join().unwrap();
        });
        took.sort_unstable();
        let [half, all] = [took.len() / 2, took.len() - 1].map(|one| took[one].as_secs_f64());
        println!(
            "  next to {} idle connections: rounds of {seconds:.2} s; job list in {half:.2} s, at most {all:.2} s",
            most.load(Ordering::Relaxed)
        );
    }

    /// Keeps connections of another address of this machine open, whatever the coordinator ends, until all is over.
    async fn idle(&self, over: &AtomicBool, most: &AtomicUsize) {
        let mut open: Vec<TcpStream> = Vec::new();
        while !over.load(Ordering::Relaxed) {
            open.retain(|one| matches!(one.try_read(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock));
            while open.len() < IDLE {
                let socket = TcpSocket::new_v4().unwrap();
                socket
                    .bind(SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), 0)))
                    .unwrap();
                let connecting = socket.connect(self.deployment.address());
                match tokio::time::timeout(Duration::from_secs(1), connecting).await {
                    Ok(Ok(stream)) => open.push(stream),
                    Ok(Err(_)) | Err(_) => break,
                }
            }
            most.fetch_max(open.len(), Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Seconds that a round of a run of this token takes.
    fn submit(&self, token: &str) -> f64 {
        let all = [
            "submit", "job.toml", "--wait", "--token", token, "--out", token,
        ];
        self.deployment.job(&all).must_succeed();
        let found = result(&self.deployment.home.join(token));
        assert_eq!(found["status"], "round_limit", "{}", found["errors"]);
        assert_eq!(found["rounds"], self.rounds);
        let rounds = found["model"]["rounds"].as_array().unwrap();
        let ends =
            [rounds.last(), rounds.first()].map(|one| one.unwrap()["seconds"].as_f64().unwrap());
        (ends[0] - ends[1]) / f64::from(self.rounds - 1)
    }
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// Patients of one hospital: in five of the numbers the classes differ.
fn table(hospital: usize) -> String {
    let mut draws = Draws(hospital as u64);
    let names: Vec<String> = (0..FEATURES).map(|one| format!("number_{one}")).collect();
    let mut text = format!("patient,class,{}\n", names.join(","));
    for patient in 0..PATIENTS {
        let class = patient % 2;
        let _ = write!(text, "p-{patient},{}", ["negative", "positive"][class]);
        for feature in 0..FEATURES {
            let shift = if feature < 5 { class as f64 } else { 0.0 };
            let _ = write!(text, ",{:.4}", shift + draws.normal());
        }
        text.push('\n');
    }
    text
}

fn config(name: &str, port: u16) -> String {
    format!(
        "site = \"{name}\"\ncoordinator = \"127.0.0.1:{port}\"\nfolder = \"sites/{name}\"\n\n{}\n\
         [source]\nkind = \"csv\"\npath = \"data/{name}.csv\"\npatient = \"patient\"\n\n\
         [policy]\noperators = [\"*\"]\nmethods = [\"unpsl\"]\nsecond_moments = true\npair_sums = true\nexact_sums = true\n",
        tls_of(&format!("site-{name}"))
    )
}

/// A job that ends at its limit of rounds, in which the hospitals receive sums. Every site repeats what the coordinator computes, on
/// this one machine, so that plain ADMM is taken, whose rounds cost little.
fn job(names: &[String], rounds: u32) -> String {
    let mut features = String::new();
    for feature in 0..FEATURES {
        let _ = write!(
            features,
            "[[features]]\nname = \"number_{feature}\"\nkind = \"numeric\"\n"
        );
    }
    format!(
        "name = {STUDY:?}\nmethod = \"unpsl\"\nsites = {names:?}\n[aggregation]\nanswers_megabytes_max = 0\n\
         [outcome]\ncolumn = \"class\"\nkind = \"binary\"\npositive = [\"positive\"]\nnegative = [\"negative\"]\n{features}\
         [unpsl]\nrank = {RANK}\nlambda_sparsity = 0.003\nconsensus = \"admm\"\nmixed_rounds = 0\nvalidation = \"none\"\n\
         round_limit = {rounds}\ntolerance_relative = 1e-6\ntolerance_absolute = 1e-8\n"
    )
}

/// An agent of a hospital attends as long as the runtime is there.
fn attend(agents: &Runtime, home: &Home, name: &str) {
    let config = SiteConfig::open(&home.join(&format!("{name}.toml"))).unwrap();
    wire::private::folder(&config.folder).unwrap();
    let dial = config.dial().unwrap();
    agents.spawn(async move {
        let seen = Seen::default();
        let served = driver::serve(config, dial, &seen, pending::<Option<()>>()).await;
        served.unwrap();
    });
}
