//! How large terminal nodes are: the errors of other programs at equal rules, and the choice by them.

use serde_json::Value;
use similarity::cohort::{Cohort, Outcome};
use similarity::judge::error::{Measure, prediction_error};
use similarity::learn::forest::trees::predict::Prediction;
use similarity::learn::forest::tuning::tune;
use similarity::learn::forest::{ClassWeights, FeaturesPerSplit, GrowError, Settings, grow};
use similarity::numeric::seed::Seed;

use crate::sample::*;

const SEEDS: u64 = 10;
const TREES: usize = 100;

/// By `reference/node_size.py`.
fn reference() -> Value {
    serde_json::from_str(include_str!("../reference/node_size.json")).unwrap()
}

/// Columns of the digits of each patient's text.
fn digits(texts: &Value) -> Vec<Vec<f64>> {
    let rows: Vec<&str> = texts
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row.as_str().unwrap())
        .collect();
    let digit = |row: &&str, place: usize| f64::from(row.as_bytes()[place] - b'0');
    (0..rows[0].len())
        .map(|place| rows.iter().map(|row| digit(row, place)).collect())
        .collect()
}

fn noisy_classes(reference: &Value) -> Cohort {
    let codes = reference["y"].as_str().unwrap().bytes();
    let codes: Vec<u32> = codes.map(|digit| u32::from(digit - b'0')).collect();
    let columns = digits(&reference["x"]);
    cohort(
        columns.iter().map(|values| numeric("x", values)).collect(),
        classes(&codes, 2),
    )
}

fn few_events(reference: &Value) -> Cohort {
    let time: Vec<f64> = reference["time"]
        .as_array()
        .unwrap()
        .iter()
        .map(|time| time.as_f64().unwrap())
        .collect();
    let event = reference["event"].as_str().unwrap().bytes();
    let event: Vec<bool> = event.map(|digit| digit == b'1').collect();
    let columns = digits(&reference["x"]);
    cohort(
        columns.iter().map(|values| numeric("x", values)).collect(),
        survival(&time, &event),
    )
}

fn settings(cohort: &Cohort, features: usize, terminal_min: u32) -> Settings {
    Settings {
        trees: TREES,
        features_per_split: FeaturesPerSplit::Count(features),
        node_size: 1,
        terminal_min,
        ..Settings::for_outcome(cohort.outcome())
    }
}

/// Two standard errors of a mean and its difference from another are far below what a size of nodes changes.
fn agrees(cohort: &Cohort, features: usize, errors: &Value) {
    for (terminal_min, wanted) in errors.as_object().unwrap() {
        let wanted: Vec<f64> = wanted
            .as_array()
            .unwrap()
            .iter()
            .map(|error| error.as_f64().unwrap())
            .collect();
        let settings = settings(cohort, features, terminal_min.parse().unwrap());
        let found: Vec<f64> = (0..SEEDS)
            .map(|seed| {
                let grown = grow(cohort, &settings, Seed(seed)).unwrap();
                let prediction = grown.predict_out_of_bag(cohort.columns()).unwrap();
                match prediction_error(&prediction, cohort.outcome())
                    .unwrap()
                    .measure
                {
                    // The script adds up both classes.
                    Measure::Classes { brier, .. } => 2.0 * brier,
                    Measure::Survival { discordance } => discordance,
                    Measure::Numeric { .. } => unreachable!(),
                }
            })
            .collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let variance = |values: &[f64]| {
            let squares = values.iter().map(|value| (value - mean(values)).powi(2));
            squares.sum::<f64>() / (values.len() - 1) as f64
        };
        let error = ((variance(&found) + variance(&wanted)) / wanted.len() as f64).sqrt();
        let (found, wanted) = (mean(&found), mean(&wanted));
        assert!(
            (found - wanted).abs() < 4.0 * error + 1e-3,
            "terminal nodes of {terminal_min}: found {found}, wanted {wanted}, standard error {error}"
        );
    }
}

#[test]
fn errors_by_the_size_of_nodes_are_those_of_scikit_learn_and_scikit_survival() {
    let reference = reference();
    let (noisy, censored) = (&reference["classes"], &reference["survival"]);
    agrees(&noisy_classes(noisy), 2, &noisy["errors"]);
    // With three patients a node few of them have an event: the error is 0.015 higher, there as here.
    agrees(&few_events(censored), 6, &censored["errors"]);
}

#[test]
fn the_size_with_the_lowest_error_of_scikit_learn_is_chosen() {
    let reference = reference();
    let noisy = noisy_classes(&reference["classes"]);
    let errors = reference["classes"]["errors"].as_object().unwrap();
    let mean = |errors: &Value| -> f64 {
        let errors = errors.as_array().unwrap();
        errors.iter().map(|error| error.as_f64().unwrap()).sum()
    };
    let (best, _) = errors
        .iter()
        .min_by(|(_, a), (_, b)| mean(a).total_cmp(&mean(b)))
        .unwrap();
    for seed in 0..5 {
        let tuned = tune(&noisy, &settings(&noisy, 2, 1), Seed(seed)).unwrap();
        assert_eq!(tuned.terminal_min.to_string(), *best, "{tuned:?}");
        assert_eq!(tuned.candidates.len(), errors.len());
        // The script adds up both classes; brier_score_loss is half of that.
        for candidate in &tuned.candidates {
            let wanted = mean(&errors[&candidate.terminal_min.to_string()]) / (2 * SEEDS) as f64;
            let found = candidate.error;
            assert!((found - wanted).abs() < 0.01, "{found}, wanted {wanted}");
        }
        let again = tune(&noisy, &settings(&noisy, 2, 1), Seed(seed)).unwrap();
        assert_eq!(tuned, again);
    }
}

#[test]
fn the_error_of_the_chosen_size_is_lower_than_that_of_full_trees() {
    let reference = reference();
    for (cohort, features) in [
        (noisy_classes(&reference["classes"]), 2),
        (few_events(&reference["survival"]), 6),
    ] {
        let full = settings(&cohort, features, 1);
        let tuned = tune(&cohort, &full, Seed(1)).unwrap();
        // Judged by other trees than those that chose.
        let error = |settings: &Settings| {
            let grown = grow(&cohort, settings, Seed(99)).unwrap();
            let prediction = grown.predict_out_of_bag(cohort.columns()).unwrap();
            match prediction_error(&prediction, cohort.outcome())
                .unwrap()
                .measure
            {
                Measure::Classes { misclassified, .. } => misclassified,
                Measure::Survival { discordance } => discordance,
                Measure::Numeric { .. } => unreachable!(),
            }
        };
        let (before, after) = (error(&full), error(&tuned.applied_to(full.clone())));
        assert!(after < before - 0.01, "{before} before, {after} after");
    }
}

#[test]
fn what_follows_exactly_from_a_feature_is_grown_to_the_end() {
    let values: Vec<f64> = (0..400).map(f64::from).collect();
    let exact = cohort(vec![numeric("x", &values)], numbers(&values));
    let tuned = tune(&exact, &settings(&exact, 1, 1), Seed(1)).unwrap();
    assert_eq!(tuned.terminal_min, 1);
}

#[test]
fn a_small_cohort_has_few_candidates_and_one_without_a_prediction_the_finest() {
    let values: Vec<f64> = (0..30).map(f64::from).collect();
    let small = cohort(vec![numeric("x", &values)], numbers(&values));
    let tuned = tune(&small, &settings(&small, 1, 1), Seed(1)).unwrap();
    let sizes = tuned.candidates.iter().map(|one| one.terminal_min);
    assert_eq!(sizes.collect::<Vec<_>>(), [1, 3]);
    // A single patient is in every bag.
    let one = cohort(vec![numeric("x", &[1.0])], numbers(&[2.0]));
    let tuned = tune(&one, &settings(&one, 1, 1), Seed(1)).unwrap();
    assert_eq!(tuned.terminal_min, 1);
    assert!(tuned.candidates[0].error.is_nan());
    let nobody = cohort(vec![numeric("x", &[])], numbers(&[]));
    let refused = tune(&nobody, &settings(&nobody, 1, 1), Seed(1));
    assert_eq!(refused, Err(GrowError::NoPatients));
}

#[test]
fn a_rare_class_is_not_tuned_away_where_classes_weigh_alike() {
    // One patient of ten is of the second class, told by one feature but for noise.
    let feature: Vec<f64> = (0..600).map(|patient| f64::from(patient % 50)).collect();
    let codes: Vec<u32> = (0..600)
        .map(|patient| u32::from(patient % 50 < 5 || patient % 97 == 0))
        .collect();
    let rare = cohort(vec![numeric("x", &feature)], classes(&codes, 2));
    let balanced = Settings {
        class_weights: ClassWeights::Balanced,
        ..settings(&rare, 1, 1)
    };
    let tuned = tune(&rare, &balanced, Seed(1)).unwrap();
    let grown = grow(&rare, &tuned.applied_to(balanced), Seed(1)).unwrap();
    let Prediction::Classes(shares) = grown.predict_out_of_bag(rare.columns()).unwrap() else {
        unreachable!()
    };
    let found = shares.outer_iter().zip(&codes);
    let right = found
        .filter(|(row, code)| **code == 1 && row[1] > 0.5)
        .count();
    assert!(
        right >= 60,
        "{right} of {} found",
        codes.iter().sum::<u32>()
    );
    assert!(matches!(rare.outcome(), Outcome::Classes { .. }));
}
