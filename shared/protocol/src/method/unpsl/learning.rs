//! The part of a run of UnPSL that learns the metric, from one start or several, and beside it the folds of a validation: as
//! long as both ask for derivatives, one exchange asks for all.

use super::folds::FoldSearches;
use super::message::{Answer, Differentiating, Request};
use super::possible::Possible;
use super::rounds::Fit;
use super::settings::UnpslSettings;
use crate::checks::unexpected;
use crate::exchange::{Asking, Closed, Course, Stage, Turn};
use crate::failure::Failure;
use crate::limits::{ACTIVE_ROWS_MAX, VALIDATION_ENTRIES_MAX, VALIDATION_PAIRS_MAX};
use crate::message;
use crate::progress::Ending;
use crate::stage::preparing::Prepared;
use ndarray::Array2;
use similarity::numeric::seed::Seed;
use std::sync::Arc;

/// Rounds from one start after the other, of which the best is kept, and the folds of a validation.
#[derive(Debug, Clone)]
pub(super) struct Learning {
    settings: UnpslSettings,
    seed: Seed,
    prepared: Arc<Prepared>,
    /// The start under way, from 0.
    start: u32,
    fit: Fit,
    best: Option<(Fit, Ending)>,
    /// Set once the rounds of all starts are over.
    learned: Option<(Fit, Ending)>,
    folds: Option<FoldSearches>,
}

/// What was learnt.
#[derive(Debug, Clone)]
pub(super) struct Learned {
    /// Of the starts the best.
    pub(super) fit: Fit,
    /// How its rounds ended.
    pub(super) ending: Ending,
    /// Metrics of the folds; none where they were not learnt, or one of them is 0.
    pub(super) folds: Option<Arc<Vec<Array2<f64>>>>,
}

impl Learning {
    /// Begins, with so many folds of a validation where it is part of it.
    pub(super) fn begin(
        settings: &UnpslSettings,
        seed: Seed,
        prepared: &Arc<Prepared>,
        folds: Option<u32>,
    ) -> Result<Self, Failure> {
        let searches = |folds| FoldSearches::of_validation(settings, folds, prepared, seed);
        let mut learning = Self {
            fit: Fit::start(settings, prepared, seed, 0)?,
            settings: settings.clone(),
            seed,
            prepared: Arc::clone(prepared),
            start: 0,
            best: None,
            learned: None,
            folds: folds.map(searches),
        };
        learning.make_room();
        Ok(learning)
    }

    /// The fit whose rounds go on, or the best.
    pub(super) fn fit(&self) -> &Fit {
        self.learned.as_ref().map_or(&self.fit, |(fit, _)| fit)
    }

    /// Folds that are learnt.
    fn open_folds(&self) -> Option<&FoldSearches> {
        self.folds.as_ref().filter(|folds| !folds.is_over())
    }

    /// The questions of the metric and of the folds, where one exchange asks both.
    fn both(&self) -> Option<(&Differentiating, &Differentiating)> {
        let folds = self.open_folds()?.asked();
        let own = self
            .fit
            .differentiating()
            .filter(|_| self.learned.is_none())?;
        (!folds.metrics.is_empty()).then_some((own, folds))
    }

    /// Leaves the folds as much of the next answer as the metric does not need.
    fn make_room(&mut self) {
        let asked = match self.learned {
            None => self.fit.differentiating().map(|asked| {
                let features = self.prepared.standardisation.rows().len();
                let rows = asked.rows[0].as_deref();
                Differentiating::entries(rows, features, asked.metrics[0].ncols())
            }),
            Some(_) => None,
        };
        if let Some(folds) = &mut self.folds {
            folds.reserve(asked.unwrap_or(0));
        }
    }

    /// A round of the metric.
    fn learn(&mut self, closed: &mut Closed<'_>) -> Result<(), Failure> {
        let Turn::Done(ending) = self.fit.close(closed)? else {
            return Ok(());
        };
        let is_better = match &self.best {
            Some((best, _)) => self.fit.objective() < best.objective(),
            None => true,
        };
        if is_better {
            self.best = Some((self.fit.clone(), ending.clone()));
        }
        self.start += 1;
        if self.start < self.settings.starts {
            self.fit = Fit::start(&self.settings, &self.prepared, self.seed, self.start)?;
        } else {
            let best = self.best.take();
            self.learned = Some(best.unwrap_or_else(|| (self.fit.clone(), ending)));
        }
        Ok(())
    }

    /// A round of the folds. What becomes of them never ends the run.
    fn validate(&mut self, closed: &mut Closed<'_>) {
        let Some(folds) = &mut self.folds else {
            return;
        };
        if let Err(failure) = folds.close(closed) {
            closed.notes.push(format!(
                "The folds of the validation were given up: {}.",
                failure.text
            ));
            self.folds = None;
        }
    }
}

/// Whether answers and pairs of so many folds are few enough for the usual validation.
pub(super) fn is_within_the_usual(
    settings: &UnpslSettings,
    prepared: &Prepared,
    folds: u32,
) -> bool {
    let features = prepared.standardisation.rows().len();
    let rank = settings.objective.rank;
    let rows: Vec<usize> = (0..ACTIVE_ROWS_MAX).collect();
    let active = UnpslSettings::is_wide(features).then_some(rows.as_slice());
    let entries = Differentiating::entries(active, features, rank);
    let of_folds = entries.saturating_mul(folds as usize);
    of_folds <= VALIDATION_ENTRIES_MAX && are_pairs_within_the_usual(prepared)
}

/// Whether pairs are.
pub(super) fn are_pairs_within_the_usual(prepared: &Prepared) -> bool {
    prepared.totals.pairs.total() <= VALIDATION_PAIRS_MAX
}

impl Asking for Learning {
    fn phase(&self) -> &'static str {
        "rounds"
    }

    fn ask(&self, _: usize) -> Option<message::Request> {
        if let Some((own, folds)) = self.both() {
            let all = Differentiating::joined(own, folds);
            return Some(message::Request::Unpsl(Request::Differentiate(all)));
        }
        Some(match self.open_folds() {
            Some(folds) if self.learned.is_some() => folds.ask(),
            _ => self.fit.ask(),
        })
    }

    fn judge(&self, _: usize, _: u64, answer: &message::Answer) -> Result<(), Failure> {
        if let Some((own, folds)) = self.both() {
            let all = Differentiating::joined(own, folds);
            return Possible::of(&self.settings, &self.prepared).judge(answer, &all);
        }
        match self.open_folds() {
            Some(folds) if self.learned.is_some() => folds.judge(answer),
            _ => self.fit.judge(answer),
        }
    }

    fn blank(&self) -> Option<message::Answer> {
        if let Some((own, folds)) = self.both() {
            let features = self.prepared.standardisation.rows().len();
            let all = Differentiating::joined(own, folds);
            let blanks = super::message::Derivatives::blanks(&all, features);
            return Some(message::Answer::Unpsl(Answer::Derivatives(blanks)));
        }
        Some(match self.open_folds() {
            Some(folds) if self.learned.is_some() => folds.blank(),
            _ => self.fit.blank(),
        })
    }

    fn course(&self) -> Course {
        self.fit().course(self.settings.round_limit)
    }
}

impl Stage for Learning {
    type Output = Learned;

    fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Learned>, Failure> {
        if self.both().is_some() {
            let (own, folds) = match closed.take_sum()? {
                message::Answer::Unpsl(Answer::Derivatives(mut told)) if !told.is_empty() => {
                    let folds = told.split_off(1);
                    (told, folds)
                }
                other => return Err(unexpected(&other, "derivatives")),
            };
            let sum = |told| Some(message::Answer::Unpsl(Answer::Derivatives(told)));
            closed.sum = sum(folds);
            self.validate(closed);
            closed.sum = sum(own);
            self.learn(closed)?;
        } else if self.learned.is_some() {
            self.validate(closed);
        } else {
            self.learn(closed)?;
        }
        self.make_room();
        let Some((fit, ending)) = self
            .learned
            .as_ref()
            .filter(|_| self.open_folds().is_none())
        else {
            return Ok(Turn::Ask);
        };
        let count = self.settings.folds().unwrap_or(0) as usize;
        let folds = self
            .folds
            .as_ref()
            .and_then(|folds| folds.metrics(0..count, 0));
        Ok(Turn::Done(Learned {
            fit: fit.clone(),
            ending: ending.clone(),
            folds: folds.map(Arc::new),
        }))
    }
}
