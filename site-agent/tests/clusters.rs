//! Promise: `cluster` says how many groups there are, how sure that is, what marks each and how it fared; that there are none is
//! said as plainly; and the patients stay here.

#![allow(clippy::unwrap_used)] // functions that tests share

#[path = "support/world.rs"]
mod world;

use serde_json::Value;
use site_agent::cases::CasesError;
use site_agent::exit::{Exit, Exits};
use std::fs;
use std::path::Path;
use world::{ALL, FOREST, UNPSL, World, table};

/// Few samples, for speed.
const FEW: [&str; 2] = ["--samples", "20"];

fn with_few<'w>(words: &[&'w str]) -> Vec<&'w str> {
    [words, &FEW[..]].concat()
}

fn numbers(value: &Value) -> Vec<f64> {
    let all = value.as_array().unwrap().iter();
    all.map(|one| one.as_f64().unwrap()).collect()
}

#[test]
fn groups_are_told_in_a_sentence_and_every_patient_has_one() {
    let world = World::new("class", UNPSL);
    let csv = world.path("groups.csv");
    let words = with_few(&["-k", "3", "--csv", &csv]);
    let answer = world.json("cluster", &words);
    let groups = answer["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 3);
    let rows = table(&csv);
    assert_eq!(
        rows[0],
        [
            "patient",
            "group",
            "distance from medoid",
            "medoid",
            "class"
        ]
    );
    assert_eq!(rows.len(), 151);
    for (place, group) in (1..).zip(groups) {
        let own = rows.iter().filter(|row| row[1] == i32::to_string(&place));
        assert_eq!(group["patients"], own.count());
        let medoid = rows
            .iter()
            .find(|row| row[0] == group["medoid"].as_str().unwrap())
            .unwrap();
        assert_eq!(
            (medoid[1].clone(), &*medoid[2], &*medoid[3]),
            (place.to_string(), "0", "1")
        );
        let marks = group["marks"].as_array().unwrap();
        assert_eq!(marks.len(), 5);
    }
    let sentence = answer["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("3 clusters") && sentence.contains("cluster 1 ("),
        "{sentence}"
    );
    assert!(sentence.contains("% with the outcome"), "{sentence}");
    // The same again, and as text, whose first line it is.
    assert_eq!(answer, world.json("cluster", &words));
    let text = world.ask("cluster", &with_few(&["-k", "3"])).unwrap();
    assert_eq!(text.lines().next(), Some(sentence));
    assert!(
        text.contains("note: the distance was learned from these patients' outcomes"),
        "{text}"
    );
}

#[test]
fn the_best_of_the_stable_is_chosen_and_none_is_an_answer() {
    let world = World::new("class", UNPSL);
    let answer = world.json("cluster", &with_few(&["-k", "2..5", "--threshold", "0"]));
    let tried = answer["tried"].as_array().unwrap();
    assert_eq!(tried.len(), 4);
    let chosen: Vec<&Value> = tried.iter().filter(|one| one["chosen"] == true).collect();
    assert_eq!(chosen.len(), 1);
    // The last that gains beyond chance, of four that were tried.
    let gains = |one: &&Value| one["chance"].as_f64().unwrap() < 0.05 / 4.0;
    assert_eq!(tried.iter().rfind(gains), Some(chosen[0]));
    assert_eq!(answer["outcomes_differ"], true);
    for one in tried {
        let stability = numbers(&one["stability"]);
        assert_eq!(one["groups"], stability.len());
        assert!(stability.iter().all(|one| (0.0..=1.0).contains(one)));
        assert!(one["by_chance"].as_f64().is_some());
    }
    let csv = world.path("none.csv");
    let figures = world.path("figures");
    let words = [
        "-k",
        "3..4",
        "--threshold",
        "1",
        "--csv",
        &csv,
        "--out",
        &figures,
    ];
    let text = world.ask("cluster", &with_few(&words)).unwrap();
    assert!(
        text.starts_with("There are no stable clusters among the 150 patients"),
        "{text}"
    );
    assert!(!text.contains("Cluster 1"), "{text}");
    assert_eq!(table(&csv).len(), 1);
    assert!(Path::new(&figures).join("scores.svg").is_file());
    assert!(!Path::new(&figures).join("map.svg").exists());
}

#[test]
fn survival_by_group_is_drawn_and_tested_and_the_files_are_their_owners() {
    let world = World::new("survival", FOREST);
    let folder = world.path("figures");
    let answer = world.json("cluster", &with_few(&["-k", "2", "--out", &folder]));
    let p = answer["log_rank"]["p"].as_f64().unwrap();
    assert!((0.0..=1.0).contains(&p));
    assert_eq!(answer["log_rank"]["degrees"], 1);
    let events: u64 = answer["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| group["fared"]["survival"]["events"].as_u64().unwrap())
        .sum();
    let event = world.rows()[0]
        .iter()
        .position(|name| name == "event")
        .unwrap();
    assert_eq!(
        events,
        world.rows().iter().filter(|row| row[event] == "1").count() as u64
    );
    let names = [
        "scores.svg",
        "map.svg",
        "importance.svg",
        "features.svg",
        "survival.svg",
        "clusters.html",
    ];
    for name in names {
        let path = Path::new(&folder).join(name);
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains("north-"), "{name} names a patient");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o077, 0);
        }
    }
    let page = fs::read_to_string(Path::new(&folder).join("clusters.html")).unwrap();
    assert!(
        page.contains("log-rank p")
            && page.contains("What distinguishes each cluster")
            && page.contains("Second")
    );
    assert_eq!(page.matches("<svg role").count(), 5);
}

#[test]
fn a_new_patient_is_of_the_group_of_whom_it_equals_and_an_unknown_level_is_refused() {
    let world = World::new("class", UNPSL);
    let csv = world.path("groups.csv");
    for by in ["run", "gower", "euclidean", "regression"] {
        let rows: Vec<usize> = (1..=150).collect();
        let new = world.query("new.csv", &ALL, &rows);
        let words = with_few(&["-k", "3", "--by", by, "--new", &new, "--csv", &csv]);
        let answer = world.json("cluster", &words);
        let assigned = answer["new"].as_array().unwrap();
        let rows = table(&csv);
        assert_eq!(assigned.len(), 150);
        for (one, row) in assigned.iter().zip(&rows[1..]) {
            assert_eq!(one["group"].to_string(), row[1], "{by}");
            assert!(one["distance"].as_f64() <= one["next"].as_f64());
        }
    }
    let new = world.path("unknown.csv");
    fs::write(
        &new,
        "first_1,first_2,second_1,irrelevant_1,grade\n1.5,2,2.2,140,secret\n",
    )
    .unwrap();
    let error = world.ask("cluster", &["--new", &new]).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("line 2") && text.contains("grade") && !text.contains("secret"),
        "{text}"
    );
    assert_eq!(error.exit(), Exit::Data);
}

#[test]
fn what_cannot_be_divided_says_why() {
    let world = World::new("survival", FOREST);
    let refused = |words: &[&str]| world.ask("cluster", words).unwrap_err();
    for (k, why) in [
        ("1", "found 1 to 1 clusters, wanted at least 2"),
        ("4..3", "found 4 to 3 clusters"),
        (
            "2..150",
            "found 150 clusters of 150 patients, wanted fewer clusters than patients",
        ),
    ] {
        let error = refused(&["-k", k]);
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(error.exit(), Exit::Usage);
    }
    let all = world.rows();
    let written = |change: &dyn Fn(&mut Vec<String>)| {
        let lines: Vec<String> = all
            .iter()
            .enumerate()
            .map(|(place, row)| {
                let mut row = row.clone();
                if place > 0 {
                    change(&mut row);
                }
                row.join(",")
            })
            .collect();
        fs::write(world.north(), lines.join("\n")).unwrap();
    };
    let place = |name: &str| all[0].iter().position(|found| found == name).unwrap();
    let event = place("event");
    written(&|row| row[event] = "0".to_owned());
    let error = refused(&FEW);
    assert!(
        error.to_string().contains("found no patient with an event"),
        "{error}"
    );
    assert_eq!(error.exit(), Exit::Data);
    let places: Vec<usize> = ALL.iter().map(|name| place(name)).collect();
    written(&|row| {
        places
            .iter()
            .for_each(|place| row[*place].clone_from(&all[1][*place]))
    });
    let error = refused(&FEW);
    assert!(matches!(error, CasesError::Cluster(_)), "{error}");
    assert!(
        error.to_string().contains("all patients are equal"),
        "{error}"
    );
    assert_eq!(error.exit(), Exit::Data);
}
