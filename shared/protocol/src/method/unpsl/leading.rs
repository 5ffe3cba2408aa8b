//! The first questions of plain ADMM: those of the accelerated consensus, near whose next question ADMM begins. ADMM from a drawn start
//! spends most of its rounds on the way that these questions find.

use super::accelerated::Accelerated;
use super::admm::Admm;
use super::settings::UnpslSettings;
use crate::exchange::{Closed, count};
use crate::failure::Failure;
use crate::message::Totals;
use crate::stage::preparing::Prepared;
use ndarray::Array2;
use similarity::learn::unpsl::led;

/// Questions under way.
#[derive(Debug, Clone)]
pub(super) struct Leading {
    search: Accelerated,
    settings: UnpslSettings,
    totals: Totals,
    /// Where ADMM begins if the questions do not leave W = 0, which is a stationary point.
    start: Array2<f64>,
    /// Questions.
    questions: u32,
}

/// What comes after a question.
pub(super) enum Led {
    /// Another.
    On,
    /// No round is left.
    RoundLimit,
    /// The rounds of ADMM.
    To(Box<Admm>),
}

impl Leading {
    /// So many questions.
    pub(super) fn start(
        settings: &UnpslSettings,
        start: Array2<f64>,
        questions: u32,
        prepared: &Prepared,
    ) -> Self {
        Self {
            search: Accelerated::start(settings, start.clone(), prepared),
            settings: settings.clone(),
            totals: prepared.totals,
            start,
            questions,
        }
    }

    pub(super) fn search(&self) -> &Accelerated {
        &self.search
    }

    /// Takes the answers of a closed exchange.
    pub(super) fn close(&mut self, closed: &mut Closed<'_>) -> Result<Led, Failure> {
        let is_over = self.search.learn(closed)?;
        let asked = count(self.search.rows().len());
        if asked >= self.settings.round_limit {
            return Ok(Led::RoundLimit);
        }
        if !is_over && asked < self.questions {
            return Ok(Led::On);
        }
        let (settings, possible) = (&self.settings, self.search.possible().clone());
        let rows = self.search.rows().to_vec();
        let next = self.search.question();
        let features = settings.objective.features(next);
        let start = led(next, &self.start, features);
        let admm = Admm::led(settings, start, (&self.totals, possible), rows)?;
        Ok(Led::To(Box::new(admm)))
    }
}
