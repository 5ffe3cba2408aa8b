//! A forest's kernels with patients who are known, for any number of blocks of others: what a kernel needs of the known is made once.

use ndarray::{Array1, Array2};

use crate::compare::proximity::ancestors::{Topology, mean_over_pairs, mean_over_trees, path};
use crate::compare::proximity::kernel::{
    Kernel, KernelError, OutOfBag, by_rows, check_nodes, check_size, kerf, proximity_with,
};
use crate::learn::forest::Forest;
use crate::learn::forest::trees::terminal::{Buckets, TerminalNodes};

/// The kernel with n patients.
pub(crate) struct Known<'t> {
    forest: &'t Forest,
    nodes: &'t TerminalNodes,
    needs: Needs,
}

/// What each kernel needs, and nothing else.
enum Needs {
    Proximity(Buckets),
    Kerf(Buckets),
    Depth {
        omega: f64,
        topology: Topology,
    },
    Path {
        topology: Topology,
        /// Nodes that each of the n passes, in all trees.
        passed: Vec<f64>,
    },
}

impl<'t> Known<'t> {
    /// With these patients; out-of-bag proximities and GAP, which are no kernels, as the proximity.
    ///
    /// # Errors
    /// [`KernelError`] where the terminal nodes are not the forest's, or of a decay that is none.
    pub(crate) fn new(
        kernel: Kernel,
        forest: &'t Forest,
        nodes: &'t TerminalNodes,
    ) -> Result<Self, KernelError> {
        check_nodes(forest, nodes)?;
        Self::checked(kernel, forest, nodes)
    }

    /// The same of terminal nodes that are known to be the forest's.
    pub(super) fn checked(
        kernel: Kernel,
        forest: &'t Forest,
        nodes: &'t TerminalNodes,
    ) -> Result<Self, KernelError> {
        let needs = match kernel {
            Kernel::Depth { omega } if !(omega.is_finite() && omega >= 0.0) => {
                return Err(KernelError::Omega { found: omega });
            }
            Kernel::Depth { omega } => Needs::Depth {
                omega,
                topology: Topology::new(forest),
            },
            Kernel::Path => {
                let topology = Topology::new(forest);
                Needs::Path {
                    passed: topology.passed(nodes),
                    topology,
                }
            }
            Kernel::Kerf => Needs::Kerf(Buckets::new(nodes)),
            Kernel::Proximity | Kernel::OutOfBag | Kernel::Gap => {
                Needs::Proximity(Buckets::new(nodes))
            }
        };
        Ok(Self {
            forest,
            nodes,
            needs,
        })
    }

    /// The kernel of m patients over all trees, m x n.
    ///
    /// # Errors
    /// [`KernelError`] where their terminal nodes are not the forest's, or m is too large.
    pub(crate) fn by_all_trees(&self, rows: &TerminalNodes) -> Result<Array2<f64>, KernelError> {
        self.check(rows)?;
        Ok(self.over_all_trees(rows))
    }

    /// The same of terminal nodes that are known to be the forest's.
    pub(super) fn over_all_trees(&self, rows: &TerminalNodes) -> Array2<f64> {
        match &self.needs {
            Needs::Proximity(buckets) => proximity_with(buckets, rows),
            Needs::Kerf(buckets) => kerf(buckets, rows),
            Needs::Depth { omega, topology } => {
                mean_over_pairs(topology, self.nodes, rows, |edges| decayed(*omega, edges))
            }
            Needs::Path { topology, passed } => path(topology, passed, self.nodes, rows),
        }
    }

    /// The kernel of m patients that the forest was grown on, as it would see them if they were new: m x n, each row over the trees
    /// that have not seen its patient by `bags`; NaN where all have.
    ///
    /// # Errors
    /// As for [`Known::by_all_trees`].
    pub(crate) fn by_unseen_trees(
        &self,
        rows: &TerminalNodes,
        bags: &OutOfBag,
    ) -> Result<Array2<f64>, KernelError> {
        self.check(rows)?;
        let unseen = |row: usize| {
            let trees = rows.of_row(row);
            trees.filter(move |(tree, _)| bags.is_out(row, *tree))
        };
        let (m, n) = (rows.patients(), self.nodes.patients());
        Ok(match &self.needs {
            Needs::Proximity(buckets) => shared(m, n, unseen, buckets, |_| 1.0),
            Needs::Kerf(buckets) => shared(m, n, unseen, buckets, |patients| 1.0 / patients as f64),
            Needs::Depth { omega, topology } => {
                mean_over_trees(topology, self.nodes, m, unseen, |edges| {
                    decayed(*omega, edges)
                })
            }
            Needs::Path { topology, .. } => {
                let scratch = || (Vec::new(), vec![(0_u32, 0_u32); n]);
                by_rows(m, n, scratch, |(common, both), row, values| {
                    both.fill((0, 0));
                    let mut own = 0.0;
                    for (tree, terminal) in unseen(row) {
                        topology.common_depths(tree, terminal, common);
                        let depths = &topology.depths[tree];
                        own += f64::from(depths[terminal as usize]) + 1.0;
                        for (both, node) in both.iter_mut().zip(self.nodes.of_tree(tree)) {
                            both.0 += common[*node as usize] + 1;
                            both.1 += depths[*node as usize] + 1;
                        }
                    }
                    for (value, (shared, passed)) in values.iter_mut().zip(both) {
                        *value = f64::from(*shared) / (own * f64::from(*passed)).sqrt();
                    }
                })
            }
        })
    }

    /// Each patient's kernel with itself: 1, but of KeRF the mean over trees of one over the patients in the terminal node, of which a node
    /// of nobody has one.
    pub(crate) fn own(&self, rows: &TerminalNodes) -> Array1<f64> {
        let Needs::Kerf(buckets) = &self.needs else {
            return Array1::ones(rows.patients());
        };
        let own = |row: usize| {
            let shares = (0..rows.trees()).map(|tree| {
                let bucket = buckets.of(tree, rows.of_tree(tree)[row]);
                1.0 / bucket.len().max(1) as f64
            });
            shares.sum::<f64>() / rows.trees() as f64
        };
        (0..rows.patients()).map(own).collect()
    }

    fn check(&self, rows: &TerminalNodes) -> Result<(), KernelError> {
        check_nodes(self.forest, rows)?;
        check_size(rows.patients(), self.nodes.patients())
    }
}

/// What a pair counts in a tree whose terminal nodes are so many edges apart.
fn decayed(omega: f64, edges: u32) -> f64 {
    libm::exp(-omega * f64::from(edges))
}

/// The mean over a row's trees of what everybody in its terminal node counts, by how many they are.
fn shared<T: Iterator<Item = (usize, u32)>>(
    rows: usize,
    columns: usize,
    trees: impl Fn(usize) -> T + Sync + Send,
    buckets: &Buckets,
    of: impl Fn(usize) -> f64 + Sync + Send,
) -> Array2<f64> {
    by_rows(
        rows,
        columns,
        || (),
        |(), row, values| {
            let mut trees_used = 0.0;
            for (tree, terminal) in trees(row) {
                trees_used += 1.0;
                let bucket = buckets.of(tree, terminal);
                let share = of(bucket.len());
                bucket.iter().for_each(|at| values[*at as usize] += share);
            }
            values.iter_mut().for_each(|value| *value /= trees_used);
        },
    )
}
