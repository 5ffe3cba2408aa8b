//! Cohorts that have no regression, or not all of it, are told which columns are the reason.

use crate::sample::*;
use ndarray::{Array1, array};
use similarity::cohort::{Cohort, Column, MISSING_LEVEL, Outcome, Values};
use similarity::learn::regression::terms::{Terms, TermsError};
use similarity::learn::regression::{Ending, RegressionError, Ridge, Settings, fit};

fn numeric(name: &str, values: Array1<f64>) -> Column {
    Column {
        name: name.to_owned(),
        values: Values::Numeric(values),
    }
}

fn binary(codes: Array1<u32>) -> Outcome {
    Outcome::Classes {
        codes,
        levels: vec!["negative".to_owned(), "positive".to_owned()],
    }
}

#[test]
fn a_column_that_parts_the_classes_is_named_and_a_ridge_makes_it_finite() {
    let table = patients();
    let parting = numeric("parting", table.numbers("ill").mapv(|ill| 3.0 * ill - 1.0));
    let columns = vec![table.numeric("age"), parting, table.numeric("ratio")];
    let cohort = Cohort::new(columns, ill(&table)).unwrap();
    let found = fit(&cohort, &Settings::default()).unwrap();
    assert_eq!(found.ending, Ending::Separated(vec![1]));
    assert!(found.remarks()[0].starts_with("parting parts the outcomes perfectly"));
    let ridge = Settings {
        ridge: Ridge::Stated(1.0),
        ..Settings::default()
    };
    let found = fit(&cohort, &ridge).unwrap();
    assert_eq!(found.ending, Ending::Converged);
    assert!(found.coefficients[1] > 0.5 && found.coefficients[1] < 20.0);
}

#[test]
fn a_level_in_which_nobody_is_ill_is_named() {
    let table = patients();
    let ill = table.numbers("ill");
    let mut left = 3;
    let codes: Array1<u32> = ill
        .iter()
        .map(|ill| {
            let healthy = *ill == 0.0 && left > 0;
            left -= i32::from(healthy);
            u32::from(healthy)
        })
        .collect();
    let rare = Column {
        name: "ward".to_owned(),
        values: Values::Categorical {
            codes,
            levels: vec!["other".to_owned(), "spa".to_owned()],
        },
    };
    let columns = vec![table.numeric("age"), rare, table.numeric("marker")];
    let cohort = Cohort::new(columns, super::sample::ill(&table)).unwrap();
    let found = fit(&cohort, &Settings::default()).unwrap();
    assert_eq!(found.ending, Ending::Separated(vec![1]));
    assert!(found.remarks()[0].starts_with("ward=spa parts"));
}

#[test]
fn a_monotone_partial_likelihood_is_named_too() {
    let table = patients();
    let event = table.numbers("event");
    let columns = vec![table.numeric("age"), numeric("seen", event)];
    let cohort = Cohort::new(columns, days(&table)).unwrap();
    let found = fit(&cohort, &Settings::default()).unwrap();
    assert_eq!(found.ending, Ending::Separated(vec![1]));
}

#[test]
fn a_column_that_others_say_is_left_out_with_their_names() {
    let table = patients();
    let sum = 2.0 * &table.numbers("age") - 3.0 * &table.numbers("marker") + 7.0;
    let mut columns = columns(&table);
    columns.insert(2, numeric("sum", sum));
    columns.push(numeric("one", Array1::from_elem(240, 4.1)));
    for outcome in [score as fn(&Table) -> Outcome, ill, days] {
        let cohort = Cohort::new(columns.clone(), outcome(&table)).unwrap();
        let found = fit(&cohort, &Settings::default()).unwrap();
        assert_eq!(found.ending, Ending::Converged);
        let age_and_marker = vec!["age".to_owned(), "marker".to_owned()];
        assert_eq!(found.aliased[0], ("sum".to_owned(), age_and_marker));
        assert_eq!(found.aliased[1], ("one".to_owned(), Vec::new()));
        assert_eq!(
            found.remarks()[0],
            "sum follows from age, marker and has no coefficient"
        );
        // The others have the coefficients that they have without it.
        let plain = fit(&self::cohort(outcome), &Settings::default()).unwrap();
        assert!(close(found.coefficients[0], plain.coefficients[0]));
        assert!(close(found.coefficients[3], plain.coefficients[2]));
        let estimate = &found.estimates(0.95);
        let of_sum = estimate.iter().find(|one| one.name == "sum").unwrap();
        assert!(of_sum.standard_error.is_nan());
        assert_eq!(found.wald(2), None);
    }
}

#[test]
fn what_cannot_be_fitted_says_why() {
    let table = patients();
    let x = numeric("x", array![1.0, 2.0, 4.0, 3.0]);
    let of = |outcome: Outcome| {
        fit(
            &Cohort::new(vec![x.clone()], outcome).unwrap(),
            &Settings::default(),
        )
    };
    let never = Outcome::Survival {
        time: array![1.0, 2.0, 3.0, 4.0],
        event: array![false, false, false, false],
    };
    assert_eq!(of(never).unwrap_err(), RegressionError::NoEvents);
    let before = Outcome::Survival {
        time: array![1.0, -2.0, 3.0, 4.0],
        event: array![true, true, false, false],
    };
    assert_eq!(of(before).unwrap_err(), RegressionError::Times);
    let at_zero = Outcome::Survival {
        time: array![0.0, 2.0, 3.0, 0.0],
        event: array![true, false, true, false],
    };
    assert!(of(at_zero).is_ok());
    assert_eq!(
        of(binary(array![1, 1, 1, 1])).unwrap_err(),
        RegressionError::OneOutcome
    );
    let three = Outcome::Classes {
        codes: array![0, 1, 2, 1],
        levels: ["a", "b", "c"].map(str::to_owned).into(),
    };
    assert_eq!(
        of(three).unwrap_err(),
        RegressionError::Classes { found: 3 }
    );
    let wide: Vec<Column> = (0..6)
        .map(|column| {
            let values = (0..5).map(|row| f64::from((row * row * 7 + column * 3 * row) % 11));
            numeric(&format!("x{column}"), values.collect())
        })
        .collect();
    let few = Cohort::new(wide, Outcome::Numeric(array![1.0, 3.0, 2.0, 5.0, 4.0])).unwrap();
    let error = fit(&few, &Settings::default()).unwrap_err();
    assert_eq!(
        error,
        RegressionError::TooManyColumns {
            columns: 7,
            patients: 5
        }
    );
    let ridge = Settings {
        ridge: Ridge::Stated(1.0),
        ..Settings::default()
    };
    assert!(
        fit(&few, &ridge)
            .unwrap()
            .coefficients
            .iter()
            .all(|one| one.is_finite())
    );
    let constant = Cohort::new(
        vec![numeric("x", Array1::from_elem(240, 2.0))],
        days(&table),
    );
    let error = fit(&constant.unwrap(), &Settings::default()).unwrap_err();
    assert_eq!(error, RegressionError::NothingVaries);
}

#[test]
fn patients_with_a_missing_value_are_left_out_and_counted() {
    let table = patients();
    let mut columns = columns(&table);
    if let Values::Numeric(values) = &mut columns[0].values {
        values[3] = f64::NAN;
    }
    if let Values::Categorical { codes, .. } = &mut columns[3].values {
        codes[7] = MISSING_LEVEL;
    }
    let cohort = Cohort::new(columns, score(&table)).unwrap();
    let found = fit(&cohort, &Settings::default()).unwrap();
    assert_eq!((found.patients, found.left_out), (238, 2));
    let rest: Vec<usize> = (0..240).filter(|row| *row != 3 && *row != 7).collect();
    let other = fit(&self::cohort(score).select(&rest), &Settings::default()).unwrap();
    all_close(&found.coefficients.to_vec(), &other.coefficients.to_vec());
}

/// CaseBasedReasoning codes a query's levels by their own order, and stops at characters and missing values.
#[test]
fn levels_mean_what_they_meant_at_the_fit_in_whatever_order_they_come() {
    let cohort = cohort(score);
    let found = fit(&cohort, &Settings::default()).unwrap();
    let own = found.linear_predictor(cohort.columns()).unwrap();
    let mut turned = cohort.columns().to_vec();
    if let Values::Categorical { codes, levels } = &mut turned[3].values {
        levels.reverse();
        codes.mapv_inplace(|code| 2 - code);
    }
    assert_eq!(found.linear_predictor(&turned).unwrap(), own);
    if let Values::Categorical { levels, .. } = &mut turned[3].values {
        levels[0] = "new".to_owned();
    }
    let error = found.linear_predictor(&turned).unwrap_err();
    assert_eq!(
        error.to_string(),
        "column group holds a level that is none of mild, severe, odd"
    );
    let wrong = TermsError::Column {
        found: "marker".to_owned(),
        wanted: "age".to_owned(),
    };
    assert_eq!(
        found.linear_predictor(&cohort.columns()[1..]).unwrap_err(),
        TermsError::Columns {
            found: 4,
            wanted: 5
        }
    );
    let mut swapped = cohort.columns().to_vec();
    swapped.swap(0, 1);
    assert_eq!(found.linear_predictor(&swapped).unwrap_err(), wrong);
}

#[test]
fn splines_need_enough_different_values_of_a_number() {
    let table = patients();
    let few = numeric("few", table.numbers("ill"));
    let error = Terms::of_columns(&[few], &[3]).unwrap_err();
    assert_eq!(
        error,
        TermsError::Knots {
            column: "few".to_owned(),
            degrees: 3
        }
    );
    let group = columns(&table).remove(3);
    assert!(matches!(
        Terms::of_columns(&[group], &[3]),
        Err(TermsError::Spline { .. })
    ));
    let age = table.numeric("age");
    assert!(matches!(
        Terms::of_columns(&[age], &[9]),
        Err(TermsError::Spline { .. })
    ));
}
