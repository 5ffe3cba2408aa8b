//! What a site may say of a metric.

use crate::assessment::{
    Assessment, DISTANCE_RULE, EUCLIDEAN_RULE, INNER_PRODUCT_RULE, PAIRS_RULE,
};
use crate::checks::{self, ROUNDING, ensure, fault, length, numbers};
use crate::failure::Failure;

/// What a site with `patients` says of the metric of a cohort with `classes` classes, and where it `is_validated` of its folds.
pub(super) fn assessment(
    found: &Assessment,
    classes: usize,
    is_validated: bool,
    patients: u64,
) -> Result<(), Failure> {
    let Assessment {
        objective: Some(objective),
        evaluation,
        validation,
        errors,
        importance,
    } = found
    else {
        return Err(fault("no objective", "that of the final consensus"));
    };
    numbers([objective])?;
    ensure(
        *objective >= -ROUNDING,
        "an objective below 0",
        "a sum of losses",
    )?;
    length("sums of errors", errors.len(), 0)?;
    length("importances", importance.len(), 0)?;
    if !is_validated {
        length("tables of a validation", validation.len(), 0)?;
    }
    for counts in evaluation.iter().chain(validation) {
        let known = [
            PAIRS_RULE,
            DISTANCE_RULE,
            INNER_PRODUCT_RULE,
            EUCLIDEAN_RULE,
        ];
        ensure(
            known.contains(&counts.rule.as_str()),
            "an evaluation by an unknown rule",
            "a rule of neighbours or pairs",
        )?;
        checks::evaluation(counts, classes, patients)?;
    }
    Ok(())
}
