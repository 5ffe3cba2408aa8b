//! Small dense products whose bits are the same on every processor: IEEE add, multiply, divide and square root in a
//! fixed order, no BLAS, nothing fused. All matrices are row-major slices.

use crate::numeric::portable::inner;
use crate::numeric::widths::widths;

/// Columns of a product that lie in one register where it is the widest.
const LANES: usize = 8;

widths! {
    /// target (rows x columns) <- left (rows x inner) * right (inner x columns).
    pub(super) product_into = product_into_body(
        left: &[f64], right: &[f64], columns: usize, target: &mut [f64]
    )
}

widths! {
    /// target (d x d) <- W W' of W (d x m).
    pub(super) gram_into = gram_into_body(metric: &[f64], rank: usize, target: &mut [f64])
}

widths! {
    /// to <- to + factor * from.
    pub(super) add_scaled = add_scaled_body(to: &mut [f64], factor: f64, from: &[f64])
}

#[inline(always)]
fn product_into_body(left: &[f64], right: &[f64], columns: usize, target: &mut [f64]) {
    let middle = right.len() / columns;
    for (left, target) in left.chunks(middle).zip(target.chunks_mut(columns)) {
        if columns == LANES {
            let mut sums = [0.0; LANES];
            for (factor, right) in left.iter().zip(right.as_chunks::<LANES>().0) {
                let sums = sums.iter_mut().zip(right);
                sums.for_each(|(sum, value)| *sum += factor * value);
            }
            target.copy_from_slice(&sums);
            continue;
        }
        target.fill(0.0);
        for (factor, right) in left.iter().zip(right.chunks(columns)) {
            add_scaled_body(target, *factor, right);
        }
    }
}

#[inline(always)]
fn gram_into_body(metric: &[f64], rank: usize, target: &mut [f64]) {
    let rows = metric.len() / rank;
    for one in 0..rows {
        let mine = &metric[one * rank..][..rank];
        for other in 0..=one {
            let value = inner(mine, &metric[other * rank..][..rank]);
            target[one * rows + other] = value;
            target[other * rows + one] = value;
        }
    }
}

#[inline(always)]
fn add_scaled_body(to: &mut [f64], factor: f64, from: &[f64]) {
    to.iter_mut()
        .zip(from)
        .for_each(|(sum, value)| *sum += factor * value);
}

/// The norm of each row of W (d x m).
pub(super) fn row_norms(metric: &[f64], rank: usize) -> impl Iterator<Item = f64> {
    metric.chunks(rank).map(|row| inner(row, row).sqrt())
}

/// w_k <- [1 - threshold / ||w_k||]_+ w_k for every row of W (d x m).
pub(super) fn shrink(metric: &mut [f64], rank: usize, threshold: f64) {
    for row in metric.chunks_mut(rank) {
        let norm = inner(row, row).sqrt();
        if norm <= threshold {
            row.fill(0.0);
        } else {
            let factor = 1.0 - threshold / norm;
            row.iter_mut().for_each(|value| *value *= factor);
        }
    }
}

/// ||a - b||^2.
pub(super) fn squared_distance(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum()
}
