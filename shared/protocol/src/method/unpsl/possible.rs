//! Whether sums of derivatives can be those of patients. What no patients have is not used: the run ends before anything follows from it.

use super::message::{Answer, Derivatives, Differentiating};
use super::settings::UnpslSettings;
use crate::checks::{ROUNDING, ensure, length, numbers, unexpected};
use crate::failure::Failure;
use crate::message;
use crate::stage::preparing::Prepared;
use ndarray::Array2;
use similarity::learn::unpsl::Settings;

/// By how much sites may weigh more than all where folds are left out: each takes the others to leave out as many as itself.
const OF_A_PART: f64 = 0.01;

/// What sums over all patients are held to.
#[derive(Debug, Clone)]
pub(super) struct Possible {
    settings: Settings,
    features: usize,
    /// What the losses of all pairs weigh.
    weight: f64,
    /// By how much rounding moves a sum at most.
    error: f64,
}

/// How many rows of the derivatives one of the metrics is asked about.
pub(super) fn asked_rows(asked: &Differentiating, metric: usize, features: usize) -> usize {
    asked.rows[metric].as_ref().map_or(features, Vec::len)
}

impl Possible {
    /// Of prepared patients.
    pub(super) fn of(settings: &UnpslSettings, prepared: &Prepared) -> Self {
        let pairs = prepared.totals.pairs.total();
        let weight = settings.objective.loss.weight_of(pairs);
        Self {
            settings: settings.objective,
            features: prepared.standardisation.rows().len(),
            weight,
            error: settings.error(&prepared.totals) + ROUNDING * weight,
        }
    }

    /// Judges the sums of all sites.
    ///
    /// # Errors
    /// A failure that names the bound, and no number.
    pub(super) fn judge(
        &self,
        answer: &message::Answer,
        asked: &Differentiating,
    ) -> Result<(), Failure> {
        let message::Answer::Unpsl(Answer::Derivatives(told)) = answer else {
            return Err(unexpected(answer, "derivatives"));
        };
        length("metrics", told.len(), asked.metrics.len())?;
        told.iter().enumerate().try_for_each(|(metric, own)| {
            self.judge_shape(own, asked, metric)?;
            self.judge_objective(own, &asked.metrics[metric])?;
            self.judge_curvature(own, asked_rows(asked, metric, self.features))
        })
    }

    fn judge_shape(
        &self,
        own: &Derivatives,
        asked: &Differentiating,
        metric: usize,
    ) -> Result<(), Failure> {
        let rank = asked.metrics[metric].ncols();
        let columns = asked.rows[metric]
            .as_ref()
            .map(|rows| if rows.is_empty() { 1 } else { rank });
        ensure(
            own.slope.as_ref().map(Array2::dim) == columns.map(|columns| (self.features, columns)),
            "a slope of another shape",
            "one of every row where some rows are asked about",
        )?;
        own.slope.iter().try_for_each(numbers)?;
        let wanted = (
            2,
            Derivatives::triangle(asked_rows(asked, metric, self.features)),
        );
        ensure(
            own.triangles.dim() == wanted,
            "derivatives of another shape",
            "two triangles of the features",
        )?;
        numbers(&own.triangles)?;
        numbers([&own.objective, &own.threshold[0], &own.threshold[1]])
    }

    /// No loss is below 0, and at W = 0 each is that of the threshold alone. A site's own threshold makes it no more than that of 0.
    fn judge_objective(&self, own: &Derivatives, metric: &Array2<f64>) -> Result<(), Failure> {
        ensure(
            own.objective >= -self.error,
            "an objective below 0",
            "a sum of losses",
        )?;
        let entries = metric.rows().into_iter().take(self.features);
        if entries.flatten().any(|entry| *entry != 0.0) {
            return Ok(());
        }
        let threshold = self.settings.threshold_at(metric, self.features);
        let most = libm::log1p(libm::exp(threshold.unwrap_or(0.0).abs()));
        ensure(
            own.objective <= self.weight * most * (1.0 + OF_A_PART) + self.error,
            "an objective at W = 0 that no patients have",
            "one of patients",
        )
    }

    /// T is a sum of outer products, and so has no entry below 0 on its diagonal, but for rounding. The derivatives of a loss in the
    /// threshold are at most 1, and a quarter.
    fn judge_curvature(&self, own: &Derivatives, rows: usize) -> Result<(), Failure> {
        let diagonal = (0..rows).map(|row| own.triangles[[1, row * (row + 3) / 2]]);
        let rounding = ROUNDING * diagonal.clone().fold(0.0, f64::max);
        let [first, second] = own.threshold;
        let is_curved = diagonal.into_iter().all(|entry| entry >= -rounding) && second >= 0.0;
        ensure(
            is_curved,
            "a curvature below 0",
            "the curvature of a convex loss",
        )?;
        // The second is rounded less finely.
        let room = 1.0 + OF_A_PART + 64.0 * self.error / self.weight;
        ensure(
            first.abs() <= self.weight * room && second <= self.weight / 4.0 * room,
            "a slope in the threshold that no patients have",
            "one of patients",
        )
    }
}
