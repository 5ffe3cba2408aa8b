//! The first exchange about patients: all sites prove that they mean the same cohort.

use crate::checks::{count, ensure, length, unexpected, within};
use crate::cohort::{CohortSpecification, OutcomeKind};
use crate::exchange::{Asking, Closed, Course, Stage, Turn};
use crate::failure::Failure;
use crate::limits::SITES_MAX;
use crate::message::{Answer, Description, Request};
use std::sync::Arc;

/// Every site reads its cohort and describes it.
#[derive(Debug, Clone)]
pub(crate) struct Agreeing {
    cohort: Arc<CohortSpecification>,
}

impl Agreeing {
    pub(crate) fn new(cohort: Arc<CohortSpecification>) -> Self {
        Self { cohort }
    }
}

impl Asking for Agreeing {
    fn phase(&self) -> &'static str {
        "agreeing on the cohort"
    }

    fn ask(&self, _: usize) -> Option<Request> {
        Some(Request::Describe)
    }

    fn judge(&self, _: usize, _: u64, answer: &Answer) -> Result<(), Failure> {
        match answer {
            Answer::Described(found) => description(&self.cohort, found),
            other => Err(unexpected(other, "a description")),
        }
    }

    fn blank(&self) -> Option<Answer> {
        let classes = classes(&self.cohort);
        Some(Answer::Described(Description {
            patients: 0,
            classes: vec![0; classes],
            learns: 0,
            validates: 0,
            judges: 0,
        }))
    }

    fn course(&self) -> Course {
        Course::default()
    }
}

impl Stage for Agreeing {
    type Output = Description;

    fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Self::Output>, Failure> {
        match closed.take_sum()? {
            Answer::Described(description) => Ok(Turn::Done(description)),
            other => Err(unexpected(&other, "a description")),
        }
    }
}

/// Classes that a description counts: those of the outcome, or whoever has an event.
fn classes(cohort: &CohortSpecification) -> usize {
    match &cohort.outcome.kind {
        OutcomeKind::Survival { .. } => 1,
        kind => kind.classes().len(),
    }
}

fn description(cohort: &CohortSpecification, found: &Description) -> Result<(), Failure> {
    let Description {
        patients,
        classes,
        learns,
        validates,
        judges,
    } = found;
    count(*patients)?;
    ensure(*patients > 0, "no patients", "some")?;
    let sites = SITES_MAX as u64;
    let is_nested = judges <= validates && validates <= learns;
    ensure(
        is_nested && *learns <= sites,
        "more sites than there are",
        "one",
    )?;
    if !classes.is_empty() {
        length("classes", classes.len(), self::classes(cohort))?;
    }
    within(classes, *patients)
}
