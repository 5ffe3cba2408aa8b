//! What a site may answer in a run of regression.

use super::message::{Answer, Sums};
use super::settings::{REGRESSION_RULE, WEIGHTED_RULE};
use crate::assessment::Assessment;
use crate::checks::{ensure, length, numbers, predictions, unexpected};
use crate::cohort::CohortSpecification;
use crate::failure::Failure;
use crate::message;
use ndarray::Array2;
use privacy::Disclosure;

/// An answer of the shape of `blank`, which a site with `patients` can give.
pub(super) fn answer(
    found: &message::Answer,
    blank: &Answer,
    patients: u64,
) -> Result<(), Failure> {
    let message::Answer::Regression(own) = found else {
        return Err(unexpected(found, blank.kind()));
    };
    // Of a sum some sites may have been lost since.
    let all = |told: u64| {
        ensure(
            (1..=patients).contains(&told),
            "more patients than before",
            "at most the patients that were described",
        )
    };
    let (own, wanted) = match (own, blank) {
        (
            Answer::Cells { sums, counted },
            Answer::Cells {
                sums: wanted,
                counted: blank,
            },
        ) => {
            length("cells", counted.len(), blank.len())?;
            (sums, wanted)
        }
        (Answer::Likelihood(own), Answer::Likelihood(wanted))
        | (Answer::Proportionality(own), Answer::Proportionality(wanted)) => (own, wanted),
        (Answer::Likelihood(_) | Answer::Cells { .. }, Answer::Proportionality(_))
        | (Answer::Likelihood(_) | Answer::Proportionality(_), Answer::Cells { .. })
        | (Answer::Cells { .. } | Answer::Proportionality(_), Answer::Likelihood(_)) => {
            return Err(unexpected(found, blank.kind()));
        }
    };
    let Sums {
        patients: told,
        events,
        log_likelihood,
        gradient,
        information,
    } = own;
    all(*told)?;
    ensure(events <= told, "more events than patients", "at most all")?;
    length("derivatives", gradient.len(), wanted.gradient.len())?;
    is_shaped(information, &wanted.information)?;
    numbers([log_likelihood])?;
    numbers(gradient)?;
    numbers(information)
}

fn is_shaped(found: &Array2<f64>, wanted: &Array2<f64>) -> Result<(), Failure> {
    let named = |matrix: &Array2<f64>| format!("{} x {}", matrix.nrows(), matrix.ncols());
    ensure(found.dim() == wanted.dim(), &named(found), &named(wanted))
}

/// What a site says of a regression, over nobody.
pub(super) fn blank(cohort: &CohortSpecification, neighbours: u32) -> Assessment {
    Assessment::of_nobody(
        &cohort.outcome.kind,
        &[(REGRESSION_RULE, 0), (WEIGHTED_RULE, neighbours)],
    )
}

/// Errors and tables of the site's patients, by the regression and by its weighted distance.
pub(super) fn assessment(
    cohort: &CohortSpecification,
    found: &Assessment,
    patients: u64,
) -> Result<(), Failure> {
    ensure(found.importance.is_empty(), "importances", "none")?;
    predictions(
        &cohort.outcome.kind,
        found,
        patients,
        [REGRESSION_RULE, WEIGHTED_RULE],
        "the regression or its weighted distance",
    )
}
