//! Promise: `personal` says whether a metric of the site's own serves its patients, keeps it, and others compare by it; nothing leaves.

#![allow(clippy::unwrap_used)] // functions that tests share

#[path = "support/world.rs"]
mod world;

use serde_json::Value;
use site_agent::cases::CasesError;
use site_agent::exit::{Exit, Exits};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use world::{FOREST, UNPSL, World, table};

#[test]
fn all_ways_are_judged_by_the_same_patients_and_the_answer_comes_first() {
    let world = World::new("class", UNPSL);
    let csv = world.path("features.csv");
    let answer = world.json("personal", &["--csv", &csv]);
    let ways = answer["ways"].as_array().unwrap();
    let names: Vec<&str> = ways
        .iter()
        .map(|way| way["way"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "largest class",
            "Euclidean distance",
            "own data alone",
            "common metric",
            "personal metric"
        ]
    );
    let number = |value: &Value| value.as_u64().unwrap();
    assert!(
        ways.iter()
            .all(|way| number(&way["right"]) + number(&way["wrong"]) == 150)
    );
    let accuracy = |place: usize| ways[place]["accuracy"].as_f64().unwrap();
    let gain = answer["gain"].as_f64().unwrap();
    assert!((accuracy(4) - accuracy(3) - gain).abs() < 1e-12);
    let error = answer["standard_error"].as_f64().unwrap();
    assert_eq!(answer["is_better"], gain > error);
    // Half of them are of one class, and some features tell the two apart.
    assert!(accuracy(0) < 0.52 && accuracy(4) > accuracy(0), "{ways:?}");
    let rows = table(&csv);
    assert_eq!(rows[0], ["feature", "common", "personal"]);
    // Four numbers, and three levels.
    assert_eq!(rows.len(), 8);
    assert_eq!(answer, world.json("personal", &[]));
    let text = world.ask("personal", &[]).unwrap();
    assert_eq!(text.lines().next(), answer["sentence"].as_str());
    assert!(
        text.contains(
            "note: Every patient is classified by the 6 nearest in the 4 other parts of 5"
        ),
        "{text}"
    );
}

#[test]
fn similar_cases_are_found_by_it_once_it_is_there() {
    let world = World::new("class", UNPSL);
    let asked = ["--patient", "north-0009", "-k", "3", "--by", "personal"];
    let error = world.ask("similar", &asked).unwrap_err();
    assert!(matches!(error, CasesError::NoPersonal));
    assert_eq!(error.exit(), Exit::Usage);
    let answer = world.json("personal", &[]);
    let file = answer["file"].as_str().unwrap();
    assert_eq!(
        fs::metadata(file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let page = fs::read_to_string(world.path("run/patients/personal.html")).unwrap();
    let sentence = answer["sentence"].as_str().unwrap();
    assert!(page.contains(sentence), "{page}");
    let personal = world.json("similar", &asked);
    let common = world.json("similar", &asked[..4]);
    let distance = |answer: &Value| {
        answer["queries"][0]["cases"][0]["distance"]
            .as_f64()
            .unwrap()
    };
    assert!((distance(&personal) - distance(&common)).abs() > 1e-9);
    // What the run left is as it was.
    let left = fs::read_dir(world.path("run/patients")).unwrap();
    let names: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        names
            .iter()
            .all(|name| !name.to_string_lossy().contains("partial")),
        "{names:?}"
    );
}

#[test]
fn what_has_no_metric_or_too_few_patients_is_refused_by_name() {
    let world = World::new("survival", FOREST);
    let error = world.ask("personal", &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a personal metric starts from that of a run of UnPSL, and this run is of another method"
    );
    assert_eq!(error.exit(), Exit::Usage);
    let world = World::new("class", UNPSL);
    let error = world.ask("personal", &["-k", "121"]).unwrap_err();
    assert!(
        matches!(
            error,
            CasesError::TooMany {
                found: 121,
                most: 120
            }
        ),
        "{error}"
    );
    // Without all but four patients of a class no five parts have one each.
    let all = fs::read_to_string(world.north()).unwrap();
    let mut kept = 0;
    let few = all.lines().filter(|line| {
        kept += usize::from(line.contains("positive"));
        !line.contains("positive") || kept <= 4
    });
    fs::write(world.north(), few.collect::<Vec<_>>().join("\n") + "\n").unwrap();
    let error = world.ask("personal", &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no personal metric can be judged: a class has 4 patients, wanted at least 5, one per fold"
    );
    assert_eq!(error.exit(), Exit::Data);
}
