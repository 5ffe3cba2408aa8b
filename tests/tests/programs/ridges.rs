//! Promise: three sites choose the ridge that mgcv chooses for all of their patients, in no more evaluations than a fit has, and a
//! distance goes by it where the fit itself has none.
//!
//! `shared/similarity/tests/reference/regression/ridge.R` made the numbers.

use crate::regression::{column, deal, floats, job, number, reference, simulated};
use kindred_tests::programs::Home;
use kindred_tests::results::result;
use kindred_tests::workspace::root;
use serde_json::Value;
use std::fs;

/// mgcv also weighs how the information changes with the ridge: coefficients differ by less than so many standard errors.
const APART: f64 = 0.1;
/// What a distance goes by follows from evaluations of a fit without a ridge.
const WEIGHTS_APART: f64 = 0.25;
const OF_A_FIT: u64 = 12;

/// The synthetic patients of a set, a third at each site.
fn patients(set: &str) -> Home {
    let home = Home::new();
    let table = root().join("shared/similarity/tests/reference/regression/ridge.csv");
    let table = fs::read_to_string(table).unwrap();
    let (header, rows) = table.split_once('\n').unwrap();
    let own = rows
        .lines()
        .filter(|row| row.starts_with(&format!("{set},")));
    let own: Vec<&str> = [header].into_iter().chain(own).collect();
    home.write("set.csv", &(own.join("\n") + "\n"));
    deal(&home, &home.join("set.csv"), |row| row % 3);
    home
}

fn fitted(home: &Home, set: &str, ridge: &str) -> Value {
    let outcome = match set {
        "linear" => "column = \"y\"\nkind = \"numeric\"\n",
        _ => "column = \"y\"\nkind = \"binary\"\npositive = [\"1\"]\nnegative = [\"0\"]\n",
    };
    let features: String = (1..=6).map(|place| number(&format!("x{place}"))).collect();
    simulated(home, &job(outcome, &features, ridge)).must_succeed();
    let told = fs::read(home.join("out/regression.json")).unwrap();
    serde_json::from_slice(&told).unwrap()
}

/// Standard errors by which a column of the coefficients is away from mgcv's, at most.
fn apart(home: &Home, name: &str, wanted: &Value) -> f64 {
    let found = column(home, "coefficients.csv", name);
    let (values, errors) = (
        floats(&wanted["coefficients"]),
        floats(&wanted["standard_errors"]),
    );
    assert_eq!(found.len(), 1 + values.len());
    let both = found[1..].iter().zip(&values).zip(&errors);
    let apart = both.map(|((one, other), error)| (one - other).abs() / error);
    apart.fold(0.0, f64::max)
}

#[test]
fn three_sites_choose_the_ridge_of_mgcv_and_weigh_a_distance_by_it() {
    let wanted = reference("shared/similarity/tests/reference/regression/ridge.json");
    for set in ["linear", "logistic", "collinear"] {
        let home = patients(set);
        let told = fitted(&home, set, "ridge = \"auto\"");
        assert!(told["evaluations"].as_u64().unwrap() <= OF_A_FIT, "{told}");
        let away = apart(&home, "coefficient", &wanted[set]);
        let most = if set == "linear" { 1e-4 } else { APART };
        assert!(away < most, "{set}: {away}");
        let notes = result(&home.join("out"))["notes"].to_string();
        assert!(notes.contains("restricted likelihood"), "{notes}");
        // The same of a fit without a ridge, at no exchange.
        let plain = fitted(&home, set, "");
        let away = apart(&home, "weight", &wanted[set]);
        println!(
            "{set}: {} and {} evaluations, weights {away} apart",
            told["evaluations"], plain["evaluations"]
        );
        let most = if set == "linear" { 1e-4 } else { WEIGHTS_APART };
        assert!(away < most, "{set}: {away}");
        fitted(&home, set, "ridge = 0");
        let header = fs::read_to_string(home.join("out/coefficients.csv")).unwrap();
        assert!(!header.lines().next().unwrap().contains("weight"));
    }
}

/// Without a ridge some hospital refuses to be asked about coefficients as steep as these.
#[test]
fn columns_that_part_the_classes_have_a_chosen_ridge_that_no_hospital_refuses() {
    let home = patients("separable");
    let told = fitted(&home, "separable", "ridge = \"auto\"");
    assert_eq!(told["converged"], true, "{told}");
    assert!(told["evaluations"].as_u64().unwrap() <= OF_A_FIT, "{told}");
    let found = column(&home, "coefficients.csv", "coefficient");
    assert!(found[1] > 0.5 && found[2] < -0.3, "{found:?}");
    assert!(found[1..].iter().all(|one| one.abs() < 5.0), "{found:?}");
}
