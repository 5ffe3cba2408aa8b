//! `../reference/regression/ridge.R` made the numbers: mgcv's restricted likelihood, of synthetic patients.

use crate::sample::*;
use serde_json::Value;
use similarity::cohort::{Cohort, Outcome};
use similarity::learn::regression::{Ending, Ridge, Settings, fit};

/// mgcv also weighs how the information changes with the ridge: coefficients differ by less than so many standard errors.
const APART: f64 = 0.1;
/// So the ridges themselves, as a share.
const RIDGES_APART: f64 = 0.15;

fn patients(table: &Table, set: &str) -> Cohort {
    let sets = table.text("set");
    let rows: Vec<usize> = (0..sets.len()).filter(|row| sets[*row] == set).collect();
    let columns: Vec<_> = (1..=6)
        .map(|place| table.numeric(&format!("x{place}")))
        .collect();
    let y = table.numbers("y");
    let outcome = match set {
        "linear" => Outcome::Numeric(y),
        "cox" | "cox few events" => Outcome::Survival {
            time: table.numbers("time"),
            event: y.mapv(|one| one == 1.0),
        },
        _ => Outcome::Classes {
            codes: y.mapv(|one| u32::from(one == 1.0)),
            levels: vec!["no".to_owned(), "yes".to_owned()],
        },
    };
    Cohort::new(columns, outcome).unwrap().select(&rows)
}

#[test]
fn a_chosen_ridge_is_that_of_mgcv() {
    let reference = reference("ridge.json");
    let table = Table::read(&folder().join("ridge.csv"));
    let settings = Settings {
        ridge: Ridge::Chosen,
        ..Settings::default()
    };
    for (set, wanted) in reference.as_object().unwrap() {
        let found = fit(&patients(&table, set), &settings).unwrap();
        assert_eq!(found.ending, Ending::Converged, "{set}");
        let number = |value: &Value| value.as_f64().unwrap();
        let ridge = found.ridge / number(&wanted["ridge"]) - 1.0;
        let errors = floats(&wanted["standard_errors"]);
        let coefficients = floats(&wanted["coefficients"]);
        let both = found.coefficients.iter().zip(&coefficients).zip(&errors);
        let apart = both.map(|((one, other), error)| (one - other).abs() / error);
        let apart = apart.fold(0.0, f64::max);
        let (most, ridges) = match set.as_str() {
            // A quadratic is no approximation.
            "linear" => (1e-4, 1e-3),
            _ => (APART, RIDGES_APART),
        };
        assert!(ridge.abs() < ridges, "{set}: ridge {}", found.ridge);
        assert!(apart < most, "{set}: {apart} standard errors apart");
    }
}

#[test]
fn columns_that_part_the_classes_have_coefficients_with_an_end() {
    let table = Table::read(&folder().join("ridge.csv"));
    let cohort = patients(&table, "separable");
    let plain = fit(&cohort, &Settings::default()).unwrap();
    assert!(matches!(plain.ending, Ending::Separated(_)));
    let settings = Settings {
        ridge: Ridge::Chosen,
        ..Settings::default()
    };
    let found = fit(&cohort, &settings).unwrap();
    assert_eq!(found.ending, Ending::Converged);
    assert!(found.ridge > 0.0 && found.coefficients.iter().all(|one| one.abs() < 20.0));
}
