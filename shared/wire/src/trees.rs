//! Trees and what is said of forests. Trees are checked whole on their way in: what leaves this file is
//! a tree over the declared features, without cycles, with finite numbers.

use crate::error::WireError;
use crate::generated as pb;
use crate::generated::split::Rule;
use crate::generated::tree_node::Kind;
use crate::values::{at_most, evaluations, evaluations_to_proto, finite, present, sentence};
use ndarray::Array2;
use protocol::limits::{
    CLASSES_MAX, CUTS_MAX, EVALUATIONS_MAX, EVENT_TIMES_MAX, FOREST_FEATURES_MAX, LEVELS_MAX,
    MATRIX_ENTRIES_MAX, NODES_MAX, TREES_MAX,
};
use protocol::message::{
    ErrorMeasure, ErrorSums, FeatureImportance, Judged, NodeKind, NodeRule, NodeTable, RuleErrors,
    Side, TerminalTable, TreeTable, Trees,
};
use protocol::progress::CommonForest;
use std::sync::Arc;

/// The nodes of a message, converted as they are asked for.
#[derive(Debug)]
pub(crate) struct OutgoingNodes {
    trees: Arc<Trees>,
    tree: usize,
    node: usize,
}

impl OutgoingNodes {
    pub(crate) fn new(trees: Arc<Trees>) -> Self {
        Self {
            trees,
            tree: 0,
            node: 0,
        }
    }
}

impl Iterator for OutgoingNodes {
    type Item = pb::TreeNode;

    fn next(&mut self) -> Option<pb::TreeNode> {
        loop {
            let nodes = self.trees.trees.get(self.tree)?.nodes();
            if let Some(node) = nodes.get(self.node) {
                self.node += 1;
                return Some(node_to_proto(node));
            }
            (self.tree, self.node) = (self.tree + 1, 0);
        }
    }
}

/// What trees declare of themselves.
pub(crate) fn trees_to_proto(trees: &Trees) -> pb::Trees {
    let nodes = trees.trees.iter().map(|tree| tree.nodes().len());
    pb::Trees {
        features: trees.features,
        nodes: nodes
            .map(|nodes| u32::try_from(nodes).unwrap_or(u32::MAX))
            .collect(),
    }
}

/// Nodes that these trees declare.
pub(crate) fn declared_nodes(trees: &pb::Trees) -> Result<usize, WireError> {
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
    at_most("nodes of trees", nodes.sum(), NODES_MAX)
}

/// Puts the trees together.
pub(crate) fn trees(declared: &pb::Trees, nodes: Vec<NodeTable>) -> Result<Trees, WireError> {
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
pub(crate) fn node(node: pb::TreeNode, numbers: &mut usize) -> Result<NodeTable, WireError> {
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

/// Cut points of one feature.
pub(crate) fn edges(edges: pb::Edges) -> Result<Vec<f64>, WireError> {
    at_most("cut points", edges.values.len(), CUTS_MAX)?;
    rising("a cut point", edges.values)
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

pub(crate) fn forest_to_proto(forest: &CommonForest) -> pb::CommonForest {
    pb::CommonForest {
        trees: Some(trees_to_proto(&forest.trees)),
        event_times: forest.event_times.clone(),
        class_weights: forest.class_weights.clone(),
    }
}

pub(crate) fn forest(
    forest: pb::CommonForest,
    nodes: Vec<NodeTable>,
) -> Result<CommonForest, WireError> {
    let declared = present("trees", forest.trees)?;
    Ok(CommonForest {
        trees: Arc::new(trees(&declared, nodes)?),
        event_times: event_times(forest.event_times)?,
        class_weights: class_weights(forest.class_weights)?,
    })
}

/// A judgement without its importance, which travels as a matrix.
pub(crate) fn judged_to_proto(judged: Judged) -> (pb::Judged, Option<Array2<f64>>) {
    let importance = importance_to_matrix(&judged.importance);
    let header = pb::Judged {
        errors: errors_to_proto(judged.errors),
        evaluation: evaluations_to_proto(judged.evaluation),
        importance: importance.as_ref().map(crate::parts::shape),
    };
    (header, importance)
}

pub(crate) fn judged(
    header: pb::Judged,
    importance: Option<&Array2<f64>>,
) -> Result<Judged, WireError> {
    Ok(Judged {
        errors: errors(header.errors)?,
        evaluation: evaluations(header.evaluation)?,
        importance: match importance {
            Some(matrix) => importances_of_matrix(matrix)?,
            None => Vec::new(),
        },
    })
}

pub(crate) fn errors_to_proto(errors: Vec<RuleErrors>) -> Vec<pb::RuleErrors> {
    let one = |errors: RuleErrors| pb::RuleErrors {
        rule: errors.rule,
        neighbours: errors.neighbours,
        measure: match errors.measure {
            ErrorMeasure::Misclassified => pb::ErrorMeasure::Misclassified,
            ErrorMeasure::Squared => pb::ErrorMeasure::Squared,
            ErrorMeasure::Discordant => pb::ErrorMeasure::Discordant,
        }
        .into(),
        sums: errors.sums.map(|sums| pb::ErrorSums {
            total: sums.total,
            error: sums.error,
        }),
    };
    errors.into_iter().map(one).collect()
}

pub(crate) fn errors(errors: Vec<pb::RuleErrors>) -> Result<Vec<RuleErrors>, WireError> {
    at_most("errors", errors.len(), EVALUATIONS_MAX)?;
    let one = |errors: pb::RuleErrors| {
        let measure = match pb::ErrorMeasure::try_from(errors.measure) {
            Ok(pb::ErrorMeasure::Misclassified) => Some(ErrorMeasure::Misclassified),
            Ok(pb::ErrorMeasure::Squared) => Some(ErrorMeasure::Squared),
            Ok(pb::ErrorMeasure::Discordant) => Some(ErrorMeasure::Discordant),
            Ok(pb::ErrorMeasure::Unspecified) | Err(_) => None,
        };
        Ok(RuleErrors {
            rule: sentence("the rule of an error", errors.rule)?,
            neighbours: errors.neighbours,
            measure: present("measure of an error", measure)?,
            sums: errors.sums.map(error_sums).transpose()?,
        })
    };
    errors.into_iter().map(one).collect()
}

fn error_sums(sums: pb::ErrorSums) -> Result<ErrorSums, WireError> {
    Ok(ErrorSums {
        total: sums.total,
        error: finite("a sum of errors", sums.error)?,
    })
}

fn importance_to_matrix(importance: &[FeatureImportance]) -> Option<Array2<f64>> {
    let entry = |(row, column): (usize, usize)| match column {
        0 => importance[row].mean,
        _ => importance[row].standard_error,
    };
    (!importance.is_empty()).then(|| Array2::from_shape_fn((importance.len(), 2), entry))
}

fn importances_of_matrix(matrix: &Array2<f64>) -> Result<Vec<FeatureImportance>, WireError> {
    at_most("importances", matrix.nrows(), FOREST_FEATURES_MAX)?;
    if matrix.ncols() != 2 {
        return Err(WireError::Unexpected {
            found: format!("importances of {} x {}", matrix.nrows(), matrix.ncols()),
            wanted: "two numbers a feature".to_owned(),
        });
    }
    let one = |row: ndarray::ArrayView1<'_, f64>| FeatureImportance {
        mean: row[0],
        standard_error: row[1],
    };
    Ok(matrix.rows().into_iter().map(one).collect())
}

pub(crate) fn importance_to_proto(importance: FeatureImportance) -> pb::FeatureImportance {
    pb::FeatureImportance {
        mean: importance.mean,
        standard_error: importance.standard_error,
    }
}

pub(crate) fn importances(
    importances: Vec<pb::FeatureImportance>,
) -> Result<Vec<FeatureImportance>, WireError> {
    at_most("importances", importances.len(), FOREST_FEATURES_MAX)?;
    let one = |importance: pb::FeatureImportance| {
        Ok(FeatureImportance {
            mean: finite("an importance", importance.mean)?,
            standard_error: finite("an importance", importance.standard_error)?,
        })
    };
    importances.into_iter().map(one).collect()
}
