//! Derivatives, rounded by what one standardised patient adds.
//!
//! A metric that weighs one known feature alone makes an entry of Gamma a sum of the patients' other values, with factors that are known:
//! as many metrics as patients read every value from exact sums. So what a site says is rounded along the principal axes of its own
//! patients. Gamma leads the search and is known finely; T says how far to go, and need not be.

use std::sync::Arc;

use ndarray::{Array1, Array2, ArrayView2, s};

use super::at_zero::adds_up;
use super::{ObjectiveError, SiteDerivatives, SiteObjective, ThresholdDerivatives};
use crate::learn::unpsl::pair_loss::PairLoss;
use crate::learn::unpsl::settings::{Settings, Threshold};
use crate::learn::unpsl::shared::SharedPatients;
use crate::learn::unpsl::totals::Summary;
use crate::numeric::axes::Axes;
use crate::numeric::linear_algebra::{LinearAlgebraError, product, symmetric_eigen};
use crate::numeric::offsets::{Offsets, Shifted};
use crate::numeric::precision::Fit;
use crate::numeric::seed::Seed;

/// The step of the objective and of Gamma, in patients.
pub(in crate::learn::unpsl) const FINE: f64 = 0.0078125;
/// The step of T, in patients.
const COARSE: f64 = 0.5;
/// So many times as long it is at most, where a metric does not suit a site's patients.
pub const COARSE_UNFIT: f64 = 8.0;
/// T is rounded by so many times the step of Gamma, where both are longest.
pub const COARSER: f64 = COARSE * COARSE_UNFIT / (FINE * Fit::UNFIT.steps());

/// The steps of the objective and of Gamma, and of T, in patients.
fn steps(fit: Fit) -> [f64; 2] {
    [FINE * fit.steps(), COARSE * fit.steps().min(COARSE_UNFIT)]
}

/// What one standardised patient adds at W = 0, where no pair is separated.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Patient {
    /// To the objective and to Gamma.
    pub(super) slope: f64,
    /// To T.
    pub(super) curvature: f64,
}

impl SiteObjective {
    /// The same derivatives at a W of the travelling shape and the threshold that all learn, as finely as they may be known, but for the
    /// objective.
    pub(super) fn rounded(
        &self,
        whole: &Array2<f64>,
        (rows, learned): (Option<&[usize]>, Option<f64>),
        exact: SiteDerivatives,
        fit: Fit,
    ) -> Result<SiteDerivatives, ObjectiveError> {
        let own;
        let axes = match rows {
            None => self.loss.patients().axes()?,
            Some(rows) => {
                own = Axes::of(&self.loss.patients().columns(rows).view())?;
                &own
            }
        };
        let [fine, coarse] = steps(fit);
        let [slope_step, curvature_step] =
            [fine * self.patient.slope, coarse * self.patient.curvature];
        let asked = rows.map_or("derivatives".to_owned(), |rows| format!("{rows:?}"));
        let mut shifted = self.offsets.at(&asked, whole.iter());
        let gradient = shifted.symmetric(axes.inside(&exact.gradient.view()), slope_step);
        let curvature = shifted.symmetric(axes.inside(&exact.curvature.view()), curvature_step);
        let metric = whole.slice(s![..self.features, ..]);
        let slope = exact
            .slope
            .map(|slope| self.rounded_slope(&metric, slope, (slope_step, &mut shifted)));
        let threshold = match self.settings.threshold {
            Threshold::Fixed(_) | Threshold::Site => ThresholdDerivatives::default(),
            Threshold::Common(_) => {
                let [own, all] = self.at_zero.map(|one| one.at(learned));
                let ThresholdDerivatives { first, second } = exact.threshold;
                let second = shifted.nearest(second, coarse * self.patient.slope / 4.0);
                ThresholdDerivatives {
                    first: match adds_up(&self.settings) {
                        true => shifted.nearest(first - own.slope, slope_step) + all.slope,
                        false => shifted.nearest(first, slope_step),
                    },
                    second: second.max(0.0),
                }
            }
        };
        Ok(SiteDerivatives {
            objective: exact.objective,
            gradient: axes.outside(&gradient.view()),
            curvature: axes.outside(&not_below_0(&curvature)?.view()),
            slope,
            threshold,
        })
    }

    /// f_p, where all sites are at the threshold `learned`: what it is above the site's own at W = 0 is rounded.
    pub(super) fn rounded_objective(
        &self,
        (metric, learned): (&Array2<f64>, Option<f64>),
        (exact, fit): (f64, Fit),
    ) -> f64 {
        let mut shifted = self.offsets.at("objective", metric.iter());
        let [fine, _] = steps(fit);
        let mut fine = |number: f64| shifted.nearest(number, fine * self.patient.slope);
        if !adds_up(&self.settings) {
            return fine(exact);
        }
        let [own, all] = self.at_zero.map(|one| one.at(learned).loss);
        fine(exact - own) + all
    }

    /// Gamma W, d x m, or the diagonal of Gamma, d x 1, of all features: by the spread of each among the patients.
    fn rounded_slope(
        &self,
        metric: &ArrayView2<f64>,
        mut slope: Array2<f64>,
        (step, shifted): (f64, &mut Shifted),
    ) -> Array2<f64> {
        let patients = self.loss.patients();
        #[allow(clippy::cast_precision_loss)] // patients are far below 2^52
        let count = patients.nrows() as f64;
        let spread = |squares: &Array1<f64>| squares.mapv(|sum| (sum / count).sqrt());
        let of_features = spread(patients.squares());
        let of_metric = match slope.ncols() == metric.ncols() {
            true => {
                let placed = SharedPatients::all(Arc::new(patients.product(metric)));
                spread(placed.squares())
            }
            false => Array1::zeros(0),
        };
        for ((row, column), entry) in slope.indexed_iter_mut() {
            let other = of_metric.get(column).unwrap_or(&of_features[row]);
            let step = step * of_features[row] * other;
            *entry = if step > 0.0 {
                shifted.nearest(*entry, step)
            } else {
                0.0
            };
        }
        slope
    }
}

/// By a site's secret, all that changes its derivatives at one metric: settings, counts, and patients, whose order says their classes.
pub(super) fn offsets(
    secret: Option<Seed>,
    loss: &PairLoss,
    (settings, summary): (&Settings, Summary),
) -> Offsets {
    let Some(secret) = secret else {
        return Offsets::None;
    };
    let mut about = *settings;
    (about.rank, about.lambda_sparsity, about.lambda_correlation) = (0, 0.0, 0.0);
    let about = format!("{about:?} {summary:?}");
    Offsets::of(secret, loss.patients().numbers(), &about)
}

/// What rounding has turned below 0 of a matrix that is not becomes 0.
fn not_below_0(matrix: &Array2<f64>) -> Result<Array2<f64>, LinearAlgebraError> {
    let eigen = symmetric_eigen(matrix)?;
    let scaled = &eigen.vectors * &eigen.values.mapv(|value| value.max(0.0));
    Ok(product(&scaled.view(), &eigen.vectors.t()))
}
