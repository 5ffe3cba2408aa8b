//! The nearest cases by any comparison, exactly, and without a matrix of all patients against all.
//!
//! Distances and inner products of vectors come from products of matrices, block by block ([`Candidates`]): some more are
//! kept than asked for, and compared once more as [`Comparison::distance`] does. Of one or two queries the products are taken one by one,
//! which waits for memory alone. Where rounding or ties leave open who belongs to them, the query is
//! compared with everybody. All other comparisons walk through blocks of candidates that stay in the processor's
//! cache while every query of a block of queries is compared with them. Either way the answer is that of comparing everybody and
//! sorting, ties and all, bit for bit.

#![expect(clippy::disallowed_methods, reason = "one site works it out alone")]

use std::ops::Range;

use ndarray::Axis;
use ndarray::parallel::prelude::*;

use crate::compare::{Comparison, Placed};
use crate::uses::cases::{Cases, Kept};
use crate::uses::neighbours::{Candidates, Neighbour, NeighbourRule};

/// Candidates of a block.
const BLOCK: usize = 256;
/// Queries of a block.
const QUERIES: usize = 32;
/// Tasks at least, where the candidates are so many: fixed, so that no bit depends on threads.
const STRIPS: usize = 16;
/// Candidates that are kept beyond those asked for.
const BEYOND: usize = 24;
/// By how many roundings of the largest summand a score of products may be off, a column.
const ROUNDINGS: f64 = 4.0;

/// Patients to be near to, ready for any number of searches.
pub struct Search<'a> {
    comparison: &'a Comparison,
    candidates: &'a Placed,
    by_products: Option<ByProducts<'a>>,
}

/// What products of matrices find.
struct ByProducts<'a> {
    candidates: Candidates<'a>,
    rule: NeighbourRule,
    /// The largest squared length of a candidate's vector.
    longest: f64,
}

/// Whose neighbours are wanted.
#[derive(Clone, Copy)]
pub struct Queries<'q> {
    /// Where they are placed.
    pub placed: &'q Placed,
    /// Their rows there.
    pub rows: &'q [usize],
    /// The candidate that each of them is, who is nobody's neighbour of their own; none of a new patient.
    pub own: &'q [Option<usize>],
}

impl<'a> Search<'a> {
    /// Among the patients of `candidates`, as the comparison placed them.
    #[must_use]
    pub fn new(comparison: &'a Comparison, candidates: &'a Placed) -> Self {
        let by_products = comparison.vectors(candidates).map(|vectors| {
            let candidates = Candidates::new(vectors);
            ByProducts {
                longest: candidates.longest(),
                candidates,
                rule: comparison.rule(),
            }
        });
        Self {
            comparison,
            candidates,
            by_products,
        }
    }

    /// Whether it goes by products of matrices.
    #[must_use]
    pub fn is_by_products(&self) -> bool {
        self.by_products.is_some()
    }

    /// The `k` nearest candidates of every query. Beside the answer it takes a block of scores for each thread.
    ///
    /// # Panics
    /// Where there is not one `own` a row.
    #[must_use]
    pub fn nearest(&self, queries: &Queries<'_>, k: usize) -> Vec<Cases> {
        assert_eq!(queries.rows.len(), queries.own.len(), "one of each a query");
        let found = self.near_by_products(queries, k);
        let open: Vec<usize> = (0..queries.rows.len())
            .filter(|query| found.get(*query).is_none_or(Option::is_none))
            .collect();
        let mut compared = self.compare(queries, &open, k).into_iter();
        let places = 0..queries.rows.len();
        let mut found = found.into_iter();
        places
            .map(|_| match found.next().flatten() {
                Some(cases) => cases,
                None => compared.next().unwrap_or_default(),
            })
            .collect()
    }

    /// What products of matrices decide: none for a query that they leave open, nothing where they do not apply.
    fn near_by_products(&self, queries: &Queries<'_>, k: usize) -> Vec<Option<Cases>> {
        let (Some(by), Some(vectors)) =
            (&self.by_products, self.comparison.vectors(queries.placed))
        else {
            return Vec::new();
        };
        let asked = vectors.select(Axis(0), queries.rows);
        let kept = k + BEYOND;
        let Ok(near) = by.candidates.nearest(&asked.view(), by.rule, kept) else {
            return Vec::new();
        };
        let columns = asked.ncols() as f64;
        let each = near.into_par_iter().enumerate();
        each.map(|(query, near)| {
            let own = asked.row(query);
            let lengths = own.dot(&own) + by.longest;
            let off = ROUNDINGS * (columns + 8.0) * f64::EPSILON * lengths;
            self.decided(queries, query, k, (near, off))
        })
        .collect()
    }

    /// The nearest of those that products found, whose scores may be `off` by so much; none where others may be as near.
    fn decided(
        &self,
        queries: &Queries<'_>,
        query: usize,
        k: usize,
        (near, off): (Vec<Neighbour>, f64),
    ) -> Option<Cases> {
        let are_all = near.len() == self.candidates.patients();
        let border = near.last().map(|last| last.score);
        let mut rows: Vec<usize> = near.iter().map(|near| near.row).collect();
        rows.sort_unstable();
        let mut nearest = Kept::new(k);
        for row in rows {
            if Some(row) != queries.own[query] {
                let distance = self.comparison.distance(
                    self.candidates,
                    row,
                    queries.placed,
                    queries.rows[query],
                );
                nearest.push(row, distance);
            }
        }
        let cases = nearest.cases();
        let (Some(border), Some(last)) = (border, cases.cases.last()) else {
            return are_all.then_some(cases);
        };
        let is_beyond =
            self.comparison.score_of(last.distance) < self.comparison.rising(border) - off;
        (are_all || (is_beyond && cases.cases.len() == k)).then_some(cases)
    }

    /// Compares the queries at `open` with everybody, block by block.
    fn compare(&self, queries: &Queries<'_>, open: &[usize], k: usize) -> Vec<Cases> {
        let blocks = open.len().div_ceil(QUERIES);
        let patients = self.candidates.patients();
        let strips = STRIPS.div_ceil(blocks.max(1));
        let length = patients.div_ceil(strips).next_multiple_of(BLOCK).max(1);
        let strips = patients.div_ceil(length).max(1);
        let tasks = (0..blocks * strips).into_par_iter();
        let found = tasks.map(|task| {
            let begin = task % strips * length;
            let strip = begin..(begin + length).min(patients);
            let first = task / strips * QUERIES;
            let asked = &open[first..(first + QUERIES).min(open.len())];
            self.strip(queries, asked, strip, k)
        });
        let found: Vec<Vec<Cases>> = found.collect();
        let merged = found.chunks(strips).flat_map(|strips| {
            (0..strips[0].len()).map(|place| Cases::merged(strips.iter().map(|one| &one[place]), k))
        });
        merged.collect()
    }

    fn strip(
        &self,
        queries: &Queries<'_>,
        asked: &[usize],
        strip: Range<usize>,
        k: usize,
    ) -> Vec<Cases> {
        let mut nearest = vec![Kept::new(k); asked.len()];
        let mut distances = [0.0; BLOCK];
        for begin in strip.clone().step_by(BLOCK) {
            let block = begin..(begin + BLOCK).min(strip.end);
            for (query, nearest) in asked.iter().zip(&mut nearest) {
                let target = &mut distances[..block.len()];
                let row = queries.rows[*query];
                self.comparison
                    .fill(self.candidates, block.clone(), queries.placed, row, target);
                let own = queries.own[*query].and_then(|own| own.checked_sub(begin));
                nearest.push_all(begin, target, own);
            }
        }
        nearest.into_iter().map(Kept::cases).collect()
    }
}

#[cfg(test)]
mod tests;
