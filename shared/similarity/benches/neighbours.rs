//! Nearest neighbours beside the products that they need at least.
//!
//! `cargo bench -p similarity --bench neighbours`; `neighbours.py` beside it prints the same of NumPy and scikit-learn.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::time::Instant;

use ndarray::{Array2, Axis, s};
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use similarity::numeric::linear_algebra::add_product;
use similarity::numeric::seed::Seed;
use similarity::uses::neighbours::{Candidates, NeighbourRule};

const NEIGHBOURS: usize = 5;
const REPEATS: usize = 3;

fn main() {
    println!(
        "best of {REPEATS}, {} threads",
        rayon::current_num_threads()
    );
    for (rows, columns, queries) in [
        (1_000_000, 64, 1),
        (1_000_000, 64, 1_000),
        (20_000, 8, 20_000),
        (20_000, 68, 20_000),
    ] {
        let stored = draw(rows, columns, 1);
        let asked = draw(queries, columns, 2);
        let candidates = Candidates::new(stored.view());
        let search = best(|| {
            let found = candidates.nearest(&asked.view(), NeighbourRule::Distance, NEIGHBOURS);
            assert_eq!(found.unwrap().len(), queries);
        });
        let products = best(|| multiply(&stored, &asked));
        println!(
            "{queries:>6} queries of {rows} x {columns}: {search:.3} s; its products alone {products:.3} s, {:.0} %",
            100.0 * products / search
        );
    }
}

fn draw(rows: usize, columns: usize, seed: u64) -> Array2<f64> {
    let mut random = Seed(seed).stream("neighbours", 0);
    Array2::from_shape_simple_fn((rows, columns), || StandardNormal.sample(&mut random))
}

/// All inner products, by blocks of a size that dgemm likes.
fn multiply(stored: &Array2<f64>, asked: &Array2<f64>) {
    let blocks = stored.axis_chunks_iter(Axis(0), 2_048).into_par_iter();
    blocks.for_each(|rows| {
        let mut products = Array2::zeros((asked.nrows().min(512), rows.nrows()));
        for queries in asked.axis_chunks_iter(Axis(0), 512) {
            let mut target = products.slice_mut(s![..queries.nrows(), ..]);
            add_product(1.0, &queries, &rows.t(), 0.0, &mut target);
        }
    });
}

fn best(mut work: impl FnMut()) -> f64 {
    let mut least = f64::INFINITY;
    for _ in 0..REPEATS {
        let begun = Instant::now();
        work();
        least = least.min(begun.elapsed().as_secs_f64());
    }
    least
}
