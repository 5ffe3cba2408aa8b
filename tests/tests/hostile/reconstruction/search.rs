//! Patients whose sums are those that were heard: L-BFGS over their rows.

use super::patients::{Patients, Told, misfit};
use ndarray::Array1;
use std::collections::VecDeque;

/// Steps whose changes the search remembers.
const MEMORY: usize = 20;
/// A misfit this small is none.
const NOTHING: f64 = 1e-24;

/// Moves the rows of all sites but the first `known` ones until their sums fit, or so many steps; gives what is left of the
/// misfit.
pub(super) fn search(sites: &mut [Patients], known: usize, heard: &[Told], steps: usize) -> f64 {
    let at = rows(&sites[known..]);
    let at = minimised(at, steps, |at| evaluate(sites, known, heard, at));
    evaluate(sites, known, heard, &at).0
}

/// Where a misfit, which is given with its derivative, is least, as far as so many steps of L-BFGS come.
pub(super) fn minimised(
    mut at: Array1<f64>,
    steps: usize,
    mut evaluate: impl FnMut(&Array1<f64>) -> (f64, Array1<f64>),
) -> Array1<f64> {
    let mut memory: VecDeque<(Array1<f64>, Array1<f64>)> = VecDeque::new();
    let (mut left, mut slope) = evaluate(&at);
    for _ in 0..steps {
        let mut direction = direction(&slope, &memory);
        let mut descent = direction.dot(&slope);
        if descent >= 0.0 {
            memory.clear();
            direction = -&slope;
            descent = -slope.dot(&slope);
        }
        let begun = match memory.is_empty() {
            true => 1.0 / descent.abs().sqrt(),
            false => 1.0,
        };
        let mut length = begun.min(10.0);
        let found = (0..30).find_map(|_| {
            let next = &at + &(&direction * length);
            let (misfit, slope) = evaluate(&next);
            let is_less = misfit <= left + 1e-4 * length * descent;
            length *= 0.5;
            is_less.then_some((next, misfit, slope))
        });
        let Some((next, misfit, turned)) = found else {
            if memory.is_empty() {
                break;
            }
            memory.clear();
            continue;
        };
        let (step, change) = (&next - &at, &turned - &slope);
        if step.dot(&change) > 1e-12 * change.dot(&change).max(1e-300) {
            memory.push_back((step, change));
            if memory.len() > MEMORY {
                memory.pop_front();
            }
        }
        (at, left, slope) = (next, misfit, turned);
        if left < NOTHING {
            break;
        }
    }
    at
}

/// The direction of limited-memory BFGS.
fn direction(slope: &Array1<f64>, memory: &VecDeque<(Array1<f64>, Array1<f64>)>) -> Array1<f64> {
    let mut direction = -slope;
    let mut shares = Vec::new();
    for (step, change) in memory.iter().rev() {
        let share = step.dot(&direction) / step.dot(change);
        direction.scaled_add(-share, change);
        shares.push(share);
    }
    if let Some((step, change)) = memory.back() {
        direction *= step.dot(change) / change.dot(change);
    }
    for ((step, change), share) in memory.iter().zip(shares.into_iter().rev()) {
        let other = change.dot(&direction) / step.dot(change);
        direction.scaled_add(share - other, step);
    }
    direction
}

/// The misfit of patients with these rows, which they keep, and its derivative.
fn evaluate(
    sites: &mut [Patients],
    known: usize,
    heard: &[Told],
    at: &Array1<f64>,
) -> (f64, Array1<f64>) {
    let mut entries = at.iter();
    for site in &mut sites[known..] {
        site.rows
            .iter_mut()
            .zip(&mut entries)
            .for_each(|(to, from)| *to = *from);
    }
    let (misfit, slopes) = misfit(sites, heard);
    let entries = slopes[known..]
        .iter()
        .flat_map(|slope| slope.iter().copied());
    (misfit, entries.collect())
}

fn rows(sites: &[Patients]) -> Array1<f64> {
    sites
        .iter()
        .flat_map(|site| site.rows.iter().copied())
        .collect()
}
