//! The minimum of (4.19) over sites whose patients lie in one place: the reference for a federation.
//!
//! Proximal gradient with Nesterov's extrapolation, backtracking and restart (Beck and Teboulle 2009;
//! O'Donoghue and Candes 2015). It shares the objective with the federated algorithm and none of its
//! steps, so agreement of the two says something.

use ndarray::{Array2, Zip, s};

use super::site::{ObjectiveError, SiteObjective};
use crate::numeric::portable::{inner_product, norm};
use crate::numeric::prox::{row_norm_sum, shrink_rows};

/// When the search stops.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PooledLimits {
    /// Stop once a step moves W by at most this, relative to ||W||.
    pub tolerance: f64,
    /// Stop after this many steps.
    pub iterations: usize,
}

/// Where the search ended.
#[derive(Debug, Clone)]
pub struct PooledSolution {
    /// W, of the travelling shape.
    pub matrix: Array2<f64>,
    /// The objective (4.19) there.
    pub objective: f64,
    /// Steps.
    pub iterations: usize,
    /// False where the iterations were used up first.
    pub converged: bool,
}

/// The objective (4.19): the sum of the sites' smooth parts and lambda_1 ||W||_{2,1}.
///
/// # Errors
/// [`ObjectiveError::Shape`].
pub fn objective(sites: &[SiteObjective], matrix: &Array2<f64>) -> Result<f64, ObjectiveError> {
    let mut sum = 0.0;
    for site in sites {
        sum += site.value(matrix)?;
    }
    Ok(sum + sites.first().map_or(0.0, |site| sparsity(site, matrix)))
}

/// Minimises (4.19) over `sites` from `start`.
///
/// # Errors
/// [`ObjectiveError::Shape`].
pub fn minimise_pooled(
    sites: &[SiteObjective],
    start: Array2<f64>,
    limits: PooledLimits,
) -> Result<PooledSolution, ObjectiveError> {
    let solution = |matrix, objective, iterations, converged| PooledSolution {
        matrix,
        objective,
        iterations,
        converged,
    };
    let Some(first) = sites.first() else {
        return Ok(solution(start, 0.0, 0, true));
    };
    let mut scratch = Array2::zeros(start.raw_dim());
    let mut smooth = |matrix: &Array2<f64>, gradient: &mut Array2<f64>| {
        gradient.fill(0.0);
        let mut value = 0.0;
        for site in sites {
            value += site.value_and_gradient(matrix, &mut scratch)?;
            *gradient += &scratch;
        }
        Ok::<f64, ObjectiveError>(value)
    };
    let mut current = start;
    let mut ahead = current.clone();
    let mut gradient = Array2::zeros(current.raw_dim());
    let mut unused = gradient.clone();
    let (mut step, mut momentum) = (1.0, 1.0_f64);
    let mut best = smooth(&current, &mut gradient)? + sparsity(first, &current);
    for iteration in 0..limits.iterations {
        let value = smooth(&ahead, &mut gradient)?;
        let (next, next_value) = loop {
            let mut next = &ahead - &(&gradient * step);
            shrink(first, &mut next, step);
            let moved = &next - &ahead;
            let next_value = smooth(&next, &mut unused)?;
            let bound = value
                + inner_product(&gradient.view(), &moved.view())
                + inner_product(&moved.view(), &moved.view()) / (2.0 * step);
            if next_value <= bound + 1e-13 * value.abs() || step < 1e-18 {
                break (next, next_value);
            }
            step *= 0.5;
        };
        let objective = next_value + sparsity(first, &next);
        if objective > best && momentum > 1.0 {
            // extrapolation overshot: start again from the best point, without momentum
            momentum = 1.0;
            ahead.assign(&current);
            continue;
        }
        let moved = norm(&(&next - &current).view());
        let settled = moved <= limits.tolerance * norm(&next.view()) && momentum > 1.0;
        best = best.min(objective);
        let larger = 0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt());
        let share = (momentum - 1.0) / larger;
        Zip::from(&mut ahead)
            .and(&next)
            .and(&current)
            .for_each(|a, n, c| *a = n + share * (n - c));
        current = next;
        momentum = larger;
        step *= 1.1;
        if settled {
            return Ok(solution(current, best, iteration + 1, true));
        }
    }
    Ok(solution(current, best, limits.iterations, false))
}

fn sparsity(site: &SiteObjective, matrix: &Array2<f64>) -> f64 {
    site.settings().lambda_sparsity * row_norm_sum(&matrix.slice(s![..site.features(), ..]))
}

fn shrink(site: &SiteObjective, matrix: &mut Array2<f64>, step: f64) {
    let threshold = step * site.settings().lambda_sparsity;
    shrink_rows(&mut matrix.slice_mut(s![..site.features(), ..]), threshold);
}
