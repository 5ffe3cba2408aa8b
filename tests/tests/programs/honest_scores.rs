//! Promise: how well a metric does is heard of all hospitals together, whatever the answer is, and beside what needs no metric.
//!
//! Neighbours are found again here, patient by patient, from the files that stay at the sites.

use kindred_tests::programs::{Home, coordinator, site_agent};
use kindred_tests::results::{npy, result};
use kindred_tests::samples::demo_job;
use ndarray::Array2;
use serde_json::Value;
use std::fs;
use std::path::Path;

const NEIGHBOURS: usize = 5;
/// The default of `cell_min`.
const STEP: u64 = 10;

/// Patients of each class by their votes of the second one, with the wrong ones of each class.
struct Counted {
    votes: Vec<Vec<u64>>,
    wrong: [u64; 2],
}

fn classes(folder: &Path) -> Vec<usize> {
    let table = fs::read_to_string(folder.join("outcome.csv")).unwrap();
    let code = |line: &str| line.split(',').nth(1).unwrap().parse().unwrap();
    table.lines().skip(1).map(code).collect()
}

/// Each patient against all others, by the plain distance of rows.
fn counted(patients: &Array2<f64>, classes: &[usize]) -> Counted {
    let mut found = Counted {
        votes: vec![vec![0; NEIGHBOURS + 1]; 2],
        wrong: [0; 2],
    };
    for (patient, class) in classes.iter().enumerate() {
        let distance = |other: usize| {
            let apart = &patients.row(patient) - &patients.row(other);
            apart.dot(&apart)
        };
        let mut others: Vec<usize> = (0..classes.len())
            .filter(|other| *other != patient)
            .collect();
        others.sort_by(|one, other| distance(*one).total_cmp(&distance(*other)));
        let votes: usize = others[..NEIGHBOURS].iter().map(|row| classes[*row]).sum();
        found.votes[*class][votes] += 1;
        found.wrong[*class] += u64::from(usize::from(2 * votes > NEIGHBOURS) != *class);
    }
    found
}

/// Of a site's folder: by the metric, and by the plain distance.
fn counted_at(folder: &Path, metric: &Array2<f64>) -> [(&'static str, Counted); 2] {
    let (matrix, classes) = (npy(&folder.join("matrix.npy")), classes(folder));
    [
        ("distance", counted(&matrix.dot(metric), &classes)),
        ("euclidean", counted(&matrix, &classes)),
    ]
}

fn of_rule<'r>(entries: &'r Value, rule: &str) -> &'r Value {
    let mut entries = entries.as_array().unwrap().iter();
    let found = entries.find(|one| one["rule"] == rule);
    found.unwrap_or_else(|| panic!("no {rule}"))
}

fn cells(table: &Value) -> Vec<Vec<u64>> {
    serde_json::from_value(table.clone()).unwrap()
}

fn must_simulate(home: &Home, job: &str) {
    home.write("job.toml", job);
    let arguments = ["simulate", "job.toml", "--data", "data", "--out", "out"];
    home.run(&coordinator(), &arguments).must_succeed();
}

#[test]
fn the_errors_of_all_hospitals_are_told_within_a_step_however_few_one_of_them_has() {
    let home = Home::with_patients("north=150,south=110,east=90,west=80");
    must_simulate(&home, &demo_job(&[], ""));
    let out = home.join("out");
    let (result, metric) = (result(&out), npy(&out.join("metric.npy")));
    let (mut few, mut truth) = (0, [0, 0]);
    for site in ["north", "south", "east", "west"] {
        let folder = out.join("sites").join(site);
        let figures = fs::read(folder.join("figures.json")).unwrap();
        let figures: Value = serde_json::from_slice(&figures).unwrap();
        for (place, (rule, own)) in counted_at(&folder, &metric).into_iter().enumerate() {
            // What stays at the site is exact.
            let confusion = cells(&of_rule(&figures["evaluation"], rule)["confusion"]);
            assert_eq!(
                [confusion[0][1], confusion[1][0]],
                own.wrong,
                "{site}, {rule}"
            );
            few += u64::from(own.wrong.iter().any(|wrong| (1..STEP).contains(wrong)));
            truth[place] += own.wrong.iter().sum::<u64>();
        }
    }
    assert!(
        few > 0,
        "no site has a small count of errors, and nothing is tested"
    );
    let patients = 150 + 110 + 90 + 80;
    for (rule, wrong) in ["distance", "euclidean"].into_iter().zip(truth) {
        let pooled = of_rule(&result["evaluation"], rule);
        assert_eq!(
            (&pooled["sites"], &pooled["patients"]),
            (&4.into(), &patients.into())
        );
        let number = |key: &str| pooled[key].as_f64().unwrap();
        let accuracy = 1.0 - wrong as f64 / f64::from(patients);
        println!(
            "{rule}: {} told, {accuracy} in truth, within {}",
            number("accuracy"),
            number("within")
        );
        assert!((number("accuracy") - accuracy).abs() <= number("within"));
        assert!((number("within") - (STEP - 1) as f64 / f64::from(patients)).abs() < 1e-12);
        assert_eq!(pooled["wrong"].as_u64().unwrap() % STEP, 0);
        assert!((0.5..=1.0).contains(&number("auc")) && number("balanced_accuracy") > 0.5);
    }
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    for words in [
        "in sample",
        "by Euclidean distance",
        "majority class",
        "Receiver",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("withheld"));
}

/// By pairs of patients: how often the ill one has more ill neighbours.
fn area(votes: &[Vec<u64>]) -> f64 {
    let mut ordered = 0.0;
    for (low, negatives) in votes[0].iter().enumerate() {
        for (high, positives) in votes[1].iter().enumerate() {
            let win = match high.cmp(&low) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Less => 0.0,
            };
            ordered += win * (negatives * positives) as f64;
        }
    }
    let sum = |class: usize| votes[class].iter().sum::<u64>() as f64;
    ordered / (sum(0) * sum(1))
}

/// Counted from the patients of all sites; counts rounded to tens were off by up to 0.015.
#[test]
fn an_area_is_that_of_the_patients_to_what_it_says_on_five_sets() {
    let mut areas = 0;
    for sizes in [
        "north=150,south=110,east=90,west=80",
        "north=80,south=80,east=80,west=80",
        "north=300,south=60,east=60,west=60",
        "north=200,south=150,east=100,west=70",
        "north=90,south=120,east=70,west=140",
    ] {
        let home = Home::with_patients(sizes);
        must_simulate(&home, &demo_job(&[], ""));
        let out = home.join("out");
        let (result, metric) = (result(&out), npy(&out.join("metric.npy")));
        for (place, rule) in ["distance", "euclidean"].into_iter().enumerate() {
            let mut pooled: [Vec<u64>; 2] = [Vec::new(), Vec::new()];
            for site in ["north", "south", "east", "west"] {
                let folder = out.join("sites").join(site);
                let (_, own) = counted_at(&folder, &metric).into_iter().nth(place).unwrap();
                for (all, own) in pooled.iter_mut().zip(&own.votes) {
                    all.resize(own.len(), 0);
                    all.iter_mut().zip(own).for_each(|(all, own)| *all += own);
                }
            }
            let told = of_rule(&result["evaluation"], rule);
            let number = |key: &str| told[key].as_f64().unwrap();
            let exact = area(&pooled);
            let (auc, within) = (number("auc"), number("auc_within"));
            println!("{sizes}, {rule}: {auc} told, {exact} counted, within {within}");
            assert!((auc - exact).abs() <= within + 1e-12 && within <= 0.02);
            assert!(number("auc_low") < exact && exact < number("auc_high"));
            areas += 1;
        }
    }
    assert_eq!(areas, 10);
}

#[test]
fn where_nothing_leaves_the_counts_are_exact() {
    let home = Home::with_patients("north=120");
    home.write("job.toml", &demo_job(&[], ""));
    let arguments = ["local", "job.toml", "--data", "data/north.csv", "--out"];
    let run = |out: &'static str| {
        let ran = home
            .run(&site_agent(), &[&arguments[..], &[out]].concat())
            .must_succeed();
        assert!(
            ran.stdout.starts_with("converged\nreport: "),
            "{}",
            ran.stdout
        );
        result(&home.join(out))
    };
    let (one, other) = (run("one"), run("other"));
    assert_ne!(one["run"], other["run"]);
    assert_ne!(one["run"], "local");
    let out = home.join("one");
    let metric = npy(&out.join("metric.npy"));
    for (rule, own) in counted_at(&out.join("patients"), &metric) {
        let told = of_rule(&one["evaluation"], rule);
        assert_eq!(told["within"], 0.0);
        let wrong: u64 = own.wrong.iter().sum();
        assert_eq!(
            (&told["patients"], &told["wrong"]),
            (&120.into(), &wrong.into()),
            "{rule}"
        );
        let auc = of_rule(&one["evaluation"], rule)["auc"].as_f64().unwrap();
        assert!((auc - area(&own.votes)).abs() < 1e-12, "{rule}");
    }
}

#[test]
fn a_metric_of_nothing_says_so_and_judges_nobody() {
    let home = Home::with_patients("north=90,south=70,east=60,west=60");
    let job = demo_job(&["lambda_sparsity = 50"], "");
    must_simulate(&home, &job);
    let arguments = [
        "local",
        "job.toml",
        "--data",
        "data/north.csv",
        "--out",
        "alone",
    ];
    home.run(&site_agent(), &arguments).must_succeed();
    for (out, kept) in [("out", "sites/north"), ("alone", "patients")] {
        let out = home.join(out);
        let result = result(&out);
        assert!(
            npy(&out.join("metric.npy"))
                .iter()
                .all(|entry| *entry == 0.0)
        );
        assert!(result["notes"].to_string().contains("The metric is empty"));
        let rules = result["evaluation"].as_array().unwrap().iter();
        let rules: Vec<&Value> = rules.map(|one| &one["rule"]).collect();
        assert_eq!(rules, ["euclidean"]);
        let neighbours = fs::read_to_string(out.join(kept).join("neighbours.csv")).unwrap();
        assert_eq!(neighbours.lines().count(), 1);
        let page = fs::read_to_string(out.join("report.html")).unwrap();
        assert!(page.contains("No feature makes patients similar"));
    }
}
