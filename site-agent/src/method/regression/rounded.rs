//! How finely the patients of a fit say what they add to its sums.

use super::Target;
use crate::method::SiteRun;
use crate::run::stop::Stop;
use ndarray::{Array1, Array2, s};
use protocol::failure::Code;
use protocol::message::regression::Design;
use protocol::method::regression::settings::RegressionSettings;
use similarity::cohort::Outcome;
use similarity::learn::regression::gain::Gain;
use similarity::learn::regression::glm::Family;
use similarity::learn::regression::rounding::Rounding;
use similarity::learn::regression::sums::Sums;
use similarity::numeric::portable::image;
use similarity::numeric::precision::Precision;

/// The rounding of some patients.
pub(super) struct Rounded {
    rounding: Rounding,
    /// By which a question suits them or does not.
    gain: Gain,
    /// Coefficients before those of the matrix.
    leading: usize,
}

impl Rounded {
    /// None where the sums are exact.
    pub(super) fn of(
        (site, settings, design): (&SiteRun, &RegressionSettings, &Design),
        outcome: &Outcome,
        (matrix, target): (&Array2<f64>, &Target),
    ) -> Result<Option<Self>, Stop> {
        match (settings.precision, target) {
            (Precision::Exact, _) => return Ok(None),
            // In units of the outcome; of each patient they tell no more than second moments do.
            (Precision::Rounded, Target::Glm(Family::Linear, _)) => return Ok(None),
            // The time of all in each cell, in its own unit, and no question of anybody's.
            (Precision::Rounded, Target::Exponential(_)) if design.rows.is_empty() => {
                return Ok(None);
            }
            (
                Precision::Rounded,
                Target::Glm(Family::Logistic, _) | Target::Cox { .. } | Target::Exponential(_),
            ) => {}
        }
        let ties = match target {
            Target::Cox { ties, .. } => Some(ties),
            Target::Glm(..) | Target::Exponential(_) => None,
        };
        let of_job = &site.job.cohort.outcome;
        let about = format!("{of_job:?} {ties:?} {:?}", design.cells);
        let hidden = Some((site.folds, about.as_str()));
        let leading = design.cells.len();
        let rounding = Rounding::of(&matrix.view(), leading, hidden);
        Ok(Some(Self {
            rounding: rounding.map_err(|error| Stop::numeric(Code::Numbers, error))?,
            gain: Gain::of(outcome, of_job.kind.horizon()),
            leading,
        }))
    }

    /// Sums at coefficients, as finely as they may be known.
    pub(super) fn rounded(&self, sums: Sums, matrix: &Array2<f64>, at: &Array1<f64>) -> Sums {
        let predictors = image(matrix, &at.slice(s![self.leading..]));
        self.rounding.rounded(sums, at, self.gain.fit(&predictors))
    }
}
