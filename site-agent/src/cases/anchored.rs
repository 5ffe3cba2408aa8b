//! The predicted risk that a risk-anchored distance compares first, in words.

use super::setting::{Asked, Setting};
use super::shown::short;
use serde::Serialize;
use similarity::cohort::Outcome;

/// What a risk-anchored distance compares.
pub(super) const NEAR: &str = "Near by a risk-anchored distance is who has the same predicted risk, and for the same reasons: what a \
     feature adds to the risk is compared feature by feature. A part below 0 makes up for others.";

/// How two predictions are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Measure {
    OddsRatio,
    HazardRatio,
    Difference,
}

/// The predicted risk of a similar patient compared with that of the query.
#[derive(Debug, Serialize)]
pub(super) struct Risk {
    measure: Measure,
    /// How many times the query's odds or hazard, or how much more than the query's outcome.
    value: f64,
}

impl Risk {
    /// Of a patient of the cohort; none where the distance has no anchor.
    pub(super) fn of(
        setting: &Setting,
        patient: usize,
        asked: &Asked,
        query: usize,
    ) -> Option<Self> {
        let own = setting.comparison.predictor(&setting.placed, patient)?;
        let others = setting.comparison.predictor(&asked.placed, query)?;
        let difference = own - others;
        Some(match setting.cohort.outcome() {
            Outcome::Numeric(_) => Self {
                measure: Measure::Difference,
                value: difference,
            },
            Outcome::Classes { .. } => Self {
                measure: Measure::OddsRatio,
                value: libm::exp(difference),
            },
            Outcome::Survival { .. } => Self {
                measure: Measure::HazardRatio,
                value: libm::exp(difference),
            },
        })
    }

    /// As a cell of a table.
    pub(super) fn cell(&self) -> String {
        match self.measure {
            Measure::Difference => format!("{:+.3}", self.value),
            Measure::OddsRatio | Measure::HazardRatio => format!("x {:.2}", self.value),
        }
    }

    /// The risks of all similar patients, in a sentence.
    pub(super) fn sentence<'r>(risks: impl Iterator<Item = &'r Self> + Clone) -> Option<String> {
        let measure = risks.clone().next()?.measure;
        let values = risks.map(|risk| risk.value);
        let low = short_of(values.clone().fold(f64::INFINITY, f64::min));
        let high = short_of(values.fold(f64::NEG_INFINITY, f64::max));
        Some(match measure {
            Measure::Difference => {
                format!("Predicted: their outcomes differ from the query's by {low} to {high}.")
            }
            Measure::OddsRatio => {
                format!("Predicted risk: {low} to {high} times the query's odds.")
            }
            Measure::HazardRatio => {
                format!("Predicted risk: {low} to {high} times the query's hazard.")
            }
        })
    }
}

/// To three digits.
fn short_of(number: f64) -> String {
    short(format!("{number:.2e}").parse().unwrap_or(number))
}
