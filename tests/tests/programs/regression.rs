//! Promise: a regression of several sites, each a process of its own that tells masked sums alone, is the one that R fits to all of their
//! patients at once; and the sites compare patients by it afterwards.
//!
//! `../../reference/regression/federated.R` made the numbers of survival times, stratified by hospital, `common.R` beside it those of one
//! baseline for all hospitals, and
//! `shared/similarity/tests/reference/regression/regression.R` the others.

use crate::browser;
use kindred_tests::exit::{REFUSED, RUN, USAGE};
use kindred_tests::programs::{Home, Ran, site_agent};
use kindred_tests::results::{names, result};
use kindred_tests::workspace::{real_data, root};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const SITES: [&str; 3] = ["north", "south", "east"];
pub(crate) const POLICY: &str =
    "operators = ['*']\nmethods = ['*']\nsecond_moments = true\npair_sums = true\n";
pub(crate) const SCORE: &str = "column = \"score\"\nkind = \"numeric\"\n";
pub(crate) const ILL: &str =
    "column = \"ill\"\nkind = \"binary\"\npositive = [\"1\"]\nnegative = [\"0\"]\n";
pub(crate) const DAYS: &str = "column = \"days\"\nkind = \"survival\"\nevent = \"event\"\nevent_values = [\"1\"]\nhorizon = 900\n";

pub(crate) fn reference(path: &str) -> Value {
    serde_json::from_slice(&fs::read(root().join(path)).unwrap()).unwrap()
}

fn of_r() -> Value {
    reference("shared/similarity/tests/reference/regression/regression.json")
}

pub(crate) fn floats(value: &Value) -> Vec<f64> {
    let list = value.as_array().expect("a list");
    list.iter()
        .map(|one| one.as_f64().expect("a number"))
        .collect()
}

/// The rows of a table, dealt out to the sites.
pub(crate) fn deal(home: &Home, table: &Path, site_of: impl Fn(usize) -> usize) {
    let text = fs::read_to_string(table).unwrap();
    let mut lines = text.lines();
    let header = lines.next().unwrap();
    let mut files = SITES.map(|_| format!("patient,{header}\n"));
    for (row, line) in lines.enumerate() {
        let _ = writeln!(files[site_of(row)], "{row},{line}");
    }
    for (site, file) in SITES.iter().zip(files) {
        home.write(&format!("data/{site}.csv"), &file);
    }
    home.write("policy.toml", POLICY);
}

/// Three sites of 120, 80 and 40 patients.
fn patients() -> Home {
    let home = Home::new();
    let table = root().join("shared/similarity/tests/reference/regression/patients.csv");
    deal(&home, &table, |row| match row {
        0..120 => 0,
        120..200 => 1,
        _ => 2,
    });
    home
}

pub(crate) fn number(name: &str) -> String {
    format!("[[features]]\nname = \"{name}\"\nkind = \"numeric\"\n")
}

pub(crate) fn category(name: &str, levels: &str) -> String {
    format!("[[features]]\nname = \"{name}\"\nkind = \"categorical\"\nlevels = [{levels}]\n")
}

/// With exact sums, so that what is found is what R finds.
pub(crate) fn job(outcome: &str, features: &str, settings: &str) -> String {
    format!(
        "name = \"regression\"\nmethod = \"regression\"\nprecision = \"exact\"\nsites = {SITES:?}\n[outcome]\n{outcome}{features}\
         [regression]\n{settings}"
    )
}

fn features() -> String {
    ["age", "marker", "ratio"].map(number).concat()
        + &category("group", "\"mild\", \"severe\", \"odd\"")
        + &category("treated", "\"no\", \"yes\"")
}

pub(crate) fn simulated(home: &Home, job: &str) -> Ran {
    home.write("job.toml", job);
    home.simulate(&["--force"])
}

/// A column of numbers of a file of the results; NaN where a cell is empty.
pub(crate) fn column(home: &Home, file: &str, column: &str) -> Vec<f64> {
    let mut table = csv::Reader::from_path(home.join("out").join(file)).unwrap();
    let place = table
        .headers()
        .unwrap()
        .iter()
        .position(|one| one == column);
    let place = place.unwrap_or_else(|| panic!("{file} has no {column}"));
    let cell =
        |record: csv::Result<csv::StringRecord>| record.unwrap()[place].parse().unwrap_or(f64::NAN);
    table.records().map(cell).collect()
}

#[track_caller]
pub(crate) fn are_close(found: &[f64], wanted: &[f64]) {
    assert_eq!(found.len(), wanted.len());
    for (found, wanted) in found.iter().zip(wanted) {
        let away = (found - wanted).abs() / wanted.abs().max(1e-3);
        assert!(away <= 1e-8, "found {found}, wanted {wanted}: {away:e}");
    }
}

#[test]
fn linear_and_logistic_regression_of_three_sites_are_those_of_r() {
    let (home, wanted) = (patients(), of_r());
    for (outcome, name) in [(SCORE, "linear"), (ILL, "logistic")] {
        simulated(&home, &job(outcome, &features(), "")).must_succeed();
        let wanted = &wanted[name];
        are_close(
            &column(&home, "coefficients.csv", "coefficient"),
            &floats(&wanted["coefficients"]),
        );
        are_close(
            &column(&home, "coefficients.csv", "standard_error"),
            &floats(&wanted["standard_errors"]),
        );
        are_close(
            &column(&home, "coefficients.csv", "low"),
            &floats(&wanted["low"]),
        );
        let told: Value =
            serde_json::from_slice(&fs::read(home.join("out/regression.json")).unwrap()).unwrap();
        let fit = ["log_likelihood", "aic"].map(|key| told[key].as_f64().unwrap());
        are_close(
            &fit,
            &["log_likelihood", "aic"].map(|key| wanted[key].as_f64().unwrap()),
        );
        assert_eq!(
            (&told["patients"], &told["converged"]),
            (&240.into(), &true.into())
        );
    }
}

/// How far coefficients of rounded sums are from those of exact ones, in standard errors, at most; and evaluations of both.
fn moved_by_rounding(home: &Home, exact: &str) -> (f64, [u64; 2]) {
    let own = |job: &str| {
        simulated(home, job).must_succeed();
        let told = fs::read(home.join("out/regression.json")).unwrap();
        let told: Value = serde_json::from_slice(&told).unwrap();
        assert_eq!(told["converged"], true);
        let of = |name: &str| column(home, "coefficients.csv", name);
        (
            of("coefficient"),
            of("standard_error"),
            told["evaluations"].as_u64().unwrap(),
        )
    };
    let (exact_ones, errors, asked) = own(exact);
    let (rounded, rounded_errors, asked_rounded) =
        own(&exact.replace("precision = \"exact\"\n", ""));
    let mut moved = 0.0_f64;
    for place in (0..errors.len()).filter(|place| errors[*place].is_finite()) {
        moved = moved.max((rounded[place] - exact_ones[place]).abs() / errors[place]);
        assert!((rounded_errors[place] / errors[place] - 1.0).abs() < 0.02);
    }
    (moved, [asked, asked_rounded])
}

#[test]
fn rounded_sums_move_no_coefficient_by_a_twentieth_of_its_standard_error() {
    let home = patients();
    let curved = features().replacen(
        "kind = \"numeric\"",
        "kind = \"numeric\"\nrange = [0, 120]\nspline = 4",
        1,
    );
    for (name, outcome, features, settings) in [
        ("logistic", ILL, features(), ""),
        ("Cox", DAYS, features(), ""),
        ("Cox, with a ridge", DAYS, features(), "ridge = 2"),
        ("logistic, with a spline", ILL, curved, ""),
    ] {
        let (moved, asked) = moved_by_rounding(&home, &job(outcome, &features, settings));
        println!("{name}: {moved:.4} standard errors, {asked:?} evaluations");
        assert!(moved < 0.05, "{name}: {moved}");
        assert!(asked[1] <= asked[0] + 1, "{name}: {asked:?}");
    }
}

#[track_caller]
fn is_the_regression_of_r(home: &Home, wanted: &Value) {
    let own = |name: &str| column(home, "coefficients.csv", name);
    are_close(&own("coefficient"), &floats(&wanted["coefficients"]));
    are_close(&own("standard_error"), &floats(&wanted["standard_errors"]));
    let told: Value =
        serde_json::from_slice(&fs::read(home.join("out/regression.json")).unwrap()).unwrap();
    for key in ["log_likelihood", "null_log_likelihood", "aic"] {
        if let Some(wanted) = wanted[key].as_f64() {
            are_close(&[told[key].as_f64().unwrap()], &[wanted]);
        }
    }
    if wanted["proportional"].is_array() {
        are_close(
            &column(home, "proportional_hazards.csv", "chi_squared"),
            &floats(&wanted["proportional"]),
        );
    }
}

#[test]
fn a_cox_regression_of_three_sites_is_that_of_r_stratified_by_site() {
    let (home, wanted) = (
        patients(),
        reference("tests/reference/regression/federated.json"),
    );
    let settings = [
        ("efron", ""),
        ("breslow", "ties = \"breslow\""),
        ("ridge", "ridge = 2"),
    ];
    for (name, settings) in settings {
        simulated(&home, &job(DAYS, &features(), settings)).must_succeed();
        is_the_regression_of_r(&home, &wanted["patients"][name]);
    }
    let wanted = [
        "coefficients.csv",
        "proportional_hazards.csv",
        "regression.json",
    ];
    let left = names(&home.join("out"));
    assert!(
        wanted.iter().all(|name| left.contains(&(*name).to_owned())),
        "{left:?}"
    );
    let page = fs::read_to_string(home.join("out/report.html")).unwrap();
    assert!(page.contains("stratified by hospital"));
    browser::check(&home, &home.join("out/report.html"), "regression");
    assert!(
        result(&home.join("out"))["errors"][0]["value"]
            .as_f64()
            .unwrap()
            < 0.4
    );
}

/// Events until a day on which 20 patients and more are still followed.
pub(crate) fn of_400_days() -> String {
    DAYS.replace("horizon = 900", "horizon = 400")
}

#[test]
fn one_baseline_for_three_sites_is_that_of_r_with_a_hazard_for_each_cell() {
    let wanted = &reference("tests/reference/regression/common.json")["patients"];
    let home = patients();
    let settings = [("", "round_limit = 12"), ("ridge", "ridge = 2")];
    for (name, settings) in settings {
        let settings = format!("baseline = \"common\"\n{settings}");
        simulated(&home, &job(&of_400_days(), &features(), &settings)).must_succeed();
        assert_eq!(result(&home.join("out"))["status"], "converged");
        let wanted = if name.is_empty() {
            wanted
        } else {
            &wanted[name]
        };
        is_the_regression_of_r(&home, wanted);
    }
    // Of 181 events the last four cells have 11, 8, 4 and 5: what is published has 20 or more a step.
    let [from, until, hazards] =
        ["from", "until", "hazard"].map(|name| column(&home, "baseline.csv", name));
    assert_eq!(from, [0.0, 50.0, 100.0, 150.0, 200.0]);
    assert_eq!(until, [50.0, 100.0, 150.0, 200.0, 400.0]);
    assert_eq!(hazards.len(), 5);
    let told = fs::read_to_string(home.join("out/regression.json")).unwrap();
    let page = fs::read_to_string(home.join("out/report.html")).unwrap();
    assert!(told.contains("\"baseline\": \"common\""), "{told}");
    assert!(page.contains("one baseline hazard for all hospitals"));
    assert!(page.contains("approximation of a Cox regression"));
    // Without a ridge the hazards are R's; the last four have the mean of theirs.
    simulated(
        &home,
        &job(&of_400_days(), &features(), "baseline = \"common\""),
    )
    .must_succeed();
    let of_r = floats(&wanted["hazards"]);
    let mut joined = of_r[..4].to_vec();
    joined.push(of_r[4..].iter().sum::<f64>() / 4.0);
    are_close(&column(&home, "baseline.csv", "hazard"), &joined);
    risk_at_the_horizon_is_that_of_r(&home, wanted);
}

/// By R's hazards and coefficients, of a patient of mean numbers, which are those of the table, and first levels.
fn risk_at_the_horizon_is_that_of_r(home: &Home, wanted: &Value) {
    let table = root().join("shared/similarity/tests/reference/regression/patients.csv");
    let text = fs::read_to_string(table).unwrap();
    let mean = |place: usize| {
        let cells = text.lines().skip(1);
        let known = cells.filter_map(|line| line.split(',').nth(place)?.parse::<f64>().ok());
        let known: Vec<f64> = known.collect();
        known.iter().sum::<f64>() / known.len() as f64
    };
    let own = floats(&wanted["coefficients"]);
    let predictor: f64 = (0..3).map(|place| own[place] * mean(place)).sum();
    let hazard: f64 = floats(&wanted["hazards"])
        .iter()
        .map(|one| one * 50.0)
        .sum();
    let told: Value =
        serde_json::from_slice(&fs::read(home.join("out/regression.json")).unwrap()).unwrap();
    assert_eq!(told["risks"][0]["time"], 400.0);
    let risk = told["risks"][0]["risk"].as_f64().unwrap();
    let wanted = 1.0 - (-hazard * predictor.exp()).exp();
    assert!((risk - wanted).abs() < 1e-3, "{risk} {wanted}");
    // Each hospital has the risks of its own patients.
    let own = fs::read_to_string(home.join("out/sites/north/predictions.csv")).unwrap();
    assert!(own.lines().next().unwrap().contains("risk_by_"), "{own}");
    let page = fs::read_to_string(home.join("out/report.html")).unwrap();
    assert!(page.contains("Risk by time"));
}

#[test]
fn features_are_selected_by_one_baseline_as_r_does() {
    let wanted = &reference("tests/reference/regression/common.json")["patients"]["selected"];
    let home = patients();
    let settings = "baseline = \"common\"\nselection = \"aic\"";
    simulated(&home, &job(&of_400_days(), &features(), settings)).must_succeed();
    are_close(
        &column(&home, "coefficients.csv", "coefficient"),
        &floats(&wanted["coefficients"]),
    );
}

#[test]
fn a_cell_in_which_few_are_followed_ends_the_run_before_a_feature_is_summed() {
    let home = patients();
    let few = job(DAYS, &features(), "baseline = \"common\"");
    let wanted = [
        "fewer than 20 patients on average",
        "from time 562.5 to 675",
    ];
    simulated(&home, &few).must_fail(RUN, &wanted);
    let stated = job(
        DAYS,
        &features(),
        "baseline = \"common\"\nties = \"breslow\"",
    );
    simulated(&home, &stated).must_fail(USAGE, &["ties", "baseline = \"hospital\""]);
}

#[test]
fn gbsg2_in_three_hospitals_with_one_baseline_is_that_of_r() {
    let wanted = &reference("tests/reference/regression/common.json")["gbsg2"];
    gbsg2_is(2000, &[("baseline = \"common\"", wanted)]);
}

#[test]
fn gbsg2_in_three_hospitals_is_that_of_r() {
    let wanted = &reference("tests/reference/regression/federated.json")["gbsg2"];
    gbsg2_is(
        2659,
        &[
            ("", &wanted["efron"]),
            ("ties = \"breslow\"", &wanted["breslow"]),
        ],
    );
}

fn gbsg2_is(horizon: u32, fits: &[(&str, &Value)]) {
    let Some(file) = real_data("").map(|data| data.join("gbsg2.csv")) else {
        return;
    };
    let home = Home::new();
    deal(&home, &file, |row| row % 3);
    let outcome = format!(
        "column = \"time\"\nkind = \"survival\"\nevent = \"cens\"\nevent_values = [\"1\"]\nhorizon = {horizon}\n"
    );
    let grade =
        "[[features]]\nname = \"tgrade\"\nkind = \"ordinal\"\nlevels = [\"I\", \"II\", \"III\"]\n";
    let features = category("horTh", "\"no\", \"yes\"")
        + &number("age")
        + &category("menostat", "\"Pre\", \"Post\"")
        + &number("tsize")
        + grade
        + &["pnodes", "progrec", "estrec"].map(number).concat();
    for (settings, wanted) in fits {
        simulated(&home, &job(&outcome, &features, settings)).must_succeed();
        is_the_regression_of_r(&home, wanted);
    }
}

/// A hospital's patients, of whom only so many have an event, or are censored.
fn with_few(home: &Home, site: &str, few: usize, value: &str) {
    let path = home.join("data").join(format!("{site}.csv"));
    let text = fs::read_to_string(&path).unwrap();
    let other = if value == "1" { "0" } else { "1" };
    let with = |(row, line): (usize, &str)| match (row, line.rsplit_once(',')) {
        (1.., Some((rest, _))) => {
            let own = if row <= few { value } else { other };
            format!("{rest},{own}\n")
        }
        _ => format!("{line}\n"),
    };
    let text: String = text.lines().enumerate().map(with).collect();
    fs::write(&path, text).unwrap();
}

#[test]
fn nine_events_are_too_few_and_nine_censored_patients_are_not() {
    let home = patients();
    with_few(&home, "east", 9, "0");
    simulated(&home, &job(DAYS, &features(), "")).must_succeed();
    assert_eq!(result(&home.join("out"))["status"], "converged");
    with_few(&home, "east", 9, "1");
    simulated(&home, &job(DAYS, &features(), "")).must_fail(REFUSED, &["class_patients_min"]);
}

#[test]
fn sites_find_similar_cases_by_the_regression_of_all_of_them() {
    let home = patients();
    simulated(&home, &job(ILL, &features(), "neighbours = 7")).must_succeed();
    let arguments = [
        "similar",
        "--data",
        "data/north.csv",
        "--id",
        "patient",
        "out/sites/north",
        "--patient",
        "3",
        "-k",
        "4",
        "--json",
    ];
    let said = home.run(&site_agent(), &arguments).must_succeed().stdout;
    let told: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert!(said.contains("regression-weighted"), "{said}");
    assert!(told.to_string().contains("marker"), "{told}");
    // Anchored it goes by the same regression, and fits none of its own.
    let anchored = [&arguments[..], &["--by", "anchored"]].concat();
    let said = home.run(&site_agent(), &anchored).must_succeed().stdout;
    assert!(
        said.contains("risk-anchored") && said.contains("odds_ratio"),
        "{said}"
    );
    assert!(!said.contains("\"coefficients\""), "{said}");
}

#[test]
fn a_column_that_parts_the_classes_is_named_and_a_ridge_gives_it_an_end() {
    let home = patients();
    for site in SITES {
        let path = home.join("data").join(format!("{site}.csv"));
        let text = fs::read_to_string(&path).unwrap();
        // The class once more, with some width of its own.
        let with = |(row, line): (usize, &str)| match row {
            0 => format!("{line},telltale\n"),
            _ => {
                let ill: f64 = line.split(',').nth(7).unwrap().parse().unwrap();
                format!("{line},{}\n", ill * 10.0 + (row % 3) as f64)
            }
        };
        fs::write(
            &path,
            text.lines().enumerate().map(with).collect::<String>(),
        )
        .unwrap();
    }
    let features = number("age") + &number("telltale");
    let ran = simulated(&home, &job(ILL, &features, "")).must_succeed();
    let notes = result(&home.join("out"))["notes"].to_string();
    assert!(
        notes.contains("Telltale") || notes.contains("telltale"),
        "{notes}"
    );
    assert!(notes.contains("ridge"), "{notes}{}", ran.stdout);
    let page = fs::read_to_string(home.join("out/report.html")).unwrap();
    assert!(page.contains("has no end"));
    simulated(&home, &job(ILL, &features, "ridge = 40")).must_succeed();
    assert_eq!(result(&home.join("out"))["status"], "converged");
    let told = column(&home, "coefficients.csv", "coefficient");
    assert!(told.iter().all(|one| one.abs() < 100.0), "{told:?}");
}

#[test]
fn what_no_regression_can_do_is_said_before_or_while_it_runs() {
    let home = patients();
    let three =
        "column = \"group\"\nkind = \"categorical\"\nlevels = [\"mild\", \"severe\", \"odd\"]\n";
    let refused = [
        (job(three, &number("age"), ""), "two classes"),
        (
            job(&DAYS.replace("horizon = 900\n", ""), &number("age"), ""),
            "horizon",
        ),
        (
            job(ILL, &number("age"), "ridge = -1\nties = \"exact\""),
            "ridge",
        ),
    ];
    for (job, wanted) in refused {
        simulated(&home, &job).must_fail(USAGE, &[wanted]);
    }
    // Nobody has had an event by then.
    let none = DAYS.replace("horizon = 900", "horizon = 19");
    simulated(&home, &job(&none, &features(), "")).must_fail(REFUSED, &["class_patients_min"]);
    // Nine in all, where the hospitals have no minimum of their own.
    for site in SITES {
        with_few(&home, site, 3, "1");
    }
    home.write("policy.toml", &format!("{POLICY}class_patients_min = 1\n"));
    let few = job(DAYS, &features(), "");
    simulated(&home, &few).must_fail(RUN, &["fewer than 20 patients over all hospitals"]);
}

#[test]
fn one_cohort_alone_is_regressed_by_days() {
    let home = Home::new();
    let table = root().join("shared/similarity/tests/reference/regression/patients.csv");
    deal(&home, &table, |_| 0);
    home.write("job.toml", &job(DAYS, &features(), ""));
    let arguments = [
        "local",
        "job.toml",
        "--data",
        "data/north.csv",
        "--out",
        "out",
    ];
    home.run(&site_agent(), &arguments).must_succeed();
    let wanted = &of_r()["efron"]["fit"];
    are_close(
        &column(&home, "coefficients.csv", "coefficient"),
        &floats(&wanted["coefficients"]),
    );
    are_close(
        &column(&home, "coefficients.csv", "standard_error"),
        &floats(&wanted["standard_errors"]),
    );
}
