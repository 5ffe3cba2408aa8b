//! The walk over candidates, block by block, that keeps the nearest to each query.

use std::ops::Range;

use ndarray::{ArrayView2, ArrayViewMut2, s};

use super::{BLOCK, Candidates, Neighbour, NeighbourRule, QUERIES, narrow};
use crate::numeric::linear_algebra::add_product;
use crate::numeric::portable::{dot, inner};
use crate::numeric::widths::widths;

/// Queries so few that a product of matrices would wait for the memory that it copies: their products are taken one by one.
const FEW: usize = 2;
/// Scores that are looked through at once.
const CHUNK: usize = 64;
/// Scores that are compared side by side: a full register of either precision, or a part of one.
const LANES: usize = 16;

/// What is kept of the queries of a block.
pub(super) trait Keeping {
    /// What a candidate must be nearer than, to be kept by a query.
    fn limit(&self, query: usize) -> f64;

    /// Keeps a candidate, where it is.
    fn take(&mut self, query: usize, new: Neighbour);
}

impl NeighbourRule {
    /// Whether any of some scores is nearer than another: without a branch and without a sum, so that it is vectorised.
    fn any_nearer(self, scores: &[f64], other: f64) -> bool {
        let mut found = false;
        match self {
            Self::Distance => any_below(scores, other, &mut found),
            Self::InnerProduct => any_above(scores, other, &mut found),
        }
        found
    }

    /// What every score is nearer than.
    fn farthest(self) -> f64 {
        match self {
            Self::Distance => f64::INFINITY,
            Self::InnerProduct => f64::NEG_INFINITY,
        }
    }
}

#[inline(always)]
fn any_below_body(scores: &[f64], other: f64, found: &mut bool) {
    *found = any(scores, |score| score < other);
}

#[inline(always)]
fn any_above_body(scores: &[f64], other: f64, found: &mut bool) {
    *found = any(scores, |score| score > other);
}

#[inline(always)]
fn any_within_body(scores: &[f32], most: f32, found: &mut bool) {
    *found = any(scores, |score| score <= most);
}

widths! { any_below = any_below_body(scores: &[f64], other: f64, found: &mut bool) }
widths! { any_above = any_above_body(scores: &[f64], other: f64, found: &mut bool) }
widths! { any_within = any_within_body(scores: &[f32], most: f32, found: &mut bool) }

/// Whether any number is so, in lanes.
#[inline(always)]
fn any<T: Copy>(numbers: &[T], is_so: impl Fn(T) -> bool) -> bool {
    let (lanes, rest) = numbers.as_chunks::<LANES>();
    let mut found = [false; LANES];
    for lane in lanes {
        for (found, number) in found.iter_mut().zip(lane) {
            *found |= is_so(*number);
        }
    }
    found.contains(&true) || rest.iter().any(|number| is_so(*number))
}

/// One search among candidates.
pub(super) struct Walk<'c, 'a> {
    pub(super) candidates: &'c Candidates<'a>,
    pub(super) rule: NeighbourRule,
    pub(super) count: usize,
    /// Whether queries are the candidates themselves, and nobody is near to itself.
    pub(super) others_only: bool,
}

impl Walk<'_, '_> {
    /// The nearest of the candidates `begin..end` to the queries from row `first`, a block of them.
    pub(super) fn strip(
        &self,
        queries: &ArrayView2<f64>,
        first: usize,
        begin: usize,
        end: usize,
    ) -> Vec<Vec<Neighbour>> {
        let rows = queries.slice(s![first..(first + QUERIES).min(queries.nrows()), ..]);
        let mut nearest = Nearest {
            walk: self,
            first,
            of_each: vec![Vec::with_capacity(self.count.min(end - begin) + 1); rows.nrows()],
        };
        self.scan(&rows, begin..end, &mut nearest);
        nearest.of_each
    }

    /// Compares a block of queries with all candidates of a range, which begins with a block of them.
    pub(super) fn scan(
        &self,
        queries: &ArrayView2<f64>,
        range: Range<usize>,
        kept: &mut impl Keeping,
    ) {
        let blocks = range.clone().step_by(BLOCK);
        let blocks = blocks.map(|begin| begin..(begin + BLOCK).min(range.end));
        let narrow = match self.rule {
            NeighbourRule::Distance if queries.nrows() >= narrow::QUERIES_MIN => {
                let narrow = self
                    .candidates
                    .narrow
                    .get_or_init(|| narrow::Narrow::of(self.candidates));
                narrow.as_ref()
            }
            NeighbourRule::Distance | NeighbourRule::InnerProduct => None,
        };
        if let Some((narrow, mut own)) = narrow.and_then(|one| Some((one, one.queries(queries)?))) {
            for block in blocks {
                let errors = own.errors(narrow, &block);
                let scores = narrow.scores(&mut own, &block);
                for (query, (scores, error)) in scores.rows().into_iter().zip(errors).enumerate() {
                    let scores = scores.to_slice().expect("a block is row-major");
                    self.keep_within(queries, query, (scores, error), block.start, kept);
                }
            }
            return;
        }
        let mut scratch = vec![0.0; queries.nrows() * BLOCK.min(range.len())];
        for block in blocks {
            let begin = block.start;
            let scores = self.scores(queries, block, &mut scratch);
            for (query, scores) in scores.rows().into_iter().enumerate() {
                let scores = scores.to_slice().expect("a block is row-major");
                self.keep(query, scores, begin, kept);
            }
        }
    }

    /// What a block of queries and a block of candidates are compared by: what is equal for all candidates of a query is added to those that
    /// are kept.
    fn scores<'s>(
        &self,
        rows: &ArrayView2<f64>,
        range: Range<usize>,
        scratch: &'s mut [f64],
    ) -> ArrayViewMut2<'s, f64> {
        let others = self.candidates.rows.slice(s![range.clone(), ..]);
        let shape = (rows.nrows(), range.len());
        let mut scores = ArrayViewMut2::from_shape(shape, &mut scratch[..shape.0 * shape.1])
            .expect("the scratch holds a block");
        match self.rule {
            NeighbourRule::Distance => {
                let theirs = self.candidates.squares.slice(s![range]);
                let theirs = theirs.as_slice().expect("squares are contiguous");
                for mut row in scores.rows_mut() {
                    let row = row.as_slice_mut().expect("a block is row-major");
                    row.copy_from_slice(theirs);
                }
                add_products(-2.0, rows, &others, 1.0, &mut scores);
            }
            NeighbourRule::InnerProduct => {
                add_products(1.0, rows, &others, 0.0, &mut scores);
            }
        }
        scores
    }

    /// Keeps what of the scores of candidates from row `begin` is nearer than what is known. Most chunks hold nothing.
    fn keep(&self, query: usize, scores: &[f64], begin: usize, kept: &mut impl Keeping) {
        let is_open =
            |scores: &[f64], kept: &dyn Keeping| self.rule.any_nearer(scores, kept.limit(query));
        for (chunk, scores) in scores.chunks(CHUNK).enumerate() {
            if !is_open(scores, kept) {
                continue;
            }
            for (lanes, scores) in scores.chunks(LANES).enumerate() {
                if !is_open(scores, kept) {
                    continue;
                }
                let rows = begin + chunk * CHUNK + lanes * LANES..;
                for (row, score) in rows.zip(scores) {
                    kept.take(query, Neighbour { row, score: *score });
                }
            }
        }
    }

    /// The same of scores that are off by so much at most: whoever may be nearer is compared again.
    fn keep_within(
        &self,
        queries: &ArrayView2<f64>,
        query: usize,
        (scores, error): (&[f32], f64),
        begin: usize,
        kept: &mut impl Keeping,
    ) {
        let Candidates { rows, squares, .. } = self.candidates;
        let own = queries.row(query);
        for (chunk, scores) in scores.chunks(CHUNK).enumerate() {
            #[allow(clippy::cast_possible_truncation)] // the next number is above it
            let most = ((kept.limit(query) + error) as f32).next_up();
            let mut is_open = false;
            any_within(scores, most, &mut is_open);
            if !is_open {
                continue;
            }
            for (row, score) in (begin + chunk * CHUNK..).zip(scores) {
                if *score <= most {
                    let score = squares[row] - 2.0 * dot(&own, &rows.row(row));
                    kept.take(query, Neighbour { row, score });
                }
            }
        }
    }

    /// What a candidate must be nearer than to be kept.
    pub(super) fn limit(&self, nearest: &[Neighbour]) -> f64 {
        let last = nearest.last().filter(|_| nearest.len() == self.count);
        last.map_or(self.rule.farthest(), |last| last.score)
    }

    /// Keeps the best `count`, in order. Candidates come by row, so an equal score goes behind.
    pub(super) fn insert(&self, nearest: &mut Vec<Neighbour>, new: Neighbour) {
        let is_nearer = |a: &Neighbour, b: &Neighbour| self.rule.is_nearer(a.score, b.score);
        if nearest.len() == self.count && nearest.last().is_some_and(|last| !is_nearer(&new, last))
        {
            return;
        }
        let place = nearest.partition_point(|known| !is_nearer(&new, known));
        nearest.insert(place, new);
        nearest.truncate(self.count);
    }

    /// Makes scores of what was compared: of distances the query's own square was missing. A distance that rounding takes below 0
    /// is 0, and who is equally near goes by row.
    pub(super) fn complete(&self, nearest: &mut [Neighbour], own: f64) {
        if self.rule == NeighbourRule::Distance {
            for near in nearest.iter_mut() {
                near.score = (own + near.score).max(0.0);
            }
            nearest.sort_by(|a, b| a.score.total_cmp(&b.score).then(a.row.cmp(&b.row)));
        }
    }

    /// The nearest of all strips to one query of a block.
    pub(super) fn merged(&self, strips: &[Vec<Vec<Neighbour>>], query: usize) -> Vec<Neighbour> {
        let mut nearest = strips[0][query].clone();
        for strip in &strips[1..] {
            strip[query]
                .iter()
                .for_each(|near| self.insert(&mut nearest, *near));
        }
        nearest
    }
}

/// The nearest to each query of a block.
struct Nearest<'w, 'c, 'a> {
    walk: &'w Walk<'c, 'a>,
    /// The row of the first query, where queries are the candidates.
    first: usize,
    of_each: Vec<Vec<Neighbour>>,
}

impl Keeping for Nearest<'_, '_, '_> {
    fn limit(&self, query: usize) -> f64 {
        self.walk.limit(&self.of_each[query])
    }

    fn take(&mut self, query: usize, new: Neighbour) {
        if !(self.walk.others_only && new.row == self.first + query) {
            self.walk.insert(&mut self.of_each[query], new);
        }
    }
}

/// target <- factor * rows * others' + keep * target.
fn add_products(
    factor: f64,
    rows: &ArrayView2<f64>,
    others: &ArrayView2<f64>,
    keep: f64,
    target: &mut ArrayViewMut2<f64>,
) {
    let few = (rows.nrows() <= FEW).then(|| (rows.as_slice(), others.as_slice()));
    let (Some((Some(rows), Some(others))), width @ 1..) = (few, rows.ncols()) else {
        add_product(factor, rows, &others.t(), keep, target);
        return;
    };
    // A candidate is read once for all queries.
    for (other, mut scores) in others.chunks_exact(width).zip(target.columns_mut()) {
        for (row, score) in rows.chunks_exact(width).zip(&mut scores) {
            *score = keep * *score + factor * inner(row, other);
        }
    }
}
