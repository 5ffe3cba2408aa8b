//! A forest's proximity as a comparison: the share of trees in which two patients share a terminal node.
//!
//! No tree has seen a new patient. So that a patient of the forest's own cohort is compared alike, only the trees count in
//! which it is out of bag, where the bags are known: trees that have seen it place it otherwise than a new one.
//!
//! Where they do not, their ways part at one node; the feature that this node splits by is what parts them in that tree.
//! The shares of trees by feature add up to 1 - P, the squared distance.

use std::sync::Arc;

use crate::cohort::Column;
use crate::compare::proximity::kernel::OutOfBag;
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
    /// Which trees have not seen the patients of the forest's cohort.
    bags: Option<OutOfBag>,
}

impl Proximity {
    /// By the terminal nodes of a forest; `bags` are those of its cohort, where they are known.
    ///
    /// # Errors
    /// [`CompareError::Empty`] where the forest has no tree.
    pub fn new(forest: Forest, bags: Option<OutOfBag>) -> Result<Self, CompareError> {
        if forest.trees().is_empty() {
            return Err(CompareError::Empty);
        }
        let features = forest.schema().features.iter();
        Ok(Self {
            features: features.map(|feature| feature.name.clone()).collect(),
            parents: Arc::new(forest.trees().iter().map(|tree| tree.parents()).collect()),
            forest: Arc::new(forest),
            bags,
        })
    }

    /// The forest.
    #[must_use]
    pub fn forest(&self) -> &Forest {
        &self.forest
    }

    pub(crate) fn features(&self) -> &[String] {
        &self.features
    }

    pub(crate) fn place(&self, columns: &[Column]) -> Result<Placed, CompareError> {
        Ok(Placed::Nodes {
            nodes: self.forest.apply(columns)?,
            bags: None,
        })
    }

    /// The patients of the forest's own cohort, in its order.
    pub(crate) fn place_cohort(&self, columns: &[Column]) -> Result<Placed, CompareError> {
        let nodes = self.forest.apply(columns)?;
        let trees = self.parents.len().div_ceil(64);
        let fits = |bags: &&OutOfBag| bags.words().len() == trees * nodes.patients();
        let bags = self.bags.as_ref().filter(fits).cloned();
        Ok(Placed::Nodes { nodes, bags })
    }

    pub(crate) fn sum(&self, one: &Placed, i: usize, other: &Placed, j: usize) -> f64 {
        let (Placed::Nodes { nodes: one, .. }, Placed::Nodes { nodes: other, bags }) = (one, other)
        else {
            return f64::NAN;
        };
        let (mut parted, mut counted) = (0_u32, 0_u32);
        for tree in (0..self.parents.len()).filter(|tree| is_unseen(bags, j, *tree)) {
            counted += 1;
            parted += u32::from(one.of_tree(tree)[i] != other.of_tree(tree)[j]);
        }
        // 0 / 0: every tree has seen the patient.
        f64::from(parted) / f64::from(counted)
    }

    pub(crate) fn parts(
        &self,
        one: &Placed,
        i: usize,
        other: &Placed,
        j: usize,
        parts: &mut [f64],
    ) {
        let (Placed::Nodes { nodes: one, .. }, Placed::Nodes { nodes: other, bags }) = (one, other)
        else {
            parts.fill(f64::NAN);
            return;
        };
        let mut counted = 0.0_f64;
        for (tree, parents) in self.parents.iter().enumerate() {
            if !is_unseen(bags, j, tree) {
                continue;
            }
            counted += 1.0;
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
        parts.iter_mut().for_each(|part| *part /= counted);
    }
}

fn is_unseen(bags: &Option<OutOfBag>, patient: usize, tree: usize) -> bool {
    bags.as_ref().is_none_or(|bags| bags.is_out(patient, tree))
}
