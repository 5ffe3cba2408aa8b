//! The readers of what comes from outside, a function each: `tests/fuzz` gives them any bytes, and the tests of
//! `protocol::fuzz` good ones with changes. Each says whether all of its input was read; none may panic.

use crate::samples::SITE;
use bytes::Bytes;
use clap::Parser;
use protocol::job::Job;
use protocol::message::Warrant;
use protocol::name::RunId;
use service::audit;
use site_agent::books::chain;
use site_agent::books::{journal, ledger, transcript};
use site_agent::cases;
use site_agent::cli::{Cli, Command};
use site_agent::config::SiteConfig;
use site_agent::pages::{Act, Actor};
use site_agent::source::{Asked, Judged, Snapshot, of_table, read_cohort};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use wire::WarrantError;
use wire::certificates::{self, Role, Validity};
use wire::enrolment::Token;

/// The job of a Parquet file, but for its features; identifiers and outcomes are those of `tests/reference/parquet`.
const PARQUET_JOB: &str = "name = 'fuzz'\nmethod = 'forest'\nsites = ['north', 'south']\n\
    [outcome]\ncolumn = 'outcome'\nkind = 'numeric'\n[forest]\n";

/// Features of the synthetic patients.
const FEATURES: &str = "[[features]]\nname = 'first_1'\nkind = 'numeric'\n\
    [[features]]\nname = 'grade'\nkind = 'categorical'\nlevels = ['low', 'middle', 'high']\n";

/// The frames of an input: each after its length, two bytes, the most significant first. The last may be cut off.
pub fn frames(mut input: &[u8]) -> Vec<Bytes> {
    let mut frames = Vec::new();
    while let Some((length, rest)) = input.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length)).min(rest.len());
        let (frame, rest) = rest.split_at(length);
        frames.push(Bytes::copy_from_slice(frame));
        input = rest;
    }
    frames
}

/// The input of these frames.
pub fn of_frames(frames: &[Bytes]) -> Vec<u8> {
    let with_length = |frame: &Bytes| {
        let length = u16::try_from(frame.len()).expect("a short frame");
        [&length.to_be_bytes(), &frame[..]].concat()
    };
    frames.iter().flat_map(with_length).collect()
}

/// A folder of this process's own.
pub fn folder() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("kindred-fuzz-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a temporary folder");
    folder
}

/// A record of a store.
pub fn record(input: &[u8]) -> bool {
    let read = [
        wire::decode_result(input).is_ok(),
        wire::decode_progress(input).is_ok(),
        wire::decode_answer(input).is_ok(),
        wire::decode_warrant(input).is_ok(),
        wire::decode_approved(input).is_ok(),
        wire::decode_opening(input).is_ok(),
    ];
    read.contains(&true)
}

/// The copy of a run that a site keeps.
pub fn transcript(folder: &Path, input: &[u8]) -> bool {
    let run = RunId::new("run").expect("a name");
    put(&transcript::path(folder, &run), input);
    transcript::read(folder, &run).is_ok()
}

/// The journal and the ledger of a site, and the audit log of its pages. Whoever changes an entry can also make its hashes anew, so every line is an entry
/// that is sealed here; the lines as they are come first.
pub fn books(folder: &Path, input: &[u8]) -> bool {
    put(&folder.join(journal::FILE_NAME), input);
    let _ = journal::verify(folder, None);
    let sealed = sealed(&String::from_utf8_lossy(input));
    put(&folder.join(journal::FILE_NAME), sealed.as_bytes());
    put(&folder.join(ledger::FILE_NAME), sealed.as_bytes());
    put(&folder.join(audit::FILE_NAME), sealed.as_bytes());
    let left = journal::list(folder, None).is_ok() && journal::by_run(folder).is_ok();
    let noted = audit::list::<Actor, Act>(folder, None).is_ok();
    left || noted || ledger::used(folder).is_ok() && ledger::runs(folder, "study").is_ok()
}

/// Entries of JSON as a chain has them, by the module's description of its lines.
fn sealed(entries: &str) -> String {
    let mut previous = "0".repeat(64);
    let mut lines = String::new();
    for (entry, number) in entries.lines().zip(1..) {
        let body = format!("{{\"number\":{number},\"previous\":\"{previous}\",\"entry\":{entry}");
        previous = chain::digest(body.as_bytes());
        lines += &format!("{body},\"hash\":\"{previous}\"}}\n");
    }
    lines
}

/// The pairs of patients that physicians have judged.
pub fn judged(input: &[u8]) -> bool {
    let read = Judged::read(input, "pairs.csv");
    read.is_ok_and(|judged| {
        judged
            .among(&[b"p1".to_vec(), b"p2".to_vec()].into())
            .is_ok()
    })
}

/// A table of which a study is drafted: of CSV, or of Parquet where it begins as such.
pub fn draft(folder: &Path, input: &[u8]) -> bool {
    let name = match input.starts_with(b"PAR1") {
        true => "table.parquet",
        false => "table.csv",
    };
    let path = folder.join(name);
    put(&path, input);
    let asked = Asked {
        outcomes: &["num".to_owned()],
        categorical: &[],
        patients_min: 2,
    };
    of_table(&path, asked).is_ok()
}

/// A Parquet file of patients.
pub fn parquet(folder: &Path, input: &[u8]) -> bool {
    put(&folder.join("patients.parquet"), input);
    let source = SITE.replace("'csv'", "'parquet'");
    let source = source.replace("patients.csv", "patients.parquet");
    let site = SiteConfig::parse(&source, folder).expect("a whole configuration");
    let features = |kind: &str, names: &[&str]| -> String {
        let feature = |name: &&str| format!("[[features]]\nname = '{name}'\n{kind}\n");
        names.iter().map(feature).collect()
    };
    let numbers = ["int8", "uint64", "half", "double", "truth", "decimal_long"];
    let types = features("kind = 'numeric'", &numbers)
        + &features("kind = 'numeric'", &["text_view", "number_dictionary"])
        + &features("kind = 'age'\nat = '2025-01-01'", &["day", "ahead"]);
    let frozen = features("kind = 'numeric'", &["weight"])
        + &features("kind = 'categorical'\nlevels = ['F', 'M']", &["sex"])
        + &features("kind = 'age'\nat = '2025-01-01'", &["born"]);
    let tables = [
        ("outcome", features("kind = 'numeric'", &["level"])),
        ("outcome", types),
        ("num", frozen),
    ];
    let read = tables.map(|(outcome, features)| {
        let text = PARQUET_JOB.replace("column = 'outcome'", &format!("column = '{outcome}'"));
        let job = Job::parse(&format!("{text}{features}")).expect("a whole job");
        read_cohort(&site.source, &job).is_ok()
    });
    read.contains(&true)
}

/// The frozen patients of a study. Whoever changes them can also make their digest anew.
pub fn snapshot(input: &[u8]) -> bool {
    let digest = chain::digest(input);
    let pairs = digest.as_bytes().chunks(2);
    let digit = |byte: &u8| char::from(*byte).to_digit(16).expect("a digit") as u8;
    let mut bytes: Vec<u8> = pairs
        .map(|two| digit(&two[0]) << 4 | digit(&two[1]))
        .collect();
    bytes.extend(input);
    let table = Snapshot::of_bytes(bytes).and_then(|snapshot| snapshot.table());
    table.is_some_and(|table| {
        table.canonical(&mut |_| {});
        true
    })
}

/// The word by which a party enrols.
pub fn token(input: &str) -> bool {
    match Token::parse(input) {
        Ok(token) => {
            assert!(Token::parse(&token.to_string()).as_ref() == Ok(&token));
            true
        }
        Err(error) => {
            assert!(!error.wanted.is_empty());
            false
        }
    }
}

/// Who judges certificates, and a folder for what is judged.
pub struct Authority {
    folder: TempDir,
    warrants: wire::Warrants,
}

impl Authority {
    /// One of its own keys, with a certificate of the operator `alice`.
    #[allow(clippy::new_without_default)] // it makes keys and files
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let validity = Validity::days(30);
        certificates::init(folder.path(), validity).expect("an authority");
        certificates::issue(folder.path(), &Role::Operator, "alice", validity).expect("one");
        let warrants = wire::Warrants::load(&authority(folder.path())).expect("an authority");
        Self { folder, warrants }
    }

    /// Its own certificate, its list of revoked ones, and the operator's, DER.
    pub fn whole(&self) -> [Vec<u8>; 3] {
        let folder = self.folder.path();
        let operator = folder.join("operator-alice/certificate.pem");
        let revoked = folder.join("authority/revoked.pem");
        [authority(folder), revoked, operator].map(|path| der(&path))
    }

    /// A certificate, a list of revoked ones or a request for one, DER: as a file, in a warrant, and at the port for
    /// enrolment.
    pub fn judged(&self, input: &[u8]) -> bool {
        let warrant = Warrant {
            token: "token".to_owned(),
            chain: vec![input.to_vec(), input.to_vec()],
            // ecdsa_secp256r1_sha256
            scheme: 0x0403,
            signature: input.to_vec(),
        };
        let _ = wire::fingerprint_of_der(input);
        let mut read = certificates::requested(input).is_some();
        read |= match self.warrants.signer("job", 1, &warrant) {
            Ok(_) | Err(WarrantError::Signature) => true,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                false
            }
        };
        let folder = self.folder.path();
        let path = folder.join("given.pem");
        for label in ["CERTIFICATE", "X509 CRL"] {
            put(&path, pem(label, input).as_bytes());
            read |= wire::Warrants::load(&path).is_ok();
            read |= wire::Warrants::load_revoking(&authority(folder), &path).is_ok();
            let _ = certificates::hosts(&path).map(|hosts| hosts.concat());
            let _ = (
                certificates::valid_until(&path),
                wire::fingerprint_of(&path),
            );
        }
        read
    }
}

fn authority(folder: &Path) -> PathBuf {
    folder.join("authority/certificate.pem")
}

/// The first thing of a PEM file.
fn der(path: &Path) -> Vec<u8> {
    use base64::Engine as _;
    let text = fs::read_to_string(path).expect("a file");
    let lines = text.lines().skip(1);
    let lines: String = lines.take_while(|line| !line.starts_with("--")).collect();
    let bytes = base64::engine::general_purpose::STANDARD.decode(lines);
    bytes.expect("base 64")
}

/// DER as a file has it.
fn pem(label: &str, der: &[u8]) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let lines = text.as_bytes().chunks(64).map(String::from_utf8_lossy);
    let lines: Vec<_> = lines.collect();
    format!(
        "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
        lines.join("\n")
    )
}

/// What the fuzzer and the tests need of a run at a site: its folder, and the patients that it read.
pub struct LeftRun {
    folder: TempDir,
}

/// A file of a run's folder, or of `predict --save`.
#[derive(Debug, Clone, Copy)]
pub enum LeftFile {
    /// `comparison.json`.
    Record,
    /// `forest.bin`, of a run of forests.
    Forest,
    /// What `predict --save` writes, without its first line.
    Saved,
}

impl LeftRun {
    /// A run of UnPSL on synthetic patients.
    pub fn of_metric() -> Self {
        let table = "method = 'unpsl'\n[outcome]\ncolumn = 'class'\nkind = 'binary'\n\
                     positive = ['positive']\nnegative = ['negative']\n[unpsl]\nrank = 2\nneighbours = 6\n";
        Self::of(table, "class")
    }

    /// A run of a forest on synthetic patients.
    pub fn of_forest() -> Self {
        let table = "method = 'forest'\n[outcome]\ncolumn = 'score'\nkind = 'numeric'\n\
                     [forest]\ntrees = 3\nscope = 'local'\nneighbours = 6\n";
        Self::of(table, "number")
    }

    fn of(tables: &str, outcome: &str) -> Self {
        let job = format!("name = 'left'\nsites = ['north', 'south']\n{tables}{FEATURES}");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let run = Self { folder };
        let [data, job_file, out, saved, table] =
            ["data", "job.toml", "run", "model.json", "data/north.csv"].map(|name| run.path(name));
        let words = [
            "synthesise",
            "--sites",
            "north=60,south=60",
            "--outcome",
            outcome,
        ];
        answered(&[&words[..], &["--out", &data]].concat());
        fs::write(&job_file, &job).expect("a job");
        answered(&[
            "local", &job_file, "--data", &table, "--id", "patient", "--out", &out,
        ]);
        let words = ["predict", &out, "--data", &table, "--id", "patient"];
        let save = ["--new", &table, "--save", &saved];
        answered(&[&words[..], &save].concat()).expect("a prediction");
        run
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// What the run left.
    pub fn whole(&self, file: LeftFile) -> Vec<u8> {
        let bytes = fs::read(self.place(file)).expect("a file of the run");
        match file {
            LeftFile::Record | LeftFile::Forest => bytes,
            LeftFile::Saved => {
                let head = bytes.iter().position(|byte| *byte == b'\n');
                bytes[head.expect("a first line") + 1..].to_vec()
            }
        }
    }

    fn place(&self, file: LeftFile) -> PathBuf {
        self.folder.path().join(match file {
            LeftFile::Record => "run/patients/comparison.json",
            LeftFile::Forest => "run/patients/forest.bin",
            LeftFile::Saved => "model.json",
        })
    }

    /// Asks by the run with the input as its file. Whoever changes a saved prediction can also make its digest anew.
    pub fn asked(&self, file: LeftFile, input: &[u8]) -> bool {
        let input = match file {
            LeftFile::Record | LeftFile::Forest => input.to_vec(),
            LeftFile::Saved => {
                let digest = chain::digest(input);
                let format = "\"format\":\"kindred prediction\",\"version\":3";
                let head = format!("{{{format},\"digest\":\"{digest}\"}}\n");
                [head.as_bytes(), input].concat()
            }
        };
        put(&self.place(file), &input);
        let [out, saved, table] =
            ["run", "model.json", "data/north.csv"].map(|name| self.path(name));
        let new = ["--new", &table, "--id", "patient", "--json"];
        let words = match file {
            LeftFile::Record | LeftFile::Forest => {
                vec!["similar", &out, "--data", &table, "-k", "3"]
            }
            LeftFile::Saved => vec!["predict", "--model", &saved],
        };
        answered(&[&words[..], &new].concat()).is_some()
    }
}

/// What a command of the site agent answers, if it does.
fn answered(words: &[&str]) -> Option<String> {
    let words = ["kindred-site-agent"].iter().chain(words);
    match Cli::try_parse_from(words).expect("a command").command {
        Command::Similar(arguments) => cases::similar(&arguments).ok(),
        Command::Predict(arguments) => cases::predict(&arguments).ok(),
        Command::Local(arguments) => {
            site_agent::run::local::run(&arguments).expect("a run");
            None
        }
        Command::Synthesise(arguments) => {
            site_agent::synthesise::synthesise(&arguments).expect("patients");
            None
        }
        _ => panic!("another command"),
    }
}

fn put(path: &Path, input: &[u8]) {
    let folder = path.parent().expect("a folder");
    fs::create_dir_all(folder).expect("a folder");
    fs::write(path, input).expect("a file");
}
