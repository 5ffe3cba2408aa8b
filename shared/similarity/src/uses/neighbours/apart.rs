//! Neighbours among all others, and among those of other parts, by one walk over the candidates.

use ndarray::{ArrayView2, Axis};
use rayon::prelude::*;

use super::{
    BLOCK, CHUNK, Candidates, EvaluateError, Neighbour, NeighbourRule, QUERIES, Walk, check,
};

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
        let (all, mut found) = (walk(of_all), Vec::with_capacity(rows.len()));
        for row in rows {
            found.push((walk(of_others(parts[*row])), Vec::new(), Vec::new()));
        }
        let mut scratch = vec![0.0; rows.len() * BLOCK.min(patients.nrows())];
        for begin in (0..patients.nrows()).step_by(BLOCK) {
            let range = begin..(begin + BLOCK).min(patients.nrows());
            let scores = all.scores(&queries.view(), range, &mut scratch);
            let each = rows.iter().zip(&mut found).zip(scores.rows());
            for ((row, (others, of_all, of_others)), scores) in each {
                let scores = scores.to_slice().expect("a block is row-major");
                for (chunk, scores) in scores.chunks(CHUNK).enumerate() {
                    let is_open =
                        all.may_keep(of_all, scores) || others.may_keep(of_others, scores);
                    if !is_open {
                        continue;
                    }
                    for (at, score) in (begin + chunk * CHUNK..).zip(scores) {
                        let new = Neighbour {
                            row: at,
                            score: *score,
                        };
                        if at != *row {
                            all.insert(of_all, new);
                        }
                        if parts[at] != parts[*row] {
                            others.insert(of_others, new);
                        }
                    }
                }
            }
        }
        let each = found.into_iter().zip(queries.rows());
        each.map(|((others, mut of_all, mut of_others), query)| {
            let own = query.dot(&query);
            all.complete(&mut of_all, own);
            others.complete(&mut of_others, own);
            (of_all, of_others)
        })
        .collect::<Vec<_>>()
    });
    let found: Vec<_> = blocks.collect();
    let (of_all, of_others) = found.into_iter().flatten().unzip();
    Ok(NearBoth { of_all, of_others })
}
