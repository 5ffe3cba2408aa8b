//! One site's smooth part of the objective, and its local update (4.21).

mod at_zero;
mod derivatives;
mod fit;
mod making;
mod rounding;
mod scales;

use std::sync::Arc;

use ndarray::{Array2, s};

use super::correlation::Correlation;
use super::pair_loss::PairLoss;
use super::settings::{Settings, SettingsError, Threshold};
use super::totals::Summary;
use crate::numeric::lbfgs::{Limits, Status, minimise};
use crate::numeric::linear_algebra::LinearAlgebraError;
use crate::numeric::offsets::Offsets;
use crate::numeric::portable::norm;
use crate::numeric::precision::{Fit, Precision};

use at_zero::AtZero;
pub(super) use rounding::FINE;
use rounding::Patient;

pub use derivatives::{SiteDerivatives, ThresholdDerivatives};
pub use rounding::{COARSE_UNFIT, COARSER};

/// An objective that cannot be made, or a matrix that does not fit it. No patient value is in it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ObjectiveError {
    /// A setting is out of range.
    #[error("settings cannot be used")]
    Settings(#[from] SettingsError),
    /// One label per patient.
    #[error("found labels of {found} patients, wanted {wanted}")]
    LabelsMismatch {
        /// Patients with labels.
        found: usize,
        /// Patients of the matrix.
        wanted: usize,
    },
    /// A column of X holds NaN or infinity.
    #[error("column {column} of the standardised matrix (from 0) holds NaN or infinity")]
    NotFinite {
        /// Index of the column, from 0.
        column: usize,
    },
    /// No labelled pair at any site.
    #[error("{patients} patients make no pair; wanted at least one similar or dissimilar pair")]
    NoPairs {
        /// Patients of the site.
        patients: usize,
    },
    /// Balanced weights need both kinds.
    #[error("all sites together have no {missing} pairs; balanced pair weights need both kinds")]
    OneKind {
        /// The kind that is absent.
        missing: &'static str,
    },
    /// Totals that this site cannot be part of.
    #[error("totals hold fewer {what} than this site alone")]
    Totals {
        /// Pairs, patients or sites.
        what: &'static str,
    },
    /// A matrix of the wrong shape.
    #[error("found a {found_rows} x {found_columns} matrix, wanted {rows} x {columns}")]
    Shape {
        /// Rows found.
        found_rows: usize,
        /// Columns found.
        found_columns: usize,
        /// Rows wanted.
        rows: usize,
        /// Columns wanted.
        columns: usize,
    },
    /// Rows that are not ascending, or not of the metric.
    #[error("rows of derivatives are not ascending numbers below {features}")]
    Rows {
        /// Features of the matrix.
        features: usize,
    },
    /// The pooled correlation was not handed over, or is of other features.
    #[error("correlation is of {found} features, wanted {wanted}")]
    CorrelationMismatch {
        /// Features of the correlation; 0 where none was handed over.
        found: usize,
        /// Columns of the matrix.
        wanted: usize,
    },
    /// The patients' axes, or those of what they add, are not found.
    #[error("the patients have no principal axes")]
    Axes(#[from] LinearAlgebraError),
}

/// The answer of a site to one round.
#[derive(Debug, Clone)]
pub struct LocalSolution {
    /// W_p, of the travelling shape.
    pub matrix: Array2<f64>,
    /// f_p at the consensus, the site's term of (4.19), as a question there is answered: less that, an exact one is the loss at W = 0.
    pub objective_at_consensus: f64,
    /// f_p(W_p) + rho/2 ||W_p - centre||^2.
    pub subproblem: f64,
    /// Frobenius norm of the subproblem's gradient at W_p.
    pub gradient_norm: f64,
    /// L-BFGS steps.
    pub iterations: usize,
    /// Evaluations of loss and gradient.
    pub evaluations: usize,
    /// Why the search ended.
    pub status: Status,
}

/// f_p(W) = a_p loss_p(W) + c_p lambda_2 Tr(W W' (R o R)'), the smooth part of site p.
pub struct SiteObjective {
    loss: PairLoss,
    correlation: Option<Arc<Correlation>>,
    settings: Settings,
    summary: Summary,
    features: usize,
    /// a_p.
    loss_scale: f64,
    /// What the site weighs of all: T_p is `weighs` / sqrt(its pairs' weight) as large as without a scale.
    curvature_scale: f64,
    /// c_p lambda_2.
    correlation_scale: f64,
    patient: Patient,
    offsets: Offsets,
    /// The site's own loss at W = 0, and its part of what the totals make of that.
    at_zero: [AtZero; 2],
}

impl SiteObjective {
    /// Counts of patients and pairs.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// Number of features, d.
    #[must_use]
    pub fn features(&self) -> usize {
        self.features
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// a_p loss_p at W, without the correlation term.
    pub(super) fn scaled_loss_and_gradient(
        &self,
        matrix: &Array2<f64>,
        gradient: &mut Array2<f64>,
    ) -> f64 {
        let features = self.features;
        let metric = matrix.slice(s![..features, ..]);
        let Some(threshold) = self.threshold(matrix) else {
            gradient.fill(0.0);
            return 0.0;
        };
        let (loss, threshold_derivative) = self.loss.value_and_gradient(
            &metric,
            threshold,
            &mut gradient.slice_mut(s![..features, ..]),
        );
        if let Threshold::Common(_) = self.settings.threshold {
            gradient.row_mut(features).fill(0.0);
            gradient[[features, 0]] = threshold_derivative;
        }
        *gradient *= self.loss_scale;
        self.loss_scale * loss
    }

    /// b at a matrix of the travelling shape: the settings', or the one at which the site's loss is least. None
    /// where that is beyond all bounds, because the site's pairs are all alike: its loss there is 0.
    #[must_use]
    pub fn threshold(&self, matrix: &Array2<f64>) -> Option<f64> {
        match self.settings.threshold_at(matrix, self.features) {
            Some(threshold) => Some(threshold),
            None => {
                let metric = matrix.slice(s![..self.features, ..]);
                self.loss.best_threshold(&metric, self.summary.pairs)
            }
        }
    }

    /// The same, where E is known there.
    fn threshold_of(&self, matrix: &Array2<f64>, projected: &Array2<f64>) -> Option<f64> {
        match self.settings.threshold_at(matrix, self.features) {
            Some(threshold) => Some(threshold),
            None => {
                let metric = matrix.slice(s![..self.features, ..]);
                let pairs = self.summary.pairs;
                self.loss.best_threshold_of(projected, &metric, pairs)
            }
        }
    }

    /// The correlation and its weight c_p lambda_2, where it is not 0.
    pub(super) fn correlation(&self) -> Option<(&Correlation, f64)> {
        self.correlation
            .as_deref()
            .map(|correlation| (correlation, self.correlation_scale))
    }

    /// f_p at a matrix of the travelling shape.
    ///
    /// # Errors
    /// [`ObjectiveError::Shape`].
    pub fn value(&self, matrix: &Array2<f64>) -> Result<f64, ObjectiveError> {
        self.check_shape(matrix)?;
        let loss = self.loss_at(matrix, self.threshold(matrix));
        Ok(loss + self.correlation_at(matrix))
    }

    /// a_p loss_p at the threshold that is the site's there.
    fn loss_at(&self, matrix: &Array2<f64>, threshold: Option<f64>) -> f64 {
        let metric = matrix.slice(s![..self.features, ..]);
        threshold.map_or(0.0, |b| self.loss_scale * self.loss.value(&metric, b))
    }

    fn correlation_at(&self, matrix: &Array2<f64>) -> f64 {
        let metric = matrix.slice(s![..self.features, ..]);
        self.correlation().map_or(0.0, |(correlation, weight)| {
            weight * correlation.quadratic_form(&metric)
        })
    }

    /// f_p at a matrix of the travelling shape, as finely as the settings say, and the [`threshold`](Self::threshold) there.
    ///
    /// # Errors
    /// [`ObjectiveError::Shape`].
    pub fn released_value(
        &self,
        matrix: &Array2<f64>,
    ) -> Result<(f64, Option<f64>), ObjectiveError> {
        self.check_shape(matrix)?;
        let threshold = self.threshold(matrix);
        let loss = self.loss_at(matrix, threshold);
        let fit = self.fit(matrix, threshold, loss);
        let value = loss + self.correlation_at(matrix);
        Ok((self.released(matrix, value, fit), threshold))
    }

    /// The value of f_p at a matrix of the travelling shape, as finely as the settings say.
    pub(super) fn released(&self, matrix: &Array2<f64>, value: f64, fit: Fit) -> f64 {
        match self.settings.precision {
            Precision::Exact => value,
            Precision::Rounded => {
                let learned = self.settings.threshold_at(matrix, self.features);
                self.rounded_objective((matrix, learned), (value, fit))
            }
        }
    }

    /// f_p and its gradient at a matrix of the travelling shape.
    ///
    /// # Errors
    /// [`ObjectiveError::Shape`], for either matrix.
    pub fn value_and_gradient(
        &self,
        matrix: &Array2<f64>,
        gradient: &mut Array2<f64>,
    ) -> Result<f64, ObjectiveError> {
        self.check_shape(matrix)?;
        self.check_shape(gradient)?;
        Ok(self.evaluate(matrix, gradient))
    }

    /// The local update (4.21): argmin over V of f_p(V) + `penalty`/2 ||V - `centre`||^2.
    ///
    /// L-BFGS starts at the consensus, so a site keeps nothing between rounds and the first
    /// evaluation is the site's term of the objective. It stops once the gradient's norm is at most
    /// `tolerance` * `penalty` * ||consensus||, which bounds the relative error of W_p where the
    /// subproblem is convex, or after `iteration_limit` steps; both are a status.
    ///
    /// # Errors
    /// [`ObjectiveError::Shape`].
    pub fn solve(
        &self,
        consensus: &Array2<f64>,
        centre: &Array2<f64>,
        penalty: f64,
        tolerance: f64,
        iteration_limit: usize,
    ) -> Result<LocalSolution, ObjectiveError> {
        self.check_shape(consensus)?;
        self.check_shape(centre)?;
        let size = norm(&consensus.view()).max(norm(&centre.view()));
        let limits = Limits {
            gradient_tolerance: tolerance * penalty * size,
            iterations: iteration_limit,
        };
        let mut at_consensus = None;
        let subproblem = |matrix: &Array2<f64>, gradient: &mut Array2<f64>| {
            let own = self.evaluate(matrix, gradient);
            at_consensus.get_or_insert(own);
            own + add_proximity(matrix, centre, penalty, gradient)
        };
        let found = minimise(subproblem, consensus.clone(), limits);
        let objective_at_consensus = at_consensus.expect("the search evaluates its start first");
        let fit = self.fit_at(consensus);
        Ok(LocalSolution {
            matrix: found.point,
            objective_at_consensus: self.released(consensus, objective_at_consensus, fit),
            subproblem: found.value,
            gradient_norm: found.gradient_norm,
            iterations: found.iterations,
            evaluations: found.evaluations,
            status: found.status,
        })
    }

    fn evaluate(&self, matrix: &Array2<f64>, gradient: &mut Array2<f64>) -> f64 {
        let mut value = self.scaled_loss_and_gradient(matrix, gradient);
        if let Some((correlation, weight)) = self.correlation() {
            let metric = matrix.slice(s![..self.features, ..]);
            let mut product = Array2::zeros(metric.raw_dim());
            correlation.multiply_into(&metric, &mut product);
            value += weight * crate::numeric::portable::inner_product(&metric, &product.view());
            gradient
                .slice_mut(s![..self.features, ..])
                .scaled_add(2.0 * weight, &product);
        }
        value
    }

    fn check_shape(&self, matrix: &Array2<f64>) -> Result<(), ObjectiveError> {
        let (found_rows, found_columns) = matrix.dim();
        let rows = self.settings.matrix_rows(self.features);
        if found_rows == rows && (1..=self.features).contains(&found_columns) {
            return Ok(());
        }
        let columns = self.settings.rank;
        Err(ObjectiveError::Shape {
            found_rows,
            found_columns,
            rows,
            columns,
        })
    }
}

impl std::fmt::Debug for SiteObjective {
    /// Counts only: patient values never reach a log.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SiteObjective")
            .field("summary", &self.summary)
            .field("features", &self.features)
            .finish_non_exhaustive()
    }
}

/// Adds the gradient of penalty/2 ||V - centre||^2 to `gradient`, and returns its value.
pub(super) fn add_proximity(
    matrix: &Array2<f64>,
    centre: &Array2<f64>,
    penalty: f64,
    gradient: &mut Array2<f64>,
) -> f64 {
    let mut square = 0.0;
    ndarray::Zip::from(gradient)
        .and(matrix)
        .and(centre)
        .for_each(|gradient, at, centre| {
            let away = at - centre;
            *gradient += penalty * away;
            square += away * away;
        });
    0.5 * penalty * square
}
