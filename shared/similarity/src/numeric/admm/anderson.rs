//! Anderson's acceleration of ADMM, from what the coordinator knows: sums over the sites.
//!
//! With a fixed penalty a round takes what sites bring, S_p = W + U_p, to S_p + R_p, R_p = alpha (W_p - W): a fixed point iteration (Douglas
//! and Rachford's splitting). Near a solution it is nearly linear, and the weights under which the last R add up to least say which mixture of
//! the last S_p + R_p is nearest to the fixed point (Anderson 1965, type II). The safeguard and the ridge are those of Fu, Zhang and Boyd
//! (*Anderson accelerated Douglas-Rachford splitting*, 2020), by which convergence for convex f_p is kept. Here the weights follow from
//! the means over the sites alone, and every site mixes its own.

use ndarray::Array2;
use std::collections::VecDeque;

use crate::numeric::portable::inner_product;

/// The ridge, relative to the sums of squares.
const RIDGE: f64 = 1e-10;
/// A mixture counts only where the residual is at most this share of the first, over the number of mixtures so far.
const SAFEGUARD: f64 = 1e6;

/// One round, as a mean over the sites.
#[derive(Debug, Clone)]
struct Past {
    /// Of S_p + R_p.
    reached: Array2<f64>,
    /// Of R_p.
    step: Array2<f64>,
}

/// What the last rounds were.
#[derive(Debug, Clone)]
pub(super) struct Anderson {
    /// Differences of rounds that are used at most.
    memory: usize,
    past: VecDeque<Past>,
    /// ||R|| of the first round, over all sites.
    first: Option<f64>,
    mixtures: u32,
}

impl Anderson {
    pub(super) fn new(memory: usize) -> Self {
        Self {
            memory,
            past: VecDeque::new(),
            first: None,
            mixtures: 0,
        }
    }

    /// The penalty has changed: what was before says nothing of what comes.
    pub(super) fn forget(&mut self) {
        self.past.clear();
    }

    /// Keeps a round: the means of S_p + R_p and R_p, and ||R|| over all sites.
    pub(super) fn learn(&mut self, reached: Array2<f64>, step: Array2<f64>) {
        self.past.push_back(Past { reached, step });
        while self.past.len() > self.memory + 1 {
            self.past.pop_front();
        }
    }

    /// The weights of the last rounds, the oldest first, whose sum is 1, and the mean of the mixture. `size` is ||R|| over all sites. None
    /// where the last round is to stay as it is.
    pub(super) fn mixture(&mut self, size: f64) -> Option<(Vec<f64>, Array2<f64>)> {
        let first = *self.first.get_or_insert(size);
        let allowed = SAFEGUARD * first / libm::pow(f64::from(self.mixtures + 1), 1.0 + 1e-6);
        if self.past.len() < 2 || size > allowed {
            return None;
        }
        let weights = self.weights()?;
        let mut mean = Array2::zeros(self.past[0].reached.raw_dim());
        for (weight, past) in weights.iter().zip(&self.past) {
            mean.scaled_add(*weight, &past.reached);
        }
        self.mixtures = self.mixtures.saturating_add(1);
        Some((weights, mean))
    }

    /// None where they are not finite.
    fn weights(&self) -> Option<Vec<f64>> {
        let pairs = || self.past.iter().zip(self.past.iter().skip(1));
        let product = |a: &Array2<f64>, b: &Array2<f64>| inner_product(&a.view(), &b.view());
        let steps: Vec<Array2<f64>> = pairs().map(|(a, b)| &b.step - &a.step).collect();
        let moves = pairs().map(|(a, b)| {
            let reached = &b.reached - &a.reached - (&b.step - &a.step);
            product(&reached, &reached)
        });
        let squares = moves.sum::<f64>() + steps.iter().map(|one| product(one, one)).sum::<f64>();
        let last = &self.past.back()?.step;
        let mut rows: Vec<Vec<f64>> = steps
            .iter()
            .map(|one| steps.iter().map(|other| product(one, other)).collect())
            .collect();
        for (place, row) in rows.iter_mut().enumerate() {
            row[place] += RIDGE * squares;
            row.push(product(&steps[place], last));
        }
        let shares = solve(rows)?;
        let mut weights = vec![0.0; self.past.len()];
        weights[self.past.len() - 1] = 1.0;
        for (place, share) in shares.into_iter().enumerate() {
            weights[place] += share;
            weights[place + 1] -= share;
        }
        weights
            .iter()
            .all(|weight| weight.is_finite())
            .then_some(weights)
    }
}

/// Solves a small positive definite system, one row an equation with its right side last, by Gauss: IEEE arithmetic in a fixed order.
fn solve(mut rows: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let size = rows.len();
    for pivot in 0..size {
        let (above, below) = rows.split_at_mut(pivot + 1);
        let row = &above[pivot];
        if row[pivot] <= 0.0 || !row[pivot].is_finite() {
            return None;
        }
        for other in below {
            let factor = other[pivot] / row[pivot];
            for (to, from) in other.iter_mut().zip(row).skip(pivot) {
                *to -= factor * from;
            }
        }
    }
    let mut solution = vec![0.0; size];
    for place in (0..size).rev() {
        let known: f64 = (place + 1..size)
            .map(|other| rows[place][other] * solution[other])
            .sum();
        solution[place] = (rows[place][size] - known) / rows[place][place];
    }
    Some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    /// x -> A x + b of two numbers is known after three rounds: the mixture is its fixed point, here (2, -1).
    #[test]
    fn a_linear_iteration_of_two_numbers_is_over_after_three_rounds() {
        let goal = [2.0, -1.0];
        let next = |x: &Array2<f64>| {
            let (a, b) = (x[[0, 0]] - goal[0], x[[1, 0]] - goal[1]);
            array![[goal[0] + 0.9 * a + 0.2 * b], [goal[1] - 0.1 * a + 0.5 * b]]
        };
        let mut anderson = Anderson::new(5);
        let mut at = array![[0.0], [0.0]];
        for _ in 0..3 {
            let reached = next(&at);
            anderson.learn(reached.clone(), &reached - &at);
            at = reached;
        }
        let (weights, mean) = anderson.mixture(1.0).unwrap();
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(
            (mean[[0, 0]] - 2.0).abs() < 1e-6 && (mean[[1, 0]] + 1.0).abs() < 1e-6,
            "{mean}"
        );
        anderson.forget();
        assert!(anderson.mixture(1.0).is_none());
    }
}
