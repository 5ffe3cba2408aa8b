//! Broken files by the thousand, from a fixed seed: a cohort or problems, and never a panic, nor a
//! field of the file in what is told.

mod sources;

use protocol::job::Job;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use site_agent::config::SiteConfig;
use sources::{JOB, config, job, read};
use std::path::Path;

const FRAGMENTS: [&[u8]; 14] = [
    b",", b"\"", b"\n", b"\r\n", b";", b"\xff", b"\0", b"1e999", b"-", b"NaN", b"[", b"]", b"=",
    b"'",
];

fn mutated(text: &[u8], random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = text.to_vec();
    for _ in 0..random.random_range(1..6) {
        let at = random.random_range(0..bytes.len().max(1));
        let end = (at + random.random_range(0..8)).min(bytes.len());
        let fragment = FRAGMENTS[random.random_range(0..FRAGMENTS.len())];
        match random.random_range(0..4) {
            0 => drop(bytes.splice(at..at, fragment.iter().copied())),
            1 => drop(bytes.drain(at..end)),
            2 => bytes.truncate(at.max(1)),
            _ => {
                let copy = bytes[at..end].to_vec();
                let to = random.random_range(0..=bytes.len());
                drop(bytes.splice(to..to, copy));
            }
        }
    }
    bytes
}

#[test]
fn no_broken_csv_file_stops_the_reader_or_is_quoted() {
    // The header stays whole: names of columns may be told.
    let header = b"id,age,chol,sex,born,grade,smoker,num\n".as_slice();
    let mut good = String::new();
    for row in 0..20 {
        good += &format!(
            "secret{row},{row}7.25,2{row}3,M,1960-02-29,low,1,{}\n",
            row % 2
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("patients.csv");
    let config = config(
        folder.path(),
        "kind = 'csv'\npath = 'patients.csv'\npatient = 'id'",
        "",
    );
    let job = job(JOB);
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let (mut fits, mut does_not) = (0, 0);
    for _ in 0..1_500 {
        let rows = mutated(good.as_bytes(), &mut random);
        std::fs::write(&path, [header, &rows].concat()).unwrap();
        match read(&config, &job) {
            Ok(_) => fits += 1,
            Err(problems) => {
                does_not += 1;
                let told = problems.to_string();
                assert!(!told.contains("secret"), "{told}");
                assert!(!told.contains("7.25"), "{told}");
            }
        }
    }
    assert!(fits > 5 && does_not > 100, "{fits} {does_not}");
}

#[test]
fn no_broken_configuration_stops_a_parser() {
    let site = "site = 'north'\ncoordinator = 'localhost:7443'\nfolder = 'results'\n\
        [tls]\nca = 'ca.pem'\ncertificate = 'c.pem'\nkey = 'k.pem'\n\
        [source]\nkind = 'postgres'\nhost = 'h'\ndatabase = 'd'\nuser = 'u'\nquery_file = 'q.sql'\n\
        parameters = { a = 'b' }\nca = 'ca.pem'\ndate_format = 'DD.MM.YYYY'\n\
        [columns.chol]\nunit = 'mg/dl'\nconvert = [{ to = 'mmol/l', factor = 0.02586 }]\n\
        [columns.sex]\nlevels = { '1' = 'M' }\n[policy]\noperators = ['researcher']\n";
    assert!(SiteConfig::parse(site, Path::new("")).is_ok());
    let mut random = ChaCha8Rng::seed_from_u64(2);
    let mut refused = 0;
    for _ in 0..5_000 {
        let text = mutated(site.as_bytes(), &mut random);
        let text = String::from_utf8_lossy(&text);
        if let Err(problems) = SiteConfig::parse(&text, Path::new("")) {
            assert!(
                !problems.errors().is_empty(),
                "refused without a reason: {text}"
            );
            refused += 1;
        }
        let text = mutated(JOB.as_bytes(), &mut random);
        let text = String::from_utf8_lossy(&text);
        if let Err(problems) = Job::parse(&text) {
            assert!(
                !problems.errors().is_empty(),
                "refused without a reason: {text}"
            );
        }
    }
    assert!(refused > 1_000, "{refused}");
}
