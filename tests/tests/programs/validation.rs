//! Promise: a metric is judged by patients whom it was learned without, and that costs the metric nothing.
//!
//! The expected figures are scikit-learn's, of metrics that SciPy learns (tests/reference/validation).

use kindred_tests::programs::{Home, coordinator, site_agent};
use kindred_tests::results::{npy, result};
use kindred_tests::samples::demo_job;
use serde_json::Value;
use std::fs;
use std::path::Path;

const JOB: &str = include_str!("../../reference/validation/job.toml");
const EXPECTED: &str = include_str!("../../reference/validation/expected.json");
const SITES: [(&str, &str); 3] = [
    (
        "north",
        include_str!("../../reference/validation/north.csv"),
    ),
    (
        "south",
        include_str!("../../reference/validation/south.csv"),
    ),
    ("east", include_str!("../../reference/validation/east.csv")),
];
const RULES: [&str; 3] = ["distance", "inner_product", "euclidean"];
/// Groups of any size are counted.
const OPEN: &str = "operators = ['*']\nmethods = ['*']\nsecond_moments = true\npair_sums = true\n\
    cell_min = 1\n";
/// Of patients who are classed otherwise where two programs stop a little before the same optimum, at most so many.
const ASTRAY: u64 = 2;

fn home() -> Home {
    let home = Home::new();
    fs::create_dir(home.join("data")).unwrap();
    for (site, patients) in SITES {
        home.write(&format!("data/{site}.csv"), patients);
    }
    home.write("open.toml", OPEN);
    home
}

/// What a simulation of the job leaves in the folder `out`.
fn simulated(home: &Home, job: &str, out: &str, more: &[&str]) -> Value {
    home.write("job.toml", job);
    let arguments = ["simulate", "job.toml", "--data", "data", "--out", out];
    let arguments = [&arguments[..], more].concat();
    home.run(&coordinator(), &arguments).must_succeed();
    result(&home.join(out))
}

fn cells(table: &Value) -> Vec<Vec<u64>> {
    serde_json::from_value(table.clone()).unwrap()
}

fn of_rule<'r>(entries: &'r Value, rule: &str) -> &'r Value {
    let mut entries = entries.as_array().unwrap().iter();
    entries.find(|one| one["rule"] == rule).unwrap()
}

/// Cells in which two tables of the same patients differ, in all.
fn apart(one: &[Vec<u64>], other: &[Vec<u64>]) -> u64 {
    let cells = one.iter().flatten().zip(other.iter().flatten());
    cells.map(|(one, other)| one.abs_diff(*other)).sum()
}

/// The table of a rule over the three sites, of what stays at each of them.
fn summed(home: &Home, out: &str, rule: &str) -> Vec<Vec<u64>> {
    let mut total = vec![vec![0; 2]; 2];
    for (site, _) in SITES {
        let path = home.join(out).join("sites").join(site).join("figures.json");
        let figures: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let own = cells(&of_rule(&figures["validation"], rule)["confusion"]);
        for (total, own) in total.iter_mut().flatten().zip(own.iter().flatten()) {
            *total += own;
        }
    }
    total
}

#[test]
fn held_out_figures_are_those_of_other_programs_on_the_same_folds() {
    let home = home();
    let found = simulated(&home, JOB, "out", &["--policy", "open.toml"]);
    let expected: Value = serde_json::from_str(EXPECTED).unwrap();
    for (site, _) in SITES {
        let text = fs::read_to_string(home.join("out/sites").join(site).join("folds.csv")).unwrap();
        let folds = text
            .lines()
            .skip(1)
            .map(|line| line.split(',').nth(1).unwrap());
        let folds: Vec<u64> = folds.map(|fold| fold.parse().unwrap()).collect();
        let known: Vec<u64> = serde_json::from_value(expected["folds"][site].clone()).unwrap();
        assert_eq!(folds, known, "{site}");
    }
    let validation = &found["validation"];
    assert_eq!(validation["folds"], 5);
    assert_eq!(validation["majority"], expected["majority"]);
    assert_eq!(validation["settings_were_chosen_by_these"], false);
    for rule in RULES {
        let (known, told) = (
            &expected["rules"][rule],
            of_rule(&validation["scores"], rule),
        );
        let confusion = summed(&home, "out", rule);
        let astray = apart(&confusion, &cells(&known["confusion"])) / 2;
        println!(
            "{rule}: {} of {} wrong, {} by the reference; {astray} apart",
            told["wrong"], told["patients"], known["wrong"]
        );
        // The plain distance is learned by nobody.
        let most = if rule == "euclidean" { 0 } else { ASTRAY };
        assert!(astray <= most);
        assert_eq!(told["patients"], expected["patients"]);
        // What is published of the sum is in tens.
        let wrong = confusion[0][1] + confusion[1][0];
        assert!(told["wrong"].as_u64().unwrap().abs_diff(wrong) < 10);
        for measure in ["balanced_accuracy", "auc"] {
            let number = |of: &Value| of[measure].as_f64().unwrap();
            let apart = (number(told) - number(known)).abs();
            assert!(apart < 0.06, "{rule} {measure}: {apart}");
        }
    }
}

#[test]
fn a_validation_leaves_the_metric_and_its_rounds_as_they_are() {
    let home = home();
    let without = format!("{JOB}validation = \"none\"\n");
    let bytes = |out: &str, file: &str| fs::read(home.join(out).join(file)).unwrap();
    let sums = simulated(&home, JOB, "sums", &[]);
    let none = simulated(&home, &without, "none", &[]);
    assert!(none.get("validation").is_none());
    assert_eq!(sums["rounds"], none["rounds"]);
    assert_eq!(bytes("sums", "metric.npy"), bytes("none", "metric.npy"));
    // The folds are learned in the exchanges of the metric and a few more.
    let exchanges = |result: &Value| {
        let messages = result["sites"][0]["messages"].as_array().unwrap().iter();
        let of_kind = |kind: &str| messages.clone().find(|one| one["kind"] == kind).unwrap();
        of_kind("derivatives")["count"].as_u64().unwrap()
    };
    println!(
        "{} exchanges, {} without",
        exchanges(&sums),
        exchanges(&none)
    );
    assert!(exchanges(&sums) <= exchanges(&none) + 4);
    // What stays at the sites adds up to what is published of all, in tens.
    for rule in RULES {
        let total = summed(&home, "sums", rule);
        let told = of_rule(&sums["validation"]["scores"], rule);
        let wrong = total[0][1] + total[1][0];
        assert!(told["wrong"].as_u64().unwrap().abs_diff(wrong) < 10);
    }
    let page = fs::read_to_string(home.join("sums/report.html")).unwrap();
    for words in [
        "How well it does on held-out patients",
        ") on held-out patients, compared with",
        "for everybody has",
    ] {
        assert!(page.contains(words), "{words}");
    }
}

/// Of a list the run takes what it would take without a validation; each fold has its own choice.
#[test]
fn settings_of_a_list_are_chosen_for_each_fold_without_its_patients() {
    let home = home();
    let list = "lambda_sparsity = [0.003, 0.01, 0.1, 0.2]\nneighbours = [3, 9, 25]";
    let job = JOB.replace("lambda_sparsity = 0.01", list);
    let nested = simulated(&home, &job, "nested", &["--policy", "open.toml"]);
    let without = format!("{job}validation = \"none\"\n");
    let none = simulated(&home, &without, "none", &["--policy", "open.toml"]);
    assert_eq!(nested["selection"], none["selection"]);
    let metric = |out: &str| fs::read(home.join(out).join("metric.npy")).unwrap();
    assert_eq!(metric("nested"), metric("none"));
    let validation = &nested["validation"];
    assert_eq!(validation["folds"], 5);
    assert_eq!(validation["settings_were_chosen_by_these"], false);
    for rule in RULES {
        let told = of_rule(&validation["scores"], rule);
        assert_eq!(told["patients"], 223);
        assert_eq!(told["neighbours"], 0, "as many for all");
        println!("{rule}: AUC {}", told["auc"]);
    }
    let page = fs::read_to_string(home.join("nested/report.html")).unwrap();
    assert!(page.contains("chosen by the other folds alone (nested cross-validation)"));
    assert!(!page.contains("so these figures are slightly optimistic"));
}

#[test]
fn plain_admm_and_local_runs_are_validated_as_well() {
    let home = home();
    let expected: Value = serde_json::from_str(EXPECTED).unwrap();
    let admm = format!("{JOB}consensus = \"admm\"\ntolerance_relative = 1e-4\nround_limit = 60\n");
    simulated(&home, &admm, "sums", &["--policy", "open.toml"]);
    let found = summed(&home, "sums", "distance");
    let known = expected["rules"]["distance"]["wrong"].as_u64().unwrap();
    assert!((found[0][1] + found[1][0]).abs_diff(known) <= ASTRAY);
    home.write("job.toml", JOB);
    let arguments = [
        "local",
        "job.toml",
        "--data",
        "data/north.csv",
        "--out",
        "alone",
    ];
    home.run(&site_agent(), &arguments).must_succeed();
    let found = result(&home.join("alone"));
    assert_eq!(found["validation"]["folds"], 5);
    let told = of_rule(&found["validation"]["scores"], "distance");
    assert_eq!(told["patients"], 90);
    assert!(told["accuracy"].as_f64().unwrap() > found["validation"]["majority"].as_f64().unwrap());
}

/// What the job does not insist on never ends a run, and is never left out in silence.
#[test]
fn a_site_that_cannot_be_parted_leaves_the_run_as_it_was_and_the_report_says_so() {
    let home = Home::with_patients("north=150,south=110,east=40");
    let job = demo_job(&[], "").replace("\"east\", \"west\"", "\"east\"");
    let run = |out: &str, keys: &str| simulated(&home, &format!("{job}{keys}"), out, &[]);
    let (usual, none) = (run("usual", ""), run("none", "validation = \"none\"\n"));
    assert_eq!(usual["status"], "converged");
    assert!(usual.get("validation").is_none());
    assert!(usual["notes"].to_string().contains(
        "Figures are in sample alone: fewer than three sites, and not all, have enough patients"
    ));
    assert!(!none["notes"].to_string().contains("in sample alone"));
    let bytes = |out: &str| fs::read(home.join(out).join("metric.npy")).unwrap();
    assert_eq!(bytes("usual"), bytes("none"));
    assert!(npy(&Path::new(&home.join("none")).join("metric.npy")).len() > 8);
    // Who insists hears the rule.
    home.write("job.toml", &format!("{job}validation = 5\n"));
    let arguments = ["simulate", "job.toml", "--data", "data", "--out", "insists"];
    let ran = home.run(&coordinator(), &arguments);
    ran.must_fail(
        4,
        &["one of 5 folds of the cohort has fewer than 10 patients"],
    );
}
