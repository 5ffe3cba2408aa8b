//! Trees and what is said of forests: samples, and what must be refused.

use crate::encoding::{decode_answer, decode_to_coordinator};
use crate::generated as pb;
use crate::message_tests::reply;
use crate::to_coordinator;
use bytes::Bytes;
use prost::Message;
use protocol::message::*;

pub(super) const IMPORTANCE: FeatureImportance = FeatureImportance {
    mean: 0.125,
    standard_error: 0.5,
};

pub(super) fn errors() -> Vec<RuleErrors> {
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
pub(super) fn trees() -> Trees {
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

/// The frames of the trees above, with one node of the first changed.
fn with_node(number: usize, change: impl Fn(&mut pb::TreeNode)) -> Vec<Bytes> {
    let mut frames: Vec<pb::ToCoordinatorFrame> =
        to_coordinator::frames_of_any(reply(Answer::Grown(trees()))).collect();
    if let Some(pb::to_coordinator_frame::Frame::Part(pb::Part {
        part: Some(pb::part::Part::Nodes(chunk)),
    })) = &mut frames[1].frame
    {
        change(&mut chunk.nodes[number]);
    }
    frames
        .iter()
        .map(|frame| frame.encode_to_vec().into())
        .collect()
}

fn changed_split(change: impl Fn(&mut pb::Split)) -> Vec<Bytes> {
    with_node(0, |node| {
        if let Some(pb::tree_node::Kind::Split(split)) = &mut node.kind {
            change(split);
        }
    })
}

#[test]
fn a_malformed_tree_is_refused_with_what_was_wrong() {
    use pb::split::Rule;
    use pb::tree_node::Kind;
    let hazard = |ends, events, exposures| {
        move |node: &mut pb::TreeNode| {
            let (ends, events, exposures) = (
                Vec::clone(&ends),
                Vec::clone(&events),
                Vec::clone(&exposures),
            );
            node.kind = Some(Kind::Hazard(pb::Hazard {
                ends,
                events,
                exposures,
            }));
        }
    };
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
        (with_node(6, hazard(vec![3], vec![16], vec![1.0])), "events"),
        (
            with_node(6, hazard(vec![3], vec![10], vec![0.0])),
            "at risk",
        ),
        (
            with_node(6, hazard(vec![3, 3], vec![1, 1], vec![1.0, 1.0])),
            "event times",
        ),
        (
            with_node(6, hazard(vec![3], vec![1], vec![f64::INFINITY])),
            "infinity",
        ),
    ];
    for (frames, wanted) in refused {
        let error = decode_to_coordinator(&frames).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}, wanted {wanted}");
    }
    // A cycle needs a child before its parent, which is refused as such.
    let cycle = with_node(2, |node| {
        if let Some(Kind::Split(split)) = &mut node.kind {
            split.left = 1;
        }
    });
    assert!(decode_to_coordinator(&cycle).is_err());
}

#[test]
fn declared_trees_are_bounded_before_anything_is_allocated() {
    let declare = |features, nodes: Vec<u32>| {
        let trees = Some(pb::Trees { features, nodes });
        let answer = pb::Answer {
            answer: Some(pb::answer::Answer::Grown(pb::Grown { trees })),
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
