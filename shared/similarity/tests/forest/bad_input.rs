//! Input that defines no forest, or a poor one.

use ndarray::Array1;
use similarity::cohort::{Cohort, Column, Outcome, Values};
use similarity::judge::error::{Measure, prediction_error};
use similarity::learn::forest::trees::predict::Prediction;
use similarity::learn::forest::{
    ClassWeights, EventTimes, FeaturesPerSplit, GrowError, Grown, Sampling, SchemaMismatch,
    Settings, grow, importance,
};
use similarity::numeric::seed::Seed;

use crate::sample::*;

fn refused(cohort: &Cohort, settings: &Settings) -> GrowError {
    grow(cohort, settings, Seed(1)).unwrap_err()
}

fn single_nodes(grown: &Grown) -> bool {
    grown.forest.trees().iter().all(|tree| tree.nodes() == 1)
}

fn small() -> Cohort {
    cohort(
        vec![numeric("x", &[1.0, 2.0, 3.0])],
        numbers(&[1.0, 2.0, 4.0]),
    )
}

#[test]
fn no_patients_no_features_and_no_trees_are_refused() {
    let nobody = cohort(vec![numeric("x", &[])], numbers(&[]));
    let settings = Settings::for_outcome(nobody.outcome());
    assert_eq!(refused(&nobody, &settings), GrowError::NoPatients);
    assert_eq!(
        refused(&cohort(vec![], numbers(&[1.0])), &settings),
        GrowError::NoFeatures
    );
    assert_eq!(
        refused(
            &small(),
            &Settings {
                trees: 0,
                ..settings
            }
        ),
        GrowError::NoTrees
    );
}

#[test]
fn one_patient_gives_trees_of_one_node_and_no_out_of_bag_prediction() {
    let alone = cohort(vec![numeric("x", &[1.0])], numbers(&[7.0]));
    let grown = grown(&alone, &Settings::for_outcome(alone.outcome()));
    assert!(single_nodes(&grown));
    assert_eq!(
        grown.forest.predict(alone.columns()).unwrap(),
        Prediction::Numeric(Array1::from(vec![7.0]))
    );
    let out_of_bag = grown.predict_out_of_bag(alone.columns()).unwrap();
    assert_eq!(prediction_error(&out_of_bag, alone.outcome()), None);
    let found = importance::permutation(&grown, &alone, Seed(1)).unwrap();
    assert!(found.mean[0].is_nan());
}

#[test]
fn constant_and_wholly_missing_features_split_nothing() {
    let y = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
    let dull = cohort(
        vec![
            numeric("constant", &[3.0; 7]),
            numeric("missing", &[f64::NAN; 7]),
            categorical("level", &[1; 7], &["a", "b"]),
            categorical("no level", &[u32::MAX; 7], &["a", "b"]),
            categorical("no levels at all", &[u32::MAX; 7], &[]),
        ],
        numbers(&y),
    );
    for search in [
        similarity::learn::forest::SplitSearch::Best,
        similarity::learn::forest::SplitSearch::Random,
    ] {
        let settings = Settings {
            search,
            ..one_full_tree(dull.outcome())
        };
        assert!(single_nodes(&grown(&dull, &settings)));
    }
    // Beside them one useful feature is found, though only one is drawn at a time.
    let mut columns = dull.columns().to_vec();
    columns.push(numeric("useful", &y));
    let useful = cohort(columns, numbers(&y));
    let settings = Settings {
        features_per_split: FeaturesPerSplit::Count(1),
        ..one_full_tree(useful.outcome())
    };
    assert_eq!(
        grown(&useful, &settings).forest.trees()[0].terminal_nodes(),
        7
    );
}

#[test]
fn one_class_and_equal_outcomes_give_trees_of_one_node() {
    for outcome in [
        classes(&[1, 1, 1], 2),
        classes(&[2, 2, 2], 3),
        numbers(&[5.0; 3]),
    ] {
        let same = cohort(vec![numeric("x", &[1.0, 2.0, 3.0])], outcome);
        assert!(single_nodes(&grown(&same, &one_full_tree(same.outcome()))));
    }
    let only = cohort(vec![numeric("x", &[1.0, 2.0])], classes(&[0, 0], 1));
    assert!(single_nodes(&grown(&only, &one_full_tree(only.outcome()))));
}

#[test]
fn a_cohort_without_events_is_refused_and_equal_times_are_not() {
    let x = numeric("x", &[1.0, 2.0, 3.0, 4.0]);
    let censored = cohort(
        vec![x.clone()],
        survival(&[1.0, 2.0, 3.0, 4.0], &[false; 4]),
    );
    assert_eq!(
        refused(&censored, &one_full_tree(censored.outcome())),
        GrowError::NoEvents
    );
    let tied = cohort(
        vec![x.clone()],
        survival(&[2.0; 4], &[true, true, false, true]),
    );
    let forest = grown(&tied, &one_full_tree(tied.outcome())).forest;
    let Prediction::CumulativeHazard(hazard) = forest.predict(tied.columns()).unwrap() else {
        panic!("not a hazard")
    };
    assert!(hazard.iter().all(|value| (0.0..=1.0).contains(value)));
    let all_events = cohort(vec![x], survival(&[2.0; 4], &[true; 4]));
    // Nobody outlives the one event time: the statistic has no variance and nothing is split.
    assert!(single_nodes(&grown(
        &all_events,
        &one_full_tree(all_events.outcome())
    )));
    let prediction = grown(&all_events, &one_full_tree(all_events.outcome()))
        .forest
        .predict(all_events.columns())
        .unwrap();
    let error = prediction_error(&prediction, all_events.outcome()).unwrap();
    assert!(matches!(error.measure, Measure::Survival { discordance } if discordance.is_nan()));
}

#[test]
fn unusable_settings_are_refused() {
    let cohort = small();
    let settings = Settings::for_outcome(cohort.outcome());
    for found in [0, 2] {
        let drawn = FeaturesPerSplit::Count(found);
        assert_eq!(
            refused(
                &cohort,
                &Settings {
                    features_per_split: drawn,
                    ..settings.clone()
                }
            ),
            GrowError::FeaturesPerSplit { found, features: 1 }
        );
    }
    for share in [0.0, 1.5, f64::NAN] {
        let sampling = Sampling::Subsample { share };
        assert!(matches!(
            refused(
                &cohort,
                &Settings {
                    sampling,
                    ..settings.clone()
                }
            ),
            GrowError::Share { .. }
        ));
    }
}

#[test]
fn unusable_weights_and_event_times_are_refused() {
    let two = cohort(vec![numeric("x", &[1.0, 2.0])], classes(&[0, 1], 2));
    for (weights, found) in [
        (vec![1.0], 1),
        (vec![1.0, 0.0], 1),
        (vec![1.0, f64::NAN], 1),
        (vec![1.0; 3], 3),
    ] {
        let class_weights = ClassWeights::Given(weights);
        assert_eq!(
            refused(
                &two,
                &Settings {
                    class_weights,
                    ..Settings::for_outcome(two.outcome())
                }
            ),
            GrowError::ClassWeights { found, wanted: 2 }
        );
    }
    let followed = cohort(
        vec![numeric("x", &[1.0, 2.0])],
        survival(&[1.0, 2.0], &[true, false]),
    );
    for times in [vec![], vec![2.0, 1.0], vec![f64::NAN], vec![1.0, 1.0]] {
        let settings = Settings {
            event_times: EventTimes::Given(times),
            ..Settings::for_outcome(followed.outcome())
        };
        assert!(matches!(
            refused(&followed, &settings),
            GrowError::EventTimes { .. }
        ));
    }
    let none = EventTimes::Observed { at_most: 0 };
    let settings = Settings {
        event_times: none,
        ..Settings::for_outcome(followed.outcome())
    };
    assert!(matches!(
        refused(&followed, &settings),
        GrowError::EventTimes { .. }
    ));
}

#[test]
fn unusable_outcomes_and_codes_are_refused() {
    let settings = Settings::for_outcome(&numbers(&[]));
    let x = numeric("x", &[1.0, 2.0]);
    let endless = cohort(vec![x.clone()], numbers(&[f64::INFINITY, f64::NAN]));
    assert_eq!(
        refused(&endless, &settings),
        GrowError::Outcome { found: 2 }
    );
    assert_eq!(
        refused(&cohort(vec![x], classes(&[0, 5], 2)), &settings),
        GrowError::Outcome { found: 1 }
    );
    let stray = cohort(
        vec![categorical("group", &[0, 3], &["a", "b"])],
        numbers(&[1.0, 2.0]),
    );
    assert_eq!(
        refused(&stray, &settings),
        GrowError::Codes {
            column: "group".into(),
            levels: 2
        }
    );
}

#[test]
fn infinite_values_are_split_like_others() {
    let x = [f64::NEG_INFINITY, 1.0, f64::INFINITY];
    let endless = cohort(vec![numeric("x", &x)], numbers(&[1.0, 2.0, 4.0]));
    for search in [
        similarity::learn::forest::SplitSearch::Best,
        similarity::learn::forest::SplitSearch::Random,
    ] {
        let settings = Settings {
            search,
            ..one_full_tree(endless.outcome())
        };
        let found = grown(&endless, &settings)
            .forest
            .predict(endless.columns())
            .unwrap();
        assert_eq!(
            found,
            Prediction::Numeric(Array1::from(vec![1.0, 2.0, 4.0]))
        );
    }
}

#[test]
fn columns_that_are_not_the_forests_are_refused() {
    let forest = grown(&small(), &one_full_tree(small().outcome())).forest;
    let apply = |columns: Vec<Column>| forest.apply(&columns).unwrap_err();
    assert_eq!(
        apply(vec![]),
        SchemaMismatch::Columns {
            found: 0,
            wanted: 1
        }
    );
    assert!(matches!(
        apply(vec![numeric("z", &[1.0])]),
        SchemaMismatch::Feature { .. }
    ));
    assert!(matches!(
        apply(vec![categorical("x", &[0], &["a"])]),
        SchemaMismatch::Feature { .. }
    ));
    let pair = cohort(
        vec![
            numeric("x", &[1.0, 2.0]),
            categorical("group", &[0, 1], &["a", "b"]),
        ],
        numbers(&[1.0, 2.0]),
    );
    let grown = grown(&pair, &one_full_tree(pair.outcome()));
    let uneven = [
        numeric("x", &[1.0]),
        categorical("group", &[0, 1], &["a", "b"]),
    ];
    assert!(matches!(
        grown.forest.apply(&uneven),
        Err(SchemaMismatch::Length { .. })
    ));
    let stray = [
        numeric("x", &[1.0]),
        categorical("group", &[7], &["a", "b"]),
    ];
    assert!(matches!(
        grown.forest.apply(&stray),
        Err(SchemaMismatch::Codes { .. })
    ));
    let fewer = [
        numeric("x", &[1.0]),
        categorical("group", &[0], &["a", "b"]),
    ];
    assert_eq!(
        grown.predict_out_of_bag(&fewer),
        Err(SchemaMismatch::Patients {
            found: 1,
            wanted: 2
        })
    );
    let none = [numeric("x", &[]), categorical("group", &[], &["a", "b"])];
    assert_eq!(grown.forest.apply(&none).unwrap().patients(), 0);
}

#[test]
fn no_patient_value_shows_in_debug_output() {
    let secret = 123.456_789;
    let cohort = cohort(
        vec![Column {
            name: "x".into(),
            values: Values::Numeric(Array1::from(vec![secret; 3])),
        }],
        Outcome::Numeric(Array1::from(vec![secret; 3])),
    );
    let grown = grown(&cohort, &one_full_tree(cohort.outcome()));
    let nodes = grown.forest.apply(cohort.columns()).unwrap();
    let prediction = grown.forest.predict(cohort.columns()).unwrap();
    let shown = format!("{grown:?} {nodes:?} {prediction:?} {:?}", grown.in_bag);
    assert!(!shown.contains("123.4"), "{shown}");
}
