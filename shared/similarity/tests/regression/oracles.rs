//! `../reference/regression/regression.R` and `regression.py` made the numbers.

use crate::sample::*;
use serde_json::Value;
use similarity::cohort::{Cohort, Outcome};
use similarity::learn::regression::hazards::TimeScale;
use similarity::learn::regression::selection::{Criterion, backward};
use similarity::learn::regression::{Ending, Fit, Ridge, Settings, Ties, fit};

/// Coefficients, standard errors, log-likelihood and, where R tells it, AIC.
fn is_that_of(found: &Fit, wanted: &Value) {
    assert_eq!(found.ending, Ending::Converged);
    let estimates = found.estimates(0.95);
    let values: Vec<f64> = estimates.iter().map(|one| one.value).collect();
    let errors: Vec<f64> = estimates.iter().map(|one| one.standard_error).collect();
    all_close(&values, &floats(&wanted["coefficients"]));
    all_close(&errors, &floats(&wanted["standard_errors"]));
    assert!(close(
        found.log_likelihood,
        wanted["log_likelihood"].as_f64().unwrap()
    ));
    assert!(close(found.aic(), wanted["aic"].as_f64().unwrap()));
}

fn has_intervals(found: &Fit, wanted: &Value) {
    let estimates = found.estimates(0.95);
    let low: Vec<f64> = estimates.iter().map(|one| one.low).collect();
    let high: Vec<f64> = estimates.iter().map(|one| one.high).collect();
    all_close(&low, &floats(&wanted["low"]));
    all_close(&high, &floats(&wanted["high"]));
}

#[test]
fn linear_and_logistic_regression_are_those_of_r() {
    let reference = reference("regression.json");
    let linear = fit(&cohort(score), &Settings::default()).unwrap();
    is_that_of(&linear, &reference["linear"]);
    has_intervals(&linear, &reference["linear"]);
    let sigma = reference["linear"]["sigma"].as_f64().unwrap();
    assert!(close(linear.residual_deviation.unwrap(), sigma));
    let logistic = fit(&cohort(ill), &Settings::default()).unwrap();
    is_that_of(&logistic, &reference["logistic"]);
    has_intervals(&logistic, &reference["logistic"]);
}

fn cox_is_that_of(cohort: &Cohort, settings: &Settings, wanted: &Value) {
    let found = fit(cohort, settings).unwrap();
    is_that_of(&found, &wanted["fit"]);
    let null = wanted["fit"]["null_log_likelihood"].as_f64().unwrap();
    assert!(close(found.null_log_likelihood, null));
    let scales = [TimeScale::Rank, TimeScale::Identity, TimeScale::KaplanMeier];
    for (scale, wanted) in scales
        .into_iter()
        .zip(wanted["proportional"].as_array().unwrap())
    {
        let tests = found
            .cox(cohort, settings, scale)
            .unwrap()
            .unwrap()
            .proportionality;
        let statistics: Vec<f64> = tests.iter().map(|test| test.chi_squared).collect();
        all_close(&statistics, &floats(&wanted["chi_squared"]));
        let p: Vec<f64> = tests.iter().map(|test| test.p).collect();
        all_close(&p, &floats(&wanted["p"]));
        let degrees: Vec<f64> = tests.iter().map(|test| test.degrees as f64).collect();
        all_close(&degrees, &floats(&wanted["degrees"]));
        assert_eq!(tests.last().unwrap().term, None);
    }
    let details = found
        .cox(cohort, settings, TimeScale::Rank)
        .unwrap()
        .unwrap();
    if let Some(hazard) = wanted.get("hazard") {
        let had_event: Vec<usize> = (0..details.baseline.times.len())
            .filter(|cell| floats(&hazard["time"]).contains(&details.baseline.times[*cell]))
            .collect();
        let found: Vec<f64> = had_event
            .iter()
            .map(|cell| details.baseline.cumulative[*cell])
            .collect();
        all_close(&found, &floats(&hazard["cumulative"]));
    }
    let concordance = wanted["fit"]["concordance"].as_f64().unwrap();
    assert!(
        close(details.concordance, concordance),
        "{}",
        details.concordance
    );
}

#[test]
fn cox_regression_with_its_hazard_tests_and_concordance_is_that_of_r() {
    let reference = reference("regression.json");
    for (name, ties) in [("efron", Ties::Efron), ("breslow", Ties::Breslow)] {
        let settings = Settings {
            ties,
            ..Settings::default()
        };
        cox_is_that_of(&cohort(days), &settings, &reference[name]);
    }
}

#[test]
fn on_a_grid_it_is_that_of_r_with_times_rounded_up_to_the_grid() {
    let exact = cohort(days);
    let Outcome::Survival { time, event } = exact.outcome() else {
        unreachable!()
    };
    let gridded = Outcome::Survival {
        time: time.mapv(|time| (time / 100.0).ceil().min(9.0) * 100.0),
        event: event
            .iter()
            .zip(time)
            .map(|(event, time)| *event && *time <= 900.0)
            .collect(),
    };
    cox_is_that_of(
        &Cohort::new(exact.columns().to_vec(), gridded).unwrap(),
        &Settings::default(),
        &reference("regression.json")["gridded"],
    );
}

#[test]
fn on_gbsg2_both_ways_with_ties_are_those_of_r() {
    let Some(cohort) = gbsg2() else { return };
    let reference = &reference("regression.json")["gbsg2"];
    for (name, ties) in [("efron", Ties::Efron), ("breslow", Ties::Breslow)] {
        let settings = Settings {
            ties,
            ..Settings::default()
        };
        cox_is_that_of(&cohort, &settings, &reference[name]);
    }
    let efron = fit(&cohort, &Settings::default()).unwrap();
    assert!((efron.log_likelihood - -1_737.174_490_40).abs() < 1e-8);
    assert!((efron.coefficients[0] - -0.337_202_910_0).abs() < 1e-8);
}

#[test]
fn a_natural_spline_is_that_of_r() {
    let table = patients();
    let columns = vec![table.numeric("age"), columns(&table).remove(4)];
    let cohort = Cohort::new(columns, days(&table)).unwrap();
    let settings = Settings {
        splines: vec![3, 1],
        ..Settings::default()
    };
    let found = fit(&cohort, &settings).unwrap();
    is_that_of(&found, &reference("regression.json")["spline"]);
    assert_eq!(found.terms.names(), ["age", "age'", "age''", "treated=yes"]);
    // The three columns are tested together.
    assert_eq!(found.wald(0).unwrap().1, 3);
}

#[test]
fn backward_selection_keeps_what_r_keeps() {
    let reference = &reference("regression.json")["selected"];
    let settings = Settings::default();
    for (name, outcome) in [
        ("linear", score as fn(&Table) -> _),
        ("logistic", ill),
        ("cox", days),
    ] {
        let found = backward(&cohort(outcome), &settings, Criterion::Aic).unwrap();
        let wanted: Vec<&str> = reference[name]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| name.as_str().unwrap())
            .filter(|name| *name != "(Intercept)")
            .collect();
        let names = found.fit.terms.names();
        let names: Vec<String> = names.iter().map(|name| name.replace('=', "")).collect();
        assert_eq!(names, wanted);
        // Whoever stays is worth it, and whoever left is not.
        let by_wald = backward(&cohort(outcome), &settings, Criterion::Wald { p: 0.05 }).unwrap();
        for place in 0..by_wald.kept.len() {
            assert!(by_wald.fit.wald(place).unwrap().2 <= 0.05);
        }
        assert!(by_wald.removed.iter().all(|removed| removed.value > 0.05));
        assert_eq!(by_wald.kept.len() + by_wald.removed.len(), 5);
    }
}

#[test]
fn statsmodels_and_scikit_learn_agree() {
    let reference = reference("others.json");
    is_that_of(
        &fit(&cohort(score), &Settings::default()).unwrap(),
        &reference["linear"],
    );
    is_that_of(
        &fit(&cohort(ill), &Settings::default()).unwrap(),
        &reference["logistic"],
    );
    for (name, ties) in [("efron", Ties::Efron), ("breslow", Ties::Breslow)] {
        let settings = Settings {
            ties,
            ..Settings::default()
        };
        is_that_of(&fit(&cohort(days), &settings).unwrap(), &reference[name]);
    }
    let settings = Settings {
        ridge: Ridge::Stated(25.0),
        ..Settings::default()
    };
    for (name, outcome) in [("linear", score as fn(&Table) -> _), ("logistic", ill)] {
        let found = fit(&cohort(outcome), &settings).unwrap();
        let mut values = vec![found.intercept];
        values.extend(&found.coefficients);
        all_close(&values, &floats(&reference["ridge"][name]));
    }
    let found = fit(&cohort(days), &settings).unwrap();
    all_close(
        &found.coefficients.to_vec(),
        &floats(&reference["ridge"]["cox"]),
    );
}
