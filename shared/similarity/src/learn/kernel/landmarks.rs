//! Nystroem's embedding: of many patients the kernel with m landmarks stands for that of all pairs, in memory linear in n.

use ndarray::{Array1, Array2};

use super::{KernelFitError, check};
use crate::numeric::linear_algebra::{Cholesky, product, symmetric_eigen, transposed_product};

/// Directions of the landmarks' kernel with less than this share of the largest eigenvalue are left out.
const FLAT: f64 = 1e-10;

/// Turns kernel values with the landmarks into vectors whose inner products are nearly the kernel; exactly among landmarks.
#[derive(Debug, Clone, PartialEq)]
pub struct Landmarks {
    /// m x d.
    turn: Array2<f64>,
}

impl Landmarks {
    /// Of the landmarks' own kernel, m x m.
    ///
    /// # Errors
    /// [`KernelFitError`] where it is not square, holds no number or has no direction.
    pub fn new(kernel: &Array2<f64>) -> Result<Self, KernelFitError> {
        check(kernel, kernel.nrows())?;
        let eigen = symmetric_eigen(kernel)?;
        let largest = eigen.values.iter().copied().fold(0.0, f64::max);
        let kept: Vec<usize> = (0..eigen.values.len())
            .filter(|place| largest > 0.0 && eigen.values[*place] > FLAT * largest)
            .collect();
        if kept.is_empty() {
            return Err(KernelFitError::Singular { most: 0.0 });
        }
        let turn = Array2::from_shape_fn((kernel.nrows(), kept.len()), |(row, place)| {
            eigen.vectors[(row, kept[place])] / eigen.values[kept[place]].sqrt()
        });
        Ok(Self { turn })
    }

    /// Vectors of patients, n x d, by their kernel with the landmarks, n x m.
    #[must_use]
    pub fn embed(&self, cross: &Array2<f64>) -> Array2<f64> {
        product(&cross.view(), &self.turn.view())
    }

    /// Numbers that the kernel is made of.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.turn.ncols()
    }
}

/// Ridge regression on embedded patients.
#[derive(Debug, Clone, PartialEq)]
pub struct LandmarkRidge {
    landmarks: Landmarks,
    weights: Array1<f64>,
    constant: f64,
}

impl LandmarkRidge {
    /// Of n patients by their kernel with the landmarks, n x m: (Z' Z + lambda I) w = Z' (y - c).
    ///
    /// # Errors
    /// [`KernelFitError`] where shapes differ, lambda is not above 0, or a kernel value is no number.
    pub fn fit(
        landmarks: Landmarks,
        cross: &Array2<f64>,
        y: &Array1<f64>,
        lambda: f64,
    ) -> Result<Self, KernelFitError> {
        super::check_positive("lambda", lambda)?;
        if cross.dim() != (y.len(), landmarks.turn.nrows()) {
            return Err(KernelFitError::Shape {
                rows: cross.nrows(),
                columns: cross.ncols(),
                wanted: y.len(),
            });
        }
        if let Some(((row, column), _)) = cross.indexed_iter().find(|(_, one)| !one.is_finite()) {
            return Err(KernelFitError::Entry { row, column });
        }
        let constant = y.sum() / y.len() as f64;
        let embedded = landmarks.embed(cross);
        let mut matrix = transposed_product(&embedded.view(), &embedded.view());
        matrix.diag_mut().mapv_inplace(|entry| entry + lambda);
        let right = embedded
            .t()
            .dot(&(y - constant))
            .insert_axis(ndarray::Axis(1));
        let solved = Cholesky::factor(&matrix)?.solve(&right);
        Ok(Self {
            weights: solved.index_axis_move(ndarray::Axis(1), 0),
            landmarks,
            constant,
        })
    }

    /// Of new patients by their kernel with the landmarks.
    #[must_use]
    pub fn predict(&self, cross: &Array2<f64>) -> Array1<f64> {
        super::linear(&self.landmarks.embed(cross), &self.weights, self.constant)
    }
}
