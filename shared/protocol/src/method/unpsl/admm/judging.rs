//! Whether what came in a round of ADMM can be an answer to it.

use super::super::message::{Answer, Contribution};
use crate::checks::{ROUNDING, ensure, numbers, unexpected};
use crate::failure::Failure;
use crate::message;

/// Judges the sum of the contributions to a round of sites that hold their duals.
pub(super) fn sum(answer: &message::Answer, shape: (usize, usize)) -> Result<(), Failure> {
    let sum = one(answer, shape)?;
    let wanted = "inner products of the updates and duals";
    let Some(products) = &sum.products else {
        return ensure(false, "none", wanted);
    };
    numbers([&products.update, &products.cross, &products.dual])?;
    ensure(
        products.update >= 0.0 && products.dual >= 0.0,
        "a sum of squares below 0",
        wanted,
    )
}

/// A contribution of this shape, of finite numbers.
fn one(
    answer: &message::Answer,
    (rows, columns): (usize, usize),
) -> Result<&Contribution, Failure> {
    let message::Answer::Unpsl(Answer::Contribution(own)) = answer else {
        return Err(unexpected(answer, "a contribution"));
    };
    let wanted = format!("a contribution of {rows} x {columns}");
    let found = format!("one of {} x {}", own.matrix.nrows(), own.matrix.ncols());
    ensure(own.matrix.dim() == (rows, columns), &found, &wanted)?;
    numbers(&own.matrix)?;
    numbers([&own.objective])?;
    ensure(
        own.objective >= -ROUNDING,
        "an objective below 0",
        "a sum of losses",
    )?;
    Ok(own)
}
