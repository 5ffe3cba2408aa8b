//! Questions about who is alike on their way: against Google's protobuf (tests/golden), and what must be refused.

use crate::tests::{ask, left, requests_are_golden, result_is_golden};
use protocol::message::Request;
use protocol::message::neighbours::{self, Alike, Mean, Noised};
use protocol::method::Model;
use protocol::method::neighbours::model;
use protocol::progress::Ending;
use protocol::result::RunResult;
use std::sync::Arc;

/// Few, and many: how they fared.
pub(in crate::method) fn alike() -> Vec<Alike> {
    let noised = |sum, variance| Noised { sum, variance };
    vec![
        Alike {
            patients: 12.5,
            border: 0.75,
            classes: vec![noised(-1.0, 0.5), noised(13.5, 0.5)],
            sums: vec![noised(250.5, 16.0)],
        },
        Alike {
            patients: 340.0,
            border: 0.0,
            classes: vec![noised(40.0, 2.0), noised(300.0, 2.0)],
            sums: vec![noised(-0.5, 32.0)],
        },
    ]
}

fn features() -> Vec<Mean> {
    let mean = |patients, sum| Mean { patients, sum };
    vec![mean(12.5, 100.25), mean(0.0, 0.0)]
}

fn result(radii: Vec<f64>) -> RunResult {
    left(
        Ending::Completed,
        Model::Neighbours(model::Model {
            run: "heart-disease-1".to_owned(),
            patients: 690,
            grouped: 682,
            radii,
            everybody: alike().remove(1),
            alike: alike(),
            features: features(),
        }),
    )
}

#[test]
fn every_message_is_what_googles_protobuf_writes_and_reads_back_from_it() {
    let radii = Arc::new(vec![0.5, 1.25]);
    let requests = [
        ("measure", neighbours::Request::Measure),
        ("count_alike", neighbours::Request::Count(radii)),
    ];
    let requests = requests.map(|(name, request)| (name, ask(Request::Neighbours(request))));
    requests_are_golden(requests.into());
}

#[test]
fn what_a_run_leaves_is_what_googles_protobuf_writes_and_reads_back_from_it() {
    result_is_golden("neighbours", &result(vec![0.5, 1.25]));
}

#[test]
fn what_nobody_can_have_left_is_refused_with_what_was_wrong() {
    let refused = |radii| {
        let left = crate::decode_result(&crate::encode_result(&result(radii)));
        left.err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    assert_eq!(refused(vec![0.5]), "");
    assert!(refused(vec![f64::NAN]).contains("NaN"));
    assert!(refused(vec![1.0; 4]).contains("radii"));
}
