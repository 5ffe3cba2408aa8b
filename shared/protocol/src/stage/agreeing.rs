//! The first exchange of every run: all sites prove that they mean the same cohort.

use crate::checks::{count, ensure, length, unexpected, within};
use crate::cohort::{CohortSpecification, OutcomeKind};
use crate::exchange::{Asking, Closed, Course, Silence, Stage, Turn};
use crate::failure::Failure;
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

    fn silence(&self) -> Silence {
        Silence::Out
    }

    fn reminds(&self) -> bool {
        true
    }

    fn ask(&self, _: usize) -> Option<Request> {
        Some(Request::Describe)
    }

    /// What a site says in place of it ends the run, all at once, unless the job leaves such sites out.
    fn judge(&self, _: usize, _: u64, answer: &Answer) -> Result<(), Failure> {
        match answer {
            Answer::Unfit(_) | Answer::Refused(_) | Answer::Failed(_) => Ok(()),
            Answer::Described(found) => description(&self.cohort, found),
            other => Err(unexpected(other, "a description")),
        }
    }

    fn course(&self) -> Course {
        Course::default()
    }
}

impl Stage for Agreeing {
    /// One place per site.
    type Output = Vec<Option<Description>>;

    fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Self::Output>, Failure> {
        let described = |answer| match answer {
            Some(Answer::Described(description)) => Some(description),
            _ => None,
        };
        Ok(Turn::Done(
            closed.take().into_iter().map(described).collect(),
        ))
    }
}

fn description(cohort: &CohortSpecification, found: &Description) -> Result<(), Failure> {
    let Description { patients, classes } = found;
    count(*patients)?;
    ensure(*patients > 0, "no patients", "some")?;
    let wanted = match &cohort.outcome.kind {
        OutcomeKind::Survival { .. } => 2,
        kind => kind.classes().len(),
    };
    if !classes.is_empty() {
        length("classes", classes.len(), wanted)?;
    }
    within(classes, *patients)
}
