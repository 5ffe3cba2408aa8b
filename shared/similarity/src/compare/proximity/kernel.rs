//! Proximities and kernels from shared terminal nodes, as matrices.
//!
//! With leaf_t(i) the terminal node of patient i in tree t of T:
//!
//! | kernel | k(i, j) | positive semidefinite |
//! | --- | --- | --- |
//! | [`Kernel::Proximity`] | (1/T) sum 1[leaf_t(i) = leaf_t(j)] | yes |
//! | [`Kernel::OutOfBag`] | the same over trees where both are out of bag; none: NaN | no |
//! | [`Kernel::Gap`] | (1/S_i) sum over the S_i trees with i out of bag of c_j 1[same leaf] / M_i | no, not symmetric |
//! | [`Kernel::Kerf`] | (1/T) sum 1[same leaf] / training patients in the leaf | yes |
//! | [`Kernel::Depth`] | (1/T) sum exp(-omega g), g = edges between the two terminal nodes | yes |
//! | [`Kernel::Path`] | cosine of the indicators of all nodes passed, root and leaf included | yes |
//!
//! Every matrix is filled row by row over fixed orders of trees, so it is bit-equal on any number of threads.

use ndarray::Array2;
use rayon::prelude::*;
use std::ops::Range;

use crate::compare::proximity::ancestors::{Topology, mean_over_pairs};
use crate::compare::proximity::known::Known;
use crate::learn::forest::trees::terminal::{Buckets, Sharing, TerminalNodes};
use crate::learn::forest::{Forest, InBag, Tree};

/// Most entries of a matrix computed here: 30,000 patients squared, 7.2 GB. Larger cohorts use
/// [`crate::uses::nearest`], which need no matrix.
pub const MATRIX_ENTRIES_MAX: usize = 30_000 * 30_000;

/// Most trees of a search for the nearest patients, which counts shared terminal nodes in 16 bits.
pub const TREES_MAX: usize = u16::MAX as usize;

/// A kernel of the module's table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kernel {
    /// Share of all trees in which two patients share a terminal node.
    Proximity,
    /// The same over the trees where both are out of bag. A new patient is out of bag everywhere.
    OutOfBag,
    /// RF-GAP (Rhodes, Cutler and Moon 2023): weights with which training patients j vote for i. Rows sum to
    /// 1, and the weighted vote is the out-of-bag prediction (of a forest with equal class weights).
    Gap,
    /// KeRF (Scornet 2016): shared terminal nodes weigh the less the more patients they hold.
    Kerf,
    /// Englund and Verikas 2012: terminal nodes close in the tree count too.
    Depth {
        /// Decay per edge, finite, at least 0; 0 makes all patients alike.
        omega: f64,
    },
    /// Cosine of the indicator vectors of all nodes passed.
    Path,
}

/// Whether every matrix of a kernel has no negative eigenvalue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Definiteness {
    /// It has none: a kernel in the strict sense.
    PositiveSemidefinite,
    /// It may have some.
    Indefinite,
}

/// The patients a kernel compares with: those a forest was grown on.
#[derive(Debug, Clone, Copy)]
pub struct Training<'a> {
    /// The forest.
    pub forest: &'a Forest,
    /// Their in-bag counts.
    pub in_bag: &'a InBag,
    /// Their terminal nodes, [`Forest::apply`] of their columns.
    pub nodes: &'a TerminalNodes,
}

/// Why there is no matrix.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum KernelError {
    /// Terminal nodes or in-bag counts of another forest.
    #[error("terminal nodes of {found} trees, wanted {wanted}")]
    Trees {
        /// Trees found.
        found: usize,
        /// Trees wanted.
        wanted: usize,
    },
    /// In-bag counts of other patients.
    #[error("in-bag counts of {found} patients, wanted {wanted}")]
    Patients {
        /// Patients found.
        found: usize,
        /// Patients wanted.
        wanted: usize,
    },
    /// A node that the forest's tree does not have, or that is not terminal.
    #[error("tree {tree} has other terminal nodes")]
    Nodes {
        /// Number of the tree.
        tree: usize,
    },
    /// More trees than are counted.
    #[error("{found} trees, wanted at most {TREES_MAX}")]
    TooManyTrees {
        /// Trees found.
        found: usize,
    },
    /// A matrix that would not fit memory.
    #[error(
        "{rows} x {columns} entries, wanted at most {MATRIX_ENTRIES_MAX}; use nearest neighbours instead"
    )]
    TooLarge {
        /// Rows.
        rows: usize,
        /// Columns.
        columns: usize,
    },
    /// A negative or non-finite decay.
    #[error("omega is {found}, wanted a finite number of at least 0")]
    Omega {
        /// The decay.
        found: f64,
    },
    /// A width that is not positive and finite.
    #[error("sigma is {found}, wanted a finite number above 0")]
    Sigma {
        /// The width.
        found: f64,
    },
    /// Patients with different numbers of features.
    #[error("{found} features, wanted {wanted}")]
    Features {
        /// Features found.
        found: usize,
        /// Features wanted.
        wanted: usize,
    },
}

impl Kernel {
    /// Whether every square matrix of this kernel is positive semidefinite.
    #[must_use]
    pub fn definiteness(self) -> Definiteness {
        match self {
            Self::Proximity | Self::Kerf | Self::Depth { .. } | Self::Path => {
                Definiteness::PositiveSemidefinite
            }
            Self::OutOfBag | Self::Gap => Definiteness::Indefinite,
        }
    }

    /// The kernel among the training patients, n x n.
    ///
    /// # Errors
    /// [`KernelError`] where forest, counts and terminal nodes do not belong together or n is too large.
    pub fn square(self, training: Training<'_>) -> Result<Array2<f64>, KernelError> {
        check(training, training.nodes)?;
        self.of_training(training, training.nodes, 0)
    }

    /// The rows of [`Kernel::square`] of a stretch of the training patients, all within it: what is needed a row at a time
    /// needs no n x n matrix.
    ///
    /// # Errors
    /// [`KernelError`] as for [`Kernel::square`].
    pub(crate) fn stretch(
        self,
        training: Training<'_>,
        rows: Range<usize>,
    ) -> Result<Array2<f64>, KernelError> {
        let first = rows.start;
        let nodes = training.nodes.select(&rows.collect::<Vec<usize>>());
        check(training, &nodes)?;
        self.of_training(training, &nodes, first)
    }

    /// Of training patients from `first` on.
    fn of_training(
        self,
        training: Training<'_>,
        nodes: &TerminalNodes,
        first: usize,
    ) -> Result<Array2<f64>, KernelError> {
        Ok(match self {
            Self::OutOfBag => out_of_bag(training, nodes, Some(first)),
            Self::Gap => gap(training, nodes, Some(first)),
            _ => self.over_all_trees(training, nodes)?,
        })
    }

    /// The kernel of m new patients against the n training patients, m x n. New patients are out of bag
    /// in every tree.
    ///
    /// # Errors
    /// [`KernelError`] as for [`Kernel::square`].
    pub fn rectangular(
        self,
        training: Training<'_>,
        new: &TerminalNodes,
    ) -> Result<Array2<f64>, KernelError> {
        check(training, new)?;
        Ok(match self {
            Self::OutOfBag => out_of_bag(training, new, None),
            Self::Gap => gap(training, new, None),
            _ => self.over_all_trees(training, new)?,
        })
    }

    fn over_all_trees(
        self,
        training: Training<'_>,
        rows: &TerminalNodes,
    ) -> Result<Array2<f64>, KernelError> {
        let known = Known::checked(self, training.forest, training.nodes)?;
        Ok(known.over_all_trees(rows))
    }
}

/// Mean number of edges between the terminal nodes of two patients, m x n; `rows` may be the training
/// patients' own terminal nodes. A dissimilarity, not a kernel.
///
/// # Errors
/// [`KernelError`] as for [`Kernel::square`].
pub fn mean_edges(
    training: Training<'_>,
    rows: &TerminalNodes,
) -> Result<Array2<f64>, KernelError> {
    check(training, rows)?;
    let topology = Topology::new(training.forest);
    Ok(mean_over_pairs(&topology, training.nodes, rows, f64::from))
}

/// Distance sqrt(1 - k) of a kernel with k(i, i) = 1: proximity, depth, path. The constant is always 1, so
/// that a distance never depends on who else was asked about. NaN stays NaN.
#[must_use]
pub fn distance(kernel: &Array2<f64>) -> Array2<f64> {
    kernel.mapv(|value| (1.0 - value).max(0.0).sqrt())
}

/// Squared distance 1 - k.
#[must_use]
pub fn squared_distance(kernel: &Array2<f64>) -> Array2<f64> {
    kernel.mapv(|value| 1.0 - value)
}

fn check(training: Training<'_>, rows: &TerminalNodes) -> Result<(), KernelError> {
    let (found, wanted) = (training.in_bag.trees(), training.forest.trees().len());
    if found != wanted {
        return Err(KernelError::Trees { found, wanted });
    }
    check_nodes(training.forest, training.nodes)?;
    if !std::ptr::eq(training.nodes, rows) {
        check_nodes(training.forest, rows)?;
    }
    let columns = training.nodes.patients();
    if training.in_bag.patients() != columns {
        return Err(KernelError::Patients {
            found: training.in_bag.patients(),
            wanted: columns,
        });
    }
    check_size(rows.patients(), columns)
}

/// Whether terminal nodes are a forest's.
pub(super) fn check_nodes(forest: &Forest, nodes: &TerminalNodes) -> Result<(), KernelError> {
    let (found, wanted) = (nodes.trees(), forest.trees().len());
    if found != wanted {
        return Err(KernelError::Trees { found, wanted });
    }
    let is_of_others = |&(tree, grown): &(usize, &Tree)| {
        let mut nodes = nodes.of_tree(tree).iter();
        !nodes.all(|&node| grown.is_terminal(node))
    };
    let trees = forest.trees().par_iter().enumerate();
    match trees.find_first(is_of_others) {
        Some((tree, _)) => Err(KernelError::Nodes { tree }),
        None => Ok(()),
    }
}

pub(crate) fn check_size(rows: usize, columns: usize) -> Result<(), KernelError> {
    if rows.saturating_mul(columns) > MATRIX_ENTRIES_MAX {
        return Err(KernelError::TooLarge { rows, columns });
    }
    Ok(())
}

/// Fills a matrix in parallel by rows; `scratch` makes one thread's buffer, `fill` one row.
pub(crate) fn by_rows<S>(
    rows: usize,
    columns: usize,
    scratch: impl Fn() -> S + Sync + Send,
    fill: impl Fn(&mut S, usize, &mut [f64]) + Sync + Send,
) -> Array2<f64> {
    let mut matrix = vec![0.0; rows * columns];
    if columns > 0 {
        matrix.par_chunks_mut(columns).enumerate().for_each_init(
            scratch,
            |scratch, (row, values)| {
                // Written before it is read: memory that is read first is given twice.
                values.fill(0.0);
                fill(scratch, row, values);
            },
        );
    }
    Array2::from_shape_vec((rows, columns), matrix).expect("rows x columns values by construction")
}

pub(crate) fn proximity(columns: &TerminalNodes, rows: &TerminalNodes) -> Array2<f64> {
    proximity_with(&Buckets::new(columns), rows)
}

pub(super) fn proximity_with(buckets: &Buckets, rows: &TerminalNodes) -> Array2<f64> {
    shared_by_trees(buckets, rows, |_| 1.0)
}

pub(super) fn kerf(buckets: &Buckets, rows: &TerminalNodes) -> Array2<f64> {
    shared_by_trees(buckets, rows, |patients| 1.0 / patients as f64)
}

/// The mean over the trees of what a terminal node of so many patients is worth, where two share it.
fn shared_by_trees(
    buckets: &Buckets,
    rows: &TerminalNodes,
    worth: impl Fn(usize) -> f64 + Sync + Send,
) -> Array2<f64> {
    let sharing = Sharing::new(buckets, rows);
    let trees = rows.trees() as f64;
    by_rows(
        rows.patients(),
        buckets.patients(),
        || (),
        |(), row, values| {
            for shared in sharing.of(row) {
                let worth = worth(shared.len());
                shared
                    .iter()
                    .for_each(|&patient| values[patient as usize] += worth);
            }
            values.iter_mut().for_each(|value| *value /= trees);
        },
    )
}

/// Which trees have not seen a patient: bit t mod 64 of word t / 64 of its words says that it is out of bag in tree t.
#[derive(Clone, PartialEq, Eq)]
pub struct OutOfBag {
    words: usize,
    bits: Vec<u64>,
}

impl OutOfBag {
    /// Of a forest's training patients.
    #[must_use]
    pub fn new(in_bag: &InBag) -> Self {
        let words = in_bag.trees().div_ceil(64);
        let mut bits = vec![0_u64; words * in_bag.patients()];
        for tree in 0..in_bag.trees() {
            for (patient, &count) in in_bag.of_tree(tree).iter().enumerate() {
                bits[patient * words + tree / 64] |= u64::from(count == 0) << (tree % 64);
            }
        }
        Self { words, bits }
    }

    /// From the words of all patients, one after the other; none where they are not those of `patients` and `trees`.
    #[must_use]
    pub fn from_words(bits: Vec<u64>, patients: usize, trees: usize) -> Option<Self> {
        let words = trees.div_ceil(64);
        (bits.len() == words * patients).then_some(Self { words, bits })
    }

    /// The words of all patients, one after the other.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.bits
    }

    /// Only these patients.
    #[must_use]
    pub fn select(&self, patients: &[usize]) -> Self {
        let bits = patients.iter().flat_map(|patient| self.of(*patient));
        Self {
            words: self.words,
            bits: bits.copied().collect(),
        }
    }

    fn of(&self, patient: usize) -> &[u64] {
        &self.bits[patient * self.words..(patient + 1) * self.words]
    }

    /// Whether a tree has not seen the patient.
    pub(crate) fn is_out(&self, patient: usize, tree: usize) -> bool {
        self.bits[patient * self.words + tree / 64] >> (tree % 64) & 1 == 1
    }

    /// Trees where both patients are out of bag.
    pub(crate) fn of_both(&self, one: usize, other: usize) -> u32 {
        common(self.of(one), self.of(other))
    }
}

impl std::fmt::Debug for OutOfBag {
    /// Shape only: bags belong to patients.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("OutOfBag")
            .field("words", &self.words)
            .finish_non_exhaustive()
    }
}

fn common(one: &[u64], other: &[u64]) -> u32 {
    let words = one.iter().zip(other);
    words.map(|(a, b)| (a & b).count_ones()).sum()
}

/// `first` is the training patient of the first row; none of new patients.
fn out_of_bag(training: Training<'_>, rows: &TerminalNodes, first: Option<usize>) -> Array2<f64> {
    let buckets = Buckets::new(training.nodes);
    let sharing = Sharing::new(&buckets, rows);
    let bits = OutOfBag::new(training.in_bag);
    let everywhere = vec![u64::MAX; bits.words];
    let columns = training.nodes.patients();
    by_rows(
        rows.patients(),
        columns,
        || (),
        |(), row, values| {
            for (tree, shared) in sharing.of(row).enumerate() {
                let in_bag = training.in_bag.of_tree(tree);
                if first.is_some_and(|first| in_bag[first + row] > 0) {
                    continue;
                }
                for &patient in shared {
                    values[patient as usize] += f64::from(u8::from(in_bag[patient as usize] == 0));
                }
            }
            let here = first.map_or(&everywhere[..], |first| bits.of(first + row));
            for (patient, value) in values.iter_mut().enumerate() {
                let both = common(here, bits.of(patient));
                // 0 / 0 is the NaN that says: never both out of bag.
                *value /= f64::from(both);
            }
        },
    )
}

/// `first` as in [`out_of_bag`].
fn gap(training: Training<'_>, rows: &TerminalNodes, first: Option<usize>) -> Array2<f64> {
    let buckets = Buckets::new(training.nodes);
    let sharing = Sharing::new(&buckets, rows);
    let columns = training.nodes.patients();
    by_rows(
        rows.patients(),
        columns,
        || (),
        |(), row, values| {
            let mut trees_used = 0_u32;
            for (tree, shared) in sharing.of(row).enumerate() {
                let in_bag = training.in_bag.of_tree(tree);
                if first.is_some_and(|first| in_bag[first + row] > 0) {
                    continue;
                }
                trees_used += 1;
                let mass: u32 = shared
                    .iter()
                    .map(|&patient| u32::from(in_bag[patient as usize]))
                    .sum();
                for &patient in shared {
                    let count = in_bag[patient as usize];
                    if count > 0 {
                        values[patient as usize] += f64::from(count) / f64::from(mass);
                    }
                }
            }
            values
                .iter_mut()
                .for_each(|value| *value /= f64::from(trees_used));
        },
    )
}
