//! The messages of all methods: against Google's protobuf (tests/golden), round trips, and what must be refused.

use super::assessment::declared_importance;
use crate::encoding::{
    decode_answer, decode_progress, decode_result, decode_to_coordinator, decode_to_site,
    encode_to_site,
};
use crate::error::WireError;
use crate::generated as pb;
use crate::method::forest::tests::{IMPORTANCE, errors};
use crate::tests::{
    PAIRS, answers_are_golden, ask, columns, coordinator_frames, count, evaluation, golden, number,
    requests_are_golden, run,
};
use bytes::Bytes;
use ndarray::{Array1, Array2, array};
use privacy::Covered;
use privacy::sums::{Tag, Total, TotalWord, Words};
use proptest::prelude::*;
use prost::Message;
use protocol::assessment::{Assessment, EvaluationCounts};
use protocol::failure::{Code, Failure, Problem, Refusal};
use protocol::limits::{COUNT_MAX, SITES_MAX};
use protocol::message::{
    Answer, Begin, Closed, ColumnMoments, Curve, CurveScale, Encapsulations, Introduction,
    JournalHead, PairCounts, Preparing, Quartiles, Reply, Request, SecondMoments, ToCoordinator,
    ToSite, Totals, Warrant,
};
use protocol::run::Record;
use protocol::time::Timestamp;
use std::sync::Arc;

fn second_moments() -> SecondMoments {
    SecondMoments {
        patients: 300,
        sums: array![0.5, -0.5],
        products: array![[1.0, 2.0], [3.0, 4.0]],
    }
}

fn curve() -> Curve {
    Curve {
        knots: vec![40.0, 55.0, 70.5],
        scales: vec![CurveScale {
            mean: 12.5,
            deviation: 8.25,
        }],
    }
}

const QUARTILES: Quartiles = Quartiles {
    lower: 1.0,
    median: 2.0,
    upper: 4.0,
};

#[test]
fn every_request_is_what_googles_protobuf_writes_and_reads_back_from_it() {
    let begin = Begin {
        run: run(),
        job: "name = \"heart-disease\"\n".to_owned(),
        seed: 1 << 63,
        opening: Some(run()),
        warrant: Warrant {
            token: "monday".to_owned(),
            chain: vec![vec![0x30, 0x00], vec![0x30, 0x01, 0x02]],
            scheme: 0x0403,
            signature: vec![7, 8, 9],
        },
    };
    let preparing = |quartiles: Vec<Quartiles>| {
        Arc::new(Preparing {
            moments: columns(),
            within: quartiles.first().map(|_| vec![0.5, 1.0]),
            curves: quartiles.first().map(|_| curve()).into_iter().collect(),
            quartiles,
            totals: Totals {
                patients: 600,
                pairs: PAIRS,
                sites: 2,
            },
        })
    };
    let prepare = |preparing| ask(Request::Prepare(preparing));
    let end = ToSite::End {
        run: run(),
        ending: "converged".to_owned(),
    };
    let word = TotalWord {
        halves: [5, 6],
        carries: [1, 2],
    };
    let closed = Closed {
        run: run(),
        record: Record {
            at: Timestamp(1_700_000_000_000),
            exchange: 4,
            answers: vec![Some(Answer::Digest([6; 32])), None],
            signatures: vec![vec![8; 64], Vec::new()],
        },
        total: Some(Total::received(vec![word], Tag::received(9))),
    };
    requests_are_golden(vec![
        ("begin", ToSite::Begin(begin)),
        ("closed", ToSite::Closed(Arc::new(closed))),
        ("introduce", ask(Request::Introduce)),
        ("encapsulate", ask(Request::Encapsulate)),
        ("describe", ask(Request::Describe)),
        ("moments", ask(Request::Moments)),
        ("spread", ask(Request::Spread(preparing(Vec::new())))),
        ("prepare", prepare(preparing(Vec::new()))),
        (
            "prepare_with_quartiles",
            prepare(preparing(vec![QUARTILES])),
        ),
        (
            "correlate",
            ask(Request::Correlate(Arc::new(second_moments()))),
        ),
        ("end", end),
    ]);
}

/// One assessment with an objective and one with all else.
pub(crate) fn assessments() -> [Assessment; 2] {
    let withheld = EvaluationCounts::new("inner_product", 5, None, None);
    [
        Assessment {
            objective: Some(0.5),
            evaluation: vec![evaluation(), withheld],
            validation: vec![evaluation()],
            ..Assessment::default()
        },
        Assessment {
            objective: None,
            evaluation: vec![evaluation()],
            errors: errors(),
            importance: vec![IMPORTANCE],
            ..Assessment::default()
        },
    ]
}

#[test]
fn every_answer_is_what_googles_protobuf_writes_and_reads_back_from_it() {
    let text = |text: &str| text.to_owned();
    answers_are_golden(vec![
        (
            "introduced",
            Answer::Introduced(Introduction {
                agreement: vec![1; 32],
                signing: vec![2; 32],
                encapsulation: vec![3; 1_184],
                patients_at_most: 120,
                chain: vec![vec![0x30, 0x00]],
                scheme: 0x0403,
                signature: vec![7, 8, 9],
            }),
        ),
        (
            "encapsulated",
            Answer::Encapsulated(Encapsulations {
                ciphertexts: vec![Vec::new(), vec![4; 1_088]],
                common: vec![Vec::new(), vec![5; 32]],
            }),
        ),
        (
            "covered",
            Answer::Covered(Covered {
                kind: "moments",
                words: Words::received(vec![1 | 0x80 << 120, u128::MAX]),
                tag: Some(Tag::received(7)),
            }),
        ),
        (
            "unfit",
            Answer::Unfit(vec![Problem {
                column: text("chol"),
                found: text("mmol/l"),
                wanted: text("mg/dl"),
            }]),
        ),
        (
            "refused",
            Answer::Refused(Refusal {
                rule: text("patients_min"),
                text: text("too few"),
            }),
        ),
        (
            "failed",
            Answer::Failed(Failure::new(Code::Results, "the disk is full")),
        ),
        ("prepared_without", Answer::Prepared(None)),
        ("correlated", Answer::Correlated),
    ]);
}

#[test]
fn a_sites_hello_is_what_googles_protobuf_writes_and_reads_back_from_it() {
    let version = "0.1.0".to_owned();
    let hello = ToCoordinator::Hello { version };
    assert_eq!(coordinator_frames(hello.clone()), golden("hello"));
    assert!(decode_to_coordinator(&golden("hello")).unwrap() == hello);
}

#[test]
fn importances_are_two_numbers_a_feature() {
    for (rows, columns) in [(1, 3), (20_001, 2)] {
        let error = declared_importance(pb::MatrixShape { rows, columns });
        let error = error.err().unwrap().to_string();
        assert!(error.contains("importances of "), "{error}");
    }
}

#[test]
fn a_code_that_this_version_does_not_know_is_refused() {
    let failure = pb::Failure {
        code: "KDR-TOMORROW".to_owned(),
        text: "what will be".to_owned(),
    };
    let answer = pb::Answer {
        answer: Some(pb::answer::Answer::Failed(failure)),
    };
    let frame = pb::AnswerFrame {
        frame: Some(pb::answer_frame::Frame::Message(answer)),
    };
    let error = decode_answer(&frame.encode_length_delimited_to_vec());
    let error = error.err().unwrap().to_string();
    assert_eq!(
        error,
        "found the code \"KDR-TOMORROW\", wanted a code of this version"
    );
}

#[test]
fn where_a_journal_ends_travels_with_an_answer_and_is_a_hash() {
    let with = |hash: &str| {
        let hash = hash.to_owned();
        coordinator_frames(ToCoordinator::Reply(Reply {
            signature: Vec::new(),
            run: run(),
            exchange: 3,
            journal: Some(JournalHead { entries: 7, hash }),
            answer: Answer::Correlated,
        }))
    };
    let hash = "0123456789abcdef".repeat(4);
    assert_eq!(with(&hash), golden("journal"));
    let found = decode_to_coordinator(&with(&hash)).unwrap();
    let ToCoordinator::Reply(Reply { journal, .. }) = found else {
        panic!("a reply is a reply");
    };
    assert_eq!(journal, Some(JournalHead { entries: 7, hash }));
    for wrong in ["", "0", &"A".repeat(64), &"é".repeat(32)] {
        assert!(decode_to_coordinator(&with(wrong)).is_err(), "{wrong}");
    }
}

/// A question that carries moments and nothing else.
fn preparing(moments: Vec<ColumnMoments>) -> Request {
    Request::Prepare(Arc::new(Preparing {
        moments,
        quartiles: Vec::new(),
        curves: Vec::new(),
        within: None,
        totals: Totals::default(),
    }))
}

#[test]
fn a_site_reads_no_count_that_no_sites_have() {
    let request = |patients| {
        preparing(vec![ColumnMoments::Numeric {
            count: patients,
            sum: 0.0,
            sum_squares: 0.0,
            missing: 0,
        }])
    };
    let most = COUNT_MAX * SITES_MAX as u64;
    for (patients, is_read) in [(most, true), (most + 1, false), (u64::MAX, false)] {
        let frames = encode_to_site(ask(request(patients)));
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
    let totals = |(patients, similar, dissimilar, sites)| Totals {
        patients,
        pairs: PairCounts {
            similar,
            dissimilar,
        },
        sites,
    };
    let quartiles = proptest::collection::vec((number(), number(), number()), 0..9);
    let spline = |&(knot, mean, deviation): &(f64, f64, f64)| Curve {
        knots: vec![knot],
        scales: vec![CurveScale { mean, deviation }],
    };
    let quartile = |(lower, median, upper)| Quartiles {
        lower,
        median,
        upper,
    };
    prop_oneof![
        Just(Request::Describe),
        Just(Request::Moments),
        (moments(), quartiles, (count(), count(), count(), count())).prop_map(
            move |(moments, quartiles, four)| {
                Request::Prepare(Arc::new(Preparing {
                    moments,
                    within: (!quartiles.is_empty())
                        .then(|| quartiles.iter().map(|one| one.0).collect()),
                    curves: quartiles.iter().map(spline).collect(),
                    quartiles: quartiles.into_iter().map(quartile).collect(),
                    totals: totals(four),
                }))
            }
        ),
        (count(), number(), 1..30_usize).prop_map(|(patients, one, d)| {
            Request::Correlate(Arc::new(SecondMoments {
                patients,
                sums: Array1::from_elem(d, one),
                products: Array2::from_elem((d, d), one),
            }))
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_request_survives_the_way(request in requests()) {
        let message = ask(request);
        prop_assert_eq!(decode_to_site(&encode_to_site(message.clone())).unwrap(), message);
    }

    #[test]
    fn every_job_survives_the_way(job in ".{0,300}", seed in any::<u64>()) {
        let message = ToSite::Begin(Begin { run: run(), job, seed, warrant: Warrant::default(), opening: None });
        prop_assert_eq!(decode_to_site(&encode_to_site(message.clone())).unwrap(), message);
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
fn a_hundred_thousand_features_stay_within_frames_of_a_mebibyte() {
    let columns: Vec<_> = columns().into_iter().cycle().take(100_000).collect();
    let message = ask(preparing(columns));
    let frames = encode_to_site(message.clone());
    assert!(frames.len() > 2);
    assert!(frames.iter().all(|frame| frame.len() <= 1 << 20));
    assert!(decode_to_site(&frames).unwrap() == message);
}

#[test]
fn a_list_that_is_empty_or_longer_than_declared_is_refused() {
    let header = encode_to_site(ask(preparing(columns()[..1].to_vec()))).swap_remove(0);
    let with = |columns: Vec<pb::ColumnMoments>| {
        let part = pb::part::Part::Columns(pb::ColumnsChunk { columns });
        let frame = pb::ToSiteFrame {
            frame: Some(pb::to_site_frame::Frame::Part(pb::Part {
                part: Some(part),
            })),
        };
        let frames = [header.clone(), Bytes::from(frame.encode_to_vec())];
        decode_to_site(&frames).err().unwrap().to_string()
    };
    assert!(with(Vec::new()).contains("an empty part of a list"));
    let two = vec![pb::ColumnMoments::default(); 2];
    assert_eq!(with(two), "found a list of moments of 2, wanted at most 1");
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
    let ToSite::End { ending, .. } = decode_to_site(&encode_to_site(message)).unwrap() else {
        panic!("another message came back");
    };
    assert_eq!(ending, "é".repeat(protocol::limits::TEXT_LENGTH_MAX));
}
