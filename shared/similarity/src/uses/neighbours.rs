//! Nearest neighbours under a metric.
//!
//! All functions take projected patients E = XW, one row each. Two rules of nearness are offered. The
//! learned distance (x_i - x_j)' M (x_i - x_j) is the default; the inner product s_ij = x_i' M x_j, the
//! paper's similarity, grows with the norm of a patient and can rank neighbours poorly. No n x n matrix
//! is held.

use ndarray::parallel::prelude::*;
use ndarray::{Array2, ArrayView2, Axis};

use crate::numeric::linear_algebra::add_product;

/// Patients of a block of queries, and of a block of candidates.
pub(crate) const BLOCK: usize = 512;

/// Which patients are near.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NeighbourRule {
    /// Small learned distance.
    #[default]
    Distance,
    /// Large inner product s.
    InnerProduct,
}

/// One neighbour of a patient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// Row of the candidate.
    pub row: usize,
    /// Squared learned distance, or s.
    pub score: f64,
}

/// Neighbours that cannot be found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvaluateError {
    /// k = 0.
    #[error("found 0 neighbours asked for, wanted at least 1")]
    NoNeighbours,
    /// Nobody to be near to.
    #[error("found {found} candidates, wanted at least {wanted}")]
    NoCandidates {
        /// Candidates there are.
        found: usize,
        /// Candidates needed.
        wanted: usize,
    },
    /// Projections of different metrics.
    #[error("found {found} columns, wanted {wanted}")]
    Columns {
        /// Columns of the queries.
        found: usize,
        /// Columns of the candidates.
        wanted: usize,
    },
    /// One class or label per patient.
    #[error("found labels of {found} patients, wanted {wanted}")]
    Labels {
        /// Labelled patients.
        found: usize,
        /// Patients.
        wanted: usize,
    },
}

/// The `count` nearest candidates of every query, nearest first; all candidates where there are fewer.
/// Equal scores go by row.
///
/// # Errors
/// [`EvaluateError`].
pub fn neighbours(
    candidates: &ArrayView2<f64>,
    queries: &ArrayView2<f64>,
    rule: NeighbourRule,
    count: usize,
) -> Result<Vec<Vec<Neighbour>>, EvaluateError> {
    check(candidates, queries, count, 1)?;
    Ok(search(candidates, queries, rule, count, |_, _| true))
}

/// The `count` nearest other patients of every patient, nearest first.
///
/// # Errors
/// [`EvaluateError`].
pub fn neighbours_within(
    patients: &ArrayView2<f64>,
    rule: NeighbourRule,
    count: usize,
) -> Result<Vec<Vec<Neighbour>>, EvaluateError> {
    check(patients, patients, count, 2)?;
    Ok(search(
        patients,
        patients,
        rule,
        count,
        |query, candidate| query != candidate,
    ))
}

fn check(
    candidates: &ArrayView2<f64>,
    queries: &ArrayView2<f64>,
    count: usize,
    wanted: usize,
) -> Result<(), EvaluateError> {
    if count == 0 {
        return Err(EvaluateError::NoNeighbours);
    }
    let found = candidates.nrows();
    if found < wanted {
        return Err(EvaluateError::NoCandidates { found, wanted });
    }
    let (found, wanted) = (queries.ncols(), candidates.ncols());
    if found != wanted {
        return Err(EvaluateError::Columns { found, wanted });
    }
    Ok(())
}

fn search(
    candidates: &ArrayView2<f64>,
    queries: &ArrayView2<f64>,
    rule: NeighbourRule,
    count: usize,
    admitted: impl Fn(usize, usize) -> bool + Sync,
) -> Vec<Vec<Neighbour>> {
    let squares = |rows: &ArrayView2<f64>| rows.map_axis(Axis(1), |row| row.dot(&row));
    let (candidate_squares, query_squares) = (squares(candidates), squares(queries));
    let blocks = queries
        .axis_chunks_iter(Axis(0), BLOCK)
        .into_par_iter()
        .enumerate();
    let found = blocks.map(|(block, rows)| {
        let mut nearest = vec![Vec::with_capacity(count.min(candidates.nrows()) + 1); rows.nrows()];
        for (part, others) in candidates.axis_chunks_iter(Axis(0), BLOCK).enumerate() {
            let products = products(&rows, &others);
            for ((row, column), product) in products.indexed_iter() {
                let (query, candidate) = (block * BLOCK + row, part * BLOCK + column);
                if !admitted(query, candidate) {
                    continue;
                }
                let score = match rule {
                    NeighbourRule::InnerProduct => *product,
                    NeighbourRule::Distance => {
                        let sum = query_squares[query] + candidate_squares[candidate];
                        (sum - 2.0 * product).max(0.0)
                    }
                };
                insert(
                    &mut nearest[row],
                    Neighbour {
                        row: candidate,
                        score,
                    },
                    rule,
                    count,
                );
            }
        }
        nearest
    });
    found.collect::<Vec<_>>().into_iter().flatten().collect()
}

pub(crate) fn products(rows: &ArrayView2<f64>, others: &ArrayView2<f64>) -> Array2<f64> {
    let mut products = Array2::zeros((rows.nrows(), others.nrows()));
    add_product(1.0, rows, &others.t(), 0.0, &mut products.view_mut());
    products
}

/// Keeps the best `count`, in order. Candidates come by row, so an equal score goes behind.
fn insert(nearest: &mut Vec<Neighbour>, new: Neighbour, rule: NeighbourRule, count: usize) {
    let nearer = |a: &Neighbour, b: &Neighbour| match rule {
        NeighbourRule::Distance => a.score < b.score,
        NeighbourRule::InnerProduct => a.score > b.score,
    };
    if nearest.len() == count && nearest.last().is_some_and(|last| !nearer(&new, last)) {
        return;
    }
    let place = nearest.partition_point(|known| !nearer(&new, known));
    nearest.insert(place, new);
    nearest.truncate(count);
}
