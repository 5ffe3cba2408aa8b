//! Kernels that look above the terminal nodes: how deep two patients go together in every tree.

use ndarray::Array2;
use rayon::prelude::*;

use crate::compare::proximity::kernel::{Training, by_rows};
use crate::learn::forest::Forest;
use crate::learn::forest::trees::terminal::TerminalNodes;
use crate::learn::forest::trees::tree::NO_PARENT;

/// Parents and depths of the nodes of every tree.
pub(super) struct Topology {
    parents: Vec<Vec<u32>>,
    pub(super) depths: Vec<Vec<u32>>,
}

impl Topology {
    pub(super) fn new(forest: &Forest) -> Self {
        let parents = forest
            .trees()
            .par_iter()
            .map(|tree| tree.parents())
            .collect();
        let depths = forest
            .trees()
            .par_iter()
            .map(|tree| tree.depths())
            .collect();
        Self { parents, depths }
    }

    /// The depth of the deepest common ancestor of `terminal` and every node of a tree. Children have
    /// larger numbers than their parent, so one pass suffices.
    pub(super) fn common_depths(&self, tree: usize, terminal: u32, common: &mut Vec<u32>) {
        let (parents, depths) = (&self.parents[tree], &self.depths[tree]);
        common.clear();
        common.resize(parents.len(), NO_PARENT);
        let mut node = terminal;
        while node != NO_PARENT {
            common[node as usize] = depths[node as usize];
            node = parents[node as usize];
        }
        for node in 1..parents.len() {
            if common[node] == NO_PARENT {
                common[node] = common[parents[node] as usize];
            }
        }
    }
}

/// Mean over trees of a function of the edges between two patients' terminal nodes.
pub(super) fn mean_over_pairs(
    training: Training<'_>,
    rows: &TerminalNodes,
    of_edges: impl Fn(u32) -> f64 + Sync + Send,
) -> Array2<f64> {
    let topology = Topology::new(training.forest);
    let deepest = topology.depths.iter().flatten().copied().max().unwrap_or(0);
    let table: Vec<f64> = (0..=2 * deepest).map(of_edges).collect();
    let trees = rows.trees();
    let scratch = || (Vec::new(), Vec::new());
    by_rows(
        rows.patients(),
        training.nodes.patients(),
        scratch,
        |(common, by_node), row, values| {
            for tree in 0..trees {
                let terminal = rows.of_tree(tree)[row];
                topology.common_depths(tree, terminal, common);
                let depths = &topology.depths[tree];
                let depth = depths[terminal as usize];
                by_node.clear();
                by_node.extend(
                    common
                        .iter()
                        .zip(depths)
                        .map(|(&up, &other)| table[(depth + other - 2 * up) as usize]),
                );
                for (value, &node) in values.iter_mut().zip(training.nodes.of_tree(tree)) {
                    *value += by_node[node as usize];
                }
            }
            values.iter_mut().for_each(|value| *value /= trees as f64);
        },
    )
}

/// Cosine of the indicators of all nodes passed.
pub(super) fn path(training: Training<'_>, rows: &TerminalNodes) -> Array2<f64> {
    let topology = Topology::new(training.forest);
    let passed = |nodes: &TerminalNodes, patient: usize| -> f64 {
        (0..nodes.trees())
            .map(|tree| {
                f64::from(topology.depths[tree][nodes.of_tree(tree)[patient] as usize]) + 1.0
            })
            .sum()
    };
    let columns = training.nodes.patients();
    let column_passed: Vec<f64> = (0..columns)
        .map(|column| passed(training.nodes, column))
        .collect();
    let scratch = || (Vec::new(), vec![0_u32; columns]);
    by_rows(
        rows.patients(),
        columns,
        scratch,
        |(common, shared), row, values| {
            shared.fill(0);
            for tree in 0..rows.trees() {
                topology.common_depths(tree, rows.of_tree(tree)[row], common);
                for (sum, &node) in shared.iter_mut().zip(training.nodes.of_tree(tree)) {
                    *sum += common[node as usize] + 1;
                }
            }
            let row_passed = passed(rows, row);
            for (column, value) in values.iter_mut().enumerate() {
                *value = f64::from(shared[column]) / (row_passed * column_passed[column]).sqrt();
            }
        },
    )
}
