//! One forest from several sites: what a site forest discloses, and merging.

use crate::learn::forest::edges::PooledEdges;
use crate::learn::forest::trees::tree::{MISSING_LEFT, TERMINAL};
use crate::learn::forest::{Cuts, FeatureKind, Forest, Schema, Settings};

/// A forest fit to leave its site: no node holds fewer distinct in-bag patients than the site's minimum,
/// and every numeric threshold is a pooled edge. Besides [`SiteForest::node_counts`] it discloses, of
/// every terminal node, the means, class shares or hazard steps in [`crate::learn::forest::Tree::values`].
#[derive(Debug, Clone, PartialEq)]
pub struct SiteForest {
    forest: Forest,
}

/// How many patients stand behind one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeCount {
    /// Number of the tree.
    pub tree: usize,
    /// Number of the node in the tree.
    pub node: usize,
    /// Its distinct in-bag patients.
    pub patients: u32,
}

/// Why a forest may not leave its site. It names no count below the minimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DisclosureError {
    /// A node with too few patients.
    #[error("node {node} of tree {tree} holds fewer patients than the minimum of {wanted}")]
    BelowMinimum {
        /// Number of the tree.
        tree: usize,
        /// Number of the node.
        node: usize,
        /// The site's minimum.
        wanted: u32,
    },
    /// A threshold that may be a patient's value.
    #[error("node {node} of tree {tree} cuts feature {feature} off the pooled edges")]
    BesideEdges {
        /// Number of the tree.
        tree: usize,
        /// Number of the node.
        node: usize,
        /// Number of the feature.
        feature: usize,
    },
    /// Edges of another number of features.
    #[error("pooled edges for {found} features, wanted {wanted}")]
    Features {
        /// Features with edges.
        found: usize,
        /// Features of the forest.
        wanted: usize,
    },
}

/// Why forests cannot be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// No forest to merge.
    #[error("0 forests, wanted at least 1")]
    NoForests,
    /// Another schema than the first forest's: features, levels, classes or event times.
    #[error("forest {forest} has another schema than forest 0")]
    Schema {
        /// Position of the forest.
        forest: usize,
    },
}

impl Settings {
    /// These settings for a site's part of a federated forest: cuts at pooled edges only, and no node with
    /// fewer than `patients_min` distinct patients.
    #[must_use]
    pub fn federated(self, edges: PooledEdges, patients_min: u32) -> Self {
        Self {
            cuts: Cuts::Edges(edges),
            terminal_min: self.terminal_min.max(patients_min),
            ..self
        }
    }
}

impl SiteForest {
    /// Checks every node of a forest grown with [`Settings::federated`].
    ///
    /// # Errors
    /// [`DisclosureError`] for the first node that discloses too much. A tree of one node may do so where
    /// the site itself is too small.
    pub fn new(
        forest: Forest,
        edges: &PooledEdges,
        patients_min: u32,
    ) -> Result<Self, DisclosureError> {
        if edges.features() != forest.schema.features.len() {
            return Err(DisclosureError::Features {
                found: edges.features(),
                wanted: forest.schema.features.len(),
            });
        }
        for count in node_counts(&forest) {
            let NodeCount {
                tree,
                node,
                patients,
            } = count;
            if patients < patients_min {
                return Err(DisclosureError::BelowMinimum {
                    tree,
                    node,
                    wanted: patients_min,
                });
            }
        }
        match beside_edges(&forest, edges) {
            Some(error) => Err(error),
            None => Ok(Self { forest }),
        }
    }

    /// The forest.
    #[must_use]
    pub fn forest(&self) -> &Forest {
        &self.forest
    }

    /// Gives the forest up.
    #[must_use]
    pub fn into_forest(self) -> Forest {
        self.forest
    }

    /// How many patients stand behind each node, none below the minimum.
    pub fn node_counts(&self) -> impl Iterator<Item = NodeCount> + '_ {
        node_counts(&self.forest)
    }
}

fn node_counts(forest: &Forest) -> impl Iterator<Item = NodeCount> + '_ {
    forest.trees.iter().enumerate().flat_map(|(tree, grown)| {
        let counts = grown.patients.iter().enumerate();
        counts.map(move |(node, &patients)| NodeCount {
            tree,
            node,
            patients,
        })
    })
}

fn beside_edges(forest: &Forest, edges: &PooledEdges) -> Option<DisclosureError> {
    for (tree, grown) in forest.trees.iter().enumerate() {
        for (node, split) in grown.nodes.iter().enumerate() {
            if split.feature == TERMINAL {
                continue;
            }
            let feature = (split.feature & !MISSING_LEFT) as usize;
            let numeric = forest.schema.features[feature].kind == FeatureKind::Numeric;
            // An infinite threshold parts missing from present values.
            let shown = split.cut == f64::INFINITY || edges.of(feature).contains(&split.cut);
            if numeric && !shown {
                return Some(DisclosureError::BesideEdges {
                    tree,
                    node,
                    feature,
                });
            }
        }
    }
    None
}

/// Merges forests of equal schema: the trees of the first, then of the second, and so on. Impurity
/// importance is averaged over all trees. In-bag counts follow with [`crate::learn::forest::InBag::within_evenly`].
///
/// # Errors
/// [`MergeError`] with no forest, or forests of different schemas.
pub fn merged(forests: Vec<Forest>) -> Result<Forest, MergeError> {
    let first: Schema = forests.first().ok_or(MergeError::NoForests)?.schema.clone();
    if let Some(forest) = forests.iter().position(|forest| forest.schema != first) {
        return Err(MergeError::Schema { forest });
    }
    let mut gains = vec![0.0; first.features.len()];
    let mut trees = Vec::with_capacity(forests.iter().map(|forest| forest.trees.len()).sum());
    for forest in forests {
        let weight = forest.trees.len() as f64;
        gains
            .iter_mut()
            .zip(&forest.gains)
            .for_each(|(sum, gain)| *sum += weight * gain);
        trees.extend(forest.trees);
    }
    gains
        .iter_mut()
        .for_each(|gain| *gain /= trees.len() as f64);
    Ok(Forest {
        schema: first,
        trees,
        gains,
    })
}
