//! Every page and file that a run leaves calls the outcome by the study's words, and no time stands without its unit.

use crate::play::{PATIENTS, Played, Weather, play};
use crate::samples::{SITES, Sample, samples};
use clap::Parser;
use kindred_tests::federation::{RUN, config_file};
use protocol::cohort::OutcomeKind;
use site_agent::cases;
use site_agent::cli::{Cli, Command};
use std::fs;
use std::path::{Path, PathBuf};

/// Words of a job, and of whoever wrote this, for what the study has words for.
const CODES: [&str; 8] = [
    "positive",
    "negative",
    "class 0",
    "class 1",
    "first class",
    "second class",
    "the class with",
    "unit of time",
];
/// Names of columns, axes and keys under which times stand.
const TIMES: [&str; 9] = [
    ">time<",
    "\"time\":",
    "\"median\":",
    "time,",
    ",time",
    "from,until",
    "days,",
    ",days",
    "units of time",
];
/// Files whose text people or machines read.
const READ: [&str; 5] = ["html", "md", "csv", "json", "svg"];
/// What a run leaves at a site for later commands alone: in the job's words.
const RECORD: &str = "comparison.json";

#[test]
fn every_page_and_file_names_the_outcome_and_no_time_stands_without_its_unit() {
    let (mut found, mut files) = (Vec::new(), 0);
    for sample in samples() {
        let played = play(&sample, PATIENTS, Weather::Calm);
        for path in written(&sample, &played) {
            files += 1;
            let faults = faults(&sample, &path);
            if !faults.is_empty() {
                let path = path.strip_prefix(played.home.path()).unwrap();
                let (path, faults) = (path.display(), faults.join("; "));
                found.push(format!("{sample}: {path}: {faults}"));
            }
        }
    }
    assert!(files > 200, "only {files} files");
    assert!(
        found.is_empty(),
        "{} of {files} files:\n{}",
        found.len(),
        found.join("\n")
    );
}

/// What the commands of a site print and write of the run that `played` has left there.
fn commands(sample: &Sample, played: &Played) {
    let out = played.folder(SITES[0]).join("runs").join(RUN);
    let config = played.home.join(&config_file(SITES[0]));
    let config = config.to_str().unwrap();
    let file = |name: &str| out.join(name).to_str().unwrap().to_owned();
    fs::write(out.join("some.txt"), "north-0001\nnorth-0002\n").unwrap();
    let kept = |name: &str, arguments: &[&str]| {
        let start = ["agent", name, "--config", config, RUN];
        let all = start.iter().copied().chain(arguments.iter().copied());
        let answer = match Cli::try_parse_from(all).unwrap().command {
            Command::Similar(one) => cases::similar(&one),
            Command::Match(one) => cases::matches(&one),
            Command::Cluster(one) => cases::clusters(&one),
            Command::Predict(one) => cases::predict(&one),
            other => panic!("{other:?}"),
        };
        let answer = answer.unwrap_or_else(|error| panic!("{sample}: {name}: {error}"));
        let ending = if arguments.contains(&"--json") {
            "json"
        } else {
            "md"
        };
        fs::write(out.join(format!("{name}.{ending}")), answer).unwrap();
    };
    for json in [None, Some("--json")] {
        let with = |own: &[&str]| {
            own.iter()
                .copied()
                .chain(json)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let run = |name: &str, own: Vec<String>| {
            kept(name, &own.iter().map(String::as_str).collect::<Vec<_>>());
        };
        run(
            "similar",
            with(&[
                "--patient",
                "north-0003",
                "-k",
                "9",
                "--csv",
                &file("similar.csv"),
                "--out",
                &file("similar"),
            ]),
        );
        run(
            "match",
            with(&[
                "--patients",
                &file("some.txt"),
                "-k",
                "3",
                "--csv",
                &file("match.csv"),
                "--out",
                &file("matched"),
            ]),
        );
        run(
            "cluster",
            with(&["-k", "2", "--samples", "5", "--out", &file("clusters")]),
        );
        run(
            "predict",
            with(&[
                "--folds",
                "3",
                "--csv",
                &file("predict.csv"),
                "--out",
                &file("predicted"),
            ]),
        );
    }
}

/// The files that the run leaves to its operator, and to the people of a site.
fn written(sample: &Sample, played: &Played) -> Vec<PathBuf> {
    let folder = played.home.join("report");
    fs::create_dir(&folder).unwrap();
    report::write(&played.result, &folder).unwrap();
    let mut all = Vec::new();
    list(&folder, &mut all);
    let own = played.folder(SITES[0]).join("runs").join(RUN);
    if own.join("comparison.json").is_file() {
        commands(sample, played);
    }
    if own.is_dir() {
        list(&own, &mut all);
    }
    all
}

fn list(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        if path.is_dir() {
            list(&path, all);
        } else if ending.is_some_and(|ending| READ.contains(&ending))
            && !path.ends_with(Path::new(RUN).join(RECORD))
            // What describes a table names the values that its cells have, and their labels.
            && !path.to_string_lossy().ends_with("-metadata.json")
        {
            all.push(path);
        }
    }
}

/// What is wrong with a file.
fn faults(sample: &Sample, path: &Path) -> Vec<String> {
    let whole = fs::read_to_string(path).unwrap();
    // The job as its operator wrote it.
    let (before, job) = whole.split_once("<pre tabindex").unwrap_or((&whole, ""));
    let after = job.split_once("</pre>").map_or("", |(_, after)| after);
    let lines = before.lines().chain(after.lines());
    let text: Vec<&str> = lines
        .filter(|line| !line.contains("\"job_text\": "))
        .collect();
    let text = text.join("\n");
    let mut faults = Vec::new();
    for code in CODES {
        if text.contains(code) {
            faults.push(format!("has {code:?}"));
        }
    }
    let outcome = &sample.job.cohort.outcome;
    let has_times = matches!(outcome.kind, OutcomeKind::Survival { .. });
    for time in TIMES {
        let has_unit = text.contains(&outcome.unit) && !outcome.unit.is_empty();
        if has_times && text.contains(time) && (!has_unit || time == "units of time") {
            faults.push(format!("has {time:?} without its unit"));
        }
    }
    let is_of_run = path.file_name().is_some_and(|name| name == "report.html");
    if is_of_run {
        let is_of_all = path.iter().any(|folder| folder == "report");
        let patients = if is_of_all { 3 * PATIENTS } else { PATIENTS };
        for wanted in said_of(sample, patients) {
            if !text.contains(&wanted) {
                faults.push(format!("says nothing of {wanted:?}"));
            }
        }
    }
    faults
}

/// What every page says: the outcome, its unit, who has it, and how large a part of the patients they are.
fn said_of(sample: &Sample, patients: usize) -> Vec<String> {
    let outcome = &sample.job.cohort.outcome;
    let mut said = vec![format!("Outcome: {}", outcome.label), outcome.unit.clone()];
    match outcome.kind {
        OutcomeKind::Survival { .. } => said.push(outcome.event_label().to_owned()),
        OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } => {
            said.extend(outcome.classes().pop());
        }
        OutcomeKind::Numeric => return said,
    }
    said.push(format!(" of {patients} patients)"));
    said
}
