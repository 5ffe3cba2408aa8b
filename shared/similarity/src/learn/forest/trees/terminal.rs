//! Terminal nodes of patients, and patients grouped by terminal node.

use ndarray::{ArrayView2, ShapeBuilder};
use rayon::prelude::*;

use crate::cohort::Column;
use crate::learn::forest::trees::schema::SchemaMismatch;
use crate::learn::forest::{Forest, InBag};

/// The terminal node of every patient in every tree, n x T. Node numbers are those of [`crate::learn::forest::Tree`].
#[derive(Clone, PartialEq, Eq)]
pub struct TerminalNodes {
    patients: usize,
    trees: usize,
    /// One node a patient, tree after tree.
    nodes: Vec<u32>,
}

impl Forest {
    /// The terminal nodes of patients, n x T; they need not be those of the fit.
    ///
    /// # Errors
    /// [`SchemaMismatch`] where the columns are not the forest's.
    pub fn apply(&self, columns: &[Column]) -> Result<TerminalNodes, SchemaMismatch> {
        let table = self.schema.table(columns)?;
        let patients = table.patients;
        let mut nodes = vec![0_u32; patients * self.trees.len()];
        if patients > 0 {
            nodes
                .par_chunks_mut(patients)
                .zip(&self.trees)
                .for_each(|(column, tree)| {
                    for (patient, node) in column.iter_mut().enumerate() {
                        *node = tree.terminal(&table, patient);
                    }
                });
        }
        Ok(TerminalNodes {
            patients,
            trees: self.trees.len(),
            nodes,
        })
    }
}

impl TerminalNodes {
    /// Terminal nodes found elsewhere, n x T. Buffers grow with the largest number.
    #[must_use]
    pub fn new(nodes: ArrayView2<'_, u32>) -> Self {
        let (patients, trees) = nodes.dim();
        Self {
            patients,
            trees,
            nodes: nodes.t().iter().copied().collect(),
        }
    }

    /// Number of patients n.
    #[must_use]
    pub fn patients(&self) -> usize {
        self.patients
    }

    /// Number of trees T.
    #[must_use]
    pub fn trees(&self) -> usize {
        self.trees
    }

    /// The n terminal nodes of one tree.
    #[must_use]
    pub fn of_tree(&self, tree: usize) -> &[u32] {
        &self.nodes[tree * self.patients..(tree + 1) * self.patients]
    }

    /// Every tree, with the terminal node of one patient.
    pub(crate) fn of_row(&self, patient: usize) -> impl Iterator<Item = (usize, u32)> {
        (0..self.trees).map(move |tree| (tree, self.of_tree(tree)[patient]))
    }

    /// All terminal nodes, n x T.
    #[must_use]
    pub fn view(&self) -> ArrayView2<'_, u32> {
        let shape = (self.patients, self.trees).f();
        ArrayView2::from_shape(shape, &self.nodes).expect("n T nodes by construction")
    }

    /// These terminal nodes restricted to some patients, in the order given.
    #[must_use]
    pub fn select(&self, patients: &[usize]) -> Self {
        let nodes = (0..self.trees)
            .flat_map(|tree| {
                patients
                    .iter()
                    .map(move |&patient| self.of_tree(tree)[patient])
            })
            .collect();
        Self {
            patients: patients.len(),
            trees: self.trees,
            nodes,
        }
    }
}

impl std::fmt::Debug for TerminalNodes {
    /// Shape only: terminal nodes describe patients.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("TerminalNodes")
            .field("patients", &self.patients)
            .field("trees", &self.trees)
            .finish_non_exhaustive()
    }
}

/// For every tree its patients grouped by terminal node; memory is linear in n T.
pub(crate) struct Buckets {
    patients: usize,
    /// Patients of one tree ordered by terminal node, then number; tree after tree.
    order: Vec<u32>,
    /// Per tree, where the patients of each node begin.
    starts: Vec<Vec<u32>>,
}

impl Buckets {
    pub(crate) fn new(terminal: &TerminalNodes) -> Self {
        let patients = terminal.patients;
        let mut order = vec![0_u32; patients * terminal.trees];
        if patients == 0 {
            return Self {
                patients,
                order,
                starts: vec![vec![0]; terminal.trees],
            };
        }
        let starts = order
            .par_chunks_mut(patients)
            .enumerate()
            .map(|(tree, order)| group(terminal.of_tree(tree), order))
            .collect();
        Self {
            patients,
            order,
            starts,
        }
    }

    /// How many patients they are.
    pub(crate) fn patients(&self) -> usize {
        self.patients
    }

    /// The patients in a terminal node, in rising order; none where the node is unknown.
    #[inline]
    pub(crate) fn of(&self, tree: usize, node: u32) -> &[u32] {
        let starts = &self.starts[tree];
        let node = node as usize;
        if node + 1 >= starts.len() {
            return &[];
        }
        let base = tree * self.patients;
        &self.order[base + starts[node] as usize..base + starts[node + 1] as usize]
    }
}

/// Where the patients who share a terminal node with each row patient lie, tree after tree of one row patient: what a row asks of
/// all trees is then read in one stretch. Eight bytes a row patient and tree.
pub(crate) struct Sharing<'b> {
    buckets: &'b Buckets,
    trees: usize,
    /// Start within the tree's order, and how many.
    places: Vec<(u32, u32)>,
}

/// Row patients whose places are found together, so that a tree's starts are read once for all of them.
const ROWS_TOGETHER: usize = 64;

impl<'b> Sharing<'b> {
    pub(crate) fn new(buckets: &'b Buckets, rows: &TerminalNodes) -> Self {
        let trees = rows.trees;
        let mut places = vec![(0, 0); trees * rows.patients];
        let of_block = |(block, places): (usize, &mut [(u32, u32)])| {
            for tree in 0..trees {
                let starts = &buckets.starts[tree];
                let nodes = &rows.of_tree(tree)[ROWS_TOGETHER * block..];
                for (of_row, &node) in places.chunks_mut(trees).zip(nodes) {
                    let node = node as usize;
                    if let Some(&[start, end]) = starts.get(node..node + 2) {
                        of_row[tree] = (start, end - start);
                    }
                }
            }
        };
        if trees > 0 {
            let blocks = places.par_chunks_mut(ROWS_TOGETHER * trees).enumerate();
            blocks.for_each(of_block);
        }
        Self {
            buckets,
            trees,
            places,
        }
    }

    /// Of each tree the column patients in the row patient's terminal node.
    pub(crate) fn of(&self, row: usize) -> impl Iterator<Item = &[u32]> {
        let places = &self.places[row * self.trees..(row + 1) * self.trees];
        places.iter().enumerate().map(|(tree, &(start, length))| {
            let first = tree * self.buckets.patients + start as usize;
            &self.buckets.order[first..first + length as usize]
        })
    }
}

/// Counting sort of patients by node.
fn group(nodes: &[u32], order: &mut [u32]) -> Vec<u32> {
    let last = nodes.iter().copied().max().unwrap_or(0) as usize;
    let mut starts = vec![0_u32; last + 2];
    nodes
        .iter()
        .for_each(|&node| starts[node as usize + 1] += 1);
    for node in 0..=last {
        starts[node + 1] += starts[node];
    }
    let mut place = starts.clone();
    for (patient, &node) in nodes.iter().enumerate() {
        order[place[node as usize] as usize] = patient as u32;
        place[node as usize] += 1;
    }
    starts
}

/// Counts, for one patient, in how many trees each other patient shares its terminal node; touches only
/// those that do.
pub(crate) struct SharedCounts {
    /// Trees shared with each column patient.
    pub(crate) counts: Vec<u16>,
    /// Column patients with a count above 0, in no particular but a fixed order.
    pub(crate) touched: Vec<u32>,
}

impl SharedCounts {
    pub(crate) fn new(patients: usize) -> Self {
        Self {
            counts: vec![0; patients],
            touched: Vec::new(),
        }
    }

    /// Replaces the counts by those of row patient `row`.
    pub(crate) fn count(&mut self, rows: &TerminalNodes, row: usize, columns: &Buckets) {
        self.count_where(rows, row, columns, |_| true, |_, _| true);
    }

    /// The same over the trees where both are out of bag, for a training patient.
    pub(crate) fn count_out_of_bag(
        &mut self,
        rows: &TerminalNodes,
        row: usize,
        columns: &Buckets,
        in_bag: &InBag,
    ) {
        let out = |tree: usize, patient: usize| in_bag.of_tree(tree)[patient] == 0;
        self.count_where(rows, row, columns, |tree| out(tree, row), out);
    }

    #[inline]
    fn count_where(
        &mut self,
        rows: &TerminalNodes,
        row: usize,
        columns: &Buckets,
        is_used: impl Fn(usize) -> bool,
        counts: impl Fn(usize, usize) -> bool,
    ) {
        for &patient in &self.touched {
            self.counts[patient as usize] = 0;
        }
        self.touched.clear();
        for tree in (0..rows.trees).filter(|&tree| is_used(tree)) {
            for &patient in columns.of(tree, rows.nodes[tree * rows.patients + row]) {
                if !counts(tree, patient as usize) {
                    continue;
                }
                let count = &mut self.counts[patient as usize];
                if *count == 0 {
                    self.touched.push(patient);
                }
                *count += 1;
            }
        }
    }
}
