//! Rows per second from a file of 1,000,000 patients and 100 features into the cohort, and the
//! memory that it takes: `cargo bench -p site-agent --bench read_cohort -- FOLDER [csv|parquet]`.
//!
//! `read_cohort.py FOLDER write` makes the files, `read_cohort.py FOLDER` reads them with pandas.

#![allow(clippy::print_stdout)] // a measurement speaks by it

use protocol::job::Job;
use site_agent::config::SiteConfig;
use site_agent::source::read_cohort;
use std::path::PathBuf;
use std::time::Instant;

const FEATURES: usize = 100;

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    let Some(folder) = arguments.first().map(PathBuf::from) else {
        println!("skipped: wanted the folder of patients.csv and patients.parquet");
        return;
    };
    let mut text = String::from(
        "name = 'scale'\nmethod = 'unpsl'\nsites = ['north', 'other']\n\
         [outcome]\ncolumn = 'outcome'\nkind = 'binary'\npositive = ['1']\n[unpsl]\nrank = 1\n",
    );
    for feature in 0..FEATURES {
        text += &format!("[[features]]\nname = 'x{feature:02}'\nkind = 'numeric'\n");
    }
    let job = Job::parse(&text).expect("a whole job");
    for kind in ["csv", "parquet"] {
        if arguments.get(1).is_some_and(|only| only != kind) {
            continue;
        }
        let site = format!(
            "site = 'north'\ncoordinator = 'localhost:1'\nfolder = 'r'\n\
             [tls]\nca = 'c'\ncertificate = 'c'\nkey = 'k'\n\
             [source]\nkind = '{kind}'\npath = 'patients.{kind}'\npatient = 'id'\n"
        );
        let site = SiteConfig::parse(&site, &folder).expect("a whole configuration");
        let start = Instant::now();
        let read = read_cohort(&site.source, &job).expect("it fits");
        let seconds = start.elapsed().as_secs_f64();
        let patients = read.cohort.patients();
        println!(
            "{kind}: {patients} patients, {seconds:.2} s, {:.0} rows/s, at most {} MiB",
            patients as f64 / seconds,
            memory_max_mebibytes()
        );
    }
}

/// The most memory that this process has held, of the kernel's books; 0 where it keeps none.
fn memory_max_mebibytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or(0) / 1024
}
