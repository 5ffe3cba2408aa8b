//! Kernels that look above the terminal nodes: how deep two patients go together in every tree.

use ndarray::Array2;
use rayon::prelude::*;

use crate::compare::proximity::kernel::by_rows;
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

    /// Nodes that each patient passes, in all trees.
    pub(super) fn passed(&self, nodes: &TerminalNodes) -> Vec<f64> {
        let passed = |patient: usize| -> f64 {
            let depth = |tree: usize| self.depths[tree][nodes.of_tree(tree)[patient] as usize];
            (0..nodes.trees())
                .map(|tree| f64::from(depth(tree)) + 1.0)
                .sum()
        };
        (0..nodes.patients()).into_par_iter().map(passed).collect()
    }

    /// What `table` has of the edges between `terminal` and every node of a tree.
    pub(super) fn of_edges(
        &self,
        tree: usize,
        terminal: u32,
        table: &[f64],
        common: &mut Vec<u32>,
        by_node: &mut Vec<f64>,
    ) {
        self.common_depths(tree, terminal, common);
        let depths = &self.depths[tree];
        let depth = depths[terminal as usize];
        let edges = common.iter().zip(depths);
        by_node.clear();
        by_node.extend(edges.map(|(&up, &other)| table[(depth + other - 2 * up) as usize]));
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

/// Mean over trees of a function of the edges between two patients' terminal nodes, m x n.
pub(super) fn mean_over_pairs(
    topology: &Topology,
    columns: &TerminalNodes,
    rows: &TerminalNodes,
    of_edges: impl Fn(u32) -> f64,
) -> Array2<f64> {
    let all = |row| rows.of_row(row);
    mean_over_trees(topology, columns, rows.patients(), all, of_edges)
}

/// The same over the trees of each row, with its terminal nodes.
pub(super) fn mean_over_trees<T: Iterator<Item = (usize, u32)>>(
    topology: &Topology,
    columns: &TerminalNodes,
    rows: usize,
    trees: impl Fn(usize) -> T + Sync + Send,
    of_edges: impl Fn(u32) -> f64,
) -> Array2<f64> {
    let deepest = topology.depths.iter().flatten().copied().max().unwrap_or(0);
    let table: Vec<f64> = (0..=2 * deepest).map(of_edges).collect();
    let scratch = || (Vec::new(), Vec::new());
    by_rows(
        rows,
        columns.patients(),
        scratch,
        |(common, by_node), row, values| {
            let mut trees_used = 0.0;
            for (tree, terminal) in trees(row) {
                trees_used += 1.0;
                topology.of_edges(tree, terminal, &table, common, by_node);
                for (value, &node) in values.iter_mut().zip(columns.of_tree(tree)) {
                    *value += by_node[node as usize];
                }
            }
            values.iter_mut().for_each(|value| *value /= trees_used);
        },
    )
}

/// Cosine of the indicators of all nodes passed, m x n; `column_passed` are [`Topology::passed`] of the columns.
pub(super) fn path(
    topology: &Topology,
    column_passed: &[f64],
    columns: &TerminalNodes,
    rows: &TerminalNodes,
) -> Array2<f64> {
    let all_passed = topology.passed(rows);
    let scratch = || (Vec::new(), vec![0_u32; columns.patients()]);
    by_rows(
        rows.patients(),
        columns.patients(),
        scratch,
        |(common, shared), row, values| {
            shared.fill(0);
            for tree in 0..rows.trees() {
                topology.common_depths(tree, rows.of_tree(tree)[row], common);
                for (sum, &node) in shared.iter_mut().zip(columns.of_tree(tree)) {
                    *sum += common[node as usize] + 1;
                }
            }
            let row_passed = all_passed[row];
            for (column, value) in values.iter_mut().enumerate() {
                *value = f64::from(shared[column]) / (row_passed * column_passed[column]).sqrt();
            }
        },
    )
}
