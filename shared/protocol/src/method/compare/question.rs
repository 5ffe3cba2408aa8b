//! What a job that compares similarities asks of a site.

use super::message::{Judging, Request};
use super::settings::CompareSettings;
use crate::cohort::CohortSpecification;
use crate::failure::Refusal;
use crate::message::{self, PREPARED};
use crate::method::{forest, regression, unpsl};
use crate::question::{Known, after, prepares, unasked, wanted};

/// Judges a question in a run of so many sites.
pub(crate) fn judge(
    settings: &CompareSettings,
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
        message::Request::Unpsl(unpsl::message::Request::Differentiate(asked)) => {
            wanted(settings.learns_metrics(), "a job that learns metrics")?;
            unpsl::question::of_folds(&settings.unpsl, asked, ready(known)?)
        }
        message::Request::Regression(asked) => {
            wanted(settings.fits_regressions(), "a job that fits regressions")?;
            let (regression, folds) = (&settings.regression, settings.folds);
            regression::question::of_folds(regression, cohort, asked, known, folds)
        }
        message::Request::Compare(Request::Judge(judging)) => {
            judges(settings, cohort, judging, known)
        }
        other => {
            let forest = settings.grows_in_common().then_some(&settings.forest);
            forest::question::in_common(forest, cohort, other, known)
        }
    }
}

/// Rows of the prepared matrix.
fn ready(known: Known<'_>) -> Result<usize, Refusal> {
    after(PREPARED, known)?;
    known
        .rows
        .map_or_else(|| unasked("the preparation first"), Ok)
}

fn judges(
    settings: &CompareSettings,
    cohort: &CohortSpecification,
    judging: &Judging,
    known: Known<'_>,
) -> Result<(), Refusal> {
    let Judging {
        metrics,
        regressions,
        forest,
    } = judging;
    let rows = ready(known)?;
    let fit = settings.learns_metrics() || metrics.is_empty();
    wanted(fit, "metrics of a job that learns some")?;
    unpsl::question::are_of_folds(&settings.unpsl, metrics, rows)?;
    let fit = match regressions.len() {
        0 => true,
        found => settings.fits_regressions() && found == settings.folds as usize,
    };
    wanted(fit, "a regression of each of the job's folds")?;
    for (fold, point) in (0..).zip(regressions.iter()) {
        let (folds, of) = (Some(settings.folds), &settings.regression);
        regression::question::at_a_point(of, cohort, point, known, folds)?;
        wanted(point.design.fold == Some(fold), "the folds in their order")?;
    }
    match (forest, settings.grows_in_common()) {
        (Some(trees), true) => forest::question::judges(&settings.forest, trees, known),
        (None, false) => Ok(()),
        (None, true) => unasked("the common forest beside what else is compared"),
        (Some(_), false) => unasked("no forest, of a job that grows none in common"),
    }
}
