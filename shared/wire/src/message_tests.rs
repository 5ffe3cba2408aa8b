//! Every message: against Google's protobuf (tests/golden), round trips, and what must be refused.

use crate::assembly::Frames;
use crate::encoding::{decode_answer, decode_progress, decode_result, decode_to_coordinator};
use crate::encoding::{decode_to_site, encode_answer, encode_progress, encode_result};
use crate::error::WireError;
use crate::forest_tests::{IMPORTANCE, errors, trees};
use crate::frame::{Frame, MatrixChunk};
use crate::generated as pb;
use crate::{progress, to_coordinator, to_site};
use bytes::Bytes;
use ndarray::{Array1, Array2, array};
use proptest::prelude::*;
use prost::Message;
use protocol::limits::{COUNT_MAX, SITES_MAX};
use protocol::message::*;
use protocol::name::RunId;
use protocol::progress::{
    CommonForest, Ending, FeatureResult, MissingShare, Progress, RoundRow, RunResult, SelectionRow,
    SiteResult,
};
use std::path::Path;
use std::sync::Arc;

fn run() -> RunId {
    RunId::new("heart-disease-1").unwrap()
}

fn encoded<F: Frame>(frames: Frames<F>) -> Vec<Bytes> {
    frames.map(|frame| frame.encode_to_vec().into()).collect()
}

fn site_frames(message: ToSite) -> Vec<Bytes> {
    encoded(to_site::frames(message))
}

fn coordinator_frames(message: ToCoordinator<Answer>) -> Vec<Bytes> {
    encoded(to_coordinator::frames_of_any(message))
}

fn ask(request: Request) -> ToSite {
    ToSite::Ask {
        run: run(),
        exchange: 3,
        request,
    }
}

pub(super) fn reply(answer: Answer) -> ToCoordinator<Answer> {
    ToCoordinator::Reply {
        run: run(),
        exchange: 3,
        journal: None,
        answer,
    }
}

fn columns() -> Vec<ColumnMoments> {
    vec![
        ColumnMoments::Numeric {
            count: 303,
            sum: -1.5,
            sum_squares: 2.25,
            missing: 7,
        },
        ColumnMoments::Categorical {
            counts: vec![12, 0, 300],
            missing: 1,
        },
    ]
}

fn second_moments() -> SecondMoments {
    SecondMoments {
        patients: 300,
        sums: array![0.5, -0.5],
        products: array![[1.0, 2.0], [3.0, 4.0]],
    }
}

const PAIRS: PairCounts = PairCounts {
    similar: 20,
    dissimilar: 10,
};

const QUARTILES: Quartiles = Quartiles {
    lower: 1.0,
    median: 2.0,
    upper: 4.0,
};

fn evaluation() -> EvaluationCounts {
    EvaluationCounts {
        rule: "distance".to_owned(),
        neighbours: 5,
        confusion: Some(vec![vec![40, 10], vec![11, 39]]),
    }
}

fn to_site_samples() -> Vec<(&'static str, ToSite)> {
    let consensus = array![[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]];
    let round = Round {
        number: 1,
        centre: -&consensus,
        consensus,
        penalty: 1.5,
        tolerance: 1e-6,
        gradient: false,
        fold: None,
    };
    let fold = Round {
        number: 9,
        consensus: array![[1.0]],
        centre: array![[-1.0]],
        penalty: 1.5,
        tolerance: 1e-3,
        gradient: true,
        fold: Some(0),
    };
    let job = "name = \"heart-disease\"\n".to_owned();
    let warrant = Warrant {
        token: "monday".to_owned(),
        chain: vec![vec![0x30, 0x00], vec![0x30, 0x01, 0x02]],
        scheme: 0x0403,
        signature: vec![7, 8, 9],
    };
    let totals = Totals {
        patients: 600,
        pairs: PAIRS,
        sites: 2,
    };
    vec![
        (
            "begin",
            ToSite::Begin(Begin {
                run: run(),
                job,
                seed: 1 << 63,
                warrant,
            }),
        ),
        ("describe", ask(Request::Describe)),
        ("moments", ask(Request::Moments)),
        (
            "prepare",
            ask(Request::Prepare {
                moments: columns(),
                quartiles: Vec::new(),
                totals,
            }),
        ),
        (
            "prepare_with_quartiles",
            ask(Request::Prepare {
                moments: columns(),
                quartiles: vec![QUARTILES],
                totals,
            }),
        ),
        ("quantiles", ask(Request::Quantiles)),
        (
            "correlate",
            ask(Request::Correlate {
                second_moments: second_moments(),
            }),
        ),
        ("round", ask(Request::Round(round))),
        ("grow_own", ask(Request::GrowOwn)),
        (
            "grow",
            ask(Request::Grow(Growing {
                trees: 167,
                edges: vec![vec![54.5, 60.0], Vec::new()],
                event_times: vec![1.0, 2.5],
                class_weights: vec![1.0, 1.0],
            })),
        ),
        (
            "judge",
            ask(Request::Judge(Judging {
                first_tree: 1,
                trees: Arc::new(trees()),
            })),
        ),
        ("fold", ask(Request::Round(fold))),
        (
            "validate",
            ask(Request::Validate {
                number: 10,
                models: vec![array![[0.5], [-0.5]], array![[0.25], [-0.25]]],
                neighbours: vec![1, 5],
            }),
        ),
        (
            "finish",
            ask(Request::Finish {
                consensus: array![[0.1, 0.2]],
                neighbours: 5,
            }),
        ),
        (
            "end",
            ToSite::End {
                run: run(),
                ending: "converged".to_owned(),
            },
        ),
    ]
}

fn to_coordinator_samples() -> Vec<(&'static str, ToCoordinator<Answer>)> {
    let text = |text: &str| text.to_owned();
    let problem = Problem {
        column: text("chol"),
        found: text("mmol/l"),
        wanted: text("mg/dl"),
    };
    let withheld = EvaluationCounts {
        rule: text("inner_product"),
        neighbours: 5,
        confusion: None,
    };
    let contribution = Contribution {
        matrix: array![[0.25], [-0.25]],
        objective: 0.75,
        iterations: 12,
        gradient: None,
    };
    let answers = vec![
        (
            "described",
            Answer::Described(Description {
                patients: 303,
                classes: vec![164, 139],
            }),
        ),
        ("unfit", Answer::Unfit(vec![problem])),
        (
            "refused",
            Answer::Refused(Refusal {
                rule: text("patients_min"),
                text: text("too few"),
            }),
        ),
        (
            "failed",
            Answer::Failed(Failure {
                code: text("KDR-SITE"),
                text: text("the disk is full"),
            }),
        ),
        (
            "own_moments",
            Answer::Moments {
                columns: columns(),
                summary: Summary {
                    patients: 310,
                    pairs: PAIRS,
                },
            },
        ),
        (
            "own_quantiles",
            Answer::Quantiles(vec![
                ColumnHistogram {
                    ends: vec![300, 4096],
                    counts: vec![290, 13],
                },
                ColumnHistogram::default(),
            ]),
        ),
        (
            "prepared",
            Answer::Prepared {
                second_moments: Some(second_moments()),
            },
        ),
        (
            "prepared_without",
            Answer::Prepared {
                second_moments: None,
            },
        ),
        ("correlated", Answer::Correlated),
        ("contribution", Answer::Contribution(contribution)),
        (
            "validated",
            Answer::Validated(vec![
                Some(RightCounts {
                    right: 250,
                    wrong: 50,
                }),
                None,
            ]),
        ),
        (
            "finished",
            Answer::Finished(Finished {
                objective: 0.5,
                evaluation: vec![evaluation(), withheld],
            }),
        ),
        ("grown", Answer::Grown(trees())),
        (
            "judged",
            Answer::Judged(Judged {
                errors: errors(),
                evaluation: vec![evaluation()],
                importance: vec![IMPORTANCE],
            }),
        ),
    ];
    let mut samples = vec![(
        "hello",
        ToCoordinator::Hello {
            version: text("0.1.0"),
        },
    )];
    samples.extend(
        answers
            .into_iter()
            .map(|(name, answer)| (name, reply(answer))),
    );
    samples
}

fn progress_sample() -> Progress {
    Progress {
        run: run(),
        phase: "rounds".to_owned(),
        round: 4,
        round_limit: 100,
        objective: Some(0.5),
        primal_residual: Some(0.25),
        dual_residual: None,
        sites_connected: 2,
        sites: 3,
        waiting_for: vec!["west".to_owned()],
        deadline_seconds: 30.0,
        ending: Some(Ending::Failed {
            code: "KDR-SITES".to_owned(),
            text: "too few sites: wanted 3".to_owned(),
        }),
    }
}

fn result_sample() -> RunResult {
    RunResult {
        run: run(),
        job: "name".to_owned(),
        seed: 1,
        version: "0.1.0".to_owned(),
        ending: Ending::Converged,
        rounds: vec![RoundRow {
            round: 1,
            objective: None,
            primal_residual: 0.5,
            dual_residual: 0.25,
            penalty: 1.0,
            seconds: 0.125,
            sites_answered: 2,
        }],
        objective: Some(0.5),
        seconds: 1.5,
        sites: vec![SiteResult {
            name: "north".to_owned(),
            patients: 300,
            pairs: 30,
            bytes_sent: 1000,
            bytes_received: 2000,
            rounds_missed: 1,
            evaluation: vec![evaluation()],
            missing: vec![MissingShare {
                feature: "chol".to_owned(),
                share: 0.25,
            }],
            errors: errors(),
            importance: vec![IMPORTANCE],
            trees: 2,
        }],
        selection: vec![SelectionRow {
            lambda_sparsity: 0.01,
            rank: 4,
            neighbours: 5,
            right: 250,
            wrong: 50,
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
        forest: Some(CommonForest {
            trees: Arc::new(trees()),
            event_times: Vec::new(),
            class_weights: vec![1.0, 2.0],
        }),
        notes: vec!["south missed a round".to_owned()],
    }
}

#[test]
fn where_a_journal_ends_travels_with_an_answer_and_is_a_hash() {
    let with = |hash: &str| {
        let ToCoordinator::Reply {
            run,
            exchange,
            answer,
            ..
        } = reply(Answer::Correlated)
        else {
            panic!("a reply is a reply");
        };
        let hash = hash.to_owned();
        let journal = Some(JournalHead { entries: 7, hash });
        coordinator_frames(ToCoordinator::Reply {
            run,
            exchange,
            journal,
            answer,
        })
    };
    let hash = "0123456789abcdef".repeat(4);
    let found = decode_to_coordinator(&with(&hash)).unwrap();
    let ToCoordinator::Reply { journal, .. } = found else {
        panic!("a reply is a reply");
    };
    assert_eq!(journal, Some(JournalHead { entries: 7, hash }));
    for wrong in ["", "0", &"A".repeat(64), &"é".repeat(32)] {
        assert!(decode_to_coordinator(&with(wrong)).is_err(), "{wrong}");
    }
}

fn golden(name: &str) -> Vec<Bytes> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let text = std::fs::read_to_string(folder.join(format!("{name}.hex"))).unwrap();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let frame = |line: &str| {
        line.as_bytes()
            .chunks(2)
            .map(byte)
            .collect::<Vec<_>>()
            .into()
    };
    text.lines().map(frame).collect()
}

#[test]
fn every_message_is_what_googles_protobuf_writes_and_reads_back_from_it() {
    for (name, message) in to_site_samples() {
        assert_eq!(site_frames(message.clone()), golden(name), "{name}");
        assert_eq!(decode_to_site(&golden(name)).unwrap(), message, "{name}");
    }
    for (name, message) in to_coordinator_samples() {
        assert_eq!(coordinator_frames(message.clone()), golden(name), "{name}");
        assert!(
            decode_to_coordinator(&golden(name)).unwrap() == message,
            "{name}"
        );
    }
    let progress = progress_sample();
    assert_eq!(encode_progress(&progress), golden("progress")[0]);
    assert_eq!(decode_progress(&golden("progress")[0]).unwrap(), progress);
    assert_eq!(
        encoded(progress::result_frames(result_sample())),
        golden("result")
    );
    assert_eq!(
        decode_result(&encode_result(&result_sample())).unwrap(),
        result_sample()
    );
}

#[test]
fn a_stored_answer_comes_back_bit_for_bit() {
    for (name, message) in to_coordinator_samples() {
        let ToCoordinator::Reply { answer, .. } = message else {
            continue;
        };
        assert!(
            decode_answer(&encode_answer(&answer)).unwrap() == answer,
            "{name}"
        );
    }
}

/// Any finite number, with subnormal ones, both zeros and the largest.
fn number() -> impl Strategy<Value = f64> {
    use proptest::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    prop_oneof![
        POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO,
        Just(f64::MAX),
        Just(-0.0)
    ]
}

fn matrix() -> impl Strategy<Value = Array2<f64>> {
    (1..40_usize, 1..40_usize, any::<bool>(), number()).prop_map(|(rows, columns, turned, one)| {
        let matrix = Array2::from_shape_fn((rows, columns), |(i, j)| one / (1 + i + 7 * j) as f64);
        if turned {
            matrix.reversed_axes()
        } else {
            matrix
        }
    })
}

/// A count over all sites.
fn count() -> impl Strategy<Value = u64> {
    0..=COUNT_MAX * SITES_MAX as u64
}

#[test]
fn a_site_reads_no_count_that_no_sites_have() {
    let request = |patients| Request::Prepare {
        moments: vec![ColumnMoments::Numeric {
            count: patients,
            sum: 0.0,
            sum_squares: 0.0,
            missing: 0,
        }],
        quartiles: Vec::new(),
        totals: Totals::default(),
    };
    let most = COUNT_MAX * SITES_MAX as u64;
    for (patients, is_read) in [(most, true), (most + 1, false), (u64::MAX, false)] {
        let asked = ToSite::Ask {
            run: RunId::new("run-1").unwrap(),
            exchange: 1,
            request: request(patients),
        };
        let frames = crate::encoding::encode_to_site(asked);
        assert_eq!(decode_to_site(&frames).is_ok(), is_read, "{patients}");
    }
}

fn moments() -> impl Strategy<Value = Vec<ColumnMoments>> {
    let numeric =
        (count(), number(), number(), count()).prop_map(|(count, sum, sum_squares, missing)| {
            ColumnMoments::Numeric {
                count,
                sum,
                sum_squares,
                missing,
            }
        });
    let categorical = (proptest::collection::vec(count(), 0..9), count())
        .prop_map(|(counts, missing)| ColumnMoments::Categorical { counts, missing });
    proptest::collection::vec(prop_oneof![numeric, categorical], 0..50)
}

fn requests() -> impl Strategy<Value = Request> {
    let totals = |(patients, similar, dissimilar, sites)| {
        let pairs = PairCounts {
            similar,
            dissimilar,
        };
        Totals {
            patients,
            pairs,
            sites,
        }
    };
    let quartiles = || proptest::collection::vec((number(), number(), number()), 0..9);
    let quartile = |(lower, median, upper)| Quartiles {
        lower,
        median,
        upper,
    };
    prop_oneof![
        Just(Request::Describe),
        Just(Request::Moments),
        Just(Request::Quantiles),
        (moments(), quartiles(), (count(), count(), count(), count())).prop_map(
            move |(moments, quartiles, four)| {
                Request::Prepare {
                    moments,
                    quartiles: quartiles.into_iter().map(quartile).collect(),
                    totals: totals(four),
                }
            }
        ),
        (count(), number(), 1..30_usize).prop_map(|(patients, one, d)| Request::Correlate {
            second_moments: SecondMoments {
                patients,
                sums: Array1::from_elem(d, one),
                products: Array2::from_elem((d, d), one),
            }
        }),
        (any::<u32>(), matrix(), matrix(), number(), number()).prop_map(
            |(number, consensus, centre, penalty, tolerance)| Request::Round(Round {
                number,
                consensus,
                centre,
                penalty,
                tolerance,
                gradient: number % 2 == 1,
                fold: number.is_multiple_of(3).then_some(number),
            })
        ),
        (
            proptest::collection::vec(matrix(), 0..4),
            proptest::collection::vec(any::<u32>(), 0..4)
        )
            .prop_map(|(models, neighbours)| Request::Validate {
                number: 1,
                models,
                neighbours
            }),
        (matrix(), any::<u32>()).prop_map(|(consensus, neighbours)| Request::Finish {
            consensus,
            neighbours
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_request_survives_the_way(exchange in any::<u32>(), request in requests()) {
        let message = ToSite::Ask { run: run(), exchange, request };
        prop_assert_eq!(decode_to_site(&site_frames(message.clone())).unwrap(), message);
    }

    #[test]
    fn every_job_survives_the_way(job in ".{0,300}", seed in any::<u64>()) {
        let message = ToSite::Begin(Begin { run: run(), job, seed, warrant: Warrant::default() });
        prop_assert_eq!(decode_to_site(&site_frames(message.clone())).unwrap(), message);
    }

    #[test]
    fn all_histograms_survive_the_way(
        groups in proptest::collection::vec(proptest::collection::vec(any::<(u32, u64)>(), 0..40), 0..20),
    ) {
        let histogram = |groups: Vec<(u32, u64)>| {
            let (ends, counts) = groups.into_iter().unzip();
            ColumnHistogram { ends, counts }
        };
        let message = reply(Answer::Quantiles(groups.into_iter().map(histogram).collect()));
        prop_assert!(decode_to_coordinator(&coordinator_frames(message.clone())).unwrap() == message);
    }

    #[test]
    fn every_contribution_and_moments_survive_the_way(
        matrix in matrix(), objective in number(), iterations in any::<u32>(), with_gradient in any::<bool>(),
        columns in moments(), patients in any::<u64>(),
    ) {
        let contribution = Contribution { gradient: with_gradient.then(|| matrix.clone()), matrix, objective, iterations };
        let message = reply(Answer::Contribution(contribution));
        prop_assert!(decode_to_coordinator(&coordinator_frames(message.clone())).unwrap() == message);
        let summary = Summary { patients, pairs: PAIRS };
        let message = reply(Answer::Moments { columns, summary });
        prop_assert!(decode_to_coordinator(&coordinator_frames(message.clone())).unwrap() == message);
    }

    #[test]
    fn no_bytes_make_the_decoders_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let frames = [Bytes::from(bytes.clone())];
        let _ = decode_to_site(&frames);
        let _ = decode_to_coordinator(&frames);
        let _ = decode_answer(&bytes);
        let _ = decode_result(&bytes);
        let _ = decode_progress(&bytes);
    }
}

#[test]
fn a_large_matrix_and_a_hundred_thousand_features_stay_within_frames_of_a_mebibyte() {
    let consensus = Array2::from_shape_fn((1_000, 1_000), |(i, j)| (i * 1_000 + j) as f64);
    let message = ask(Request::Finish {
        consensus,
        neighbours: 5,
    });
    let frames = site_frames(message.clone());
    assert!(frames.iter().all(|frame| frame.len() <= 1 << 20));
    assert!(decode_to_site(&frames).unwrap() == message);

    let columns: Vec<_> = columns().into_iter().cycle().take(100_000).collect();
    let summary = Summary {
        patients: 1,
        pairs: PAIRS,
    };
    let message = reply(Answer::Moments { columns, summary });
    let frames = coordinator_frames(message.clone());
    assert!(frames.iter().all(|frame| frame.len() <= 1 << 20));
    assert!(decode_to_coordinator(&frames).unwrap() == message);
}

#[test]
fn truncated_frames_and_missing_ones_are_refused() {
    for (name, message) in to_site_samples() {
        let frames = site_frames(message);
        for (i, frame) in frames.iter().enumerate() {
            let mut cut = frames.clone();
            cut[i] = frame.slice(..frame.len() - 1);
            assert!(decode_to_site(&cut).is_err(), "{name}, frame {i}");
        }
        assert!(
            decode_to_site(&frames[..frames.len() - 1]).is_err(),
            "{name}"
        );
        let twice: Vec<_> = frames.iter().chain(&frames).cloned().collect();
        assert!(decode_to_site(&twice).is_err(), "{name}");
    }
}

/// The finish request of a 2 x 2 matrix with its header and parts changed.
fn finish(shape: pb::MatrixShape, chunks: &[MatrixChunk]) -> Result<ToSite, WireError> {
    let finish = pb::Finish {
        consensus: Some(shape),
        neighbours: 5,
    };
    let request = Some(pb::ask::Request::Finish(finish));
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
        let contribution = Contribution {
            matrix: array![[1.0]],
            objective: value,
            iterations: 1,
            gradient: None,
        };
        let frames = coordinator_frames(reply(Answer::Contribution(contribution)));
        assert!(matches!(
            decode_to_coordinator(&frames),
            Err(WireError::NotFinite {
                field: "an objective",
                ..
            })
        ));
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

#[test]
fn an_unknown_message_is_refused() {
    // Field 15, length-delimited and empty: a oneof that this version does not know.
    let unknown = Bytes::from_static(&[0x7a, 0x00]);
    assert!(matches!(
        decode_to_site(std::slice::from_ref(&unknown)),
        Err(WireError::Missing { .. })
    ));
    assert!(matches!(
        decode_to_coordinator(&[unknown]),
        Err(WireError::Missing { .. })
    ));
    // A known frame with an unknown message in it.
    let inner = Bytes::from_static(&[0x0a, 0x02, 0x7a, 0x00]);
    assert!(matches!(
        decode_to_site(std::slice::from_ref(&inner)),
        Err(WireError::Missing { .. })
    ));
    assert!(matches!(
        decode_to_coordinator(&[inner]),
        Err(WireError::Missing { .. })
    ));
}

#[test]
fn texts_for_people_are_cut_to_what_the_other_side_takes() {
    let message = ToSite::End {
        run: run(),
        ending: "é".repeat(5_000),
    };
    let ToSite::End { ending, .. } = decode_to_site(&site_frames(message)).unwrap() else {
        panic!("another message came back");
    };
    assert_eq!(ending, "é".repeat(protocol::limits::TEXT_LENGTH_MAX));
}
