//! Promise: `result.json` says what a run learned, in numbers that the method's own files have.

use crate::play::{PATIENTS, Weather, play};
use crate::samples::{Sample, samples};
use kindred_tests::results::{matrix, names, result};
use protocol::result::RunResult;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn the_model_in_result_json_has_no_number_that_the_methods_own_files_do_not_have() {
    for sample in samples() {
        let played = play(&sample, PATIENTS, Weather::Calm);
        let folder = tempfile::tempdir().unwrap();
        report::write(&played.result, folder.path()).unwrap();
        let written = result(folder.path());
        let model = &written["model"];
        assert!(model.is_object(), "{sample}: {model}");
        let published = published(folder.path(), &sample);
        let mut found = BTreeSet::new();
        numbers(model, &mut found);
        println!("{sample}: {} numbers", found.len());
        assert!(!found.is_empty(), "{sample}");
        let others = found.difference(&published);
        let others: Vec<f64> = others.map(|bits| f64::from_bits(*bits)).collect();
        assert!(others.is_empty(), "{sample}: in no other file: {others:?}");
        describes_the_run(&sample, &played.result, &written);
    }
}

/// The job's text is there unless it holds places of patients; outcome, features and version always.
fn describes_the_run(sample: &Sample, run: &RunResult, written: &Value) {
    let text = &written["job_text"];
    match sample.job.method.name() {
        "neighbours" => assert!(text.is_null(), "{sample}"),
        _ => assert_eq!(text, &run.job, "{sample}"),
    }
    assert_eq!(written["version"], run.version.as_str(), "{sample}");
    let outcome = &written["cohort"]["outcome"];
    assert!(
        outcome["name"].is_string() && outcome["label"].is_string(),
        "{sample}"
    );
    let kind = outcome["kind"].as_str().unwrap();
    assert!(
        sample.text.contains(&format!("kind = '{kind}'")),
        "{sample}: {kind}"
    );
    let features = written["cohort"]["features"].as_array().unwrap().iter();
    let features: Vec<&str> = features.map(|one| one["kind"].as_str().unwrap()).collect();
    let (last, numbers) = features.split_last().unwrap();
    assert_eq!(*last, "categorical", "{sample}");
    assert!(numbers.iter().all(|kind| *kind == "numeric"), "{sample}");
}

/// Every number of the method's own files and of the job, by its bits.
fn published(folder: &Path, sample: &Sample) -> BTreeSet<u64> {
    let mut all = BTreeSet::new();
    words(&sample.text, &mut all);
    for name in names(folder) {
        let bytes = fs::read(folder.join(&name)).unwrap();
        match name.rsplit('.').next() {
            Some("csv") => words(&String::from_utf8(bytes).unwrap(), &mut all),
            Some("npy") => all.extend(matrix(&bytes).unwrap().iter().map(|one| one.to_bits())),
            Some("json") if name != "result.json" => {
                numbers(&serde_json::from_slice(&bytes).unwrap(), &mut all);
            }
            _ => {}
        }
    }
    all
}

/// The numbers of a text, such as a table.
fn words(text: &str, all: &mut BTreeSet<u64>) {
    let words = text.split(|one: char| one.is_whitespace() || ",[]'".contains(one));
    all.extend(words.filter_map(|word| word.parse().ok()).map(f64::to_bits));
}

fn numbers(value: &Value, all: &mut BTreeSet<u64>) {
    match value {
        Value::Number(number) => drop(all.insert(number.as_f64().unwrap().to_bits())),
        Value::Array(values) => values.iter().for_each(|value| numbers(value, all)),
        Value::Object(values) => values.values().for_each(|value| numbers(value, all)),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}
