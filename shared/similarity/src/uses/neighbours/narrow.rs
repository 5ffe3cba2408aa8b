//! Distances in single precision, in half the time: they say who cannot be among the nearest, by more than they may be off. Who is left is
//! compared in double precision.
//!
//! With u = 2^-24 and numbers x and y of d columns, what single precision makes of |y|^2 - 2 xy is off by at most
//!
//! ```text
//! u (2 (d + 4) |x| |y| + 2 |y|^2), and by what is too small for it: a few times d 2^-126
//! ```
//!
//! (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1). A tenth more stands for squares of u.

use std::ops::Range;

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, s};

use super::{BLOCK, Candidates};
use crate::numeric::linear_algebra::use_one_blas_thread;

/// Columns from which on it is worth it.
const COLUMNS_MIN: usize = 24;
/// Queries from which on it is: the candidates are rounded once for all of them.
pub(super) const QUERIES_MIN: usize = 32;
/// Columns beyond which the bound does not hold.
const COLUMNS_MAX: usize = 1 << 16;
/// Squares beyond this have no place.
const SQUARE_MAX: f64 = 1e30;
/// u.
const ROUNDING: f64 = 1.1 / 16_777_216.0;
/// 2^-126.
const LEAST: f64 = f32::MIN_POSITIVE as f64;

/// Candidates in single precision.
pub(super) struct Narrow {
    rows: Array2<f32>,
    squares: Vec<f32>,
    /// The largest square of each block.
    largest: Vec<f64>,
}

/// Some queries in single precision.
pub(super) struct Queries {
    rows: Array2<f32>,
    lengths: Vec<f64>,
    scratch: Vec<f32>,
}

impl Narrow {
    /// None where it would be of no use, or a square is too large.
    pub(super) fn of(candidates: &Candidates<'_>) -> Option<Self> {
        let fits = (COLUMNS_MIN..COLUMNS_MAX).contains(&candidates.rows.ncols());
        if !fits || candidates.longest() > SQUARE_MAX {
            return None;
        }
        let squares = candidates.squares.as_slice()?;
        let is_known = squares.iter().all(|square| square.is_finite());
        let largest = |block: &[f64]| block.iter().copied().fold(0.0, f64::max);
        is_known.then(|| Self {
            rows: rounded(&candidates.rows.view()),
            squares: squares.iter().map(|square| *square as f32).collect(),
            largest: squares.chunks(BLOCK).map(largest).collect(),
        })
    }

    /// Some queries; none where one is too long.
    pub(super) fn queries(&self, queries: &ArrayView2<f64>) -> Option<Queries> {
        let lengths = queries.rows().into_iter().map(|row| row.dot(&row).sqrt());
        let lengths: Vec<f64> = lengths.collect();
        let fits = lengths.iter().all(|one| one * one <= SQUARE_MAX);
        fits.then(|| Queries {
            rows: rounded(queries),
            lengths,
            scratch: vec![0.0; queries.nrows() * BLOCK],
        })
    }

    /// |y|^2 - 2 xy of each query and of the candidates of a block, or of the first of them.
    pub(super) fn scores<'q>(
        &self,
        queries: &'q mut Queries,
        block: &Range<usize>,
    ) -> ArrayView2<'q, f32> {
        let shape = (queries.rows.nrows(), block.len());
        let scratch = &mut queries.scratch[..shape.0 * shape.1];
        let scores = ArrayViewMut2::from_shape(shape, &mut *scratch);
        let mut scores = scores.expect("the scratch holds a block");
        let squares = &self.squares[block.clone()];
        for mut row in scores.rows_mut() {
            let row = row.as_slice_mut().expect("a block is row-major");
            row.copy_from_slice(squares);
        }
        let others = self.rows.slice(s![block.clone(), ..]);
        use_one_blas_thread();
        general_mat_mul(-2.0, &queries.rows, &others.t(), 1.0, &mut scores);
        let scores = ArrayView2::from_shape(shape, scratch);
        scores.expect("the scratch holds a block")
    }
}

impl Queries {
    /// By how much each score of a query and a block is off at most.
    pub(super) fn errors(&self, candidates: &Narrow, block: &Range<usize>) -> Vec<f64> {
        let square = candidates.largest[block.start / BLOCK];
        #[allow(clippy::cast_precision_loss)] // columns are few
        let columns = self.rows.ncols() as f64;
        let of_query = |length: &f64| {
            let products = 2.0 * (columns + 4.0) * length * square.sqrt();
            ROUNDING * (products + 2.0 * square) + 8.0 * columns * LEAST
        };
        self.lengths.iter().map(of_query).collect()
    }
}

#[allow(clippy::cast_possible_truncation)] // it is what it is for
fn rounded(rows: &ArrayView2<f64>) -> Array2<f32> {
    rows.mapv(|entry| entry as f32)
}
