//! A site with synthetic patients and a run on them, and questions to it.

#![allow(dead_code, unreachable_pub)] // no file of tests uses all of it

use clap::Parser;
use serde_json::Value;
use site_agent::cases::{self, CasesError};
use site_agent::cli::{Cli, Command};
use site_agent::run::local;
use std::fs;
use tempfile::TempDir;

pub const FEATURES: &str = "
[[features]]
name = 'first_1'
kind = 'numeric'
[[features]]
name = 'first_2'
label = 'Second'
kind = 'numeric'
[[features]]
name = 'second_1'
kind = 'numeric'
transform = 'log'
[[features]]
name = 'irrelevant_1'
kind = 'numeric'
[[features]]
name = 'grade'
kind = 'categorical'
levels = ['low', 'middle', 'high']
";

pub const UNPSL: &str = "
name = 'cases'
method = 'unpsl'
sites = ['north', 'south']
[outcome]
column = 'class'
kind = 'binary'
positive = ['positive']
negative = ['negative']
[unpsl]
rank = 2
neighbours = 6
";

pub const FOREST: &str = "
name = 'trees'
method = 'forest'
sites = ['north', 'south']
[outcome]
column = 'days'
unit = 'days'
kind = 'survival'
event = 'event'
event_values = ['1']
[forest]
trees = 80
scope = 'local'
neighbours = 6
";

pub fn command(words: &[&str]) -> Command {
    let words = ["kindred-site-agent"].iter().chain(words);
    Cli::try_parse_from(words).unwrap().command
}

pub fn ask(words: &[&str]) -> Result<String, CasesError> {
    match command(words) {
        Command::Similar(arguments) => cases::similar(&arguments),
        Command::Match(arguments) => cases::matches(&arguments),
        Command::Cluster(arguments) => cases::clusters(&arguments),
        Command::Predict(arguments) => cases::predict(&arguments),
        Command::Personal(arguments) => cases::personal(&arguments),
        _ => panic!("another command"),
    }
}

/// A local run of a job, and where it is.
pub fn run(folder: &TempDir, job: &str, data: &str, patient: &str) -> String {
    let out = folder.path().join("run").display().to_string();
    let mut words = vec!["local", job, "--data", data, "--out", &out];
    if !patient.is_empty() {
        words.extend(["--id", patient]);
    }
    let Command::Local(arguments) = command(&words) else {
        panic!("another command")
    };
    local::run(&arguments).unwrap();
    out
}

/// A folder with synthetic patients of one outcome and a local run on those of `north`.
pub struct World {
    pub folder: TempDir,
}

impl World {
    pub fn new(outcome: &str, job: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let Command::Synthesise(arguments) = command(&[
            "synthesise",
            "--sites",
            "north=150,south=90",
            "--outcome",
            outcome,
            "--out",
            &path("data"),
        ]) else {
            panic!("another command")
        };
        site_agent::synthesise::synthesise(&arguments).unwrap();
        fs::write(path("job.toml"), format!("{job}{FEATURES}")).unwrap();
        Self::ran(folder)
    }

    /// The same of patients who are known; the job with its features.
    pub fn of(patients: &str, job: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("data")).unwrap();
        fs::write(folder.path().join("data/north.csv"), patients).unwrap();
        fs::write(folder.path().join("job.toml"), job).unwrap();
        Self::ran(folder)
    }

    fn ran(folder: TempDir) -> Self {
        let world = Self { folder };
        let (job, north) = (world.path("job.toml"), world.north());
        run(&world.folder, &job, &north, "patient");
        world
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    pub fn north(&self) -> String {
        self.path("data/north.csv")
    }

    /// A question to the run about the patients of north.
    pub fn ask(&self, what: &str, words: &[&str]) -> Result<String, CasesError> {
        let (run, north) = (self.path("run"), self.north());
        let mut all = vec![what, &run, "--data", &north, "--id", "patient"];
        all.extend(words);
        ask(&all)
    }

    pub fn json(&self, what: &str, words: &[&str]) -> Value {
        let mut all = words.to_vec();
        all.push("--json");
        serde_json::from_str(&self.ask(what, &all).unwrap()).unwrap()
    }

    /// The lines of north's table, split.
    pub fn rows(&self) -> Vec<Vec<String>> {
        table(&self.north())
    }

    /// A file with these columns of some of north's patients.
    pub fn query(&self, name: &str, columns: &[&str], rows: &[usize]) -> String {
        let all = self.rows();
        let places: Vec<usize> = columns
            .iter()
            .map(|column| all[0].iter().position(|name| name == column).unwrap())
            .collect();
        let line = |row: usize| {
            let cells: Vec<&str> = places.iter().map(|place| &*all[row][*place]).collect();
            cells.join(",")
        };
        let lines: Vec<String> = std::iter::once(0)
            .chain(rows.iter().copied())
            .map(line)
            .collect();
        let path = self.path(name);
        fs::write(&path, lines.join("\n")).unwrap();
        path
    }
}

pub fn table(path: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| line.split(',').map(str::to_owned).collect())
        .collect()
}

pub const ALL: [&str; 5] = ["grade", "irrelevant_1", "second_1", "first_2", "first_1"];
