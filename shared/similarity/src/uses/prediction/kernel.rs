//! The kernel that a comparison makes of its patients.

use ndarray::{Array1, Array2};
use rayon::prelude::*;

use super::PredictionError;
use crate::compare::proximity::kernel::{Definiteness, Kernel, Training, by_rows, check_size};
use crate::compare::proximity::unseen::by_unseen_trees;
use crate::compare::{Comparison, Placed};
use crate::learn::forest::InBag;
use crate::learn::forest::TerminalNodes;
use crate::learn::kernel::KernelFitError;
use crate::numeric::linear_algebra::Cholesky;

/// What the diagonal is lifted by, as shares of its mean, until a kernel has a Cholesky factor.
const LIFTS: [f64; 16] = [
    0.0, 1e-4, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.5, 5.0,
];
/// What rounding may lack, as a share of the mean of the diagonal.
const ROUNDING: f64 = 1e-10;

/// The kernel of a comparison, but for its width.
///
/// | comparison | kernel |
/// | --- | --- |
/// | distances | exp(-d / sigma) |
/// | an inner product s | the same of the distance that it makes, sqrt(s_ii + s_jj - 2 s_ij) |
/// | a forest | its proximity, path, depth or KeRF itself |
///
/// All are positive semidefinite but Gower's where values are missing. A patient whose bags are known is compared by the trees that
/// have not seen it where it is asked about, and by all trees where others are.
#[derive(Debug, Clone, Copy)]
pub struct KernelOf<'c> {
    comparison: &'c Comparison,
    /// Of a forest.
    of_forest: Kernel,
}

/// A kernel's width, of distances: exp(-d / sigma).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Width {
    /// In the unit of the distance; 1 of a forest, which has none.
    pub sigma: f64,
    /// What counts for the distance of two who cannot be compared.
    pub farthest: f64,
}

impl<'c> KernelOf<'c> {
    /// Of a comparison; `of_forest` is taken where it is a forest's.
    ///
    /// # Errors
    /// [`PredictionError::Indefinite`] of a forest's kernel that is none in the strict sense.
    pub fn new(comparison: &'c Comparison, of_forest: Kernel) -> Result<Self, PredictionError> {
        let is_forest = matches!(comparison, Comparison::Proximity(_));
        if is_forest && of_forest.definiteness() == Definiteness::Indefinite {
            return Err(PredictionError::Indefinite);
        }
        Ok(Self {
            comparison,
            of_forest,
        })
    }

    /// Whether it has a width.
    #[must_use]
    pub fn has_width(&self) -> bool {
        !matches!(self.comparison, Comparison::Proximity(_))
    }

    /// Whether a missing value can take from it what makes it a kernel.
    fn may_be_indefinite(&self) -> bool {
        matches!(self.comparison, Comparison::Gower(_))
    }

    /// Distances of m patients from n, m x n, NaN where two cannot be compared; of a forest its kernel.
    ///
    /// # Errors
    /// [`PredictionError`] where the matrix is too large, or the places are of another comparison.
    pub fn raw(&self, rows: &Placed, columns: &Placed) -> Result<Array2<f64>, PredictionError> {
        let (m, n) = (rows.patients(), columns.patients());
        check_size(m, n)?;
        match (self.comparison, rows, columns) {
            (
                Comparison::Proximity(proximity),
                Placed::Nodes { nodes: rows, bags },
                Placed::Nodes { nodes, .. },
            ) => {
                let in_bag = InBag::nobody(n, nodes.trees());
                let training = Training {
                    forest: proximity.forest(),
                    in_bag: &in_bag,
                    nodes,
                };
                Ok(match bags {
                    Some(bags) => by_unseen_trees(self.of_forest, training, rows, bags)?,
                    None => self.of_forest.rectangular(training, rows)?,
                })
            }
            _ => Ok(self.distances(rows, columns)),
        }
    }

    fn distances(&self, rows: &Placed, columns: &Placed) -> Array2<f64> {
        let comparison = self.comparison;
        let n = columns.patients();
        let squares = match comparison.is_similarity() {
            true => Some([
                own_products(comparison, rows),
                own_products(comparison, columns),
            ]),
            false => None,
        };
        by_rows(
            rows.patients(),
            n,
            || (),
            |(), row, values| {
                comparison.fill(columns, 0..n, rows, row, values);
                if let Some([rows, columns]) = &squares {
                    for (value, column) in values.iter_mut().zip(columns) {
                        // The product comes with its sign turned.
                        *value = (rows[row] + column + 2.0 * *value).max(0.0).sqrt();
                    }
                }
            },
        )
    }

    /// The kernel of what [`KernelOf::raw`] gave.
    #[must_use]
    pub fn shaped(&self, mut raw: Array2<f64>, width: Width) -> Array2<f64> {
        if self.has_width() {
            raw.par_mapv_inplace(|distance| match distance.is_nan() {
                true => (-width.farthest / width.sigma).exp(),
                false => (-distance / width.sigma).exp(),
            });
        }
        raw
    }

    /// The kernel of new patients, m x n, with those who were learned from.
    ///
    /// # Errors
    /// As for [`KernelOf::raw`].
    pub fn cross(
        &self,
        rows: &Placed,
        columns: &Placed,
        width: Width,
    ) -> Result<Array2<f64>, PredictionError> {
        Ok(self.shaped(self.raw(rows, columns)?, width))
    }

    /// Each patient's kernel with itself: 1, but of KeRF.
    #[must_use]
    pub fn own(&self, rows: &Placed, columns: &Placed) -> Array1<f64> {
        match (rows, columns) {
            (Placed::Nodes { nodes: rows, .. }, Placed::Nodes { nodes, .. })
                if self.of_forest == Kernel::Kerf =>
            {
                own_kerf(rows, nodes)
            }
            _ => Array1::ones(rows.patients()),
        }
    }

    /// By how much the diagonal of the kernel of patients among themselves has to be lifted so that it can be learned from.
    ///
    /// # Errors
    /// [`KernelFitError::Singular`] where five times as much does not help.
    pub(super) fn lift(&self, kernel: &Array2<f64>) -> Result<f64, KernelFitError> {
        if !self.may_be_indefinite() {
            return Ok(0.0);
        }
        let mean = kernel.diag().sum() / kernel.nrows().max(1) as f64;
        let mut lifted = kernel.clone();
        for lift in LIFTS {
            let total = (lift + ROUNDING) * mean;
            for (entry, own) in lifted.diag_mut().iter_mut().zip(kernel.diag()) {
                *entry = own + total;
            }
            if Cholesky::factor(&lifted).is_ok() {
                return Ok(lift * mean);
            }
        }
        let most = LIFTS[LIFTS.len() - 1] * mean;
        Err(KernelFitError::Singular { most })
    }
}

/// The same places, of patients whom nobody asks about: all trees count.
pub(super) fn as_known(placed: Placed) -> Placed {
    match placed {
        Placed::Nodes { nodes, .. } => Placed::Nodes { nodes, bags: None },
        other => other,
    }
}

fn own_products(comparison: &Comparison, placed: &Placed) -> Vec<f64> {
    (0..placed.patients())
        .map(|row| -comparison.distance(placed, row, placed, row))
        .collect()
}

/// The mean over trees of one over the patients in the terminal node; a node of nobody counts one.
fn own_kerf(rows: &TerminalNodes, columns: &TerminalNodes) -> Array1<f64> {
    let trees = rows.trees();
    let shares: Vec<Vec<f64>> = (0..trees)
        .into_par_iter()
        .map(|tree| {
            let nodes = columns.of_tree(tree).iter().chain(rows.of_tree(tree));
            let last = nodes.copied().max().unwrap_or(0) as usize;
            let mut counts = vec![0_u32; last + 1];
            for node in columns.of_tree(tree) {
                counts[*node as usize] += 1;
            }
            let share = |node: &u32| 1.0 / f64::from(counts[*node as usize].max(1));
            rows.of_tree(tree).iter().map(share).collect()
        })
        .collect();
    let mean = |row: usize| shares.iter().map(|tree| tree[row]).sum::<f64>() / trees as f64;
    (0..rows.patients()).map(mean).collect()
}
