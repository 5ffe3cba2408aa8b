//! UnPSL on its way: against Google's protobuf (tests/golden), round trips, and what must be refused.

use crate::encoding::raw::MatrixChunk;
use crate::encoding::{decode_to_coordinator, decode_to_site, encode_to_site};
use crate::error::WireError;
use crate::generated as pb;
use crate::tests::{
    ask, coordinator_frames, left, matrix, number, reply, requests_are_golden, result_is_golden,
};
use bytes::Bytes;
use ndarray::{Array2, array};
use privacy::Covered;
use privacy::sums::Words;
use proptest::prelude::*;
use prost::Message;
use protocol::message::ToCoordinator;
use protocol::message::unpsl::{
    Centre, Derivatives, Differentiating, DualStep, Finishing, FoldChoice, Form, Part, Round,
    Validating,
};
use protocol::message::{Answer, Request, ToSite, unpsl};
use protocol::method::Model;
use protocol::method::unpsl::model::{self, FeatureResult, RoundRow, SelectionRow};
use protocol::progress::Ending;
use protocol::result::RunResult;
use std::sync::Arc;

fn asked(request: unpsl::Request) -> ToSite {
    ask(Request::Unpsl(request))
}

/// A question with one matrix.
fn finishing(consensus: Array2<f64>) -> ToSite {
    asked(unpsl::Request::Finish(Finishing {
        consensus: Arc::new(consensus),
        form: Form::Distance,
        neighbours: 5,
        folds: Arc::default(),
        judges: 0,
        chosen: Arc::default(),
    }))
}

#[test]
fn every_request_is_what_googles_protobuf_writes_and_reads_back_from_it() {
    let consensus = array![[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]];
    let round = Round {
        centre: Centre::Sent(-&consensus),
        consensus: Arc::new(consensus),
        penalty: 1.5,
        tolerance: 1e-6,
        part: Part::whole(Form::InnerProduct),
    };
    let fold = Round {
        consensus: Arc::new(array![[1.0]]),
        centre: Centre::Sent(array![[-1.0]]),
        penalty: 1.5,
        tolerance: 1e-3,
        part: Part {
            fold: Some(0),
            ..Part::whole(Form::Distance)
        },
    };
    let certificate = Round {
        consensus: Arc::new(array![[1.0]]),
        centre: Centre::Gradient,
        penalty: 2.0,
        tolerance: 1e-9,
        part: Part::whole(Form::InnerProduct),
    };
    let dual = Round {
        consensus: Arc::new(array![[1.0]]),
        centre: Centre::Dual(DualStep {
            moves: 3,
            before: 2.5,
            after: 0.5,
            weights: Vec::new(),
        }),
        penalty: 2.0,
        tolerance: 1e-9,
        part: Part::whole(Form::InnerProduct),
    };
    let differentiating = Differentiating {
        metrics: Arc::new(vec![array![[0.5], [-0.5]], array![[0.25], [-0.25]]]),
        parts: vec![
            Part::whole(Form::InnerProduct),
            Part::without(Form::Distance, 0),
        ],
        rows: Arc::new(vec![None; 2]),
    };
    let of_rows = Differentiating {
        metrics: Arc::new(vec![array![[0.5], [-0.5]], array![[0.0], [0.0]]]),
        parts: vec![Part::whole(Form::InnerProduct); 2],
        rows: Arc::new(vec![Some(vec![0, 300]), Some(Vec::new())]),
    };
    let validating = Validating {
        models: Arc::new(vec![array![[0.5], [-0.5]], array![[0.25], [-0.25]]]),
        folds: 2,
        nested: false,
        neighbours: vec![1, 5],
    };
    let with_folds = Finishing {
        consensus: Arc::new(array![[0.1, 0.2]]),
        form: Form::Distance,
        neighbours: 5,
        folds: Arc::new(vec![array![[0.5, 0.25]], array![[1.0, 2.0]]]),
        judges: 3,
        chosen: Arc::default(),
    };
    requests_are_golden(vec![
        ("round", asked(unpsl::Request::Round(round))),
        ("fold", asked(unpsl::Request::Round(fold))),
        ("certificate", asked(unpsl::Request::Round(certificate))),
        ("dual", asked(unpsl::Request::Round(dual))),
        (
            "differentiate",
            asked(unpsl::Request::Differentiate(differentiating)),
        ),
        (
            "differentiate_rows",
            asked(unpsl::Request::Differentiate(of_rows)),
        ),
        ("validate", asked(unpsl::Request::Validate(validating))),
        ("finish", finishing(array![[0.1, 0.2]])),
        ("finish_folds", asked(unpsl::Request::Finish(with_folds))),
    ]);
}

/// Also of a site alone: nothing of a method but trees has a form of its own on the way.
#[test]
fn what_adds_up_travels_as_words() {
    let derivatives = vec![Derivatives {
        objective: 0.75,
        threshold: [-0.5, 0.25],
        triangles: array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]],
        slope: None,
    }];
    let mut answer = Answer::Unpsl(unpsl::Answer::Derivatives(derivatives));
    let words = Words::of(&mut answer).unwrap();
    let frames = coordinator_frames(reply(answer));
    let ToCoordinator::Reply(reply) = decode_to_coordinator(&frames).unwrap() else {
        panic!("another message");
    };
    let wanted = Covered {
        kind: "derivatives",
        words,
        tag: None,
    };
    assert!(reply.answer == Answer::Covered(wanted));
}

fn metric() -> model::Model {
    model::Model {
        certificate: Some(0.125),
        folds: 5,
        judges: 3,
        nested: false,
        rounds: vec![RoundRow {
            round: 1,
            objective: None,
            left: Some(0.5),
            residual: Some(0.25),
            primal_residual: Some(0.5),
            dual_residual: Some(0.25),
            penalty: Some(1.0),
            metric_norm: Some(1.5),
            dual_norm: Some(0.75),
            seconds: 0.125,
        }],
        objective: Some(0.5),
        selection: vec![SelectionRow {
            form: Form::Distance,
            lambda_sparsity: 0.01,
            rank: 4,
            neighbours: 5,
            right: 250,
            wrong: 50,
            log_loss: 0.375,
            chosen: true,
        }],
        features: vec![FeatureResult {
            name: "cp=4".to_owned(),
            mean: 0.5,
            scale: 2.0,
            missing_share: 0.0625,
        }],
        dropped: vec!["fbs=1".to_owned()],
        metric: Some(array![[0.1, 0.2]]),
    }
}

fn of_model(model: model::Model) -> RunResult {
    left(Ending::Converged, Model::Unpsl(model))
}

#[test]
fn what_a_run_leaves_is_what_googles_protobuf_writes_and_reads_back_from_it() {
    result_is_golden("metric", &of_model(metric()));
}

#[test]
fn a_result_that_is_none_is_refused_with_what_was_wrong() {
    let refused = |change: fn(&mut model::Model), wanted: &str| {
        let mut model = metric();
        change(&mut model);
        let record = crate::encode_result(&of_model(model));
        let error = crate::decode_result(&record).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}, wanted {wanted}");
    };
    refused(|model| model.objective = Some(f64::NAN), "the objective");
    refused(
        |model| model.rounds[0].penalty = Some(f64::NAN),
        "the penalty",
    );
    refused(|model| model.features[0].scale = f64::NAN, "the scale");
    refused(
        |model| model.selection = vec![model.selection[0]; 8_001],
        "candidates",
    );
}

/// Rows of a wide metric, or all.
fn rows() -> impl Strategy<Value = Option<Vec<usize>>> {
    proptest::option::of(proptest::collection::vec(0..1_usize << 20, 0..4))
}

fn part(fold: Option<u32>) -> Part {
    let form = match fold.unwrap_or(0) % 2 {
        0 => Form::InnerProduct,
        _ => Form::Distance,
    };
    Part {
        fold,
        ..Part::whole(form)
    }
}

fn requests() -> impl Strategy<Value = unpsl::Request> {
    prop_oneof![
        (any::<u32>(), matrix(), matrix(), number(), number()).prop_map(
            |(number, consensus, centre, penalty, tolerance)| {
                unpsl::Request::Round(Round {
                    consensus: Arc::new(consensus),
                    centre: match number % 4 {
                        0 => Centre::Gradient,
                        1 => Centre::Dual(DualStep {
                            moves: number,
                            before: penalty,
                            after: tolerance,
                            weights: vec![penalty, tolerance],
                        }),
                        _ => Centre::Sent(centre),
                    },
                    penalty,
                    tolerance,
                    part: part(number.is_multiple_of(3).then_some(number)),
                })
            }
        ),
        proptest::collection::vec((matrix(), any::<Option<u32>>(), rows()), 0..4).prop_map(
            |questions| {
                let mut asked = Differentiating::default();
                let (mut metrics, mut rows) = (Vec::new(), Vec::new());
                for (metric, fold, active) in questions {
                    metrics.push(metric);
                    asked.parts.push(part(fold));
                    rows.push(active);
                }
                (asked.metrics, asked.rows) = (Arc::new(metrics), Arc::new(rows));
                unpsl::Request::Differentiate(asked)
            }
        ),
        (
            proptest::collection::vec(matrix(), 0..4),
            0..20_u32,
            proptest::collection::vec(any::<u32>(), 0..4)
        )
            .prop_map(
                |(models, folds, neighbours)| unpsl::Request::Validate(Validating {
                    models: Arc::new(models),
                    nested: folds % 2 == 1,
                    folds,
                    neighbours
                })
            ),
        (
            matrix(),
            any::<u32>(),
            proptest::collection::vec(matrix(), 0..4)
        )
            .prop_map(
                |(consensus, neighbours, folds)| unpsl::Request::Finish(Finishing {
                    consensus: Arc::new(consensus),
                    form: part(Some(neighbours)).form,
                    neighbours,
                    folds: Arc::new(folds),
                    judges: 2,
                    chosen: Arc::new(vec![FoldChoice {
                        form: part(Some(neighbours)).form,
                        neighbours,
                    }]),
                })
            ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_request_survives_the_way(request in requests()) {
        let message = asked(request);
        prop_assert_eq!(decode_to_site(&encode_to_site(message.clone())).unwrap(), message);
    }

}

#[test]
fn a_large_matrix_stays_within_frames_of_a_mebibyte() {
    let consensus = Array2::from_shape_fn((1_000, 1_000), |(i, j)| (i * 1_000 + j) as f64);
    let message = finishing(consensus);
    let frames = encode_to_site(message.clone());
    assert!(frames.iter().all(|frame| frame.len() <= 1 << 20));
    assert!(decode_to_site(&frames).unwrap() == message);
}

/// The finish request of a 2 x 2 matrix with its header and parts changed.
fn finish(shape: pb::MatrixShape, chunks: &[MatrixChunk]) -> Result<ToSite, WireError> {
    let finish = pb::Finish {
        consensus: Some(shape),
        neighbours: 5,
        form: 1,
        folds: Vec::new(),
        judges: 0,
        chosen: Vec::new(),
    };
    let request = Some(pb::unpsl_request::Request::Finish(finish));
    let request = Some(pb::ask::Request::Unpsl(pb::UnpslRequest { request }));
    let ask = pb::Ask {
        run: "a".to_owned(),
        exchange: 1,
        request,
    };
    let message = pb::ToSite {
        message: Some(pb::to_site::Message::Ask(ask)),
    };
    let header = pb::ToSiteFrame {
        frame: Some(pb::to_site_frame::Frame::Message(message)),
    };
    let part = |chunk: &MatrixChunk| pb::ToSiteFrame {
        frame: Some(pb::to_site_frame::Frame::Part(pb::Part {
            part: Some(pb::part::Part::Matrix(chunk.clone())),
        })),
    };
    let frames = std::iter::once(header).chain(chunks.iter().map(part));
    let frames: Vec<Bytes> = frames.map(|frame| frame.encode_to_vec().into()).collect();
    decode_to_site(&frames)
}

fn chunk(matrix: u32, offset: u64, values: &[f64]) -> MatrixChunk {
    let values: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    MatrixChunk {
        matrix,
        offset,
        values: values.into(),
    }
}

const SQUARE: pb::MatrixShape = pb::MatrixShape {
    rows: 2,
    columns: 2,
};

#[test]
fn chunks_come_in_order_and_fit_the_declared_shape() {
    let good = [chunk(0, 0, &[1.0, 2.0]), chunk(0, 2, &[3.0, 4.0])];
    assert!(finish(SQUARE, &good).is_ok());
    let wrong: [&[MatrixChunk]; 8] = [
        &[chunk(0, 2, &[3.0, 4.0]), chunk(0, 0, &[1.0, 2.0])],
        &[chunk(0, 0, &[1.0, 2.0]), chunk(0, 0, &[1.0, 2.0])],
        &[chunk(1, 0, &[1.0, 2.0]), chunk(1, 2, &[3.0, 4.0])],
        &[chunk(0, 0, &[1.0, 2.0, 3.0, 4.0, 5.0])],
        &[chunk(0, 0, &[1.0, 2.0, 3.0, 4.0]), chunk(0, 4, &[5.0])],
        &[chunk(0, 0, &[])],
        &[chunk(0, 0, &[1.0, 2.0])],
        &[MatrixChunk {
            matrix: 0,
            offset: 0,
            values: vec![0; 31].into(),
        }],
    ];
    for (i, chunks) in wrong.into_iter().enumerate() {
        assert!(finish(SQUARE, chunks).is_err(), "case {i}");
    }
}

#[test]
fn numbers_that_are_not_finite_are_refused_by_kind_and_never_by_value() {
    for (value, found) in [
        (f64::NAN, "NaN"),
        (f64::INFINITY, "infinity"),
        (f64::NEG_INFINITY, "-infinity"),
    ] {
        let error = finish(SQUARE, &[chunk(0, 0, &[12_345.5, 1.0, value, 2.0])]).unwrap_err();
        assert_eq!(
            error,
            WireError::NotFinite {
                field: "a matrix",
                found
            }
        );
        assert!(!error.to_string().contains("12345"));
    }
}

#[test]
fn a_shape_beyond_the_limit_is_refused_before_any_chunk() {
    for shape in [
        pb::MatrixShape {
            rows: 1 << 14,
            columns: (1 << 12) + 1,
        },
        pb::MatrixShape {
            rows: u32::MAX,
            columns: u32::MAX,
        },
    ] {
        assert!(matches!(
            finish(shape, &[]),
            Err(WireError::TooLarge { .. })
        ));
    }
    for shape in [
        pb::MatrixShape {
            rows: 0,
            columns: 4,
        },
        pb::MatrixShape {
            rows: 4,
            columns: 0,
        },
    ] {
        assert!(matches!(
            finish(shape, &[]),
            Err(WireError::Unexpected { .. })
        ));
    }
}
