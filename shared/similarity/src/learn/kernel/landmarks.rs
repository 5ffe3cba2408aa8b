//! Nystroem's embedding: of many patients the kernel with m landmarks stands for that of all pairs, in memory linear in n.

use ndarray::{Array1, Array2, ArrayView2, Axis};

use super::gaussian::{Predicted, Spread};
use super::logistic::{CHANGE_MAX, Logistic, STEPS_MAX, WEIGHT_MIN, chance, loss};
use super::{KernelFitError, check, check_positive};
use crate::numeric::linear_algebra::{
    Cholesky, add_to_upper, gram, mirror, product, symmetric_eigen,
};

/// Directions of the landmarks' kernel with less than this share of the largest eigenvalue are dropped.
const FLAT: f64 = 1e-10;
/// Patients whose products are made at once.
const STRIP: usize = 8192;

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

    /// Landmarks.
    #[must_use]
    pub fn count(&self) -> usize {
        self.turn.nrows()
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
        let mut matrix = gram(&embedded.view());
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

/// Z' diag(w) Z, by strips.
fn weighted_product(embedded: &ArrayView2<'_, f64>, weight: &Array1<f64>) -> Array2<f64> {
    let mut sum = Array2::zeros((embedded.ncols(), embedded.ncols()));
    for begin in (0..embedded.nrows()).step_by(STRIP) {
        let rows = begin..(begin + STRIP).min(embedded.nrows());
        let strip = embedded.slice(ndarray::s![rows.clone(), ..]);
        let scaled = &strip * &weight.slice(ndarray::s![rows]).insert_axis(Axis(1));
        add_to_upper(&strip, &scaled.view(), &mut sum.view_mut());
    }
    mirror(&mut sum);
    sum
}

/// A Gaussian process on embedded patients: ridge regression with its intervals. What the landmarks do not say of a patient
/// counts as unknown.
#[derive(Debug, Clone, PartialEq)]
pub struct LandmarkGaussian {
    /// alpha, one a landmark.
    pub weights: Array1<f64>,
    /// c, the mean of y.
    pub constant: f64,
    /// The factor of the covariance, as of [`super::gaussian::Gaussian`].
    pub scale: f64,
    /// The noise, in units of the scale.
    pub noise: f64,
    /// G, m x m: what landmarks take from the variance of a patient with kernel k to them is k' G k.
    pub known: Array2<f64>,
}

impl LandmarkGaussian {
    /// Of n patients' vectors, n x d, with the noise as a share of the scale.
    ///
    /// # Errors
    /// [`KernelFitError`] where the noise is not above 0, or all outcomes are equal.
    pub fn fit(
        landmarks: &Landmarks,
        embedded: &ArrayView2<'_, f64>,
        y: &Array1<f64>,
        noise: f64,
    ) -> Result<Self, KernelFitError> {
        check_positive("noise", noise)?;
        if y.iter().all(|value| *value == y[0]) {
            return Err(KernelFitError::OneOutcome);
        }
        let n = y.len() as f64;
        let constant = y.sum() / n;
        let centred = y - constant;
        let mut matrix = weighted_product(embedded, &Array1::ones(y.len()));
        matrix.diag_mut().mapv_inplace(|entry| entry + noise);
        let factor = Cholesky::factor(&matrix)?;
        let right = embedded.t().dot(&centred).insert_axis(Axis(1));
        let solved = factor.solve(&right);
        // y' (Z Z' + noise I)^-1 y by Woodbury's identity.
        let square = (centred.dot(&centred) - right.column(0).dot(&solved.column(0))) / noise;
        let turn = &landmarks.turn;
        let unknown = turn.dot(&factor.solve(&turn.t().to_owned()));
        Ok(Self {
            weights: turn.dot(&solved.column(0)),
            constant,
            scale: square / n,
            noise,
            known: turn.dot(&turn.t()) - unknown * noise,
        })
    }

    /// Of new patients by their kernel with the landmarks, as [`super::gaussian::Gaussian::predict`].
    #[must_use]
    pub fn predict(&self, cross: &Array2<f64>, own: &Array1<f64>, level: f64) -> Vec<Predicted> {
        let taken = product(&cross.view(), &self.known.view());
        let spread = Spread {
            scale: self.scale,
            noise: self.noise,
        };
        let rows = cross.outer_iter().zip(taken.outer_iter()).zip(own);
        rows.map(|((row, taken), own)| {
            let mean = row.dot(&self.weights) + self.constant;
            spread.around(mean, own - row.dot(&taken), level)
        })
        .collect()
    }
}

/// Logistic regression on embedded patients, n x d, by Newton's method: sum log(1 + exp(-y f)) + lambda / 2 |w|^2, f = Z w + c, expressed by weights of
/// the landmarks.
///
/// # Errors
/// [`KernelFitError`] where lambda is not above 0, there is one class alone, or the search has no end.
pub fn fit_logistic(
    landmarks: &Landmarks,
    embedded: &ArrayView2<'_, f64>,
    is_positive: &Array1<bool>,
    lambda: f64,
) -> Result<Logistic, KernelFitError> {
    check_positive("lambda", lambda)?;
    if is_positive.iter().all(|own| *own == is_positive[0]) {
        return Err(KernelFitError::OneOutcome);
    }
    let (mut weights, mut constant) = (Array1::<f64>::zeros(embedded.ncols()), 0.0);
    let objective = |scores: &Array1<f64>, weights: &Array1<f64>| {
        let losses: f64 = scores.iter().zip(is_positive).map(loss).sum();
        losses + lambda / 2.0 * weights.dot(weights)
    };
    let mut scores = Array1::zeros(is_positive.len());
    let mut value = objective(&scores, &weights);
    for _ in 0..STEPS_MAX {
        let chances = scores.mapv(chance);
        let curvature = chances.mapv(|p| (p * (1.0 - p)).max(WEIGHT_MIN));
        let slope = &chances - &is_positive.mapv(|own| f64::from(u8::from(own)));
        let mut matrix = weighted_product(embedded, &curvature);
        matrix.diag_mut().mapv_inplace(|entry| entry + lambda);
        let mut right = Array2::zeros((embedded.ncols(), 2));
        right
            .column_mut(0)
            .assign(&(embedded.t().dot(&slope) + &weights * lambda));
        right.column_mut(1).assign(&embedded.t().dot(&curvature));
        let solved = Cholesky::factor(&matrix)?.solve(&right);
        // The constant by its Schur complement.
        let own = curvature.sum() - right.column(1).dot(&solved.column(1));
        let step = (slope.sum() - right.column(1).dot(&solved.column(0))) / own.max(WEIGHT_MIN);
        let down = &solved.column(0) - &(&solved.column(1) * step);
        let change = embedded.dot(&down) + step;
        let mut share = 1.0;
        let lower = loop {
            let moved = &scores - &(&change * share);
            let lower = objective(&moved, &(&weights - &(&down * share)));
            if lower <= value || share < 1e-10 {
                scores = moved;
                break lower;
            }
            share /= 2.0;
        };
        weights = weights - &down * share;
        constant -= step * share;
        value = lower;
        let most = change.fold(0.0_f64, |most, one| most.max(one.abs()));
        if most * share < CHANGE_MAX {
            return Ok(Logistic {
                weights: landmarks.turn.dot(&weights),
                constant,
            });
        }
    }
    Err(KernelFitError::Unsettled { steps: STEPS_MAX })
}
