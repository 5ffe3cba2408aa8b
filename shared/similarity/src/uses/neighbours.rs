//! Nearest neighbours under a metric.
//!
//! All functions take projected patients E = XW, or rows of any other Euclidean space, one row each. Two rules of nearness are offered. The
//! learned distance (x_i - x_j)' M (x_i - x_j) is the default; the inner product s_ij = x_i' M x_j, the
//! paper's similarity, grows with the norm of a patient and can rank neighbours poorly. No n x n matrix
//! is held.

#![expect(clippy::disallowed_methods, reason = "one site works it out alone")]

mod apart;
mod grouped;
mod narrow;
mod walk;

use std::sync::OnceLock;

use ndarray::parallel::prelude::*;
use ndarray::{Array1, Array2, ArrayView2, Axis, CowArray, Ix2};

use crate::numeric::linear_algebra::add_product;

pub use apart::{NearBoth, neighbours_apart};
use walk::Walk;

/// Patients of a block of candidates.
pub(crate) const BLOCK: usize = 512;
/// Patients of a block of queries.
const QUERIES: usize = 256;
/// Tasks at least, where the candidates are so many: fixed, so that no bit depends on threads.
const STRIPS: usize = 16;
/// Which patients are near.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NeighbourRule {
    /// Small learned distance.
    #[default]
    Distance,
    /// Large inner product s.
    InnerProduct,
}

impl NeighbourRule {
    /// Whether one score is nearer than another.
    #[inline(always)]
    fn is_nearer(self, one: f64, other: f64) -> bool {
        match self {
            Self::Distance => one < other,
            Self::InnerProduct => one > other,
        }
    }
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

/// Patients to be near to, ready for any number of searches.
pub struct Candidates<'a> {
    /// E = XW, n x m.
    rows: CowArray<'a, f64, Ix2>,
    /// ||e_i||^2.
    squares: Array1<f64>,
    /// Their groups, once they were of help.
    tree: OnceLock<Option<grouped::Tree>>,
    /// In single precision, once that was of help.
    narrow: OnceLock<Option<narrow::Narrow>>,
}

impl<'a> Candidates<'a> {
    /// The candidates of these rows, n x m; rows that are only looked at stay where they are.
    #[must_use]
    pub fn new(rows: impl Into<CowArray<'a, f64, Ix2>>) -> Self {
        let rows = rows.into();
        Self {
            squares: squares(&rows.view()),
            rows,
            tree: OnceLock::new(),
            narrow: OnceLock::new(),
        }
    }

    /// The largest squared length of a row; 0 of nobody.
    #[must_use]
    pub fn longest(&self) -> f64 {
        self.squares.iter().copied().fold(0.0, f64::max)
    }

    /// The `count` nearest candidates of every query (one a row), nearest first; all candidates where there are fewer.
    /// Equal scores go by row. Beside the answer it takes a block of scores for each thread.
    ///
    /// # Errors
    /// [`EvaluateError`].
    pub fn nearest(
        &self,
        queries: &ArrayView2<f64>,
        rule: NeighbourRule,
        count: usize,
    ) -> Result<Vec<Vec<Neighbour>>, EvaluateError> {
        check(&self.rows.view(), queries, count, 1)?;
        Ok(self.search(queries, rule, count, false))
    }

    /// The `count` nearest other candidates of every candidate, nearest first.
    ///
    /// # Errors
    /// [`EvaluateError`].
    pub fn nearest_others(
        &self,
        rule: NeighbourRule,
        count: usize,
    ) -> Result<Vec<Vec<Neighbour>>, EvaluateError> {
        let rows = self.rows.view();
        check(&rows, &rows, count, 2)?;
        Ok(self.search(&rows, rule, count, true))
    }

    /// The same of the candidates at `rows` alone, in their order.
    ///
    /// # Errors
    /// [`EvaluateError`].
    pub fn nearest_of_rows(
        &self,
        rows: &[usize],
        rule: NeighbourRule,
        count: usize,
    ) -> Result<Vec<Vec<Neighbour>>, EvaluateError> {
        let all = self.rows.view();
        check(&all, &all, count, 2)?;
        let queries = all.select(Axis(0), rows);
        // One more, for among the nearest may be oneself.
        let mut found = self.search(&queries.view(), rule, count + 1, false);
        for (row, near) in rows.iter().zip(&mut found) {
            near.retain(|other| other.row != *row);
            near.truncate(count);
        }
        Ok(found)
    }

    /// E = XW.
    #[must_use]
    pub fn rows(&self) -> ArrayView2<'_, f64> {
        self.rows.view()
    }

    /// Blocks of queries in parallel; where they are few, also strips of the candidates, whose answers are then merged.
    fn search(
        &self,
        queries: &ArrayView2<f64>,
        rule: NeighbourRule,
        count: usize,
        others_only: bool,
    ) -> Vec<Vec<Neighbour>> {
        if let Some(found) = grouped::search(self, queries, rule, (count, others_only)) {
            return found;
        }
        let blocks = queries.nrows().div_ceil(QUERIES);
        let strips = STRIPS.div_ceil(blocks.max(1));
        let length = self.rows.nrows().div_ceil(strips).next_multiple_of(BLOCK);
        let strips = self.rows.nrows().div_ceil(length);
        let walk = Walk {
            candidates: self,
            rule,
            count,
            others_only,
        };
        let tasks = (0..blocks * strips).into_par_iter();
        let found = tasks.map(|task| {
            let begin = task % strips * length;
            let end = (begin + length).min(self.rows.nrows());
            walk.strip(queries, task / strips * QUERIES, begin, end)
        });
        let found: Vec<Vec<Vec<Neighbour>>> = found.collect();
        let mut nearest = Vec::with_capacity(queries.nrows());
        for of_block in found.chunks(strips) {
            for place in 0..of_block[0].len() {
                let mut near = walk.merged(of_block, place);
                let query = queries.row(nearest.len());
                walk.complete(&mut near, query.dot(&query));
                nearest.push(near);
            }
        }
        nearest
    }
}

fn squares(rows: &ArrayView2<f64>) -> Array1<f64> {
    rows.map_axis(Axis(1), |row| row.dot(&row))
}

/// [`Candidates::nearest`] of candidates that are searched once.
///
/// # Errors
/// [`EvaluateError`].
pub fn neighbours(
    candidates: &ArrayView2<f64>,
    queries: &ArrayView2<f64>,
    rule: NeighbourRule,
    count: usize,
) -> Result<Vec<Vec<Neighbour>>, EvaluateError> {
    Candidates::new(candidates.view()).nearest(queries, rule, count)
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

pub(crate) fn products(rows: &ArrayView2<f64>, others: &ArrayView2<f64>) -> Array2<f64> {
    let mut products = Array2::zeros((rows.nrows(), others.nrows()));
    add_product(1.0, rows, &others.t(), 0.0, &mut products.view_mut());
    products
}

#[cfg(test)]
mod tests;
