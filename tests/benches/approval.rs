//! How long a hospital takes to approve a study, as of 1,000,000 patients and 100 features, then to answer for its card, and the memory
//! that each takes:
//! `cargo bench -p kindred-tests --bench approval -- FOLDER [csv|parquet [FEATURES]]`, after `cargo build --release`.
//!
//! `site-agent/benches/read_cohort.py FOLDER write` makes the files, `read_cohort.py FOLDER` reads them with pandas.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // a measurement speaks by it

use kindred_tests::deployment::{SITES, certify, tls_of};
use kindred_tests::federation::config_file;
use kindred_tests::programs::Home;
use kindred_tests::studies::{Proposed, STUDY};
use protocol::job::Job;
use protocol::message::card::Request;
use protocol::study::Study;
use similarity::numeric::seed::Seed;
use site_agent::config::SiteConfig;
use site_agent::method::Computation;
use site_agent::source::Snapshot;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

const FEATURES: usize = 100;
/// The word by which the bench has its own process answer for a card.
const CARD: &str = "card";

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|word| word != "--bench");
    let first = arguments.next();
    if first.as_deref() == Some(CARD) {
        return card(&PathBuf::from(arguments.next().unwrap()));
    }
    let Some(folder) = first.map(PathBuf::from) else {
        println!("skipped: wanted the folder of patients.csv and patients.parquet");
        return;
    };
    let only = arguments.next();
    let features = arguments.next().and_then(|word| word.parse().ok());
    let features = features.unwrap_or(FEATURES);
    for kind in ["csv", "parquet"] {
        if only.as_ref().is_none_or(|only| only == kind) {
            approve(&folder.join(format!("patients.{kind}")), kind, features);
        }
    }
}

/// Has a hospital approve a study of the patients in a file.
fn approve(file: &Path, kind: &str, features: usize) {
    let site = SITES[0];
    let home = Home::new();
    certify(&home);
    let source = format!("[source]\nkind = \"{kind}\"\npath = {file:?}\npatient = \"id\"\n");
    let policy = "[policy]\noperators = [\"*\"]\nmethods = [\"*\"]\n";
    let tls = tls_of(&format!("site-{site}"));
    home.write(
        &config_file(site),
        &format!(
            "site = \"{site}\"\ncoordinator = \"localhost:1\"\nfolder = \"sites/{site}\"\n\n\
             {tls}\n{source}\n{policy}"
        ),
    );
    let study = Proposed::draft(&draft(features), &home);
    let begun = Instant::now();
    let approved = study.approve(&home, site).unwrap();
    let seconds = begun.elapsed().as_secs_f64();
    let patients = approved.approval.patients_at_most;
    #[allow(clippy::cast_precision_loss)] // for a rate that is printed
    let rate = patients as f64 / seconds;
    let memory = memory_max_mebibytes();
    println!(
        "{kind}: {patients} patients, {seconds:.2} s, {rate:.0} patients/s, at most {memory} MiB"
    );
    // An agent has a process of its own, whose memory the kernel counts by itself.
    let own = std::env::current_exe().unwrap();
    let approved = home.join(&format!("sites/{site}/studies/{STUDY}"));
    let status = Command::new(own).arg(CARD).arg(approved).status();
    assert!(status.unwrap().success(), "the card failed");
}

/// What the hospital says for the card of the study in a folder.
fn card(folder: &Path) {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let begun = Instant::now();
    let study = Study::parse(&read("study.toml")).unwrap();
    let config = SiteConfig::parse(&read("site.toml"), Path::new("/")).unwrap();
    let cell_min = config.policy.rules().cell_min;
    let snapshot = Snapshot::open(&folder.join("snapshot.parquet"));
    let snapshot = Arc::new(snapshot.unwrap().unwrap());
    let opened = begun.elapsed().as_secs_f64();
    let job = Job::parse(&study.card()).unwrap();
    let cohort = snapshot.cohort(&config.source, &job, cell_min, &[]);
    let enrolled = snapshot.enrolled(&config.source, &study, cell_min);
    let cohort = cohort.unwrap().with_enrolled(enrolled.unwrap());
    let secret = Box::new(|_: &[u8]| 1);
    let rules = config.policy.rules();
    let made = Computation::new(job, Seed(1), cohort, folder.join("run"), rules, secret);
    let mut made = made.unwrap_or_else(|_| panic!("a computation"));
    let ready = begun.elapsed().as_secs_f64();
    let everyone = Arc::new(Vec::new());
    let places = 0..u32::try_from(3 * study.features.len()).unwrap();
    let requests = [
        Request::Count(Arc::clone(&everyone)),
        Request::Sum {
            places: Arc::new(places.collect()),
            left_out: everyone,
        },
    ];
    for request in requests {
        let answer = made.answer(&protocol::message::Request::Card(request));
        answer.unwrap_or_else(|_| panic!("an answer"));
    }
    let seconds = begun.elapsed().as_secs_f64();
    let memory = memory_max_mebibytes();
    println!(
        "    its card: {seconds:.2} s, of which {opened:.2} s to open and {:.2} s to judge, at most {memory} MiB",
        ready - opened
    );
}

/// A study of so many features by one outcome.
fn draft(features: usize) -> String {
    let mut draft = format!(
        "name = {STUDY:?}\ntitle = \"Scale\"\npurpose = \"A measurement\"\nuntil = \"2100-01-01\"\n\
         operators = [\"researcher\"]\nhospitals = {SITES:?}\nmethods = [\"regression\"]\n\
         limits = {{ runs = 1, rounds = 100, queries = 1 }}\n\n\
         [[outcomes]]\nname = \"outcome\"\nlabel = \"Outcome\"\ncolumn = \"outcome\"\nkind = \"binary\"\npositive = [\"1\"]\n"
    );
    for feature in 0..features {
        let _ = write!(
            draft,
            "\n[[features]]\nname = \"x{feature:02}\"\nkind = \"numeric\"\n"
        );
    }
    draft
}

/// The most memory that this process has held, of the kernel's books; 0 where it keeps none.
fn memory_max_mebibytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or(0) / 1024
}
