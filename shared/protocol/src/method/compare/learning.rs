//! The part of a comparison that learns a metric without each fold: the searches of UnPSL's validation, by themselves.

use super::settings::CompareSettings;
use crate::exchange::{Asking, Closed, Course, Stage, Turn, count};
use crate::failure::Failure;
use crate::message;
use crate::method::unpsl::folds::FoldSearches;
use crate::stage::preparing::Prepared;
use ndarray::Array2;
use similarity::numeric::seed::Seed;

/// The searches of all folds.
#[derive(Debug, Clone)]
pub(super) struct FoldMetrics {
    searches: FoldSearches,
    folds: u32,
}

impl FoldMetrics {
    /// Of prepared sites; the settings are those of their rows.
    pub(super) fn begin(settings: &CompareSettings, prepared: &Prepared, seed: Seed) -> Self {
        let (unpsl, folds) = (&settings.unpsl, settings.folds);
        Self {
            searches: FoldSearches::of_validation(unpsl, folds, prepared, seed),
            folds,
        }
    }
}

impl Asking for FoldMetrics {
    fn phase(&self) -> &'static str {
        "learning metrics of folds"
    }

    fn ask(&self, _: usize) -> Option<message::Request> {
        Some(self.searches.ask())
    }

    fn judge(&self, _: usize, _: u64, answer: &message::Answer) -> Result<(), Failure> {
        self.searches.judge(answer)
    }

    fn blank(&self) -> Option<message::Answer> {
        Some(self.searches.blank())
    }

    fn course(&self) -> Course {
        let (done, all) = self.searches.done();
        Course {
            round: count(done),
            round_limit: count(all),
            ..Course::default()
        }
    }
}

impl Stage for FoldMetrics {
    /// One a fold; none where one of them is 0.
    type Output = Option<Vec<Array2<f64>>>;

    fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Self::Output>, Failure> {
        if !self.searches.close(closed)? {
            return Ok(Turn::Ask);
        }
        Ok(Turn::Done(self.searches.metrics(0..self.folds as usize, 0)))
    }
}
