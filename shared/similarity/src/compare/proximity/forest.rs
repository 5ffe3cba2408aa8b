//! A forest's proximity as a comparison: the share of trees in which two patients share a terminal node.
//!
//! Where they do not, their ways part at one node; the feature that this node splits by is what parts them in that tree.
//! The shares of trees by feature add up to 1 - P, the squared distance.

use std::sync::Arc;

use crate::cohort::Column;
use crate::compare::{CompareError, Placed};
use crate::learn::forest::Forest;
use crate::learn::forest::trees::tree::{MISSING_LEFT, NO_PARENT, TERMINAL};

/// A comparison by a forest's terminal nodes.
#[derive(Debug, Clone)]
pub struct Proximity {
    forest: Arc<Forest>,
    features: Vec<String>,
    /// Of each tree, the parent of every node.
    parents: Arc<Vec<Vec<u32>>>,
}

impl Proximity {
    /// By the terminal nodes of a forest.
    ///
    /// # Errors
    /// [`CompareError::Empty`] where the forest has no tree.
    pub fn new(forest: Forest) -> Result<Self, CompareError> {
        if forest.trees().is_empty() {
            return Err(CompareError::Empty);
        }
        let features = forest.schema().features.iter();
        Ok(Self {
            features: features.map(|feature| feature.name.clone()).collect(),
            parents: Arc::new(forest.trees().iter().map(|tree| tree.parents()).collect()),
            forest: Arc::new(forest),
        })
    }

    pub(crate) fn features(&self) -> &[String] {
        &self.features
    }

    pub(crate) fn place(&self, columns: &[Column]) -> Result<Placed, CompareError> {
        Ok(Placed::Nodes(self.forest.apply(columns)?))
    }

    pub(crate) fn sum(&self, one: &Placed, i: usize, other: &Placed, j: usize) -> f64 {
        let (Placed::Nodes(one), Placed::Nodes(other)) = (one, other) else {
            return f64::NAN;
        };
        let trees = self.parents.len();
        let parted = (0..trees).filter(|tree| one.of_tree(*tree)[i] != other.of_tree(*tree)[j]);
        parted.count() as f64 / trees as f64
    }

    pub(crate) fn parts(
        &self,
        one: &Placed,
        i: usize,
        other: &Placed,
        j: usize,
        parts: &mut [f64],
    ) {
        let (Placed::Nodes(one), Placed::Nodes(other)) = (one, other) else {
            parts.fill(f64::NAN);
            return;
        };
        for (tree, parents) in self.parents.iter().enumerate() {
            let (mut a, mut b) = (one.of_tree(tree)[i], other.of_tree(tree)[j]);
            if a == b {
                continue;
            }
            // Children have larger numbers than their parent: the larger one climbs.
            while a != b {
                let larger = if a > b { &mut a } else { &mut b };
                *larger = parents[*larger as usize];
                debug_assert_ne!(*larger, NO_PARENT);
            }
            let feature = self.forest.trees()[tree].nodes[a as usize].feature;
            debug_assert_ne!(feature, TERMINAL);
            parts[(feature & !MISSING_LEFT) as usize] += 1.0;
        }
        let trees = self.parents.len() as f64;
        parts.iter_mut().for_each(|part| *part /= trees);
    }
}
