//! Promise: splines and backward selection of several sites' patients, of whom each tells masked sums alone, are what R finds
//! of all of them at once; however they are dealt out, and by `local` as by the federation.
//!
//! `../../reference/regression/splines.R` made the numbers.

use super::regression::{
    DAYS, ILL, SCORE, are_close, category, column, deal, floats, job, number, of_400_days,
    reference, simulated,
};
use crate::browser;
use kindred_tests::exit::{RUN, USAGE};
use kindred_tests::programs::{Home, site_agent};
use kindred_tests::results::result;
use kindred_tests::workspace::root;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;

/// The patients with every value: in R's numbers some values are blank, and whoever has one is left out.
fn patients(site_of: impl Fn(usize) -> usize) -> Home {
    let home = Home::new();
    let table = root().join("shared/similarity/tests/reference/regression/patients.csv");
    let text = fs::read_to_string(table).unwrap();
    let is_blank = |row: usize| row % 13 == 5 || row % 17 == 4;
    let rows = text.lines().enumerate();
    let whole = rows.filter(|(line, _)| *line == 0 || !is_blank(line - 1));
    let (kept, lines): (Vec<usize>, Vec<&str>) = whole.unzip();
    home.write("whole.csv", &(lines.join("\n") + "\n"));
    deal(&home, &home.join("whole.csv"), |row| {
        site_of(kept[row + 1] - 1)
    });
    // R's knots are quantiles of every patient: without groups of ten the sites count as finely.
    let policy = fs::read_to_string(home.join("policy.toml")).unwrap();
    home.write("policy.toml", &(policy + "cell_min = 1\n"));
    home
}

/// Three sites of 120, 80 and 40 patients.
fn usual(row: usize) -> usize {
    match row {
        0..120 => 0,
        120..200 => 1,
        _ => 2,
    }
}

fn features() -> String {
    without_treatment() + &category("treated", "\"no\", \"yes\"")
}

/// So few that all fits of a search by Akaike's criterion together have coefficients for less than a third of the patients.
fn without_treatment() -> String {
    let number = |name: &str, rest: &str| {
        format!("[[features]]\nname = \"{name}\"\nkind = \"numeric\"\n{rest}")
    };
    number("age", "range = [20, 110]\nspline = 3\n")
        + &number(
            "marker",
            "range = [0, 10000]\ntransform = \"log\"\nspline = 2\n",
        )
        + &number("ratio", "")
        + &category("group", "\"mild\", \"severe\", \"odd\"")
}

fn of_r() -> Value {
    reference("tests/reference/regression/splines.json")
}

/// Lines of numbers.
fn lines(file: &str) -> Vec<Vec<f64>> {
    let text = fs::read_to_string(root().join("tests/reference/regression").join(file)).unwrap();
    let numbers = |line: &str| line.split(',').map(|one| one.parse().unwrap()).collect();
    text.lines().map(numbers).collect()
}

fn told(home: &Home) -> Value {
    serde_json::from_slice(&fs::read(home.join("out/regression.json")).unwrap()).unwrap()
}

#[track_caller]
fn is_that_of_r(home: &Home, wanted: &Value) {
    let own = |name: &str| column(home, "coefficients.csv", name);
    are_close(&own("coefficient"), &floats(&wanted["coefficients"]));
    are_close(&own("standard_error"), &floats(&wanted["standard_errors"]));
    let told = told(home);
    let fit = ["log_likelihood", "aic"].map(|key| told[key].as_f64().unwrap());
    are_close(
        &fit,
        &["log_likelihood", "aic"].map(|key| wanted[key].as_f64().unwrap()),
    );
    assert_eq!(told["patients"], of_r()["patients"]);
}

fn removed(home: &Home) -> Vec<String> {
    let told = told(home);
    let removed = told["selection"]["removed"].as_array().unwrap();
    let named = removed.iter().map(|one| one["feature"].as_str().unwrap());
    named.map(str::to_owned).collect()
}

#[track_caller]
fn left_as_in_r(home: &Home, wanted: &Value) {
    let named = wanted["removed"].as_array().cloned();
    let named = named.unwrap_or_else(|| vec![wanted["removed"].clone()]);
    let named: Vec<&str> = named.iter().filter_map(Value::as_str).collect();
    assert_eq!(removed(home), named);
    is_that_of_r(home, wanted);
    assert_eq!(told(home)["selection"]["complete"], true);
}

#[test]
fn splines_of_patients_without_a_missing_value_are_those_of_r() {
    let (home, wanted) = (patients(usual), of_r());
    let fits = [
        (SCORE, "", "linear"),
        (ILL, "", "logistic"),
        (DAYS, "", "cox"),
        (&of_400_days(), "baseline = \"common\"", "common"),
    ];
    for (outcome, settings, name) in fits {
        simulated(&home, &job(outcome, &features(), settings)).must_succeed();
        is_that_of_r(&home, &wanted[name]);
        let splines = told(&home)["splines"].clone();
        for (spline, knots) in splines.as_array().unwrap().iter().zip(lines("knots.csv")) {
            are_close(&floats(&spline["knots"]), &knots);
        }
    }
    let page = fs::read_to_string(home.join("out/report.html")).unwrap();
    assert!(page.contains("Along age") && page.contains("ln(1 + marker)"));
    browser::check(&home, &home.join("out/report.html"), "splines");
}

#[test]
fn knots_are_quantiles_of_all_patients_within_ten_of_them_and_nobodys_value() {
    let text = fs::read_to_string(
        root().join("shared/similarity/tests/reference/regression/patients.csv"),
    )
    .unwrap();
    let kept = text.lines().skip(1).enumerate();
    let kept = kept.filter(|(row, _)| row % 13 != 5 && row % 17 != 4);
    let rows: Vec<Vec<&str>> = kept.map(|(_, line)| line.split(',').collect()).collect();
    let knots = lines("knots.csv");
    let places: [&[f64]; 2] = [&[0.05, 0.35, 0.65, 0.95], &[0.1, 0.5, 0.9]];
    for feature in 0..2 {
        let values: Vec<f64> = rows
            .iter()
            .map(|row| row[feature].parse::<f64>().unwrap())
            .map(|value| if feature == 1 { value.ln_1p() } else { value })
            .collect();
        let share = |limit: f64| {
            let below = values.iter().filter(|value| **value <= limit).count();
            below as f64 / values.len() as f64
        };
        for (knot, place) in knots[feature].iter().zip(places[feature]) {
            // Counts are joined to groups of ten at each site; within a group patients count as evenly spread.
            let away = share(*knot) - place;
            assert!(away.abs() < 10.0 / values.len() as f64, "{knot}: {away}");
        }
        let ends = [f64::min, f64::max].map(|of| values.iter().copied().reduce(of).unwrap());
        assert!(knots[feature].iter().all(|knot| !ends.contains(knot)));
    }
}

#[test]
fn features_leave_as_in_r_by_akaikes_criterion_and_by_walds_test() {
    let (home, wanted) = (patients(usual), of_r());
    for (criterion, features) in [("aic", without_treatment()), ("wald", features())] {
        for (outcome, name) in [(SCORE, "linear"), (ILL, "logistic"), (DAYS, "cox")] {
            let settings = format!("selection = \"{criterion}\"\n");
            simulated(&home, &job(outcome, &features, &settings)).must_succeed();
            left_as_in_r(&home, &wanted[criterion][name]);
            assert_eq!(result(&home.join("out"))["status"], "converged");
        }
    }
    let page = fs::read_to_string(home.join("out/report.html")).unwrap();
    assert!(page.contains("Features that left"));
}

/// Column `k` of patient `i` of the table that `../../reference/regression/step.R` makes, from 0 to 1.
fn uniform(k: u64, i: u64) -> f64 {
    ((i * i * (17 + 2 * k) + i * (31 + 6 * k)) % 9_973) as f64 / 9_973.0
}

/// 2,400 patients with twelve features, of which four matter.
fn many_features() -> String {
    let names: Vec<String> = (1..=12).map(|place| format!("x{place}")).collect();
    let mut table = names.join(",") + ",score,ill,days,event\n";
    for i in 0..2_400 {
        let rounded = |value: f64| (1e3 * value).round() / 1e3;
        let x: Vec<f64> = (1..=12).map(|place| rounded(uniform(place, i))).collect();
        let eta = 1.1 * x[0] - 0.9 * x[3] + 0.8 * x[6] - 0.7 * x[9];
        let score = eta + uniform(20, i) + uniform(21, i) - uniform(22, i);
        let is_ill = uniform(23, i) < 1.0 / (1.0 + (-eta).exp());
        let days = 1.0 + (-(-uniform(24, i)).ln_1p() / eta.exp() * 300.0).round();
        let is_seen = uniform(25, i) < 0.7;
        let x: Vec<String> = x.iter().map(f64::to_string).collect();
        let (ill, event) = (u8::from(is_ill), u8::from(is_seen));
        writeln!(table, "{},{score:.3},{ill},{days},{event}", x.join(",")).unwrap();
    }
    table
}

/// Up to eight features leave, by more fits than 100 evaluations allow.
#[test]
fn a_long_search_by_akaikes_criterion_goes_as_far_as_that_of_r() {
    let (home, wanted) = (
        Home::new(),
        reference("tests/reference/regression/step.json"),
    );
    home.write("whole.csv", &many_features());
    deal(&home, &home.join("whole.csv"), |row| match row {
        0..1_200 => 0,
        1_200..2_000 => 1,
        _ => 2,
    });
    let features: String = (1..=12).map(|place| number(&format!("x{place}"))).collect();
    let mut most = 0;
    for (outcome, name) in [(SCORE, "linear"), (ILL, "logistic"), (DAYS, "cox")] {
        simulated(&home, &job(outcome, &features, "selection = \"aic\"\n")).must_succeed();
        let (told, wanted) = (told(&home), &wanted[name]);
        let left: Vec<&str> = wanted["removed"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        assert_eq!(removed(&home), left, "{name}");
        assert_eq!(told["selection"]["complete"], true);
        let own = |of: &str| column(&home, "coefficients.csv", of);
        are_close(&own("coefficient"), &floats(&wanted["coefficients"]));
        are_close(&own("standard_error"), &floats(&wanted["standard_errors"]));
        are_close(
            &["log_likelihood", "aic"].map(|key| told[key].as_f64().unwrap()),
            &["log_likelihood", "aic"].map(|key| wanted[key].as_f64().unwrap()),
        );
        let evaluations = told["evaluations"].as_u64().unwrap();
        println!(
            "{name}: {} features left, {evaluations} evaluations",
            left.len()
        );
        most = most.max(evaluations);
    }
    assert!(most > 100, "{most}");
}

/// All rows tell the same, whoever has them.
#[test]
fn tiny_sites_beside_a_large_one_find_what_r_finds() {
    // Without the large one there are three patients for each coefficient.
    let home = patients(|row| match row % 10 {
        0 => 0,
        1 => 1,
        _ => 2,
    });
    let policy = fs::read_to_string(home.join("policy.toml")).unwrap();
    let lowered = "patients_min = 5\nclass_patients_min = 1\n";
    home.write("policy.toml", &(policy + lowered));
    let wanted = of_r();
    simulated(&home, &job(ILL, &features(), "")).must_succeed();
    is_that_of_r(&home, &wanted["logistic"]);
    simulated(&home, &job(ILL, &features(), "selection = \"wald\"\n")).must_succeed();
    left_as_in_r(&home, &wanted["wald"]["logistic"]);
}

#[test]
fn one_cohort_alone_is_fitted_and_selected_like_the_federation() {
    let (home, wanted) = (patients(|_| 0), of_r());
    for (outcome, name) in [(SCORE, "linear"), (ILL, "logistic")] {
        home.write(
            "job.toml",
            &job(outcome, &without_treatment(), "selection = \"aic\"\n"),
        );
        let arguments = [
            "local",
            "job.toml",
            "--data",
            "data/north.csv",
            "--out",
            "out",
            "--force",
        ];
        home.run(&site_agent(), &arguments).must_succeed();
        left_as_in_r(&home, &wanted["aic"][name]);
    }
}

/// A line that repeats another, and a spline whose feature is a category's level: what others say leaves first.
#[test]
fn what_others_already_say_has_no_coefficient_and_leaves_first() {
    let home = patients(usual);
    for site in ["north", "south", "east"] {
        let path = home.join("data").join(format!("{site}.csv"));
        let text = fs::read_to_string(&path).unwrap();
        let with = |(row, line): (usize, &str)| match row {
            0 => format!("{line},twice\n"),
            _ => {
                let age: f64 = line.split(',').nth(1).unwrap().parse().unwrap();
                format!("{line},{}\n", 2.0 * age + 1.0)
            }
        };
        let text: String = text.lines().enumerate().map(with).collect();
        fs::write(&path, text).unwrap();
    }
    let twice = "[[features]]\nname = \"twice\"\nkind = \"numeric\"\n";
    let job = job(
        ILL,
        &(features() + twice),
        "selection = \"wald\"\nselection_p = 0.05\n",
    );
    simulated(&home, &job).must_succeed();
    assert_eq!(removed(&home)[0], "twice");
    is_that_of_r(&home, &of_r()["wald"]["logistic"]);
}

#[test]
fn sites_find_similar_cases_along_the_curves_of_a_run() {
    let home = patients(usual);
    simulated(&home, &job(ILL, &features(), "")).must_succeed();
    // Missing values of a new patient are taken as the mean, not left out.
    home.write(
        "new.csv",
        "patient,age,marker,ratio,group,treated\nnew,61,150,,severe,yes\n",
    );
    let arguments = [
        "similar",
        "--data",
        "data/north.csv",
        "--id",
        "patient",
        "out/sites/north",
        "--new",
        "new.csv",
        "-k",
        "4",
        "--json",
    ];
    let said = home.run(&site_agent(), &arguments).must_succeed().stdout;
    assert!(
        said.contains("regression-weighted") && said.contains("marker"),
        "{said}"
    );
    let record = fs::read_to_string(home.join("out/sites/north/comparison.json")).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    let knots = &record["learned"]["regression"]["terms"][0]["values"]["numeric"]["knots"];
    are_close(&floats(knots), &lines("knots.csv")[0]);
}

#[test]
fn a_search_that_may_ask_no_more_keeps_the_best_before_and_says_so() {
    let home = patients(usual);
    let stops = [
        ("round_limit = 12\n", "round_limit", "round_limit"),
        ("", "completed", "a third of the patients"),
    ];
    for (more, status, note) in stops {
        let settings = format!("selection = \"aic\"\n{more}");
        simulated(&home, &job(ILL, &features(), &settings)).must_succeed();
        let result = result(&home.join("out"));
        assert_eq!(result["status"], status);
        assert!(
            result["notes"].to_string().contains(note),
            "{}",
            result["notes"]
        );
        let told = told(&home);
        assert_eq!(
            (&told["selection"]["complete"], &told["converged"]),
            (&false.into(), &true.into())
        );
        if !more.is_empty() {
            assert!(told["evaluations"].as_u64().unwrap() <= 12);
        }
    }
}

#[test]
fn splines_and_selections_that_cannot_be_are_refused() {
    let home = patients(usual);
    let number = |rest: &str| format!("[[features]]\nname = \"age\"\nkind = \"numeric\"\n{rest}");
    let curved = category("treated", "\"no\", \"yes\"") + "spline = 3\n";
    let forest = job(ILL, &number("range = [20, 110]\nspline = 3\n"), "")
        .replace("method = \"regression\"", "method = \"forest\"")
        .replace("[regression]", "[forest]");
    let refused = [
        (job(ILL, &curved, ""), "a number or an age"),
        (job(ILL, &number("spline = 3\n"), ""), "knots"),
        (
            job(ILL, &number("range = [20, 110]\nspline = 6\n"), ""),
            "spline",
        ),
        (forest, "no spline"),
        (job(ILL, &number(""), "selection_p = 0\n"), "selection_p"),
    ];
    for (job, wanted) in refused {
        simulated(&home, &job).must_fail(USAGE, &[wanted]);
    }
    // Half of the patients are at 0, and with them two of the knots.
    let ill = "[[features]]\nname = \"ill\"\nkind = \"numeric\"\nrange = [0, 1]\nspline = 3\n";
    simulated(&home, &job(SCORE, ill, "")).must_fail(RUN, &["ill (spline = 3)"]);
}
