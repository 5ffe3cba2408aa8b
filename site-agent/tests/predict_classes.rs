//! Promise: where an outcome has three classes, `predict` says of each the chance that scikit-learn says, one class against the rest; its
//! figures are those of the definitions; what it saves says the same; and a class of few patients stops nothing.

#![allow(clippy::unwrap_used)] // functions that tests share

#[path = "support/world.rs"]
mod world;

use serde_json::Value;
use std::fs;
use std::path::Path;
use world::{World, ask, table};

const JOB: &str = "
name = 'grades'
method = 'unpsl'
sites = ['north', 'south']
[outcome]
column = 'grade'
kind = 'categorical'
levels = ['mild', 'moderate', 'severe']
[unpsl]
rank = 2
validation = 'none'
[[features]]
name = 'a'
kind = 'numeric'
[[features]]
name = 'b'
kind = 'numeric'
[[features]]
name = 'c'
kind = 'numeric'
";
const LEVELS: [&str; 3] = ["mild", "moderate", "severe"];

fn reference(name: &str) -> String {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folder = workspace.join("tests/reference/predict");
    folder.join(name).display().to_string()
}

fn graded(patients: &str) -> World {
    World::of(patients, JOB)
}

fn predicted(graded: &World, words: &[&str]) -> Value {
    graded.json("predict", &[&["--by", "euclidean"], words].concat())
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[test]
fn the_chance_of_each_of_three_classes_is_that_of_scikit_learn() {
    let graded = graded(&fs::read_to_string(reference("classes.csv")).unwrap());
    let (query, file) = (reference("classes_new.csv"), graded.path("model.json"));
    let answer = predicted(&graded, &["--new", &query, "--save", &file]);
    let text = fs::read_to_string(reference("classes.json")).unwrap();
    let expected: Value = serde_json::from_str(&text).unwrap();
    let machine = &answer["machine"];
    let same = |cell: &Value, name: &str| {
        (number(&cell[name]) / number(&machine[name]) - 1.0).abs() < 1e-9
    };
    let mut cells = expected["cells"].as_array().unwrap().iter();
    let cell = cells.find(|cell| same(cell, "sigma") && same(cell, "penalty"));
    let cell = cell.unwrap_or_else(|| panic!("another setting: {machine}"));
    let new = answer["new"].as_array().unwrap();
    assert_eq!(new.len(), 12);
    for (one, wanted) in new.iter().zip(cell["chances"].as_array().unwrap()) {
        let chances = one["chances"].as_array().unwrap();
        for (place, chance) in chances.iter().enumerate() {
            assert_eq!(chance["class"], LEVELS[place]);
            let (found, wanted) = (number(&chance["chance"]), number(&wanted[place]));
            assert!((found - wanted).abs() < 1e-6, "{found} {wanted}");
        }
        // Patients of the predicted class speak for it, all others against it.
        let all = chances.iter();
        let class = all.max_by(|a, b| number(&a["chance"]).total_cmp(&number(&b["chance"])));
        let class = class.unwrap()["class"].as_str().unwrap();
        let told = one["predicted"].as_str().unwrap();
        assert!(
            told.starts_with(&format!("grade: {class}, chance ")),
            "{told}"
        );
        for near in one["nearest"].as_array().unwrap() {
            assert_eq!(
                near["outcome"] == class,
                number(&near["share"]) > 0.0,
                "{one}"
            );
        }
    }
    let words = [
        "predict", "--model", &file, "--new", &query, "--id", "patient", "--json",
    ];
    let saved: Value = serde_json::from_str(&ask(&words).unwrap()).unwrap();
    assert_eq!(saved["new"], answer["new"]);
    assert_eq!(saved["prototypes"], answer["prototypes"]);
}

#[test]
fn figures_of_three_classes_are_those_of_their_definitions() {
    let graded = graded(&fs::read_to_string(reference("classes.csv")).unwrap());
    let csv = graded.path("held_out.csv");
    let answer = predicted(&graded, &["--csv", &csv]);
    let rows = table(&csv);
    let header = [
        "patient",
        "grade",
        "predicted",
        "chance: mild",
        "chance: moderate",
        "chance: severe",
    ];
    assert_eq!(
        (&rows[0][..], rows.len()),
        (&header.map(str::to_owned)[..], 151)
    );
    let (mut squares, mut right, mut of_class) = (0.0, [0.0; 3], [0.0; 3]);
    for row in &rows[1..] {
        let chances: Vec<f64> = row[3..].iter().map(|one| one.parse().unwrap()).collect();
        assert!((chances.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let largest = (0..3)
            .max_by(|a, b| chances[*a].total_cmp(&chances[*b]))
            .unwrap();
        assert_eq!(row[2], LEVELS[largest]);
        let class = LEVELS.iter().position(|level| *level == row[1]).unwrap();
        of_class[class] += 1.0;
        right[class] += f64::from(u8::from(row[1] == row[2]));
        let happened = |place: usize| f64::from(u8::from(place == class));
        let off = |(place, chance): (usize, &f64)| (chance - happened(place)).powi(2);
        squares += chances.iter().enumerate().map(off).sum::<f64>();
    }
    let rule = &answer["rules"][0];
    let near = |name: &str, wanted: f64| {
        let found = number(&rule[name]["value"]);
        assert!((found - wanted).abs() < 1e-12, "{name}: {found} {wanted}");
    };
    near("accuracy", right.iter().sum::<f64>() / 150.0);
    let shares = right.iter().zip(&of_class).map(|(right, all)| right / all);
    near("balanced_accuracy", shares.sum::<f64>() / 3.0);
    near("brier", squares / 300.0);
    assert!(rule["auc"].is_null(), "{rule}");
    assert!(number(&rule["accuracy"]["value"]) > 0.55, "{rule}");
    assert!(
        answer["sentence"]
            .as_str()
            .unwrap()
            .starts_with("Predicts grade with accuracy ")
    );
}

#[test]
fn a_class_of_fewer_patients_than_parts_stops_nothing() {
    let text = fs::read_to_string(reference("classes.csv")).unwrap();
    let mut severe = 0;
    let line = |line: &str| {
        severe += usize::from(line.ends_with(",severe"));
        match line.strip_suffix(",severe") {
            Some(begin) if severe > 3 => format!("{begin},moderate\n"),
            _ => format!("{line}\n"),
        }
    };
    let few: String = text.lines().map(line).collect();
    let graded = graded(&few);
    let query = reference("classes_new.csv");
    let answer = predicted(&graded, &["--new", &query]);
    assert_eq!(answer["judged"], 150);
    for one in answer["new"].as_array().unwrap() {
        let chances = one["chances"].as_array().unwrap().iter();
        let sum: f64 = chances.map(|one| number(&one["chance"])).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{one}");
    }
}
