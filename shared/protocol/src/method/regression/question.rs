//! What a job of regression asks of a site.

use super::message::{Design, Evaluating, LIKELIHOOD, Request};
use super::settings::RegressionSettings;
use crate::cohort::CohortSpecification;
use crate::failure::Refusal;
use crate::message::{self, PREPARED};
use crate::question::{Known, after, prepares, unasked, wanted};
use similarity::learn::regression::Model;

/// Judges a question.
pub(crate) fn judge(
    settings: &RegressionSettings,
    cohort: &CohortSpecification,
    request: &message::Request,
    known: Known<'_>,
) -> Result<(), Refusal> {
    match request {
        message::Request::Introduce | message::Request::Describe | message::Request::Moments => {
            Ok(())
        }
        message::Request::Quantiles => wanted(
            !settings.grids(cohort).is_empty(),
            "a job that counts on grids",
        ),
        message::Request::Prepare(preparing) => prepares(preparing, cohort, known),
        message::Request::Regression(request) => {
            after(PREPARED, known)?;
            match request {
                Request::Evaluate(point) => at_a_point(settings, cohort, point, known, None),
                Request::Test(point) => {
                    after(LIKELIHOOD, known)?;
                    let is_cox =
                        matches!(settings.model(&cohort.outcome.kind), Some(Model::Cox(_)));
                    wanted(is_cox, "a job of a survival time")?;
                    at_a_point(settings, cohort, point, known, None)
                }
                Request::Finish(point) => at_a_point(settings, cohort, point, known, None),
            }
        }
        // Closed by default: whatever else is asked, this job does not ask it.
        _ => unasked("what the job's method does"),
    }
}

/// The folds of a cross-validation: of one of so many a question is.
pub(crate) fn of_folds(
    settings: &RegressionSettings,
    cohort: &CohortSpecification,
    request: &Request,
    known: Known<'_>,
    folds: u32,
) -> Result<(), Refusal> {
    after(PREPARED, known)?;
    match request {
        Request::Evaluate(point) => at_a_point(settings, cohort, point, known, Some(folds)),
        Request::Test(_) | Request::Finish(_) => unasked("a job of one regression"),
    }
}

/// Of all patients, or of all but one of so many folds.
pub(crate) fn at_a_point(
    settings: &RegressionSettings,
    cohort: &CohortSpecification,
    point: &Evaluating,
    known: Known<'_>,
    folds: Option<u32>,
) -> Result<(), Refusal> {
    let Evaluating { design, at } = point;
    let Design { rows, fold } = design.as_ref();
    let is_part = match (fold, folds) {
        (None, None) => true,
        (Some(fold), Some(folds)) => *fold < folds,
        (None, Some(_)) | (Some(_), None) => false,
    };
    wanted(is_part, "the patients whom the job fits")?;
    let of = known.rows.unwrap_or(0);
    let are_rows = rows.is_sorted_by(|one, next| one < next)
        && rows.last().is_some_and(|last| (*last as usize) < of);
    wanted(are_rows, "rows of the prepared patients")?;
    let model = settings.model(&cohort.outcome.kind);
    let constant = model.is_some_and(Model::has_intercept);
    let fit = at.len() == rows.len() + usize::from(constant)
        && at.iter().all(|coefficient| coefficient.is_finite());
    wanted(fit, "a coefficient a row")
}
