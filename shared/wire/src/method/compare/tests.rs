//! Comparisons of similarities on their way: against Google's protobuf (tests/golden), and what must be refused.

use crate::method::forest::tests::trees;
use crate::tests::{ask, left, requests_are_golden, result_is_golden};
use ndarray::array;
use privacy::ErrorSums;
use protocol::assessment::{ErrorMeasure, EvaluationCounts, Gains};
use protocol::message::compare::{self, FamilyCounts, Judging};
use protocol::message::regression::{Design, Evaluating};
use protocol::message::{Request, forest};
use protocol::method::Model;
use protocol::method::compare::model::{self, Compared};
use protocol::method::compare::settings::Family;
use protocol::progress::Ending;
use protocol::result::RunResult;
use std::sync::Arc;

fn families() -> Vec<FamilyCounts> {
    let counts = |family: Family, confusion, errors| EvaluationCounts {
        rounded_to: 10,
        gains: Gains {
            areas: None,
            errors,
        },
        ..EvaluationCounts::new(family.name(), 5, confusion, None)
    };
    vec![
        FamilyCounts {
            family: Family::Euclidean,
            measure: ErrorMeasure::Misclassified,
            counts: counts(
                Family::Euclidean,
                Some(vec![vec![40, 10], vec![20, 30]]),
                None,
            ),
            errors: Some(ErrorSums {
                total: 100,
                error: 20.0,
            }),
        },
        FamilyCounts {
            family: Family::Cosine,
            measure: ErrorMeasure::Misclassified,
            counts: counts(Family::Cosine, None, None),
            errors: None,
        },
        FamilyCounts {
            family: Family::Gower,
            measure: ErrorMeasure::Squared,
            counts: counts(Family::Gower, None, Some([90.0, -1.5, 4.0, -1.5, 90.0])),
            errors: Some(ErrorSums {
                total: 90,
                error: 12.5,
            }),
        },
    ]
}

fn result(families: Vec<FamilyCounts>) -> RunResult {
    let compared = |counts| Compared { counts, sites: 3 };
    let why = "the metric of a fold is empty".to_owned();
    left(
        Ending::Completed,
        Model::Compare(model::Model {
            patients: 690,
            neighbours: 5,
            folds: 4,
            families: families.into_iter().map(compared).collect(),
            left_out: vec![(Family::Unpsl, why)],
        }),
    )
}

#[test]
fn every_message_is_what_googles_protobuf_writes_and_reads_back_from_it() {
    let point = Evaluating {
        design: Arc::new(Design {
            cells: Vec::new(),
            rows: vec![0, 2],
            fold: Some(1),
        }),
        at: Arc::new(vec![0.5, -0.25, 1.0]),
    };
    let judging = Judging {
        metrics: Arc::new(vec![array![[0.5], [1.0]], array![[0.25], [0.0]]]),
        regressions: Arc::new(vec![point]),
        forest: None,
        judges: 3,
    };
    let in_common = Judging {
        forest: Some(forest::Judging {
            first_tree: 1,
            trees: Arc::new(trees()),
        }),
        ..judging.clone()
    };
    let asked = |judging| ask(Request::Compare(compare::Request::Judge(judging)));
    requests_are_golden(vec![
        ("judge_folds", asked(judging)),
        ("judge_folds_in_common", asked(in_common)),
    ]);
}

#[test]
fn what_a_run_leaves_is_what_googles_protobuf_writes_and_reads_back_from_it() {
    result_is_golden("compared", &result(families()));
}

#[test]
fn what_nobody_can_have_left_is_refused_with_what_was_wrong() {
    let refused = |change: fn(&mut FamilyCounts)| {
        let mut all = families();
        change(&mut all[2]);
        let left = crate::decode_result(&crate::encode_result(&result(all)));
        left.err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    assert_eq!(refused(|_| {}), "");
    let unknown = refused(|family| family.counts.rule = "nearest".to_owned());
    assert!(unknown.contains("unknown family"), "{unknown}");
    let unbounded = refused(|family| family.counts.gains.errors = Some([f64::NAN; 5]));
    assert!(unbounded.contains("NaN"), "{unbounded}");
    let many: Vec<FamilyCounts> = (0..8).flat_map(|_| families()).collect();
    let many = crate::decode_result(&crate::encode_result(&result(many)));
    assert!(many.is_err());
}
