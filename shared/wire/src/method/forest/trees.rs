//! Trees on their way. They are checked whole on their way in: what leaves this file is a tree over the declared
//! features, without cycles, with finite numbers.

use crate::encoding::list::{Listed, Outgoing};
use crate::encoding::values::{at_most, finite, length, present};
use crate::error::WireError;
use crate::generated as pb;
use crate::generated::part::Part;
use crate::generated::split::Rule;
use crate::generated::tree_node::Kind;
use protocol::limits::{
    CLASSES_MAX, CUTS_MAX, EVENT_TIMES_MAX, FOREST_FEATURES_MAX, LEVELS_MAX, MATRIX_ENTRIES_MAX,
    NODES_MAX, TREES_MAX,
};
use protocol::message::forest::{
    NodeKind, NodeRule, NodeTable, Side, TerminalTable, TreeTable, Trees,
};
use std::sync::Arc;

/// Where features may be cut, one list per feature.
pub(crate) enum CutPoints {}

impl Listed for CutPoints {
    type Item = Vec<f64>;
    type Row = pb::Edges;
    const DECLARED: &'static str = "lists of cut points";
    const PART: &'static str = "a list of cut points";
    const ITEMS_MAX: usize = FOREST_FEATURES_MAX;

    fn part(edges: Vec<pb::Edges>) -> Part {
        Part::Edges(pb::EdgesChunk { edges })
    }

    fn write(item: &Vec<f64>) -> pb::Edges {
        let values = item.clone();
        pb::Edges { values }
    }

    fn read(row: pb::Edges, _numbers: &mut usize) -> Result<Vec<f64>, WireError> {
        at_most("cut points", row.values.len(), CUTS_MAX)?;
        rising("a cut point", row.values)
    }
}

/// The nodes of trees, tree after tree.
pub(crate) enum Nodes {}

impl Listed for Nodes {
    type Item = NodeTable;
    type Row = pb::TreeNode;
    const DECLARED: &'static str = "nodes of trees";
    const PART: &'static str = "a list of nodes";
    const ITEMS_MAX: usize = NODES_MAX;

    fn part(nodes: Vec<pb::TreeNode>) -> Part {
        Part::Nodes(pb::NodesChunk { nodes })
    }

    fn write(item: &NodeTable) -> pb::TreeNode {
        node_to_proto(item)
    }

    fn read(row: pb::TreeNode, numbers: &mut usize) -> Result<NodeTable, WireError> {
        node(row, numbers)
    }
}

/// The nodes of trees that others may hold too.
pub(crate) fn nodes(trees: Arc<Trees>) -> Outgoing<Nodes> {
    let (mut tree, mut node) = (0, 0);
    Outgoing::rows(std::iter::from_fn(move || {
        loop {
            let nodes = trees.trees.get(tree)?.nodes();
            if let Some(found) = nodes.get(node) {
                node += 1;
                return Some(node_to_proto(found));
            }
            (tree, node) = (tree + 1, 0);
        }
    }))
}

/// What trees declare of themselves.
pub(crate) fn trees_to_proto(trees: &Trees) -> pb::Trees {
    let nodes = trees.trees.iter().map(|tree| tree.nodes().len());
    pb::Trees {
        features: trees.features,
        nodes: nodes.map(length).collect(),
    }
}

/// Nodes that these trees declare.
pub(crate) fn declared_nodes(trees: Option<&pb::Trees>) -> Result<u32, WireError> {
    let trees = present("trees", trees)?;
    at_most("trees", trees.nodes.len(), TREES_MAX)?;
    at_most(
        "features of trees",
        trees.features as usize,
        FOREST_FEATURES_MAX,
    )?;
    let nodes = trees.nodes.iter().map(|nodes| *nodes as usize);
    if let Some(even) = nodes.clone().find(|nodes| nodes % 2 == 0) {
        return Err(WireError::Unexpected {
            found: format!("a tree of {even} nodes"),
            wanted: "an odd number".to_owned(),
        });
    }
    at_most("nodes of trees", nodes.sum(), NODES_MAX).map(length)
}

/// Puts the trees together.
pub(crate) fn trees(
    declared: Option<pb::Trees>,
    nodes: Vec<NodeTable>,
) -> Result<Trees, WireError> {
    let declared = present("trees", declared)?;
    let mut rest = nodes.into_iter();
    let mut trees = Vec::with_capacity(declared.nodes.len());
    for nodes in &declared.nodes {
        let own: Vec<NodeTable> = rest.by_ref().take(*nodes as usize).collect();
        let tree = TreeTable::new(own, declared.features as usize);
        trees.push(tree.map_err(|error| WireError::Unexpected {
            found: error.to_string(),
            wanted: "a tree".to_owned(),
        })?);
    }
    Ok(Trees {
        features: declared.features,
        trees,
    })
}

fn node_to_proto(node: &NodeTable) -> pb::TreeNode {
    let kind = match &node.kind {
        NodeKind::Split {
            feature,
            rule,
            missing,
            left,
        } => Kind::Split(pb::Split {
            feature: *feature,
            missing_left: *missing == Side::Left,
            left: *left,
            rule: Some(match rule {
                NodeRule::AtMost(threshold) => Rule::AtMost(*threshold),
                NodeRule::Levels(words) => Rule::Levels(pb::LevelSet {
                    words: words.clone(),
                }),
                NodeRule::Present => Rule::Present(pb::Present {}),
            }),
        }),
        NodeKind::Terminal(TerminalTable::Classes(counts)) => Kind::Classes(pb::ClassCounts {
            patients: counts.clone(),
        }),
        NodeKind::Terminal(TerminalTable::Mean(mean)) => Kind::Mean(*mean),
        NodeKind::Terminal(TerminalTable::Survival {
            ends,
            events,
            exposures,
        }) => Kind::Hazard(pb::Hazard {
            ends: ends.clone(),
            events: events.clone(),
            exposures: exposures.clone(),
        }),
    };
    pb::TreeNode {
        patients: node.patients,
        kind: Some(kind),
    }
}

/// A node; `numbers` counts the entries of all lists so far.
fn node(node: pb::TreeNode, numbers: &mut usize) -> Result<NodeTable, WireError> {
    let kind = match present("kind of node", node.kind)? {
        Kind::Split(split) => NodeKind::Split {
            feature: split.feature,
            rule: match present("rule of a split", split.rule)? {
                Rule::AtMost(threshold) => NodeRule::AtMost(finite("a threshold", threshold)?),
                Rule::Levels(pb::LevelSet { words }) => {
                    *numbers += at_most("a level set", words.len(), LEVELS_MAX.div_ceil(64))?;
                    NodeRule::Levels(words)
                }
                Rule::Present(_) => NodeRule::Present,
            },
            missing: if split.missing_left {
                Side::Left
            } else {
                Side::Right
            },
            left: split.left,
        },
        Kind::Classes(pb::ClassCounts { patients }) => {
            *numbers += at_most("classes of a node", patients.len(), CLASSES_MAX)?;
            NodeKind::Terminal(TerminalTable::Classes(patients))
        }
        Kind::Mean(mean) => NodeKind::Terminal(TerminalTable::Mean(finite("a mean", mean)?)),
        Kind::Hazard(pb::Hazard {
            ends,
            events,
            exposures,
        }) => {
            for length in [ends.len(), events.len(), exposures.len()] {
                *numbers += at_most("groups of event times", length, EVENT_TIMES_MAX)?;
            }
            for exposure in &exposures {
                finite("a time at risk", *exposure)?;
            }
            NodeKind::Terminal(TerminalTable::Survival {
                ends,
                events,
                exposures,
            })
        }
    };
    at_most("numbers of trees", *numbers, MATRIX_ENTRIES_MAX)?;
    Ok(NodeTable {
        patients: node.patients,
        kind,
    })
}

/// The event times of a common forest.
pub(crate) fn event_times(times: Vec<f64>) -> Result<Vec<f64>, WireError> {
    at_most("event times", times.len(), EVENT_TIMES_MAX)?;
    rising("an event time", times)
}

/// The class weights of a common forest.
pub(crate) fn class_weights(weights: Vec<f64>) -> Result<Vec<f64>, WireError> {
    at_most("class weights", weights.len(), CLASSES_MAX)?;
    for weight in &weights {
        finite("a class weight", *weight)?;
    }
    Ok(weights)
}

fn rising(field: &'static str, values: Vec<f64>) -> Result<Vec<f64>, WireError> {
    for value in &values {
        finite(field, *value)?;
    }
    if !values.is_sorted_by(|before, after| before < after) {
        return Err(WireError::Unexpected {
            found: format!("{field} that does not rise"),
            wanted: "each above the one before".to_owned(),
        });
    }
    Ok(values)
}
