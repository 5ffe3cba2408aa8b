//! Whether sums of derivatives can be those of patients. What no patients have is not used: the run ends before anything follows from it.

use super::message::{Answer, Derivatives, Differentiating};
use super::settings::UnpslSettings;
use crate::checks::{ROUNDING, ensure, length, numbers, unexpected};
use crate::failure::Failure;
use crate::message::{self, Totals};
use crate::stage::preparing::Prepared;
use ndarray::{Array2, ArrayView1, ArrayView2, s};
use similarity::learn::unpsl::{
    COARSER, CorrelationScope, Form, JUDGED_STEPS, Loss, PairWeights, Pairs, Settings, SiteWeights,
};
use similarity::numeric::precision::Fit;
use similarity::numeric::prox::row_norm_sum;

/// How much more all sites may weigh where a fold is held out: each takes similar and dissimilar pairs of the others to be left in as
/// its own are, so that all similar ones weigh no more than all pairs, nor do all dissimilar ones.
const WEIGHT_OF_A_PART: f64 = 2.0;
/// How much more a pair weighs there. Half of the patients make a quarter of the pairs, and a small site fewer.
const PAIR_OF_A_PART: f64 = 16.0;
/// The same where two folds are held out: a third of the patients makes a ninth of the pairs.
const PAIR_OF_A_THIRD: f64 = 36.0;
/// What the pairs of one patient weigh in a mean: no difference of two patients is longer than twice all squares.
const MEAN_REACH: f64 = 2.0;

/// What sums over all patients are held to. With c_ij the derivative of a pair's loss, c^2 <= |c| <= loss, so that by Cauchy and Schwarz
/// the objective and the sums of squares S_k of the features bound Gamma. No patient is in more than half of all that T weighs.
#[derive(Debug, Clone)]
pub(super) struct Possible {
    settings: Settings,
    /// What the losses of all pairs weigh.
    weight: f64,
    /// The most that one pair weighs.
    pair: f64,
    patients: f64,
    sites: f64,
    /// Of each feature the root of S_k.
    spreads: Vec<f64>,
    /// By how much rounding moves a sum at most.
    error: f64,
    /// Half a step of Gamma along two axes of a site, for pairs of weight 1.
    half_step: f64,
}

/// How many rows of the derivatives one of the metrics is asked about.
pub(super) fn asked_rows(asked: &Differentiating, metric: usize, features: usize) -> usize {
    asked.rows[metric].as_ref().map_or(features, Vec::len)
}

impl Possible {
    /// Of prepared patients.
    pub(super) fn of(settings: &UnpslSettings, prepared: &Prepared) -> Self {
        Self::new(settings, &prepared.totals, &prepared.squares)
    }

    #[allow(clippy::cast_precision_loss)] // counts of patients and pairs
    pub(super) fn new(settings: &UnpslSettings, totals: &Totals, squares: &[f64]) -> Self {
        let objective = settings.objective;
        let weight = objective.loss.weight_of(totals.pairs.total());
        let kinds = [totals.pairs.similar, totals.pairs.dissimilar];
        let all = totals.pairs.total().max(1) as f64;
        let of_kind = match objective.pair_weights {
            PairWeights::Equal => 1.0,
            PairWeights::Balanced => 0.5 * all / kinds[0].min(kinds[1]).max(1) as f64,
        };
        let pair = of_kind * settings.supervision.times();
        Self {
            settings: objective,
            weight,
            pair: match (objective.loss, objective.site_weights) {
                (Loss::Sum, _) => pair,
                (Loss::Mean, SiteWeights::Pairs) => pair / all,
                (Loss::Mean, SiteWeights::Patients | SiteWeights::Equal) => 1.0,
            },
            patients: totals.patients as f64,
            sites: totals.sites as f64,
            spreads: squares.iter().map(|square| square.sqrt()).collect(),
            error: Fit::UNFIT.steps() * settings.error(totals) + ROUNDING * weight,
            half_step: Fit::UNFIT.steps() * objective.half_step(totals) / weight / 2.0
                * match settings.supervision.wants_judgements() {
                    true => JUDGED_STEPS,
                    false => 1.0,
                },
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
            let most = Most::of(self, asked, metric);
            most.judge_objective(own)?;
            most.judge_curvature(own)?;
            most.judge_gradient(own)
        })
    }

    fn judge_shape(
        &self,
        own: &Derivatives,
        asked: &Differentiating,
        metric: usize,
    ) -> Result<(), Failure> {
        let (rank, features) = (asked.metrics[metric].ncols(), self.spreads.len());
        let columns = asked.rows[metric]
            .as_ref()
            .map(|rows| if rows.is_empty() { 1 } else { rank });
        ensure(
            own.slope.as_ref().map(Array2::dim) == columns.map(|columns| (features, columns)),
            "a slope of another shape",
            "one of every row where some rows are asked about",
        )?;
        own.slope.iter().try_for_each(numbers)?;
        let wanted = (
            2,
            Derivatives::triangle(asked_rows(asked, metric, features)),
        );
        ensure(
            own.triangles.dim() == wanted,
            "derivatives of another shape",
            "two triangles of the features",
        )?;
        numbers(&own.triangles)?;
        numbers([&own.objective, &own.threshold[0], &own.threshold[1]])
    }
}

/// What the derivatives at one metric W are at most.
struct Most<'p> {
    possible: &'p Possible,
    metric: ArrayView2<'p, f64>,
    /// The features that are asked about.
    rows: Vec<usize>,
    threshold: Option<f64>,
    form: Form,
    /// What all pairs weigh, the pairs of one patient, and one pair.
    weight: f64,
    reach: f64,
    pair: f64,
    correlation: f64,
    /// By how much rounding moves a sum, and an entry for spreads of 1.
    error: f64,
    entry_error: f64,
    /// The root of the sum of squares of each column of XW.
    projected: Vec<f64>,
}

impl<'p> Most<'p> {
    #[allow(clippy::cast_precision_loss)] // few features
    fn of(possible: &'p Possible, asked: &'p Differentiating, metric: usize) -> Self {
        let (part, whole) = (asked.parts[metric], &asked.metrics[metric]);
        let settings = &possible.settings;
        let features = possible.spreads.len();
        let entries = whole.slice(s![..features, ..]);
        let (share, of_pair) = match (part.fold, part.other) {
            (None, _) => (1.0, 1.0),
            (Some(_), None) => (WEIGHT_OF_A_PART, PAIR_OF_A_PART),
            (Some(_), Some(_)) => (WEIGHT_OF_A_PART, PAIR_OF_A_THIRD),
        };
        let (pair, error) = (possible.pair * of_pair, possible.error * of_pair);
        let reach = pair * possible.patients;
        let (weight, reach, pair) = match settings.loss {
            Loss::Sum => match settings.pairs {
                Pairs::All => (possible.weight, reach, pair),
                // Fewer patients may make fewer groups of more.
                Pairs::PerPatient(_) => (share * possible.weight, reach, pair),
            },
            // A site weighs no more than all.
            Loss::Mean => (share, reach.min(MEAN_REACH * share), pair.min(1.0)),
        };
        let sites = match (settings.loss, settings.correlation) {
            (Loss::Sum, CorrelationScope::Site) => possible.sites,
            (Loss::Sum, CorrelationScope::Pooled) | (Loss::Mean, _) => share,
        };
        let axes = possible.patients.min(features as f64);
        let length = |column: ArrayView1<'_, f64>| {
            let parts = column.iter().zip(&possible.spreads);
            parts.map(|(entry, spread)| entry.abs() * spread).sum()
        };
        Self {
            possible,
            rows: asked.rows[metric]
                .clone()
                .unwrap_or_else(|| (0..features).collect()),
            threshold: settings.threshold_at(whole, features),
            form: part.form,
            weight,
            reach,
            pair,
            correlation: settings.lambda_correlation * sites,
            error,
            // A site of n patients has n^2 / 2 pairs at most, and its spreads are those of n.
            entry_error: axes * error.min(possible.half_step * pair),
            projected: entries.columns().into_iter().map(length).collect(),
            metric: entries,
        }
    }

    /// The part of a similarity, or of a distance, in its derivative.
    fn half(&self) -> f64 {
        match self.form {
            Form::InnerProduct => 0.5,
            Form::Distance => 1.0,
        }
    }

    /// No loss is below 0. At W = 0 each is that of the threshold alone, and a site's own threshold makes it no more than that of 0;
    /// elsewhere it is larger by |s_ij| at most.
    fn judge_objective(&self, own: &Derivatives) -> Result<(), Failure> {
        ensure(
            own.objective >= -self.error,
            "an objective below 0",
            "a sum of losses",
        )?;
        let flat = libm::log1p(libm::exp(self.threshold.unwrap_or(0.0).abs()));
        let squares: f64 = self.projected.iter().map(|length| length * length).sum();
        let lengths = row_norm_sum(&self.metric);
        let most = self.weight * flat
            + self.half() * self.reach * squares
            + self.correlation * lengths * lengths;
        ensure(
            own.objective <= most * (1.0 + ROUNDING) + self.error,
            "an objective that no patients have",
            "one of patients",
        )
    }

    /// T is a sum of outer products: no entry on its diagonal is below 0 but for rounding, and no other larger than those of its row and
    /// column. The derivatives of a loss in the threshold are at most 1, and a quarter.
    fn judge_curvature(&self, own: &Derivatives) -> Result<(), Failure> {
        let diagonal: Vec<f64> = (0..self.rows.len())
            .map(|row| own.triangles[[1, place(row, row)]])
            .collect();
        let rounding = ROUNDING * diagonal.iter().copied().fold(0.0, f64::max);
        let [first, second] = own.threshold;
        let is_curved = diagonal.iter().all(|entry| *entry >= -rounding) && second >= 0.0;
        ensure(
            is_curved,
            "a curvature below 0",
            "the curvature of a convex loss",
        )?;
        let largest = self.reach.sqrt() / 4.0;
        // What rounding turns below 0 becomes 0, so that it moves an entry by a whole step.
        let rounded = COARSER * self.entry_error / self.possible.weight.sqrt();
        let is_small = self.rows.iter().zip(&diagonal).all(|(row, entry)| {
            let spread = self.possible.spreads[*row];
            *entry <= (largest + rounded) * spread * spread * (1.0 + ROUNDING) + ROUNDING
        });
        let is_of_squares = entries(self.rows.len()).all(|(row, column)| {
            let product = diagonal[row].max(0.0) * diagonal[column].max(0.0);
            own.triangles[[1, place(row, column)]].abs() <= product.sqrt() + rounding
        });
        ensure(
            is_small && is_of_squares,
            "a curvature that no patients have",
            "one of patients",
        )?;
        // The second is rounded less finely.
        let most = self.weight + COARSER * self.error;
        ensure(
            first.abs() <= most && second <= most / 4.0,
            "a slope in the threshold that no patients have",
            "one of patients",
        )
    }

    /// Entries of Gamma, and of Gamma W, by the spreads of what they are of.
    fn judge_gradient(&self, own: &Derivatives) -> Result<(), Failure> {
        let loss = (own.objective + self.error).max(0.0);
        let by_loss = match self.form {
            Form::InnerProduct => (0.5 * loss * self.pair).sqrt(),
            Form::Distance => 2.0 * (loss * self.reach).sqrt(),
        };
        let largest = by_loss.min(self.half() * self.reach) + self.entry_error;
        let correlation = self.correlation;
        let fits = |entry: f64, row: usize, spread: f64, correlation: f64| {
            let most = largest * self.possible.spreads[row] * spread + correlation;
            entry.abs() <= most * (1.0 + ROUNDING) + ROUNDING * self.possible.weight
        };
        let mut of_rows = entries(self.rows.len()).map(|(row, column)| {
            let other = self.possible.spreads[self.rows[column]];
            let entry = own.triangles[[0, place(row, column)]];
            fits(entry, self.rows[row], other, correlation)
        });
        let mut slopes = own.slope.iter().flat_map(|slope| slope.indexed_iter());
        let mut of_slope =
            slopes
                .by_ref()
                .map(|((row, column), entry)| match self.rows.is_empty() {
                    true => fits(*entry, row, self.possible.spreads[row], correlation),
                    false => {
                        let weights = self.metric.column(column);
                        let weights: f64 = weights.iter().map(|weight| weight.abs()).sum();
                        fits(*entry, row, self.projected[column], correlation * weights)
                    }
                });
        ensure(
            of_rows.all(|fits| fits) && of_slope.all(|fits| fits),
            "a gradient that no patients have",
            "one of patients",
        )
    }
}

/// Where an entry of a lower triangle is.
fn place(row: usize, column: usize) -> usize {
    row * (row + 1) / 2 + column
}

/// The entries of a lower triangle.
fn entries(rows: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rows).flat_map(|row| (0..=row).map(move |column| (row, column)))
}

#[cfg(test)]
mod tests;
