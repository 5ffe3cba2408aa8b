//! What a job asks of a site, and nothing beside it: every question is judged against the job before
//! anything is computed.

use crate::cohort::CohortSpecification;
use crate::failure::Refusal;
use crate::message::{MOMENTS, Preparing, Request};
use std::collections::BTreeSet;

/// The rule that refuses what the job does not ask.
const QUESTION: &str = "question";
/// The rule that refuses another question of a kind that is asked once.
const ONCE: &str = "once_a_run";

/// What a site knows of its run when it is asked.
#[derive(Debug, Clone, Copy)]
pub struct Known<'k> {
    /// Kinds of message that have answered in this run.
    pub kinds: &'k BTreeSet<String>,
    /// Columns of the standardised matrix, once it is prepared.
    pub rows: Option<usize>,
    /// Whether the site takes part in a validation that the job does not insist on.
    pub validates: bool,
}

/// Whether another question of its kind may be asked.
pub(crate) fn once(request: &Request, known: Known<'_>) -> Result<(), Refusal> {
    let kind = request.answer_kind();
    if request.repeats() || !known.kinds.contains(kind) {
        return Ok(());
    }
    let text = format!(
        "another question was answered by {kind} in this run, and the job asks one; submit \
         the job again with another seed"
    );
    let rule = ONCE.to_owned();
    Err(Refusal { rule, text })
}

/// What comes before it must have been answered.
pub(crate) fn after(kind: &str, known: Known<'_>) -> Result<(), Refusal> {
    match known.kinds.contains(kind) {
        true => Ok(()),
        false => unasked(&format!("{kind} first")),
    }
}

/// Whether moments are of all the job's features, and nobody is left out.
pub(crate) fn prepares(
    preparing: &Preparing,
    cohort: &CohortSpecification,
    known: Known<'_>,
) -> Result<(), Refusal> {
    after(MOMENTS, known)?;
    let features = preparing.moments.len() == cohort.features.len();
    let quartiles = preparing.quartiles.len() == cohort.grids_of_quartiles().len();
    let curves = preparing.curves.len() == cohort.curved();
    let fit = features && quartiles && curves && preparing.within.is_none();
    wanted(fit, "moments of the job's features")
}

pub(crate) fn wanted(fit: bool, wanted: &str) -> Result<(), Refusal> {
    match fit {
        true => Ok(()),
        false => unasked(wanted),
    }
}

pub(crate) fn unasked<T>(wanted: &str) -> Result<T, Refusal> {
    Err(Refusal {
        rule: QUESTION.to_owned(),
        text: format!("the coordinator asked what the job does not, or not yet; wanted {wanted}"),
    })
}
