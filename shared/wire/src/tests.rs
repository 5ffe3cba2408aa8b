//! What this crate's own tests share: samples, golden frames, and whatever survives the way.

use crate::encoding::sealed::seal_any;
use crate::encoding::{
    decode_result, decode_to_coordinator, decode_to_site, encode_result, encode_to_coordinator,
    encode_to_site,
};
use bytes::Bytes;
use ndarray::Array2;
use proptest::prelude::*;
use protocol::assessment::{EvaluationCounts, Gains};
use protocol::limits::{COUNT_MAX, SITES_MAX};
use protocol::message::{
    Answer, Ask, ColumnMoments, PairCounts, Reply, Request, ToCoordinator, ToSite,
};
use protocol::method::Model;
use protocol::name::RunId;
use protocol::progress::{Ending, Times};
use protocol::result::{PooledFigures, RunResult};
use protocol::rounded::{Figures, Rounded};
use std::path::Path;

pub(crate) fn run() -> RunId {
    RunId::new("heart-disease-1").unwrap()
}

pub(crate) fn ask(request: Request) -> ToSite {
    ToSite::Ask(Ask {
        run: run(),
        exchange: 3,
        request,
    })
}

pub(crate) fn reply(answer: Answer) -> ToCoordinator<Answer> {
    ToCoordinator::Reply(Reply {
        signature: Vec::new(),
        run: run(),
        exchange: 3,
        journal: None,
        answer,
    })
}

/// What a run with this model leaves.
pub(crate) fn left(ending: Ending, model: Model) -> RunResult {
    RunResult {
        pooled: PooledFigures::default(),
        run: run(),
        job: "name".to_owned(),
        seed: 1,
        version: "0.1.0".to_owned(),
        operator: None,
        ending,
        times: Times::default(),
        seconds: 1.5,
        sites: Vec::new(),
        model: Some(model),
        notes: Vec::new(),
    }
}

/// The frames of a message whose answer no rule has cleared.
pub(crate) fn coordinator_frames(message: ToCoordinator<Answer>) -> Vec<Bytes> {
    encode_to_coordinator(match message {
        ToCoordinator::Hello { version } => ToCoordinator::Hello { version },
        ToCoordinator::Approved(approved) => ToCoordinator::Approved(approved),
        ToCoordinator::Reply(reply) => ToCoordinator::Reply(Reply {
            signature: Vec::new(),
            run: reply.run,
            exchange: reply.exchange,
            journal: reply.journal,
            answer: seal_any(reply.answer),
        }),
    })
}

pub(crate) fn columns() -> Vec<ColumnMoments> {
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

pub(crate) const PAIRS: PairCounts = PairCounts {
    similar: 20,
    dissimilar: 10,
};

pub(crate) fn evaluation() -> EvaluationCounts {
    EvaluationCounts {
        loss: Some(17.5),
        gains: Gains {
            areas: Some([2500.0, 125.0, 90.5, 6.5, 250_000.0]),
            errors: Some([100.0, 4.0, 3.5, 4.0, 100.0]),
        },
        rounded_to: 10,
        figures: Some(Figures {
            area: Some(Rounded {
                value: 0.75,
                within: 0.125,
            }),
            balanced: Some(Rounded {
                value: 0.5,
                within: 0.25,
            }),
            brier: None,
        }),
        ..EvaluationCounts::new(
            "distance",
            5,
            Some(vec![vec![40, 10], vec![11, 39]]),
            Some(vec![vec![30, 20], vec![10, 40]]),
        )
    }
}

/// What Google's protobuf writes.
pub(crate) fn golden(name: &str) -> Vec<Bytes> {
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

/// These messages are what Google's protobuf writes, and read back from it; cut short or doubled they are refused.
pub(crate) fn requests_are_golden(samples: Vec<(&str, ToSite)>) {
    for (name, message) in samples {
        let frames = golden(name);
        assert_eq!(encode_to_site(message.clone()), frames, "{name}");
        assert_eq!(decode_to_site(&frames).unwrap(), message, "{name}");
        for (i, frame) in frames.iter().enumerate() {
            let mut cut = frames.clone();
            cut[i] = frame.slice(..frame.len() - 1);
            assert!(decode_to_site(&cut).is_err(), "{name}, frame {i}");
        }
        let short = &frames[..frames.len() - 1];
        assert!(decode_to_site(short).is_err(), "{name}");
        let twice: Vec<_> = frames.iter().chain(&frames).cloned().collect();
        assert!(decode_to_site(&twice).is_err(), "{name}");
    }
}

/// The same of answers; and a stored one comes back bit for bit.
pub(crate) fn answers_are_golden(samples: Vec<(&str, Answer)>) {
    for (name, answer) in samples {
        let message = reply(answer.clone());
        let frames = golden(name);
        assert_eq!(coordinator_frames(message.clone()), frames, "{name}");
        assert!(decode_to_coordinator(&frames).unwrap() == message, "{name}");
        let short = &frames[..frames.len() - 1];
        assert!(decode_to_coordinator(short).is_err(), "{name}");
        let record = crate::encode_answer(&answer);
        assert!(crate::decode_answer(&record).unwrap() == answer, "{name}");
    }
}

/// The same of a result.
pub(crate) fn result_is_golden(name: &str, result: &RunResult) {
    let record = encode_result(result);
    // Each frame of a record is behind its length.
    let mut rest = Bytes::from(record.clone());
    let mut frames = Vec::new();
    while !rest.is_empty() {
        let length = prost::decode_length_delimiter(&mut rest).unwrap();
        frames.push(rest.split_to(length));
    }
    assert_eq!(frames, golden(name), "{name}");
    assert_eq!(decode_result(&record).unwrap(), *result, "{name}");
}

/// Any finite number, with subnormal ones, both zeros and the largest.
pub(crate) fn number() -> impl Strategy<Value = f64> {
    use proptest::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    prop_oneof![
        POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO,
        Just(f64::MAX),
        Just(-0.0)
    ]
}

pub(crate) fn matrix() -> impl Strategy<Value = Array2<f64>> {
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
pub(crate) fn count() -> impl Strategy<Value = u64> {
    0..=COUNT_MAX * SITES_MAX as u64
}
