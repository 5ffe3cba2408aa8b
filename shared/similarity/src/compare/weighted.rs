//! The distance that a regression weighs: what each feature adds to the linear predictor, compared.
//!
//! d(i, j) = sum over numeric features |f_k(x_ik) - f_k(x_jk)| + sum over categorical features |b_{k, level i} - b_{k, level j}|,
//! where f_k(x) = b_k x, or the fitted curve of a spline, and b of the first level is 0. The weights and the levels are those
//! of the fit.
//!
//! Risk-anchored, d(i, j) = |eta_i - eta_j| + a times that sum, where eta = x'b is the linear predictor: near is who has the same
//! predicted risk, and for the same reasons (prognostic scores: Hansen, Biometrika 2008).

use ndarray::Array2;

use crate::cohort::Column;
use crate::compare::{CompareError, Placed};
use crate::learn::regression::terms::Terms;
use crate::learn::regression::{Ending, Fit};
use crate::numeric::portable::sum_of_pairs;

/// a: what the reasons of a risk count for compared with the risk. Chosen by held-out patients: `tests/reference/anchored`.
pub const REASONS: f64 = 0.3;

/// A comparison by a regression's coefficients.
#[derive(Debug, Clone)]
pub struct Weighted {
    terms: Terms,
    coefficients: Vec<f64>,
    features: Vec<String>,
    is_anchored: bool,
}

impl Weighted {
    /// By the coefficients of a fit.
    ///
    /// # Errors
    /// [`CompareError::Unsettled`] where the fit has no end, and [`CompareError::Empty`] where every coefficient is 0.
    pub fn new(fit: &Fit) -> Result<Self, CompareError> {
        match fit.ending {
            Ending::Converged => Self::of(fit.terms.clone(), fit.coefficients.to_vec()),
            Ending::Separated(_) | Ending::StepLimit => {
                Err(CompareError::Unsettled(fit.remarks().join("; ")))
            }
        }
    }

    /// By coefficients that came from elsewhere, one a column of [`Terms::names`].
    ///
    /// # Errors
    /// [`CompareError::Rows`], and [`CompareError::Empty`] where every coefficient is 0.
    pub fn of(terms: Terms, coefficients: Vec<f64>) -> Result<Self, CompareError> {
        let (found, wanted) = (coefficients.len(), terms.names().len());
        if found != wanted {
            return Err(CompareError::Rows { found, wanted });
        }
        if coefficients.iter().all(|one| *one == 0.0) {
            return Err(CompareError::Empty);
        }
        let features = terms.terms().iter().map(|term| term.name.clone()).collect();
        Ok(Self {
            terms,
            coefficients,
            features,
            is_anchored: false,
        })
    }

    /// The same, anchored at the linear predictor.
    #[must_use]
    pub fn anchored(self) -> Self {
        Self {
            is_anchored: true,
            ..self
        }
    }

    /// Whether it is anchored at the linear predictor.
    #[must_use]
    pub fn is_anchored(&self) -> bool {
        self.is_anchored
    }

    /// Numbers that it compares of a patient.
    #[must_use]
    pub fn width(&self) -> usize {
        self.features.len() + usize::from(self.is_anchored)
    }

    /// The coefficients, one a column of [`Terms::names`].
    #[must_use]
    pub fn coefficients(&self) -> &[f64] {
        &self.coefficients
    }

    /// The features of the fit.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    pub(super) fn features(&self) -> &[String] {
        &self.features
    }

    /// What each feature adds to the linear predictor, n x features; anchored, a times that, and the linear predictor behind it.
    pub(super) fn place(&self, columns: &[Column]) -> Result<Placed, CompareError> {
        let matrix = self.terms.matrix(columns)?;
        let blocks = self.terms.blocks();
        let mut rows = Array2::zeros((matrix.nrows(), self.width()));
        for (mut row, x) in rows.outer_iter_mut().zip(matrix.outer_iter()) {
            for (sum, block) in row.iter_mut().zip(&blocks) {
                *sum = block
                    .clone()
                    .map(|column| x[column] * self.coefficients[column])
                    .sum();
            }
            if self.is_anchored {
                let predictor = row.sum();
                row *= REASONS;
                row[blocks.len()] = predictor;
            }
        }
        Ok(Placed::Vectors {
            rows,
            projected: None,
        })
    }

    /// The linear predictor of a patient, but for a constant; none where it is no anchor.
    pub(super) fn predictor(&self, placed: &Placed, patient: usize) -> Option<f64> {
        let row = placed.row(patient);
        self.is_anchored.then(|| row[self.features.len()])
    }

    pub(super) fn sum(&self, one: &Placed, i: usize, other: &Placed, j: usize) -> f64 {
        sum_of_pairs(one.row(i), other.row(j), |a, b| (a - b).abs())
    }

    /// Anchored, a feature's part is a times how far its own contribution differs, and how much of the difference in risk comes from it:
    /// below 0 where it makes up for others.
    pub(super) fn parts(
        &self,
        one: &Placed,
        i: usize,
        other: &Placed,
        j: usize,
        parts: &mut [f64],
    ) {
        let predictors = (self.predictor(one, i), self.predictor(other, j));
        let risk = match predictors {
            (Some(one), Some(other)) if one > other => 1.0,
            (Some(one), Some(other)) if one < other => -1.0,
            (Some(_) | None, Some(_) | None) => 0.0,
        };
        let pairs = one.row(i).iter().zip(other.row(j));
        for (part, (a, b)) in parts.iter_mut().zip(pairs) {
            *part = (a - b).abs() + risk * (a - b) / REASONS;
        }
    }
}
