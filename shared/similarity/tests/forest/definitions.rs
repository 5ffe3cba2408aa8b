//! The kernels by their definitions, pair by pair.

use ndarray::Array2;
use similarity::cohort::Cohort;
use similarity::compare::proximity::kernel::{Kernel, Training};
use similarity::learn::forest::{Grown, Settings, TerminalNodes};

use crate::sample::*;

/// A forest and patients old and new.
pub(crate) struct Case {
    pub(crate) cohort: Cohort,
    pub(crate) grown: Grown,
    pub(crate) nodes: TerminalNodes,
    pub(crate) new: TerminalNodes,
}

pub(crate) fn case(patients: usize, trees: usize, outcome: usize, seed: u64) -> Case {
    let mixed_training = mixed(patients, seed);
    let cohort = cohort(
        mixed_training.columns,
        mixed_training.outcomes[outcome].clone(),
    );
    let settings = Settings {
        trees,
        node_size: 6,
        ..Settings::for_outcome(cohort.outcome())
    };
    let grown = grown(&cohort, &settings);
    let nodes = grown.forest.apply(cohort.columns()).unwrap();
    let new = grown.forest.apply(&mixed(9, seed + 1).columns).unwrap();
    Case {
        cohort,
        grown,
        nodes,
        new,
    }
}

impl Case {
    pub(crate) fn training(&self) -> Training<'_> {
        Training {
            forest: &self.grown.forest,
            in_bag: &self.grown.in_bag,
            nodes: &self.nodes,
        }
    }

    /// Nodes from the root to a terminal node.
    pub(crate) fn way(&self, tree: usize, node: u32) -> Vec<u32> {
        let parents = self.grown.forest.trees()[tree].parents();
        let mut way = vec![node];
        while parents[way[way.len() - 1] as usize] != u32::MAX {
            way.push(parents[way[way.len() - 1] as usize]);
        }
        way.reverse();
        way
    }

    /// The definition of the kernel's table, pair by pair. `own` says that rows are training patients.
    pub(crate) fn by_definition(
        &self,
        kernel: Kernel,
        rows: &TerminalNodes,
        own: bool,
    ) -> Array2<f64> {
        let trees = rows.trees();
        let out = |tree: usize, patient: usize| self.grown.in_bag.of_tree(tree)[patient] == 0;
        Array2::from_shape_fn((rows.patients(), self.nodes.patients()), |(i, j)| {
            let same = |tree: usize| rows.of_tree(tree)[i] == self.nodes.of_tree(tree)[j];
            let row_out = |tree: usize| !own || out(tree, i);
            let mean = |value: &dyn Fn(usize) -> f64, usable: &dyn Fn(usize) -> bool| {
                let chosen: Vec<usize> = (0..trees).filter(|&tree| usable(tree)).collect();
                chosen.iter().map(|&tree| value(tree)).sum::<f64>() / chosen.len() as f64
            };
            let ways = |tree: usize| {
                let here = self.way(tree, rows.of_tree(tree)[i]);
                let there = self.way(tree, self.nodes.of_tree(tree)[j]);
                let common = here.iter().zip(&there).filter(|(a, b)| a == b).count();
                (here.len() as f64, there.len() as f64, common as f64)
            };
            match kernel {
                Kernel::Proximity => mean(&|tree| f64::from(same(tree)), &|_| true),
                Kernel::OutOfBag => mean(&|tree| f64::from(same(tree)), &|tree| {
                    row_out(tree) && out(tree, j)
                }),
                Kernel::Gap => mean(
                    &|tree| {
                        let counts = self.grown.in_bag.of_tree(tree);
                        let node = rows.of_tree(tree)[i];
                        let mass: f64 = (0..counts.len())
                            .filter(|&other| self.nodes.of_tree(tree)[other] == node)
                            .map(|other| f64::from(counts[other]))
                            .sum();
                        f64::from(same(tree)) * f64::from(counts[j]) / mass
                    },
                    &row_out,
                ),
                Kernel::Kerf => mean(
                    &|tree| {
                        let node = self.nodes.of_tree(tree)[j];
                        let mass = self
                            .nodes
                            .of_tree(tree)
                            .iter()
                            .filter(|&&other| other == node);
                        f64::from(same(tree)) / mass.count() as f64
                    },
                    &|_| true,
                ),
                Kernel::Depth { omega } => mean(
                    &|tree| {
                        let (here, there, common) = ways(tree);
                        (-omega * (here + there - 2.0 * common)).exp()
                    },
                    &|_| true,
                ),
                Kernel::Path => {
                    let sums = (0..trees).map(ways).fold((0.0, 0.0, 0.0), |sum, way| {
                        (sum.0 + way.0, sum.1 + way.1, sum.2 + way.2)
                    });
                    sums.2 / (sums.0 * sums.1).sqrt()
                }
            }
        })
    }
}
