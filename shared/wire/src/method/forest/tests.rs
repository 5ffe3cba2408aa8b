//! Forests on their way: against Google's protobuf (tests/golden), and what must be refused.

use crate::encoding::{decode_answer, encode_answer};
use crate::error::WireError;
use crate::generated as pb;
use crate::tests::{answers_are_golden, ask, left, requests_are_golden, result_is_golden};
use bytes::Bytes;
use prost::Message;
use protocol::assessment::{ErrorMeasure, ErrorSums, FeatureImportance, RuleErrors};
use protocol::message::forest::{
    Growing, Judging, NodeKind, NodeRule, NodeTable, Side, TerminalTable, TreeTable, Trees,
};
use protocol::message::{Answer, Request, forest};
use protocol::method::Model;
use protocol::method::forest::model::{self, CommonForest};
use protocol::progress::Ending;
use std::sync::Arc;

pub(crate) const IMPORTANCE: FeatureImportance = FeatureImportance {
    mean: 0.125,
    standard_error: 0.5,
};

pub(crate) fn errors() -> Vec<RuleErrors> {
    let sums = ErrorSums {
        total: 300,
        error: 60.0,
    };
    vec![
        RuleErrors {
            rule: "forest".to_owned(),
            neighbours: 0,
            measure: ErrorMeasure::Misclassified,
            sums: Some(sums),
        },
        RuleErrors {
            rule: "gap".to_owned(),
            neighbours: 5,
            measure: ErrorMeasure::Discordant,
            sums: None,
        },
    ]
}

fn split(patients: u32, feature: u32, missing: Side, left: u32, rule: NodeRule) -> NodeTable {
    NodeTable {
        patients,
        kind: NodeKind::Split {
            feature,
            rule,
            missing,
            left,
        },
    }
}

fn terminal(patients: u32, table: TerminalTable) -> NodeTable {
    NodeTable {
        patients,
        kind: NodeKind::Terminal(table),
    }
}

/// Two trees with every kind of node.
pub(crate) fn trees() -> Trees {
    let classes =
        |patients, counts: [u64; 2]| terminal(patients, TerminalTable::Classes(counts.to_vec()));
    let hazard = TerminalTable::Survival {
        ends: vec![3, 31],
        events: vec![10, 0],
        exposures: vec![12.5, 100.0],
    };
    let trees = [
        vec![
            split(40, 1, Side::Left, 1, NodeRule::AtMost(54.5)),
            classes(10, [10, 0]),
            split(30, 2, Side::Right, 3, NodeRule::Levels(vec![5])),
            classes(12, [0, 12]),
            classes(18, [0, 18]),
        ],
        vec![
            split(25, 0, Side::Right, 1, NodeRule::Present),
            terminal(15, hazard),
            terminal(10, TerminalTable::Mean(-1.5)),
        ],
    ];
    Trees {
        features: 3,
        trees: trees.map(|nodes| TreeTable::new(nodes, 3).unwrap()).into(),
    }
}

fn grown() -> Answer {
    Answer::Forest(forest::Answer::Grown(trees()))
}

#[test]
fn every_message_is_what_googles_protobuf_writes_and_reads_back_from_it() {
    let growing = Growing {
        trees: 167,
        edges: vec![vec![54.5, 60.0], Vec::new()],
        event_times: vec![1.0, 2.5],
        class_weights: vec![1.0, 1.0],
    };
    let judging = Judging {
        first_tree: 1,
        trees: Arc::new(trees()),
    };
    let requests = [
        ("grow_own", forest::Request::GrowOwn),
        ("grow", forest::Request::Grow(Arc::new(growing))),
        ("judge", forest::Request::Judge(judging)),
    ];
    let requests = requests.map(|(name, request)| (name, ask(Request::Forest(request))));
    requests_are_golden(requests.into());
    answers_are_golden(vec![("grown", grown())]);
}

#[test]
fn what_a_run_leaves_is_what_googles_protobuf_writes_and_reads_back_from_it() {
    let left = |model| left(Ending::Completed, Model::Forest(model));
    let common = CommonForest {
        trees: Arc::new(trees()),
        event_times: Vec::new(),
        class_weights: vec![1.0, 2.0],
    };
    let model = model::Model {
        forest: Some(common),
        trees: vec![1, 1],
    };
    result_is_golden("forest", &left(model));
    let model = model::Model {
        forest: None,
        trees: Vec::new(),
    };
    result_is_golden("forest_without", &left(model));
    let model = model::Model {
        forest: None,
        trees: vec![1; 257],
    };
    let error = crate::decode_result(&crate::encode_result(&left(model))).unwrap_err();
    assert!(error.to_string().contains("shares of a forest"), "{error}");
}

/// What becomes of the trees above, with one node of the first changed.
fn with_node(number: usize, change: impl Fn(&mut pb::TreeNode)) -> Result<Answer, WireError> {
    let mut record = Bytes::from(encode_answer(&grown()));
    let mut changed = Vec::new();
    while !record.is_empty() {
        let mut frame = pb::AnswerFrame::decode_length_delimited(&mut record).unwrap();
        if let Some(pb::answer_frame::Frame::Part(pb::Part {
            part: Some(pb::part::Part::Nodes(chunk)),
        })) = &mut frame.frame
        {
            change(&mut chunk.nodes[number]);
        }
        changed.extend(frame.encode_length_delimited_to_vec());
    }
    decode_answer(&changed)
}

fn changed_split(change: impl Fn(&mut pb::Split)) -> Result<Answer, WireError> {
    with_node(0, |node| {
        if let Some(pb::tree_node::Kind::Split(split)) = &mut node.kind {
            change(split);
        }
    })
}

/// A survival table in place of a node.
fn hazard(ends: &[u32], events: &[u64], exposures: &[f64]) -> Result<Answer, WireError> {
    with_node(6, |node| {
        node.kind = Some(pb::tree_node::Kind::Hazard(pb::Hazard {
            ends: ends.to_vec(),
            events: events.to_vec(),
            exposures: exposures.to_vec(),
        }));
    })
}

#[test]
fn a_malformed_tree_is_refused_with_what_was_wrong() {
    use pb::split::Rule;
    use pb::tree_node::Kind;
    let refused = [
        (changed_split(|split| split.feature = 3), "feature"),
        (changed_split(|split| split.left = 4), "child"),
        (changed_split(|split| split.left = 0), "child"),
        (changed_split(|split| split.left = 3), "count"),
        (
            changed_split(|split| split.rule = Some(Rule::AtMost(f64::NAN))),
            "NaN",
        ),
        (
            changed_split(|split| split.rule = Some(Rule::AtMost(f64::INFINITY))),
            "infinity",
        ),
        (
            changed_split(|split| split.rule = Some(Rule::Present(pb::Present {}))),
            "rule",
        ),
        (changed_split(|split| split.rule = None), "rule"),
        (
            changed_split(|split| {
                split.rule = Some(Rule::Levels(pb::LevelSet {
                    words: vec![1; 800],
                }))
            }),
            "level set",
        ),
        (with_node(1, |node| node.patients = 11), "count"),
        (with_node(1, |node| node.patients = 0), "count"),
        (with_node(1, |node| node.kind = None), "kind of node"),
        (
            with_node(1, |node| node.kind = Some(Kind::Mean(f64::NAN))),
            "NaN",
        ),
        (hazard(&[3], &[16], &[1.0]), "events"),
        (hazard(&[3], &[10], &[0.0]), "at risk"),
        (hazard(&[3, 3], &[1, 1], &[1.0, 1.0]), "event times"),
        (hazard(&[3], &[1], &[f64::INFINITY]), "infinity"),
    ];
    for (answer, wanted) in refused {
        let error = answer.unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}, wanted {wanted}");
    }
    // A cycle needs a child before its parent, which is refused as such.
    let cycle = with_node(2, |node| {
        if let Some(Kind::Split(split)) = &mut node.kind {
            split.left = 1;
        }
    });
    assert!(cycle.is_err());
}

#[test]
fn declared_trees_are_bounded_before_anything_is_allocated() {
    let declare = |features, nodes: Vec<u32>| {
        let trees = pb::Trees { features, nodes };
        let answer = pb::Answer {
            answer: Some(pb::answer::Answer::Trees(trees)),
        };
        decode_answer(
            &pb::AnswerFrame {
                frame: Some(pb::answer_frame::Frame::Message(answer)),
            }
            .encode_length_delimited_to_vec(),
        )
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default()
    };
    assert!(declare(3, vec![u32::MAX; 9_000]).contains("nodes of trees"));
    assert!(declare(3, vec![1; 10_001]).contains("found trees of 10001"));
    assert!(declare(1 << 30, vec![1]).contains("features of trees"));
    assert!(declare(3, vec![2]).contains("an odd number"));
}
