//! Whether what came in a round of ADMM can be an answer to it.

use super::super::message::{Answer, Contribution};
use crate::checks::{ROUNDING, ensure, numbers, unexpected};
use crate::failure::Failure;
use crate::message;
use ndarray::Array2;

/// Judges a contribution to a round at `consensus` about `centre`.
pub(super) fn contribution(
    answer: &message::Answer,
    consensus: &Array2<f64>,
    centre: &Array2<f64>,
    penalty: f64,
) -> Result<(), Failure> {
    let own = one(answer, consensus.dim())?;
    ensure(
        own.products.is_none(),
        "inner products of a dual",
        "none where the coordinator holds the duals",
    )?;
    // The search of (4.21) starts at the consensus and only falls, and f_p is a sum of losses: so
    // penalty/2 ||W_p - centre||^2 <= f_p(W) + penalty/2 ||W - centre||^2.
    let away = |matrix: &Array2<f64>| {
        let pairs = matrix.iter().zip(centre);
        penalty / 2.0 * pairs.map(|(x, c)| (x - c) * (x - c)).sum::<f64>()
    };
    let reach = own.objective.max(0.0) + away(consensus);
    ensure(
        away(&own.matrix) <= reach * (1.0 + ROUNDING) + ROUNDING,
        "a step farther than its objective can have fallen",
        "a solution of the round's problem",
    )
}

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

/// The largest number of each contribution.
pub(super) fn largest_numbers(contributions: &[Contribution]) -> Vec<f64> {
    let largest = |matrix: &Array2<f64>| matrix.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    let of_one = |own: &Contribution| largest(&own.matrix).max(own.objective.abs());
    contributions.iter().map(of_one).collect()
}

/// The one site whose numbers are beyond those of all others.
pub(super) fn standing_out(largest: &[f64]) -> Option<usize> {
    const FACTOR: f64 = 1e6;
    let first = (0..largest.len()).max_by(|a, b| largest[*a].total_cmp(&largest[*b]))?;
    let others = (0..largest.len()).filter(|site| *site != first);
    let second = others.map(|site| largest[site]).fold(0.0, f64::max);
    (largest[first] > FACTOR * second).then_some(first)
}
