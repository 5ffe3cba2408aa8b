//! The first exchange of every run: all sites prove that they mean the same cohort.

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

    fn reminds(&self) -> bool {
        true
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
            validates: 0,
        }))
    }

    fn course(&self) -> Course {
        Course::default()
    }
}

impl Stage for Agreeing {
    type Output = Descriptions;

    fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Self::Output>, Failure> {
        let described = |answer| match answer {
            Some(Answer::Described(description)) => Some(description),
            _ => None,
        };
        let pooled = described(closed.sum.take());
        Ok(Turn::Done(Descriptions {
            own: closed.take().into_iter().map(described).collect(),
            pooled,
        }))
    }
}

/// Who the patients are.
#[derive(Debug, Clone)]
pub(crate) struct Descriptions {
    /// One place per site: what it says of its own; none where sums are told.
    pub(crate) own: Vec<Option<Description>>,
    /// Of all sites, where sums are told.
    pub(crate) pooled: Option<Description>,
}

impl Descriptions {
    /// Whether all sites take part in a validation that the job does not insist on.
    pub(crate) fn validate(&self) -> bool {
        match &self.pooled {
            Some(all) => all.validates == self.own.len() as u64,
            None => self.own.iter().flatten().all(|own| own.validates > 0),
        }
    }

    /// Patients of each class over all sites.
    pub(crate) fn classes(&self) -> Vec<u64> {
        let mut classes: Vec<u64> = Vec::new();
        let own = self.own.iter().flatten();
        for one in own.chain(&self.pooled) {
            classes.resize(classes.len().max(one.classes.len()), 0);
            for (sum, count) in classes.iter_mut().zip(&one.classes) {
                *sum += count;
            }
        }
        classes
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
        validates,
    } = found;
    count(*patients)?;
    ensure(*patients > 0, "no patients", "some")?;
    let sites = SITES_MAX as u64;
    ensure(*validates <= sites, "more sites than there are", "one")?;
    if !classes.is_empty() {
        length("classes", classes.len(), self::classes(cohort))?;
    }
    within(classes, *patients)
}
