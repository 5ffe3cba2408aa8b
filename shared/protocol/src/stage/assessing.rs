//! The last exchange of a run: every site judges the model by its own patients.

use crate::assessment::Assessment;
use crate::checks::unexpected;
use crate::exchange::{Asking, Closed, Course, Stage, Turn};
use crate::failure::Failure;
use crate::message::{Answer, Request};
use std::fmt::Debug;

/// What is assessed.
pub(crate) trait Assessed: Debug {
    /// What goes on, in the operator's words.
    fn phase(&self) -> &'static str;
    /// What one site is asked.
    fn ask(&self, site: usize) -> Option<Request>;
    /// What every site says of the model, with nothing in it.
    fn blank(&self) -> Assessment;
    /// Judges what a site with `patients` says of the model.
    fn judge(&self, found: &Assessment, patients: u64) -> Result<(), Failure>;
    /// How far the rounds came, where there were any.
    fn course(&self) -> Course;
}

/// A model under assessment.
#[derive(Debug, Clone)]
pub(crate) struct Assessing<M> {
    pub(crate) model: M,
}

impl<M: Assessed> Asking for Assessing<M> {
    fn phase(&self) -> &'static str {
        self.model.phase()
    }

    fn ask(&self, site: usize) -> Option<Request> {
        self.model.ask(site)
    }

    fn judge(&self, _: usize, patients: u64, answer: &Answer) -> Result<(), Failure> {
        match answer {
            Answer::Assessed(found) => self.model.judge(found, patients),
            other => Err(unexpected(other, "the last word on the model")),
        }
    }

    fn blank(&self) -> Option<Answer> {
        Some(Answer::Assessed(self.model.blank()))
    }

    fn course(&self) -> Course {
        self.model.course()
    }
}

impl<M: Assessed> Stage for Assessing<M> {
    type Output = Assessment;

    /// Sums, also of what sites tell as means.
    fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Self::Output>, Failure> {
        match closed.take_sum()? {
            Answer::Assessed(assessment) => Ok(Turn::Done(assessment)),
            other => Err(unexpected(&other, "the last word on the model")),
        }
    }
}
