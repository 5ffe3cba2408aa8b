//! Large margin nearest neighbours (Weinberger and Saul, JMLR 2009): each patient's target neighbours,
//! the nearest similar ones, are pulled near, and dissimilar ones pushed a margin of 1 beyond them.
//!
//! The loss over W (their L', d x d) with d_ij = ||W'(x_i - x_j)||^2 is
//!
//! ```text
//! (1 - mu) sum_{i, j target of i} d_ij + mu sum_{i, j target of i, y_il = -1} [1 + d_ij - d_il]_+
//! ```
//!
//! minimised by gradient descent from the identity, whose step grows while the loss falls.

use ndarray::{Array2, ArrayView2};
use similarity::learn::unpsl::Labels;
use similarity::numeric::linear_algebra::product;

use super::{pair_scatter, squared_distances};

/// Target neighbours of a patient.
const TARGETS: usize = 3;
/// mu.
const PUSH: f64 = 0.5;
const STEPS_MAX: usize = 300;
/// A relative fall of the loss that is too small to count.
const TOLERANCE: f64 = 1e-5;

/// W, d x d.
#[must_use]
pub fn lmnn(patients: &ArrayView2<f64>, labels: &Labels) -> Array2<f64> {
    let loss = LmnnLoss::new(patients, labels);
    let mut matrix = Array2::eye(patients.ncols());
    let (mut value, mut gradient) = loss.value_and_gradient(&matrix);
    let mut step = 1e-3;
    for _ in 0..STEPS_MAX {
        let next = &matrix - &(&gradient * step);
        let (next_value, next_gradient) = loss.value_and_gradient(&next);
        if next_value > value {
            step *= 0.5;
            if step < 1e-12 {
                break;
            }
            continue;
        }
        let settled = value - next_value <= TOLERANCE * value;
        (matrix, value, gradient) = (next, next_value, next_gradient);
        step *= 1.2;
        if settled {
            break;
        }
    }
    matrix
}

/// The loss of some patients, divided by their number.
pub struct LmnnLoss<'a> {
    patients: &'a ArrayView2<'a, f64>,
    labels: &'a Labels,
    /// Of each patient, its nearest similar ones by the Euclidean distance.
    targets: Vec<Vec<usize>>,
}

impl<'a> LmnnLoss<'a> {
    /// Three target neighbours per patient, fewer where fewer are similar.
    #[must_use]
    pub fn new(patients: &'a ArrayView2<'a, f64>, labels: &'a Labels) -> Self {
        let distances = squared_distances(patients);
        let targets = (0..patients.nrows())
            .map(|one| {
                let mut similar: Vec<usize> = (0..patients.nrows())
                    .filter(|other| labels.of_pair(one, *other) == 1)
                    .collect();
                similar.sort_by(|a, b| distances[[one, *a]].total_cmp(&distances[[one, *b]]));
                similar.truncate(TARGETS);
                similar
            })
            .collect();
        Self {
            patients,
            labels,
            targets,
        }
    }

    /// The loss at W and its gradient there.
    #[must_use]
    pub fn value_and_gradient(&self, matrix: &Array2<f64>) -> (f64, Array2<f64>) {
        let count = self.patients.nrows();
        let distances = squared_distances(&product(self.patients, &matrix.view()).view());
        let mut weights: Array2<f64> = Array2::zeros((count, count));
        let mut value = 0.0;
        for (one, targets) in self.targets.iter().enumerate() {
            for &target in targets {
                let near = distances[[one, target]];
                value += (1.0 - PUSH) * near;
                weights[[one, target]] += 1.0 - PUSH;
                for other in (0..count).filter(|l| self.labels.of_pair(one, *l) == -1) {
                    let margin = 1.0 + near - distances[[one, other]];
                    if margin > 0.0 {
                        value += PUSH * margin;
                        weights[[one, target]] += PUSH;
                        weights[[one, other]] -= PUSH;
                    }
                }
            }
        }
        let scatter = pair_scatter(self.patients, &weights);
        let scale = 1.0 / count.max(1) as f64;
        let gradient = product(&scatter.view(), &matrix.view()) * (2.0 * scale);
        (value * scale, gradient)
    }
}
