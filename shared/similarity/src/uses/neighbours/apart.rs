//! Neighbours among all others, and among those of other parts, by one walk over the candidates.

use ndarray::{ArrayView2, Axis};
use rayon::prelude::*;

use super::walk::{Keeping, Walk};
use super::{Candidates, EvaluateError, Neighbour, NeighbourRule, QUERIES, check};

/// The nearest of some patients, in their order, nearest first.
#[derive(Debug, Clone, PartialEq)]
pub struct NearBoth {
    /// Among all others.
    pub of_all: Vec<Vec<Neighbour>>,
    /// Among those of other parts.
    pub of_others: Vec<Vec<Neighbour>>,
}

/// The nearest others of the patients at `rows`: so many among all, and among those of other parts as many as is said of their own part.
///
/// # Errors
/// [`EvaluateError`].
///
/// # Panics
/// Where there is not one part a patient.
pub fn neighbours_apart(
    patients: &ArrayView2<f64>,
    rows: &[usize],
    parts: &[usize],
    rule: NeighbourRule,
    (of_all, of_others): (usize, &(dyn Fn(usize) -> usize + Sync)),
) -> Result<NearBoth, EvaluateError> {
    assert_eq!(patients.nrows(), parts.len(), "one part a patient");
    check(patients, patients, of_all, 2)?;
    for row in rows {
        check(patients, patients, of_others(parts[*row]), 2)?;
    }
    let candidates = Candidates::new(patients.view());
    let walk = |count| Walk {
        candidates: &candidates,
        rule,
        count,
        others_only: true,
    };
    let blocks = rows.par_chunks(QUERIES).map(|rows| {
        let queries = patients.select(Axis(0), rows);
        let of_each = rows.iter().map(|row| Both {
            row: *row,
            others: walk(of_others(parts[*row])),
            near: (Vec::new(), Vec::new()),
        });
        let mut kept = Apart {
            all: walk(of_all),
            parts,
            of_each: of_each.collect(),
        };
        walk(of_all).scan(&queries.view(), 0..patients.nrows(), &mut kept);
        let Apart { all, of_each, .. } = kept;
        let each = of_each.into_iter().zip(queries.rows());
        each.map(|(mut both, query)| {
            let own = query.dot(&query);
            all.complete(&mut both.near.0, own);
            both.others.complete(&mut both.near.1, own);
            both.near
        })
        .collect::<Vec<_>>()
    });
    let found: Vec<_> = blocks.collect();
    let (of_all, of_others) = found.into_iter().flatten().unzip();
    Ok(NearBoth { of_all, of_others })
}

/// The nearest to each query of a block.
struct Apart<'p, 'c, 'a> {
    all: Walk<'c, 'a>,
    parts: &'p [usize],
    of_each: Vec<Both<'c, 'a>>,
}

/// The nearest to one query.
struct Both<'c, 'a> {
    /// The query's own row.
    row: usize,
    /// Among those of other parts.
    others: Walk<'c, 'a>,
    /// Among all others, and among those of other parts.
    near: (Vec<Neighbour>, Vec<Neighbour>),
}

impl Keeping for Apart<'_, '_, '_> {
    fn limit(&self, query: usize) -> f64 {
        let Both { others, near, .. } = &self.of_each[query];
        let (all, others) = (self.all.limit(&near.0), others.limit(&near.1));
        match self.all.rule.is_nearer(all, others) {
            true => others,
            false => all,
        }
    }

    fn take(&mut self, query: usize, new: Neighbour) {
        let Both { row, others, near } = &mut self.of_each[query];
        if new.row != *row {
            self.all.insert(&mut near.0, new);
        }
        if self.parts[new.row] != self.parts[*row] {
            others.insert(&mut near.1, new);
        }
    }
}
