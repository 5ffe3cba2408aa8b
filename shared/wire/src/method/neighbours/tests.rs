//! Questions about who is alike on their way: against Google's protobuf (tests/golden), and what must be refused.

use crate::tests::{ask, left, requests_are_golden, result_is_golden};
use protocol::message::Request;
use protocol::message::neighbours::{self, Alike};
use protocol::method::Model;
use protocol::method::neighbours::model;
use protocol::progress::Ending;
use protocol::result::RunResult;
use std::sync::Arc;

fn alike() -> Vec<Alike> {
    vec![
        Alike {
            classes: vec![0, 12],
            sums: vec![250.5],
        },
        Alike {
            classes: vec![40, 300],
            sums: vec![-0.5],
        },
    ]
}

fn result(radii: Vec<f64>) -> RunResult {
    left(
        Ending::Completed,
        Model::Neighbours(model::Model {
            run: "heart-disease-1".to_owned(),
            patients: 690,
            radii,
            alike: alike(),
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
