//! The kernel that a comparison makes of its patients.

use ndarray::{Array1, Array2};

use super::PredictionError;
use crate::compare::proximity::kernel::{Definiteness, Kernel, by_rows, check_size};
use crate::compare::proximity::known::Known;
use crate::compare::{Comparison, Placed};
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

/// The kernel with n patients, ready for any number of blocks of others.
pub struct KernelWith<'k> {
    of: &'k KernelOf<'k>,
    columns: &'k Placed,
    needs: Needs<'k>,
}

/// What is made once of those who are known.
enum Needs<'k> {
    Forest(Known<'k>),
    /// Each one's product with itself.
    Squares(Vec<f64>),
    Nothing,
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

    /// The kernel with the patients of `columns`, who are known.
    ///
    /// # Errors
    /// [`PredictionError`] where they are placed by another comparison.
    pub fn with<'k>(&'k self, columns: &'k Placed) -> Result<KernelWith<'k>, PredictionError> {
        let needs = match (self.comparison, columns) {
            (Comparison::Proximity(proximity), Placed::Nodes { nodes, .. }) => {
                Needs::Forest(Known::new(self.of_forest, proximity.forest(), nodes)?)
            }
            (comparison, _) if comparison.is_similarity() => {
                Needs::Squares(own_products(comparison, columns))
            }
            _ => Needs::Nothing,
        };
        Ok(KernelWith {
            of: self,
            columns,
            needs,
        })
    }

    /// [`KernelWith::raw`] of patients who are asked about once.
    ///
    /// # Errors
    /// As for [`KernelOf::with`] and [`KernelWith::raw`].
    pub fn raw(&self, rows: &Placed, columns: &Placed) -> Result<Array2<f64>, PredictionError> {
        check_size(rows.patients(), columns.patients())?;
        self.with(columns)?.raw(rows)
    }

    /// The kernel of what [`KernelWith::raw`] gave.
    #[must_use]
    pub fn shaped(&self, mut raw: Array2<f64>, width: Width) -> Array2<f64> {
        if self.has_width() {
            raw.par_mapv_inplace(|distance| match distance.is_nan() {
                true => libm::exp(-width.farthest / width.sigma),
                false => libm::exp(-distance / width.sigma),
            });
        }
        raw
    }

    /// [`KernelWith::cross`] of patients who are asked about once.
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

impl KernelWith<'_> {
    /// Distances of m patients, m x n, NaN where two cannot be compared; of a forest its kernel.
    ///
    /// # Errors
    /// [`PredictionError`] where the matrix is too large, or they are placed by another comparison.
    pub fn raw(&self, rows: &Placed) -> Result<Array2<f64>, PredictionError> {
        check_size(rows.patients(), self.columns.patients())?;
        match (&self.needs, rows) {
            (Needs::Forest(known), Placed::Nodes { nodes, bags }) => Ok(match bags {
                Some(bags) => known.by_unseen_trees(nodes, bags)?,
                None => known.by_all_trees(nodes)?,
            }),
            _ => Ok(self.distances(rows)),
        }
    }

    fn distances(&self, rows: &Placed) -> Array2<f64> {
        let (comparison, columns) = (self.of.comparison, self.columns);
        let n = columns.patients();
        let squares = match &self.needs {
            Needs::Squares(columns) => Some((own_products(comparison, rows), columns)),
            Needs::Forest(_) | Needs::Nothing => None,
        };
        by_rows(
            rows.patients(),
            n,
            || (),
            |(), row, values| {
                comparison.fill(columns, 0..n, rows, row, values);
                if let Some((rows, columns)) = &squares {
                    for (value, column) in values.iter_mut().zip(*columns) {
                        // The product comes with its sign turned.
                        *value = (rows[row] + column + 2.0 * *value).max(0.0).sqrt();
                    }
                }
            },
        )
    }

    /// The kernel of new patients, m x n.
    ///
    /// # Errors
    /// As for [`KernelWith::raw`].
    pub fn cross(&self, rows: &Placed, width: Width) -> Result<Array2<f64>, PredictionError> {
        Ok(self.of.shaped(self.raw(rows)?, width))
    }

    /// Each patient's kernel with itself: 1, but of KeRF.
    #[must_use]
    pub fn own(&self, rows: &Placed) -> Array1<f64> {
        match (&self.needs, rows) {
            (Needs::Forest(known), Placed::Nodes { nodes, .. }) => known.own(nodes),
            _ => Array1::ones(rows.patients()),
        }
    }
}

/// The same places, of patients that are not queried: all trees count.
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
