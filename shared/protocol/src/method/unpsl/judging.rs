//! What a site may say of a metric.

use crate::assessment::PAIRS_RULE;
use crate::assessment::{Assessment, EvaluationCounts};
use crate::checks::{ROUNDING, count, ensure, fault, length, numbers, pairs_of, table};
use crate::failure::Failure;

/// What a site with `patients` says of the metric of a cohort with `classes` classes.
pub(super) fn assessment(found: &Assessment, classes: usize, patients: u64) -> Result<(), Failure> {
    let Assessment {
        objective: Some(objective),
        evaluation,
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
    for EvaluationCounts {
        rule, confusion, ..
    } in evaluation
    {
        let (shape, most) = match rule.as_str() {
            PAIRS_RULE => ((2, 2), pairs_of(patients)),
            "distance" | "inner_product" => ((classes, classes), patients),
            _ => {
                return Err(fault(
                    "an evaluation by an unknown rule",
                    "a rule of neighbours or pairs",
                ));
            }
        };
        if let Some(found) = confusion {
            table(found, shape, most)?;
            found.iter().flatten().try_for_each(|cell| count(*cell))?;
        }
    }
    Ok(())
}
