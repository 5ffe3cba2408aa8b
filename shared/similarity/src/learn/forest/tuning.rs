//! How large terminal nodes are, chosen by out-of-bag error.
//!
//! Trees that end in single patients repeat the noise of an outcome; how coarse they should be, the patients tell that no
//! tree has seen. The error of the forest that is grown with the choice is the lowest of a few, by the same patients: it is a
//! little too good, by less than the candidates near the lowest differ.

use crate::cohort::{Cohort, Outcome};
use crate::judge::error::{Measure, prediction_error};
use crate::judge::paired::brier;
use crate::learn::forest::grow::{class_weights, grow};
use crate::learn::forest::settings::{GrowError, Settings};
use crate::learn::forest::trees::predict::Prediction;
use crate::numeric::seed::Seed;

/// Patients of a terminal node at least: the error changes slowly between them.
const CANDIDATES: [u32; 5] = [1, 3, 10, 30, 100];
/// A candidate leaves room for so many terminal nodes at least.
const NODES_MIN: usize = 8;
/// Errors this close are alike: the trees of another seed could exchange them.
const ALIKE: f64 = 1.01;
/// Trees that a candidate is judged by.
const TREES: usize = 100;

/// A choice.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuned {
    /// What was chosen, for [`Settings::terminal_min`].
    pub terminal_min: u32,
    /// All of which it was chosen, rising.
    pub candidates: Vec<Candidate>,
}

/// One candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Distinct in-bag patients of a terminal node, at least.
    pub terminal_min: u32,
    /// Out-of-bag error: Brier score with the classes weighed as the forest weighs them, mean squared error, or 1 - C; NaN
    /// where nobody is out of bag.
    pub error: f64,
}

impl Tuned {
    /// The settings with what was chosen in place of either rule of nodes.
    #[must_use]
    pub fn applied_to(&self, settings: Settings) -> Settings {
        Settings {
            node_size: 1,
            terminal_min: self.terminal_min,
            ..settings
        }
    }
}

/// Chooses the fewest patients of a terminal node, of 1, 3, 10, 30 and 100, up to an eighth of the cohort, by the out-of-bag
/// errors of forests of at most 100 trees: the coarsest of those within a hundredth of the lowest. Classes are judged by their Brier
/// score, which tells candidates apart where the share misclassified is the same.
///
/// # Errors
/// [`GrowError`] as for [`grow`].
pub fn tune(cohort: &Cohort, settings: &Settings, seed: Seed) -> Result<Tuned, GrowError> {
    let most = cohort.patients() / NODES_MIN;
    let fit = |terminal_min: &u32| *terminal_min == 1 || *terminal_min as usize <= most;
    let mut candidates = Vec::new();
    for terminal_min in CANDIDATES.into_iter().filter(fit) {
        let settings = Settings {
            trees: settings.trees.min(TREES),
            node_size: 1,
            terminal_min,
            ..settings.clone()
        };
        let error = out_of_bag_error(cohort, &settings, seed)?;
        candidates.push(Candidate {
            terminal_min,
            error,
        });
    }
    let errors = candidates.iter().map(|one| one.error);
    let lowest = errors.fold(f64::INFINITY, f64::min);
    // A NaN is never the lowest; where there is nothing else, the finest stands.
    let alike = |one: &&Candidate| one.error <= lowest * ALIKE;
    let coarsest = candidates.iter().rfind(alike).or(candidates.first());
    Ok(Tuned {
        terminal_min: coarsest.map_or(1, |one| one.terminal_min),
        candidates,
    })
}

fn out_of_bag_error(cohort: &Cohort, settings: &Settings, seed: Seed) -> Result<f64, GrowError> {
    let grown = grow(cohort, settings, seed)?;
    let outcome = cohort.outcome();
    // The columns are those that the forest was grown on.
    let Ok(prediction) = grown.predict_out_of_bag(cohort.columns()) else {
        return Ok(f64::NAN);
    };
    if let (Prediction::Classes(shares), Outcome::Classes { codes, levels }) =
        (&prediction, outcome)
    {
        let codes = codes.to_vec();
        let weights = class_weights(&codes, levels.len(), &settings.class_weights)?;
        let (mut sum, mut total) = (0.0, 0.0);
        for ((shares, code), weight) in shares.outer_iter().zip(&codes).zip(&weights) {
            let own = brier(&shares.to_vec(), *code);
            if !own.is_nan() {
                sum += weight * own;
                total += weight;
            }
        }
        return Ok(sum / total);
    }
    let error = prediction_error(&prediction, outcome);
    Ok(error.map_or(f64::NAN, |error| match error.measure {
        Measure::Classes { brier, .. } => brier,
        Measure::Numeric { mean_squared } => mean_squared,
        Measure::Survival { discordance } => discordance,
    }))
}
