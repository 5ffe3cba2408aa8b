//! Promise: `similar` and `match` find by what a run left at the site, say what is wrong, and leave the patients here.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // functions that tests share, and why a test is skipped

#[path = "support/world.rs"]
mod world;

use serde_json::Value;
use site_agent::cases::CasesError;
use site_agent::cli::Command;
use site_agent::exit::{Exit, Exits};
use site_agent::run::local;
use std::fs;
use std::path::{Path, PathBuf};
use world::{ALL, FOREST, UNPSL, World, ask, command, table};

fn cases_of(answer: &Value, query: usize) -> Vec<(String, f64)> {
    let cases = answer["queries"][query]["cases"].as_array().unwrap().iter();
    cases
        .map(|case| {
            let patient = case["patient"].as_str().unwrap().to_owned();
            (patient, case["distance"].as_f64().unwrap())
        })
        .collect()
}

#[test]
fn the_cases_of_a_metric_are_the_neighbours_that_the_run_wrote() {
    let world = World::new("class", UNPSL);
    let written = table(&world.path("run/patients/neighbours.csv"));
    for id in ["north-0001", "north-0077", "north-0150"] {
        let found = cases_of(&world.json("similar", &["--patient", id, "-k", "6"]), 0);
        let wanted: Vec<&Vec<String>> = written.iter().filter(|row| row[0] == id).collect();
        assert_eq!(found.len(), 6);
        assert_eq!(wanted.len(), 6);
        for ((patient, distance), row) in found.iter().zip(wanted) {
            assert_eq!(*patient, row[2]);
            let squared: f64 = row[3].parse().unwrap();
            assert!(
                (distance * distance - squared).abs() < 1e-9,
                "{distance} {squared}"
            );
        }
    }
}

#[test]
fn a_new_patient_has_the_cases_of_whom_it_equals_whatever_compares() {
    let world = World::new("class", UNPSL);
    // No identifier, no outcome, and the columns in another order.
    let new = world.query("new.csv", &ALL, &[9]);
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
        let answer = world.json("similar", &["--new", &new, "-k", "5", "--by", by]);
        let found = cases_of(&answer, 0);
        // The patient itself is in the cohort, and nobody knows that it is the same.
        assert_eq!(found[0].0, "north-0009", "{by}");
        assert!(found[0].1.abs() < 1e-6, "{by}");
        let own = cases_of(
            &world.json(
                "similar",
                &["--patient", "north-0009", "-k", "4", "--by", by],
            ),
            0,
        );
        assert_eq!(
            found[1..].iter().map(|one| &one.0).collect::<Vec<_>>(),
            own.iter().map(|one| &one.0).collect::<Vec<_>>()
        );
    }
    // With its identifier it is known, and left out.
    let known = world.query("known.csv", &[&["patient"], &ALL[..]].concat(), &[9, 30]);
    let answer = world.json("similar", &["--new", &known, "-k", "4"]);
    assert_eq!(answer["queries"][1]["patient"], "north-0030");
    let own = world.json("similar", &["--patient", "north-0009", "-k", "4"]);
    for (found, wanted) in cases_of(&answer, 0).iter().zip(&cases_of(&own, 0)) {
        assert_eq!(found.0, wanted.0);
        assert!((found.1 - wanted.1).abs() < 1e-12);
    }
}

#[test]
fn the_page_compares_a_patient_with_the_similar_and_says_first_if_nobody_is() {
    let world = World::new("class", UNPSL);
    let (folder, csv) = (world.path("similar"), world.path("cases.csv"));
    let files = ["--out", &folder, "--csv", &csv];
    let page = |query: &[&str]| {
        let words = [query, &["-k", "3"], &files].concat();
        world.ask("similar", &words).unwrap();
        fs::read_to_string(format!("{folder}/similar.html")).unwrap()
    };
    let known = page(&["--patient", "north-0003"]);
    assert!(!known.contains("Nobody here is similar"), "{known}");
    let lines = table(&csv);
    let place = lines[0].iter().position(|name| name == "first_1").unwrap();
    let mut values: Vec<&String> = lines[1..].iter().map(|line| &line[place]).collect();
    values.sort_by(|a, b| {
        let number = |text: &str| text.parse::<f64>().unwrap();
        number(a).total_cmp(&number(b))
    });
    let cell = format!("<td data-label=\"similar\">{} (", values[1]);
    assert!(known.contains(&cell), "{cell}: {known}");
    for words in ["Their outcomes", "The similar, one by one", "north-0003"] {
        assert!(known.contains(words), "{words}: {known}");
    }
    assert!(lines[1..].iter().all(|line| known.contains(&line[2])));
    // A class has no survival.
    assert!(!known.contains("number at risk"));
    let file = world.query("odd.csv", &ALL, &[2]);
    let text = fs::read_to_string(&file).unwrap();
    let last = text.lines().nth(1).unwrap().rsplit(',').next().unwrap();
    fs::write(&file, text.replace(last, "900")).unwrap();
    let odd = page(&["--new", &file, "--by", "euclidean"]);
    let lead = odd.split("class=\"lead\">").nth(1).unwrap();
    assert!(lead.starts_with("Nobody here is similar"), "{lead}");
}

#[test]
fn every_case_says_what_made_it_near_and_the_parts_add_up() {
    let world = World::new("class", UNPSL);
    let answer = world.json("similar", &["--patient", "north-0003", "-k", "3"]);
    for case in answer["queries"][0]["cases"].as_array().unwrap() {
        let features = case["features"].as_array().unwrap();
        let sum: f64 = features
            .iter()
            .map(|one| one["part"].as_f64().unwrap())
            .sum();
        let distance = case["distance"].as_f64().unwrap();
        assert!((sum - distance * distance).abs() < 1e-9);
        assert_eq!(features.len(), 5);
        // The values are the source's own, not their logarithms.
        let second = features
            .iter()
            .find(|one| one["feature"] == "second_1")
            .unwrap();
        let rows = world.rows();
        let place = rows[0].iter().position(|name| name == "second_1").unwrap();
        let query: f64 = second["query"].as_str().unwrap().parse().unwrap();
        let wanted: f64 = rows[3][place].parse().unwrap();
        assert!((query - wanted).abs() < 1e-4 * wanted.abs());
    }
    let text = world
        .ask("similar", &["--patient", "north-0003", "-k", "3"])
        .unwrap();
    for words in [
        "class: ",
        "The whole cohort: ",
        "How unusual: farther from its 3 nearest",
        "first_1 ",
    ] {
        assert!(text.contains(words), "{text}");
    }
    let odd = world.query("odd.csv", &ALL, &[2]);
    let far = fs::read_to_string(&odd).unwrap();
    let first = far
        .lines()
        .nth(1)
        .unwrap()
        .rsplit(',')
        .next()
        .unwrap()
        .to_owned();
    fs::write(&odd, far.replace(&first, "900")).unwrap();
    let text = world
        .ask("similar", &["--new", &odd, "-k", "3", "--by", "euclidean"])
        .unwrap();
    assert!(
        text.contains(
            "than 100 % of 150 patients of the cohort from theirs: nobody here is similar"
        ),
        "{text}"
    );
}

#[test]
fn a_missing_value_is_said_and_an_unknown_level_is_refused_by_its_line() {
    let world = World::new("class", UNPSL);
    let new = world.path("new.csv");
    fs::write(
        &new,
        "first_1,first_2,second_1,irrelevant_1,grade\n1.5,,2.2,140,low\n",
    )
    .unwrap();
    for by in ["run", "regression", "anchored", "gower"] {
        let words = ["--new", &new, "-k", "3", "--by", by];
        assert!(
            world
                .ask("similar", &words)
                .unwrap()
                .contains("Missing in the query: Second;")
        );
        assert_eq!(
            world.json("similar", &words)["queries"][0]["missing"][0],
            "Second"
        );
    }
    fs::write(
        &new,
        "first_1,first_2,second_1,irrelevant_1,grade\n1.5,2,2.2,140,secret\n",
    )
    .unwrap();
    let error = world.ask("similar", &["--new", &new]).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("line 2") && text.contains("grade"), "{text}");
    assert!(!text.contains("secret"), "{text}");
    assert_eq!(error.exit(), Exit::Data);
    fs::write(&new, "first_1,first_2,second_1,grade\n1.5,2,2.2,low\n").unwrap();
    let text = world
        .ask("similar", &["--new", &new])
        .unwrap_err()
        .to_string();
    assert!(text.contains("irrelevant_1"), "{text}");
    fs::write(
        &new,
        "first_1,first_2,second_1,irrelevant_1,grade\n1.5,2,-3,140,low\n",
    )
    .unwrap();
    let error = world.ask("similar", &["--new", &new]).unwrap_err();
    assert_eq!(error.exit(), Exit::Data, "{error}");
    fs::write(&new, "first_1,first_2,second_1,irrelevant_1,grade\n").unwrap();
    assert!(
        world
            .ask("similar", &["--new", &new])
            .unwrap_err()
            .to_string()
            .contains("no patient")
    );
}

#[test]
fn what_cannot_be_asked_says_why() {
    let world = World::new("class", UNPSL);
    let refused = |words: &[&str]| world.ask("similar", words).unwrap_err();
    let error = refused(&["--patient", "nobody"]);
    assert!(
        error
            .to_string()
            .contains("150 patients, named by the source's column"),
        "{error}"
    );
    assert_eq!(error.exit(), Exit::Usage);
    for k in ["0", "150", "1000"] {
        let error = refused(&["--patient", "north-0001", "-k", k]);
        assert!(error.to_string().contains("wanted 1 to 149"), "{error}");
    }
    assert!(
        world
            .ask("similar", &["--patient", "north-0001", "-k", "149"])
            .is_ok()
    );
    let north = world.north();
    let error = ask(&["similar", "nothing", "--data", &north, "--patient", "1"]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("run nothing has left nothing to compare by"),
        "{error}"
    );
    // The identifiers' column is not named: patients are numbered.
    let run = world.path("run");
    let words = ["similar", &run, "--data", &north, "--patient"];
    let error = ask(&[&words[..], &["north-0001"]].concat()).unwrap_err();
    assert!(error.to_string().contains("numbered from 1"), "{error}");
    assert!(ask(&[&words[..], &["150"]].concat()).is_ok());
    let record = world.path("run/patients/comparison.json");
    fs::write(&record, "{}").unwrap();
    let error = refused(&["--patient", "north-0001"]);
    assert!(
        error
            .to_string()
            .contains("comparison.json cannot be used: missing field"),
        "{error}"
    );
}

#[test]
fn a_run_of_another_cohort_is_said_and_one_that_does_not_fit_is_refused() {
    let world = World::new("class", UNPSL);
    let (run, south) = (world.path("run"), world.path("data/south.csv"));
    let words = [
        "similar",
        &run,
        "--data",
        &south,
        "--id",
        "patient",
        "--patient",
        "south-0001",
    ];
    let text = ask(&words).unwrap();
    assert!(text.contains("note: the cohort is not that of the run: the run read 150 patients, the source now has 90"), "{text}");
    assert!(
        !world
            .ask("similar", &["--patient", "north-0001"])
            .unwrap()
            .contains("note:")
    );
    let other = world.query("other.csv", &["patient", "first_1", "class"], &[1, 2, 3]);
    let words = [
        "similar",
        &run,
        "--data",
        &other,
        "--id",
        "patient",
        "--patient",
        "north-0001",
    ];
    let error = ask(&words).unwrap_err();
    assert!(matches!(error, CasesError::Data(_)), "{error}");
    assert!(error.to_string().contains("second_1"), "{error}");
}

#[test]
fn a_column_that_parts_the_classes_is_named_without_a_ridge_and_the_usual_one_helps() {
    let world = World::new("class", UNPSL);
    let rows = world.rows();
    let (class, first) = (rows[0].len() - 1, 1);
    let lines: Vec<String> = rows
        .iter()
        .enumerate()
        .map(|(place, row)| {
            let mut row = row.clone();
            if place > 0 {
                row[first] = (if row[class] == "positive" { "7" } else { "3" }).to_owned();
            }
            row.join(",")
        })
        .collect();
    fs::write(world.north(), lines.join("\n")).unwrap();
    let words = ["--patient", "north-0001", "--by", "regression"];
    let plain = [&words[..], &["--ridge", "0"]].concat();
    let text = world.ask("similar", &plain).unwrap_err().to_string();
    assert!(
        text.contains("first_1 parts the outcomes perfectly"),
        "{text}"
    );
    let text = world.ask("similar", &words).unwrap();
    assert!(text.contains("weighed by"), "{text}");
    assert!(text.contains("was chosen from the data"), "{text}");
}

/// The oracle is the answer's own coefficients and values.
#[test]
fn an_anchored_distance_says_the_predicted_risk_and_its_reasons() {
    let world = World::new("class", UNPSL);
    let words = ["--patient", "north-0009", "--by", "anchored", "-k", "20"];
    let answer = world.json("similar", &words);
    assert_eq!(answer["comparison"], "risk-anchored distance");
    let all = answer["regression"]["coefficients"].as_array().unwrap();
    let coefficient = |column: &str| {
        let found = all.iter().find(|one| one["column"] == column);
        found.map_or(0.0, |one| one["coefficient"].as_f64().unwrap())
    };
    let mut seen = 0;
    for case in answer["queries"][0]["cases"].as_array().unwrap() {
        let features = case["features"].as_array().unwrap();
        let contribution = |feature: &Value, of: &str| -> f64 {
            let (name, value) = (feature["feature"].as_str().unwrap(), feature[of].as_str());
            match value.unwrap().parse::<f64>() {
                // The job takes the logarithm of this one.
                Ok(number) if name == "second_1" => coefficient(name) * number.ln_1p(),
                Ok(number) => coefficient(name) * number,
                Err(_) => coefficient(&format!("{name}={}", value.unwrap())),
            }
        };
        let distance = case["distance"].as_f64().unwrap();
        let parts = features.iter().map(|one| one["part"].as_f64().unwrap());
        assert!((parts.sum::<f64>() - distance).abs() < 1e-9);
        let is_whole = |one: &Value| one["value"] != "missing" && one["query"] != "missing";
        if !features.iter().all(is_whole) {
            continue;
        }
        seen += 1;
        let apart = features
            .iter()
            .map(|one| contribution(one, "value") - contribution(one, "query"));
        let apart: Vec<f64> = apart.collect();
        let risk: f64 = apart.iter().sum();
        let reasons: f64 = apart.iter().map(|one| one.abs()).sum();
        let wanted = risk.abs() + 0.3 * reasons;
        assert!((wanted - distance).abs() < 1e-3, "{wanted}, {distance}");
        assert_eq!(case["risk"]["measure"], "odds_ratio");
        let told = case["risk"]["value"].as_f64().unwrap();
        assert!((told - risk.exp()).abs() < 1e-3 * told);
    }
    assert!(seen > 5);
    let text = world.ask("similar", &words).unwrap();
    for said in ["predicted risk", "times the query's odds", "same reasons"] {
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn a_forest_compares_by_its_proximity_and_survival_is_drawn() {
    let world = World::new("survival", FOREST);
    let (folder, csv) = (world.path("similar"), world.path("cases.csv"));
    let page = format!("{folder}/similar.html");
    let words = [
        "--patient",
        "north-0004",
        "-k",
        "7",
        "--out",
        &folder,
        "--csv",
        &csv,
    ];
    let answer = world.json("similar", &words);
    assert_eq!(answer["comparison"], "forest distance sqrt(1 - proximity)");
    let found = cases_of(&answer, 0);
    assert!(
        found
            .iter()
            .all(|(patient, distance)| patient != "north-0004" && (0.0..=1.0).contains(distance))
    );
    let shown = fs::read_to_string(&page).unwrap();
    for said in [
        "7 nearest to north-0004",
        "number at risk",
        "<polygon",
        "with intervals of 95 % (log-log)",
    ] {
        assert!(shown.contains(said), "{said}");
    }
    assert_eq!(shown.matches("<svg role").count(), 1);
    let lines = table(&csv);
    assert_eq!(lines.len(), 8);
    assert_eq!(
        lines[0][..6],
        [
            "query",
            "rank",
            "patient",
            "distance",
            "time (days)",
            "with the event"
        ]
    );
    let survival = &answer["queries"][0]["fared"]["survival"];
    let events: usize = lines[1..]
        .iter()
        .map(|line| line[5].parse::<usize>().unwrap())
        .sum();
    assert_eq!(survival["events"], events);
    assert_eq!(survival["curve"][0][1], 1.0);
    // Told by at most three times, each with its interval.
    let by_time = survival["by_time"].as_array().unwrap();
    assert!((1..=3).contains(&by_time.len()), "{by_time:?}");
    for one in by_time {
        let [value, low, high] =
            ["value", "low", "high"].map(|end| one["share_with_event"][end].as_f64().unwrap());
        assert!(low <= value && value <= high && low < high, "{one}");
        assert!(one["at_risk"].as_u64().unwrap() <= 7);
    }
    let text = world
        .ask("similar", &["--patient", "north-0004", "-k", "7"])
        .unwrap();
    let line = text.lines().find(|line| line.contains("while followed"));
    let line = line.unwrap();
    assert!(
        line.contains("median") && line.matches(" by ").count() <= 4,
        "{line}"
    );
    #[cfg(unix)]
    for file in [&page, &csv] {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o077, 0);
    }
    let regression = world.json(
        "similar",
        &["--patient", "north-0004", "--by", "regression"],
    );
    let regression = &regression["regression"];
    assert_eq!(regression["coefficients"].as_array().unwrap().len(), 6);
    let tests = regression["proportional_hazards"].as_array().unwrap();
    assert_eq!(tests.len(), 6);
    assert_eq!(tests[5]["feature"], Value::Null);
    assert!(regression["concordance"].as_f64().unwrap() > 0.5);
    let plain = world
        .ask("similar", &["--patient", "north-0004", "--by", "euclidean"])
        .unwrap();
    assert!(
        plain.contains("standardised by this cohort's own means"),
        "{plain}"
    );
}

fn matches_of(answer: &Value) -> Vec<Vec<(String, f64)>> {
    let queries = answer["queries"].as_array().unwrap().iter();
    queries
        .map(|query| {
            let matches = query["matches"].as_array().unwrap().iter();
            matches
                .map(|one| {
                    let patient = one["patient"].as_str().unwrap().to_owned();
                    (patient, one["distance"].as_f64().unwrap())
                })
                .collect()
        })
        .collect()
}

#[test]
fn matches_are_taken_once_never_beyond_the_caliper_and_make_the_groups_alike() {
    let world = World::new("class", UNPSL);
    let ids = world.path("ids.txt");
    let names: Vec<String> = (1..=25)
        .map(|row| format!("north-{:04}", row * 3))
        .collect();
    fs::write(&ids, names.join("\n")).unwrap();
    let ask = |more: &[&str]| {
        let words = [&["--patients", &ids, "-k", "2"], more].concat();
        world.json("match", &words)
    };
    let total = |answer: &Value| -> (usize, f64) {
        let all: Vec<f64> = matches_of(answer)
            .iter()
            .flatten()
            .map(|one| one.1)
            .collect();
        (all.len(), all.iter().sum())
    };
    let optimal = ask(&[]);
    let greedy = ask(&["--choice", "greedy"]);
    let replaced = ask(&["--choice", "with-replacement"]);
    assert_eq!(total(&optimal).0, 50);
    assert!(total(&optimal).1 <= total(&greedy).1 + 1e-12);
    assert!(total(&replaced).1 <= total(&optimal).1 + 1e-12);
    for answer in [&optimal, &greedy] {
        let mut taken: Vec<String> = matches_of(answer)
            .into_iter()
            .flatten()
            .map(|one| one.0)
            .collect();
        taken.sort();
        let before = taken.len();
        taken.dedup();
        assert_eq!(taken.len(), before);
        assert!(taken.iter().all(|patient| !names.contains(patient)));
    }
    let middle = total(&optimal).1 / 50.0;
    let near = ask(&["--caliper", &middle.to_string()]);
    assert!(total(&near).0 < 50);
    assert!(
        matches_of(&near)
            .iter()
            .flatten()
            .all(|one| one.1 <= middle)
    );
    let (folder, csv) = (world.path("matched"), world.path("matches.csv"));
    let figure = format!("{folder}/love.svg");
    let text = world
        .ask(
            "match",
            &[
                "--patients",
                &ids,
                "-k",
                "2",
                "--out",
                &folder,
                "--csv",
                &csv,
            ],
        )
        .unwrap();
    assert!(
        text.contains("25 queries have 50 matches") && text.contains("class of the matches: "),
        "{text}"
    );
    assert_eq!(table(&csv).len(), 51);
    assert!(
        fs::read_to_string(&figure)
            .unwrap()
            .contains("grade: middle")
    );
    let page = fs::read_to_string(format!("{folder}/match.html")).unwrap();
    let lead = page.split("class=\"lead\">").nth(1).unwrap();
    assert!(lead.starts_with("The groups are "), "{lead}");
    assert!(page.contains("25 queries have 50 matches") && page.contains("Who matches"));
    // By the distance of one feature alone that feature comes into balance.
    let gower = ask(&["--by", "euclidean"]);
    let mean = |answer: &Value, when: &str| -> f64 {
        let rows = answer["balance"].as_array().unwrap();
        let sizes = rows
            .iter()
            .map(|row| row[when]["standardised_difference"].as_f64().unwrap().abs());
        sizes.sum::<f64>() / rows.len() as f64
    };
    assert!(mean(&gower, "after") < mean(&gower, "before"));
}

#[test]
fn queries_to_match_that_cannot_be_used_say_why() {
    let world = World::new("class", UNPSL);
    let ids = world.path("ids.txt");
    let refused = |text: &str, k: &str| {
        fs::write(&ids, text).unwrap();
        let error = world
            .ask("match", &["--patients", &ids, "-k", k])
            .unwrap_err();
        assert_eq!(error.exit(), Exit::Usage);
        error.to_string()
    };
    assert!(refused("", "1").contains("names no patient"));
    assert!(refused("north-0001\nnorth-0001\n", "1").contains("names a patient again in line 2"));
    let all = refused("patient\nnorth-0001\nstranger\nnorth-0001\n", "1");
    for wanted in [
        "names nobody in lines 1, 3;",
        "again in line 4",
        "of 150 patients a line",
    ] {
        assert!(all.contains(wanted), "{all}");
    }
    assert!(!all.contains("stranger"), "{all}");
    assert!(refused("patient\nnorth-0001\n", "1").contains("a header has no place"));
    assert!(refused("north-0001\nnorth-0002\n", "149").contains("wanted 1 to 148"));
    let absent = world.path("absent.txt");
    let error = world.ask("match", &["--patients", &absent]).unwrap_err();
    assert!(error.to_string().contains("could not be read"), "{error}");
    // New patients are matched too, and need no outcome.
    let new = world.query("new.csv", &ALL, &[4, 5]);
    let answer = world.json("match", &["--new", &new, "-k", "3"]);
    assert_eq!(matches_of(&answer)[0][0].0, "north-0004");
    assert_eq!(answer["candidates"], 150);
}

#[test]
fn the_run_of_a_site_is_found_by_its_name_and_the_sites_dictionary_reads_a_new_patient() {
    let world = World::new("class", UNPSL);
    let config = world.path("site.toml");
    let text = "site = 'north'\ncoordinator = 'coordinator.example:7443'\nfolder = 'results'\n\
         [tls]\nca = 'ca.pem'\ncertificate = 'certificate.pem'\nkey = 'key.pem'\n\
         [source]\nkind = 'csv'\npath = 'data/north.csv'\npatient = 'patient'\n\
         [columns.grade]\nlevels = { low = 'low', middle = 'middle', high = 'high' }\n\
         [columns.second_1]\nrange = [0, 10000]\n[policy]\n";
    fs::write(&config, text).unwrap();
    let runs = PathBuf::from(world.path("results")).join("runs");
    fs::create_dir_all(&runs).unwrap();
    fs::rename(world.path("run/patients"), runs.join("abc")).unwrap();
    let new = world.query("new.csv", &ALL, &[9]);
    let words = [
        "similar", "--config", &config, "abc", "--new", &new, "--json",
    ];
    let answer: Value = serde_json::from_str(&ask(&words).unwrap()).unwrap();
    assert_eq!(cases_of(&answer, 0)[0].0, "north-0009");
    let words = ["similar", "--config", &config, "abd", "--new", &new];
    let error = ask(&words).unwrap_err();
    assert!(
        error.to_string().ends_with("runs of this site are abc"),
        "{error}"
    );
}

/// The four hospitals, where they are on this machine: a metric learned at one compares the patients of another.
#[test]
fn real_hospitals_have_similar_cases() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let named = std::env::var_os("KINDRED_DATA").map(PathBuf::from);
    let data = named
        .unwrap_or_else(|| workspace.join("../shared/data"))
        .join("heart_disease");
    if !data.exists() {
        println!("skipped: found no {}", data.display());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run").display().to_string();
    let job = workspace
        .join("deploy/jobs/heart-disease.toml")
        .display()
        .to_string();
    let file = |name: &str| data.join(format!("{name}.csv")).display().to_string();
    let Command::Local(arguments) =
        command(&["local", &job, "--data", &file("cleveland"), "--out", &out])
    else {
        panic!("another command")
    };
    local::run(&arguments).unwrap();
    for (name, patients) in [
        ("cleveland", 303),
        ("hungarian", 294),
        ("switzerland", 123),
        ("va", 200),
    ] {
        let words = [
            "similar",
            &out,
            "--data",
            &file(name),
            "--patient",
            "5",
            "--json",
        ];
        let answer: Value = serde_json::from_str(&ask(&words).unwrap()).unwrap();
        assert_eq!(answer["patients"], patients);
        assert_eq!(cases_of(&answer, 0).len(), 10);
        assert_eq!(
            answer["remarks"].as_array().unwrap().is_empty(),
            name == "cleveland"
        );
    }
}
