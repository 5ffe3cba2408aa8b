//! Promise: `predict` says first how well it goes with patients who were held out, beside their nearest and no information; what it saves
//! predicts the same without run and source; and what cannot be predicted says why.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // functions that tests share, and why a test is skipped

#[path = "support/world.rs"]
mod world;

use serde_json::Value;
use site_agent::books::chain::digest_of;
use site_agent::cases::CasesError;
use site_agent::exit::{Exit, Exits};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use world::{ALL, FOREST, UNPSL, World, ask, run, table};

const NUMBER: &str = "
name = 'scores'
method = 'regression'
sites = ['north', 'south']
[outcome]
column = 'score'
kind = 'numeric'
[regression]
";

fn first(value: &Value, name: &str) -> f64 {
    value["rules"][0][name]["value"].as_f64().unwrap()
}

/// Without the sentence: what a run and what was saved say of new patients.
fn new(answer: &Value) -> &Value {
    &answer["new"]
}

#[test]
fn classes_are_judged_by_held_out_patients_and_the_answer_comes_first() {
    let world = World::new("class", UNPSL);
    let csv = world.path("held_out.csv");
    let answer = world.json("predict", &["--csv", &csv]);
    let rows = table(&csv);
    assert_eq!(
        rows[0],
        [
            "patient",
            "class",
            "predicted",
            "chance: without the outcome",
            "chance: with the outcome"
        ]
    );
    assert_eq!(rows.len(), 151);
    let right = rows[1..].iter().filter(|row| row[1] == row[2]).count();
    assert_eq!(answer["rules"][0]["right"], right);
    assert!((first(&answer, "accuracy") - right as f64 / 150.0).abs() < 1e-12);
    for row in &rows[1..] {
        let chances: Vec<f64> = row[3..].iter().map(|one| one.parse().unwrap()).collect();
        assert!((chances[0] + chances[1] - 1.0).abs() < 1e-9);
        assert_eq!(row[2] == "with the outcome", chances[1] > 0.5);
    }
    // Concordance of all pairs of one patient of each class, counted.
    let chance = |class: &str| -> Vec<f64> {
        let own = rows[1..].iter().filter(|row| row[1] == class);
        own.map(|row| row[4].parse().unwrap()).collect()
    };
    let (with, without) = (chance("with the outcome"), chance("without the outcome"));
    let ordered: f64 = with
        .iter()
        .flat_map(|one| without.iter().map(move |other| (one, other)))
        .map(|(one, other)| {
            if one > other {
                1.0
            } else {
                f64::from(u8::from(one == other)) / 2.0
            }
        })
        .sum();
    let pairs = (with.len() * without.len()) as f64;
    assert!((first(&answer, "auc") - ordered / pairs).abs() < 1e-9);
    let text = world.ask("predict", &[]).unwrap();
    assert_eq!(text.lines().next(), answer["sentence"].as_str());
    assert!(
        text.contains("note: the distance was learned from these patients' outcomes"),
        "{text}"
    );
    assert!(
        text.contains("the 5 nearest") && text.contains("majority class"),
        "{text}"
    );
    let plain = world.ask("predict", &["--by", "euclidean"]).unwrap();
    assert!(
        !plain.contains("was learned from these patients' outcomes"),
        "{plain}"
    );
    // Equal seeds give equal figures, other seeds other parts.
    assert_eq!(answer, world.json("predict", &[]));
    assert_ne!(
        answer["rules"],
        world.json("predict", &["--seed", "2"])["rules"]
    );
}

#[test]
fn what_is_saved_predicts_the_same_by_every_comparison_without_run_and_source() {
    let world = World::new("number", NUMBER);
    let file = world.path("model.json");
    let query = world.query(
        "new.csv",
        &[
            "patient",
            "grade",
            "irrelevant_1",
            "second_1",
            "first_2",
            "first_1",
        ],
        &[3, 9, 50],
    );
    for by in [
        "run",
        "regression",
        "anchored",
        "euclidean",
        "manhattan",
        "cosine",
        "mahalanobis",
        "gower",
    ] {
        for learner in ["ridge", "gaussian"] {
            let words = [
                "--by",
                by,
                "--learner",
                learner,
                "--new",
                &query,
                "--save",
                &file,
            ];
            let answer = world.json("predict", &words);
            let saved = ask(&[
                "predict", "--model", &file, "--new", &query, "--id", "patient", "--json",
            ]);
            let saved: Value = serde_json::from_str(&saved.unwrap()).unwrap();
            assert_eq!(new(&answer).as_array().unwrap().len(), 3);
            assert_eq!(new(&answer), new(&saved), "{by} {learner}");
            assert_eq!(answer["prototypes"], saved["prototypes"], "{by}");
            assert!(
                saved["sentence"]
                    .as_str()
                    .unwrap()
                    .starts_with("When this was saved: ")
            );
            assert!(first(&answer, "explained") > 0.4, "{by} {answer}");
            let coverage = answer["coverage"]["value"].as_f64().unwrap();
            assert!(coverage > 0.85, "{by} {learner}: {coverage}");
        }
    }
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn every_kernel_of_a_forest_predicts_or_says_why_not() {
    let world = World::new("survival", FOREST);
    let file = world.path("model.json");
    let folder = world.path("page");
    let query = world.query("new.csv", &ALL, &[3, 9]);
    for kernel in ["proximity", "path", "depth", "kerf"] {
        let words = [
            "--kernel", kernel, "--new", &query, "--save", &file, "--out", &folder,
        ];
        let answer = world.json("predict", &words);
        assert!(first(&answer, "concordance") > 0.55, "{kernel} {answer}");
        assert!(answer["machine"]["duality_gap"].as_f64().unwrap().abs() < 0.05);
        let saved = ask(&["predict", "--model", &file, "--new", &query, "--json"]).unwrap();
        assert_eq!(
            new(&answer),
            new(&serde_json::from_str(&saved).unwrap()),
            "{kernel}"
        );
        let page = fs::read_to_string(Path::new(&folder).join("predict.html")).unwrap();
        assert!(page.contains("Predicted and observed") && page.matches("<svg role").count() == 1);
        assert!(page.contains("New patient") && !page.contains(" at about "));
        // A chance by each time, within its interval, that rises with time.
        for one in new(&answer).as_array().unwrap() {
            let by_time = one["by_time"].as_array().unwrap();
            assert!(!by_time.is_empty(), "{one}");
            let part = |by: &Value, end: &str| by["chance"][end].as_f64().unwrap();
            for by in by_time {
                let [low, value, high] = ["low", "value", "high"].map(|end| part(by, end));
                assert!(
                    0.0 < low && low < value && value < high && high < 1.0,
                    "{by}"
                );
            }
            for pair in by_time.windows(2) {
                assert!(part(&pair[0], "value") <= part(&pair[1], "value"));
            }
        }
    }
    for kernel in ["out-of-bag", "gap"] {
        let error = world.ask("predict", &["--kernel", kernel]).unwrap_err();
        assert!(error.to_string().contains("are no kernels"), "{error}");
        assert_eq!(error.exit(), Exit::Usage);
    }
    let error = world
        .ask("predict", &["--kernel", "path", "--by", "gower"])
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "--kernel is of a forest, and what compares is the Gower distance"
    );
    // A forest whose bags are unknown of this cohort has perhaps seen everybody.
    let all = fs::read_to_string(world.north()).unwrap();
    fs::write(
        world.north(),
        all.lines().take(140).collect::<Vec<_>>().join("\n") + "\n",
    )
    .unwrap();
    let text = world.ask("predict", &[]).unwrap();
    assert!(
        text.contains("the forest may have seen these patients"),
        "{text}"
    );
    assert!(
        text.contains("the run read 150 patients, the source now has 139"),
        "{text}"
    );
}

#[test]
fn chances_are_given_by_the_times_that_are_asked_for_or_refused_with_those_that_can_be() {
    let world = World::new("survival", FOREST);
    let answer = world.json("predict", &["--at", "40,20", "--by", "euclidean"]);
    let thirds = answer["calibration"].as_array().unwrap();
    let times: Vec<f64> = thirds
        .iter()
        .map(|one| one["time"].as_f64().unwrap())
        .collect();
    assert_eq!(times, [20.0, 20.0, 20.0, 40.0, 40.0, 40.0]);
    for one in thirds {
        let predicted = one["predicted"].as_f64().unwrap();
        let [low, high] = ["low", "high"].map(|end| one["observed"][end].as_f64().unwrap());
        // Thirds of 50 patients: far beyond the interval something is wrong.
        assert!((low - 0.1..=high + 0.1).contains(&predicted), "{one}");
    }
    let error = world.ask("predict", &["--at", "100000"]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("found --at 100000 days, wanted a time from"),
        "{error}"
    );
    assert_eq!(error.exit(), Exit::Usage);
    // Nine events, those of the first patients.
    let world = World::new("survival", FOREST);
    let all = fs::read_to_string(world.north()).unwrap();
    let mut events = 0;
    let few: Vec<String> = all
        .lines()
        .map(|line| match line.strip_suffix(",1") {
            Some(start) if events == 9 => format!("{start},0"),
            Some(_) => {
                events += 1;
                line.to_owned()
            }
            None => line.to_owned(),
        })
        .collect();
    fs::write(world.north(), few.join("\n") + "\n").unwrap();
    let text = world.ask("predict", &["--by", "euclidean"]).unwrap();
    assert!(
        text.contains("no chance is given: it needs 10 events"),
        "{text}"
    );
    let world = World::new("class", UNPSL);
    let error = world.ask("predict", &["--at", "20"]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("--at is a time of a survival outcome"),
        "{error}"
    );
}

#[test]
fn a_file_of_another_version_a_changed_one_and_none_are_refused() {
    let world = World::new("class", UNPSL);
    let file = world.path("model.json");
    let query = world.query("new.csv", &ALL, &[3]);
    world.ask("predict", &["--save", &file]).unwrap();
    let whole = fs::read_to_string(&file).unwrap();
    let open = |text: &str| {
        fs::write(&file, text).unwrap();
        let error = ask(&["predict", "--model", &file, "--new", &query]).unwrap_err();
        assert_eq!(error.exit(), Exit::Usage);
        error.to_string()
    };
    let newer = whole.replacen("\"version\":3", "\"version\":4", 1);
    assert!(open(&newer).ends_with("found version 4, wanted 3"));
    let changed = whole.replacen("\"penalty\":", "\"penalty\":1", 1);
    assert!(open(&changed).contains("its digest is not that of what it holds"));
    assert!(open(&whole[..whole.len() / 2]).contains("its digest is not"));
    assert!(open("{}").contains("its first line is not that of a kindred prediction"));
    assert!(open("").contains("its first line is not that of a kindred prediction"));
    // A whole file whose columns are not those of its job.
    let (head, body) = whole.split_once('\n').unwrap();
    let body = body.replace("name = 'first_2'", "name = 'first_3'");
    let digest = |text: &str| digest_of(std::iter::once(text.as_bytes()));
    let old = digest(whole.split_once('\n').unwrap().1);
    assert!(head.contains(&old));
    let head = head.replace(&old, &digest(&body));
    let error = open(&format!("{head}\n{body}"));
    assert!(error.contains("found columns first_1, first_2"), "{error}");
    let missing = world.path("none.json");
    assert!(ask(&["predict", "--model", &missing, "--new", &query]).is_err());
}

#[test]
fn a_new_patient_with_an_unknown_level_or_without_a_column_is_refused() {
    let world = World::new("class", UNPSL);
    let file = world.path("model.json");
    world.ask("predict", &["--save", &file]).unwrap();
    let query = world.path("new.csv");
    for (text, wanted) in [
        (
            "first_1,first_2,second_1,irrelevant_1,grade\n1.5,2,2.2,140,secret\n",
            "line 2",
        ),
        (
            "first_1,first_2,second_1,grade\n1.5,2,2.2,low\n",
            "irrelevant_1",
        ),
        (
            "first_1,first_2,second_1,irrelevant_1,grade\n1.5,2,-2.2,140,low\n",
            "second_1",
        ),
    ] {
        fs::write(&query, text).unwrap();
        let by_run = world.ask("predict", &["--new", &query]).unwrap_err();
        let by_model = ask(&["predict", "--model", &file, "--new", &query]).unwrap_err();
        for error in [by_run, by_model] {
            let text = error.to_string();
            assert!(text.contains(wanted) && !text.contains("secret"), "{text}");
            assert_eq!(error.exit(), Exit::Data, "{text}");
        }
    }
}

/// Writes north anew with some lines changed, and asks.
fn with_lines(
    world: &World,
    all: &str,
    changed: impl Fn(usize, Vec<String>) -> Option<Vec<String>>,
) -> CasesError {
    let lines = all.lines().enumerate().filter_map(|(place, line)| {
        let cells = line.split(',').map(str::to_owned).collect();
        if place == 0 {
            return Some(line.to_owned());
        }
        changed(place, cells).map(|cells| cells.join(","))
    });
    fs::write(world.north(), lines.collect::<Vec<_>>().join("\n") + "\n").unwrap();
    world.ask("predict", &["--by", "euclidean"]).unwrap_err()
}

#[test]
fn patients_of_whom_nothing_can_be_learned_say_why() {
    let world = World::new("class", UNPSL);
    let all = fs::read_to_string(world.north()).unwrap();
    let last = |mut cells: Vec<String>, text: &str| {
        *cells.last_mut().unwrap() = text.to_owned();
        cells
    };
    let error = with_lines(&world, &all, |_, cells| Some(last(cells, "positive")));
    assert!(
        error.to_string().contains("same outcome") || error.to_string().contains("class"),
        "{error}"
    );
    assert_eq!(error.exit(), Exit::Data);
    let error = with_lines(&world, &all, |place, cells| (place <= 6).then_some(cells));
    assert_eq!(
        error.to_string(),
        "found 6 patients, wanted at least 10, two for each part that they are divided into"
    );
    assert_eq!(error.exit(), Exit::Data);
    // Everybody has the values of the first: no width, no kernel.
    let same: Vec<String> = all
        .lines()
        .nth(2)
        .unwrap()
        .split(',')
        .map(str::to_owned)
        .collect();
    let error = with_lines(&world, &all, |_, cells| {
        let mut alike = same.clone();
        alike[0] = cells[0].clone();
        *alike.last_mut().unwrap() = cells.last().unwrap().clone();
        Some(alike)
    });
    assert_eq!(
        error.to_string(),
        "nothing can be predicted: all patients are equal by this distance, so it cannot predict"
    );
    assert_eq!(error.exit(), Exit::Data);
    fs::write(world.north(), &all).unwrap();
    let error = world.ask("predict", &["--learner", "ridge"]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "--learner ridge predicts numbers, and the outcome class is of another kind"
    );
    assert_eq!(error.exit(), Exit::Usage);
    let error = world.ask("predict", &["-k", "121"]).unwrap_err();
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

    let world = World::new("survival", FOREST);
    let all = fs::read_to_string(world.north()).unwrap();
    let error = with_lines(&world, &all, |_, cells| Some(last(cells, "0")));
    assert!(
        error.to_string().contains("found no patient with an event"),
        "{error}"
    );
    assert_eq!(error.exit(), Exit::Data);
    let error = with_lines(&world, &all, |place, mut cells| {
        if place == 3 {
            let time = cells.len() - 2;
            cells[time] = "-4".to_owned();
        }
        Some(cells)
    });
    assert!(
        error.to_string().contains("line 4") && !error.to_string().contains("-4"),
        "{error}"
    );
    assert_eq!(error.exit(), Exit::Data);
}

#[test]
fn a_number_and_its_interval_are_those_of_scikit_learn() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let file = |name: &str| {
        workspace
            .join("tests/reference/predict")
            .join(name)
            .display()
            .to_string()
    };
    let folder = tempfile::tempdir().unwrap();
    let feature = |name: &str| format!("[[features]]\nname = '{name}'\nkind = 'numeric'\n");
    let features: String = ["a", "b", "c", "d"].map(feature).concat();
    let job = folder.path().join("job.toml").display().to_string();
    fs::write(&job, format!("{NUMBER}{features}")).unwrap();
    let run = run(&folder, &job, &file("patients.csv"), "patient");
    let (patients, query) = (file("patients.csv"), file("new.csv"));
    let answer = ask(&[
        "predict",
        &run,
        "--data",
        &patients,
        "--id",
        "patient",
        "--by",
        "euclidean",
        "--new",
        &query,
        "--json",
    ]);
    let answer: Value = serde_json::from_str(&answer.unwrap()).unwrap();
    let expected: Value =
        serde_json::from_str(&fs::read_to_string(file("expected.json")).unwrap()).unwrap();
    let near = |found: &Value, wanted: &Value| {
        let (found, wanted) = (found.as_f64().unwrap(), wanted.as_f64().unwrap());
        assert!(
            (found - wanted).abs() < 1e-5 * wanted.abs(),
            "{found} {wanted}"
        );
    };
    near(&answer["machine"]["sigma"], &expected["sigma"]);
    near(&answer["machine"]["penalty"], &expected["penalty"]);
    for (place, one) in new(&answer).as_array().unwrap().iter().enumerate() {
        near(&one["value"], &expected["predicted"][place]);
        near(&one["low"], &expected["low"][place]);
        near(&one["high"], &expected["high"][place]);
    }
}

fn real(file: &str) -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let named = std::env::var_os("KINDRED_DATA").map(PathBuf::from);
    let path = named
        .unwrap_or_else(|| workspace.join("../shared/data"))
        .join(file);
    if path.exists() {
        return Some(path);
    }
    println!(
        "skipped: found no {}; set KINDRED_DATA to the folder of the data",
        path.display()
    );
    None
}

fn job(outcome: &str, method: &str, features: &[(&str, &str)]) -> String {
    let feature = |(name, levels): &(&str, &str)| match *levels {
        "" => format!("[[features]]\nname = '{name}'\nkind = 'numeric'\n"),
        levels => {
            format!("[[features]]\nname = '{name}'\nkind = 'categorical'\nlevels = [{levels}]\n")
        }
    };
    let features: String = features.iter().map(feature).collect();
    let (name, section) = method.split_once('\n').unwrap();
    format!(
        "name = 'real'\nmethod = '{name}'\nsites = ['north', 'south']\n[outcome]\n{outcome}\n{section}\n{features}"
    )
}

/// The figure of what was learned, and of the nearest.
fn judged(path: &Path, job: &str, words: &[&str], figure: &str) -> (f64, f64) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("job.toml").display().to_string();
    fs::write(&file, job).unwrap();
    let data = path.display().to_string();
    let run = run(&folder, &file, &data, "");
    let all = [&["predict", &run, "--data", &data, "--json"], words].concat();
    let answer: Value = serde_json::from_str(&ask(&all).unwrap()).unwrap();
    println!("{}: {}", path.display(), answer["sentence"]);
    let of = |rule: usize| answer["rules"][rule][figure]["value"].as_f64().unwrap();
    (of(0), of(1))
}

#[test]
fn real_patients_are_predicted_as_well_as_by_their_nearest_and_better_than_by_nothing() {
    let features = [
        ("age", ""),
        ("thalach", ""),
        ("oldpeak", ""),
        ("sex", "'0', '1'"),
        ("cp", "'1', '2', '3', '4'"),
        ("exang", "'0', '1'"),
    ];
    let outcome =
        "column = 'num'\nkind = 'binary'\npositive = ['1', '2', '3', '4']\nnegative = ['0']";
    for site in ["cleveland", "hungarian", "switzerland", "va"] {
        let Some(path) = real(&format!("heart_disease/{site}.csv")) else {
            return;
        };
        let job = job(outcome, "regression\n[regression]", &features);
        for by in ["euclidean", "gower"] {
            let (own, near) = judged(&path, &job, &["--by", by], "accuracy");
            assert!(own > near - 0.03, "{site} {by}: {own} {near}");
        }
    }
    let features = [
        ("age", ""),
        ("tsize", ""),
        ("pnodes", ""),
        ("progrec", ""),
        ("estrec", ""),
        ("tgrade", "'I', 'II', 'III'"),
    ];
    let outcome = "column = 'time'\nkind = 'survival'\nevent = 'cens'\nevent_values = ['1']";
    let Some(path) = real("gbsg2.csv") else {
        return;
    };
    let survival = job(
        outcome,
        "forest\n[forest]\ntrees = 100\nscope = 'local'",
        &features,
    );
    for words in [
        &["--by", "euclidean"][..],
        &["--by", "run"],
        &["--kernel", "path"],
    ] {
        let (own, _) = judged(&path, &survival, words, "concordance");
        assert!(own > 0.62, "{own}");
    }
    let Some(path) = real("california_housing.csv.gz") else {
        return;
    };
    let mut text = String::new();
    let read = fs::File::open(path).unwrap();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(read), &mut text).unwrap();
    let few: Vec<&str> = text
        .lines()
        .enumerate()
        .filter(|(place, _)| place % 25 == 0)
        .map(|(_, line)| line)
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let subset = folder.path().join("housing.csv");
    fs::write(&subset, few.join("\n") + "\n").unwrap();
    let features = [
        "longitude",
        "latitude",
        "housing_median_age",
        "total_rooms",
        "population",
        "households",
        "median_income",
    ];
    let features = features.map(|name| (name, ""));
    let job = job(
        "column = 'median_house_value'\nkind = 'numeric'",
        "regression\n[regression]",
        &features,
    );
    let (own, near) = judged(&subset, &job, &["--by", "euclidean"], "explained");
    assert!(own > near && own > 0.6, "{own} {near}");
}
