//! The same data in scikit-learn, lifelines, and R's survival and ranger; `../reference/forest.py` made the
//! numbers.

use serde_json::Value;
use similarity::cohort::{Cohort, Outcome};
use similarity::judge::error::{Measure, prediction_error};
use similarity::learn::forest::trees::predict::Prediction;
use similarity::learn::forest::{EventTimes, FeaturesPerSplit, Grown, Sampling, Settings, grow};
use similarity::numeric::seed::Seed;
use similarity::uses::nearest::{nearest, proximity_sums};
use similarity::uses::outlier::outlier_measure;
use similarity::uses::scaling::{ScalingStatus, classical_scaling};

use crate::sample::*;

fn close(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() <= 1e-9 * wanted.abs().max(1.0)
}

#[test]
fn a_regression_tree_parts_patients_as_scikit_learn() {
    let reference = &reference()["trees"];
    let y = floats(&reference["y"]);
    for case in reference["regression"].as_array().unwrap() {
        let cohort = cohort(columns(&reference["x"]), numbers(&y));
        let settings = Settings {
            terminal_min: case["leaf"].as_u64().unwrap() as u32,
            ..one_full_tree(cohort.outcome())
        };
        let forest = grown(&cohort, &settings).forest;
        let nodes = forest.apply(cohort.columns()).unwrap();
        assert_eq!(canonical(nodes.of_tree(0)), codes(&case["nodes"]));
        let Prediction::Numeric(found) = forest.predict(cohort.columns()).unwrap() else {
            panic!("not numeric")
        };
        let wanted = floats(&case["predicted"]);
        assert!(
            found
                .iter()
                .zip(&wanted)
                .all(|(found, wanted)| close(*found, *wanted))
        );
    }
}

#[test]
fn a_classification_tree_parts_patients_as_scikit_learn() {
    let reference = &reference()["trees"];
    for case in reference["classification"].as_array().unwrap() {
        let count = case["classes"].as_u64().unwrap() as usize;
        let cohort = cohort(
            columns(&reference["x"]),
            classes(&codes(&case["label"]), count),
        );
        let settings = Settings {
            terminal_min: 9,
            depth_max: 3,
            ..one_full_tree(cohort.outcome())
        };
        let forest = grown(&cohort, &settings).forest;
        let nodes = forest.apply(cohort.columns()).unwrap();
        assert_eq!(canonical(nodes.of_tree(0)), codes(&case["nodes"]));
        let Prediction::Classes(found) = forest.predict(cohort.columns()).unwrap() else {
            panic!("not classes")
        };
        let wanted = matrix(&case["predicted"]);
        assert!(
            found
                .iter()
                .zip(&wanted)
                .all(|(found, wanted)| close(*found, *wanted))
        );
    }
}

struct Spread {
    mean: f64,
    deviation: f64,
}

fn spread(values: &[f64]) -> Spread {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Spread {
        mean,
        deviation: (squares / (values.len() - 1) as f64).sqrt(),
    }
}

fn out_of_bag_errors(cohort: &Cohort, settings: &Settings, repeats: u64) -> Vec<f64> {
    (0..repeats)
        .map(|seed| {
            let grown = grow(cohort, settings, Seed(seed)).unwrap();
            let prediction = grown.predict_out_of_bag(cohort.columns()).unwrap();
            match prediction_error(&prediction, cohort.outcome())
                .unwrap()
                .measure
            {
                Measure::Numeric { mean_squared } => mean_squared,
                Measure::Classes { misclassified, .. } => misclassified,
                Measure::Survival { discordance } => discordance,
            }
        })
        .collect()
}

/// Means agree when they differ by less than 4 standard errors of their difference, plus `slack`.
fn agree(found: &[f64], wanted: &Value, slack: f64) -> bool {
    let (found, wanted) = (spread(found), spread(&floats(wanted)));
    let error = (found.deviation.powi(2) + wanted.deviation.powi(2)).sqrt() / 20_f64.sqrt();
    let same = (found.mean - wanted.mean).abs() < 4.0 * error + slack;
    assert!(
        same,
        "found {}, wanted {}, standard error {error}",
        found.mean, wanted.mean
    );
    same
}

#[test]
fn out_of_bag_errors_are_those_of_scikit_learn_and_ranger() {
    let reference = reference();
    let (sklearn, survived) = (&reference["out_of_bag"], &reference["survival"]);
    let regression = cohort(columns(&sklearn["x"]), numbers(&floats(&sklearn["y"])));
    let two = Settings {
        features_per_split: FeaturesPerSplit::Count(2),
        node_size: 1,
        ..Settings::for_outcome(regression.outcome())
    };
    assert!(agree(
        &out_of_bag_errors(&regression, &two, 20),
        &sklearn["mse"],
        0.0
    ));
    let iris = cohort(
        columns(&sklearn["iris"]),
        classes(&codes(&sklearn["iris_class"]), 3),
    );
    // 150 patients: one more or less misclassified is 0.0067.
    assert!(agree(
        &out_of_bag_errors(&iris, &two, 20),
        &sklearn["iris_error"],
        0.003
    ));
    let follow_up = survival_cohort(survived, "fine_time");
    let two = Settings {
        event_times: EventTimes::Observed { at_most: 1000 },
        ..two
    };
    // ranger asks its minimal node size of both children of a survival split: 1 means the same to both.
    assert!(agree(
        &out_of_bag_errors(&follow_up, &two, 20),
        &survived["ranger_error"],
        0.002
    ));
}

fn events(value: &Value) -> Vec<bool> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event.as_bool().unwrap())
        .collect()
}

fn survival_cohort(reference: &Value, time: &str) -> Cohort {
    let outcome = survival(&floats(&reference[time]), &events(&reference["event"]));
    cohort(columns(&reference["x"]), outcome)
}

#[test]
fn a_survival_split_has_the_log_rank_statistic_of_lifelines_and_r() {
    let reference = &reference()["survival"];
    let outcome = survival(&floats(&reference["time"]), &events(&reference["event"]));
    for (group, values) in reference["groups"].as_array().unwrap().iter().enumerate() {
        let cohort = cohort(vec![numeric("group", &floats(values))], outcome.clone());
        let settings = Settings {
            depth_max: 1,
            ..one_full_tree(&outcome)
        };
        let found = grown(&cohort, &settings).forest.impurity_importance()[0];
        assert!(close(
            found,
            reference["log_rank_lifelines"][group].as_f64().unwrap()
        ));
        assert!(close(
            found,
            reference["log_rank_r"][group].as_f64().unwrap()
        ));
    }
}

#[test]
fn a_survival_tree_parts_patients_as_scikit_survival() {
    let reference = &reference()["survival"];
    let cohort = survival_cohort(reference, "fine_time");
    let settings = Settings {
        terminal_min: 15,
        depth_max: 3,
        event_times: EventTimes::Observed { at_most: 1000 },
        ..one_full_tree(cohort.outcome())
    };
    let nodes = grown(&cohort, &settings)
        .forest
        .apply(cohort.columns())
        .unwrap();
    assert_eq!(canonical(nodes.of_tree(0)), codes(&reference["nodes"]));
}

#[test]
fn an_unsplit_survival_tree_predicts_the_nelson_aalen_hazard() {
    let reference = &reference()["survival"];
    let cohort = survival_cohort(reference, "time");
    let settings = Settings {
        depth_max: 0,
        ..one_full_tree(cohort.outcome())
    };
    let forest = grown(&cohort, &settings).forest;
    let Prediction::CumulativeHazard(found) = forest.predict(cohort.columns()).unwrap() else {
        panic!("not a hazard")
    };
    let similarity::learn::forest::Target::Survival { event_times } = &forest.schema().target
    else {
        panic!("not survival")
    };
    assert_eq!(*event_times, floats(&reference["times"]));
    let wanted = floats(&reference["hazard"]);
    assert!(
        found
            .row(7)
            .iter()
            .zip(&wanted)
            .all(|(found, wanted)| close(*found, *wanted))
    );
}

#[test]
fn an_end_at_time_0_counts_as_in_r_and_scikit_survival() {
    let text = include_str!("../reference/time_zero.json");
    let reference: Value = serde_json::from_str(text).unwrap();
    let event: Vec<bool> = floats(&reference["event"])
        .iter()
        .map(|event| *event == 1.0)
        .collect();
    let same = numeric("x", &vec![1.0; event.len()]);
    let cohort = cohort(vec![same], survival(&floats(&reference["time"]), &event));
    let forest = grown(&cohort, &one_full_tree(cohort.outcome())).forest;
    let Prediction::CumulativeHazard(found) = forest.predict(cohort.columns()).unwrap() else {
        panic!("not a hazard")
    };
    let similarity::learn::forest::Target::Survival { event_times } = &forest.schema().target
    else {
        panic!("not survival")
    };
    assert_eq!(*event_times, floats(&reference["times"]));
    for wanted in ["hazard", "hazard_r"] {
        let wanted = floats(&reference[wanted]);
        assert_eq!(found.ncols(), wanted.len());
        let alike = |(found, wanted): (&f64, &f64)| close(*found, *wanted);
        assert!(found.row(0).iter().zip(&wanted).all(alike));
    }
    let risk = floats(&reference["risk"]);
    let hazard = ndarray::Array2::from_shape_vec((risk.len(), 1), risk).unwrap();
    let error = prediction_error(&Prediction::CumulativeHazard(hazard), cohort.outcome()).unwrap();
    let Measure::Survival { discordance } = error.measure else {
        panic!("not survival")
    };
    for wanted in ["concordance", "concordance_r"] {
        assert!(close(
            1.0 - discordance,
            reference[wanted].as_f64().unwrap()
        ));
    }
}

#[test]
fn discordance_is_one_minus_the_concordance_of_lifelines() {
    let reference = &reference()["survival"];
    let cohort = survival_cohort(reference, "time");
    let risk: Vec<f64> = floats(&reference["x"][0])
        .iter()
        .map(|risk| risk + 10.0)
        .collect();
    let hazard = ndarray::Array2::from_shape_vec((risk.len(), 1), risk).unwrap();
    let error = prediction_error(&Prediction::CumulativeHazard(hazard), cohort.outcome()).unwrap();
    let Measure::Survival { discordance } = error.measure else {
        panic!("not survival")
    };
    assert!(close(
        1.0 - discordance,
        reference["risk_concordance"].as_f64().unwrap()
    ));
}

#[test]
fn neighbours_sums_outliers_and_scaling_agree_with_numpy_on_scikit_learns_terminal_nodes() {
    let reference = &reference()["proximities"];
    let nodes = nodes(&reference["leaves"]);
    let label = codes(&reference["classes"]);
    let row = floats(&reference["proximity_row"]);
    let near = &nearest(&nodes, 12).unwrap()[60];
    let mut order: Vec<usize> = (0..row.len()).filter(|&other| other != 60).collect();
    order.sort_by(|&a, &b| row[b].total_cmp(&row[a]).then(a.cmp(&b)));
    for (neighbour, &wanted) in near.neighbours.iter().zip(&order) {
        assert_eq!(neighbour.patient as usize, wanted);
        assert!(close(neighbour.proximity, row[wanted]));
    }
    let last = row[order[11]];
    assert_eq!(
        near.tied,
        order[12..]
            .iter()
            .filter(|&&other| row[other] == last)
            .count()
    );

    let sums = proximity_sums(&nodes, &nodes, &label, 3).unwrap();
    assert!(
        sums.iter()
            .zip(&matrix(&reference["sums"]))
            .all(|(a, b)| close(*a, *b))
    );

    let outlier = outlier_measure(&nodes, &label).unwrap();
    let wanted = floats(&reference["outlier"]);
    assert!(
        outlier
            .iter()
            .zip(&wanted)
            .all(|(a, b)| (a - b).abs() < 1e-6 * b.abs().max(1.0))
    );

    let scaling = classical_scaling(&nodes, 2, Seed(1)).unwrap();
    assert_eq!(scaling.status, ScalingStatus::Settled);
    let values = floats(&reference["eigenvalues"]);
    assert!(
        scaling
            .eigenvalues
            .iter()
            .zip(&values)
            .all(|(a, b)| close(*a, *b))
    );
    let wanted = matrix(&reference["coordinates"]);
    assert!(
        scaling
            .coordinates
            .iter()
            .zip(&wanted)
            .all(|(a, b)| (a - b).abs() < 1e-6)
    );
}

#[test]
fn survival_outcomes_are_weighed_in_full() {
    // A grid of all event times and one of a few agree in what they predict, roughly.
    let cohort = survival_cohort(&reference()["survival"], "fine_time");
    assert!(matches!(cohort.outcome(), Outcome::Survival { .. }));
    let error = |at_most| {
        let event_times = EventTimes::Observed { at_most };
        let settings = Settings {
            trees: 100,
            event_times,
            node_size: 15,
            ..Settings::for_outcome(cohort.outcome())
        };
        out_of_bag_errors(&cohort, &settings, 1)[0]
    };
    assert!((error(1000) - error(12)).abs() < 0.03);
}
/// In-bag counts must weigh like copies of the patients.
#[test]
fn a_bootstrapped_tree_is_the_tree_of_the_copied_patients() {
    let reference = reference();
    let survived = &reference["survival"];
    let sklearn = &reference["out_of_bag"];
    let all = [
        survival_cohort(survived, "fine_time"),
        survival_cohort(survived, "time"),
        cohort(columns(&sklearn["x"]), numbers(&floats(&sklearn["y"]))),
        cohort(
            columns(&sklearn["iris"]),
            classes(&codes(&sklearn["iris_class"]), 3),
        ),
    ];
    for there in &all {
        // Deeper down splits tie, and ties fall by the order in which features are drawn.
        let settings = Settings {
            sampling: Sampling::Bootstrap,
            depth_max: 4,
            node_size: 15,
            // Patients are counted once here, and copies each for itself there.
            terminal_min: 1,
            event_times: EventTimes::Observed { at_most: 1000 },
            ..one_full_tree(there.outcome())
        };
        let bootstrapped = grown(there, &settings);
        let copies: Vec<usize> = bootstrapped
            .in_bag
            .of_tree(0)
            .iter()
            .enumerate()
            .flat_map(|(patient, &count)| vec![patient; usize::from(count)])
            .collect();
        let copied = select(there, &copies);
        let whole = grown(
            &copied,
            &Settings {
                sampling: Sampling::Whole,
                ..settings
            },
        );
        let of_counts = bootstrapped.forest.apply(copied.columns()).unwrap();
        let of_copies = whole.forest.apply(copied.columns()).unwrap();
        assert_eq!(
            canonical(of_counts.of_tree(0)),
            canonical(of_copies.of_tree(0))
        );
        let predicted = |grown: &Grown| match grown.forest.predict(copied.columns()).unwrap() {
            Prediction::Numeric(means) => means.to_vec(),
            Prediction::Classes(shares) => shares.iter().copied().collect(),
            Prediction::CumulativeHazard(hazard) => hazard.column(hazard.ncols() - 1).to_vec(),
        };
        let (found, wanted) = (predicted(&bootstrapped), predicted(&whole));
        assert!(
            found
                .iter()
                .zip(&wanted)
                .all(|(found, wanted)| close(*found, *wanted))
        );
    }
}
