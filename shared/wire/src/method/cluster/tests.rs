//! Groups of patients on their way: against Google's protobuf (tests/golden), and what must be refused.

use crate::method::neighbours::tests::alike;
use crate::tests::{ask, left, requests_are_golden, result_is_golden};
use ndarray::{Array2, array};
use protocol::message::Request;
use protocol::message::cluster::{self, Divided, Dividing, Mark, Marking, Marks};
use protocol::method::Model;
use protocol::method::cluster::model::{self, Alike, Bias, Tried};
use protocol::progress::Ending;
use protocol::result::RunResult;
use std::sync::Arc;

fn fared() -> Vec<Alike> {
    let mut fared = alike();
    fared.reverse();
    fared
}

fn dividing() -> Dividing {
    Dividing {
        divisions: vec![
            Divided {
                sample: 0,
                clusters: 2,
            },
            Divided {
                sample: 3,
                clusters: 2,
            },
        ],
        centres: array![[0.5], [1.5], [0.25], [-1.0]],
    }
}

fn marks() -> Vec<Marks> {
    let mark = Mark {
        patients: 340,
        sum: 54.5,
        squares: 100.0,
    };
    vec![
        Marks {
            sites: 4,
            features: vec![mark.clone(), Mark::default()],
        },
        Marks {
            sites: 1,
            features: vec![Mark::default(), mark],
        },
    ]
}

fn result(stability: f64) -> RunResult {
    left(
        Ending::Completed,
        Model::Cluster(model::Model {
            run: "heart-disease-1".to_owned(),
            patients: 690,
            grouped: 682,
            steps: 9,
            unsettled: 1,
            tried: vec![
                Tried {
                    bias: Some(Bias {
                        value: 0.75,
                        share: None,
                    }),
                    stability: vec![0.875, stability],
                    fared: fared(),
                    is_stable: true,
                },
                Tried {
                    bias: None,
                    stability: vec![0.5, 0.25],
                    fared: fared(),
                    is_stable: false,
                },
            ],
            shown: Some(0),
            centres: array![[0.5], [1.5]],
            marks: marks(),
        }),
    )
}

#[test]
fn every_message_is_what_googles_protobuf_writes_and_reads_back_from_it() {
    let marking = Marking {
        centres: array![[0.5], [1.5]],
        fared: fared(),
    };
    let requests = [
        ("measure_spread", cluster::Request::Measure),
        ("step", cluster::Request::Step(Arc::new(dividing()))),
        ("compare", cluster::Request::Compare(Arc::new(dividing()))),
        ("mark", cluster::Request::Mark(Arc::new(marking))),
    ];
    let requests = requests.map(|(name, request)| (name, ask(Request::Cluster(request))));
    requests_are_golden(requests.into());
}

#[test]
fn what_a_run_leaves_is_what_googles_protobuf_writes_and_reads_back_from_it() {
    result_is_golden("cluster", &result(0.625));
}

#[test]
fn what_nobody_can_have_said_is_refused_with_what_was_wrong() {
    let left = |stability| {
        let left = crate::decode_result(&crate::encode_result(&result(stability)));
        left.err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    assert_eq!(left(0.5), "");
    assert!(left(f64::NAN).contains("NaN"));
    let refused = |asked: Dividing| {
        let asked = Request::Cluster(cluster::Request::Step(Arc::new(asked)));
        let frames = crate::encode_to_site(ask(asked));
        let read = crate::decode_to_site(&frames);
        read.err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    assert_eq!(refused(dividing()), "");
    let mut other = dividing();
    other.divisions[0].clusters = 3;
    assert!(refused(other).contains("4 centres"));
    let mut other = dividing();
    other.divisions[1].sample = 1_000;
    assert!(refused(other).contains("a sample"));
    let other = Dividing {
        centres: Array2::from_elem((4, 1), f64::INFINITY),
        ..dividing()
    };
    assert!(refused(other).contains("infinity"));
}
