//! Nearest neighbours beside the products that they need at least, and by every comparison of vectors.
//!
//! `cargo bench -p similarity --bench neighbours [-- COMPARISON]`; `neighbours.py` beside it prints the same of NumPy, scikit-learn and FAISS.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::time::Instant;

use ndarray::{Array2, Axis, s};
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;
use similarity::cohort::standardise::{MatrixRow, Scaling, Standardisation, Transform};
use similarity::cohort::{Column, Values};
use similarity::compare::{Comparison, Gower, Measure, Metric, Weighted};
use similarity::learn::regression::terms::{Term, TermKind, Terms};
use similarity::numeric::linear_algebra::add_product;
use similarity::numeric::seed::Seed;
use similarity::uses::neighbours::{Candidates, NeighbourRule};
use similarity::uses::search::{Queries, Search};

const NEIGHBOURS: usize = 5;
const REPEATS: usize = 3;

fn main() {
    println!(
        "best of {REPEATS}, {} threads",
        rayon::current_num_threads()
    );
    let only: Vec<String> = std::env::args().skip(1).collect();
    let only = only.iter().find(|word| !word.starts_with("--"));
    by_comparisons(1_000_000, 64, only);
    if only.is_some() {
        return;
    }
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

/// One query, two and a thousand at once, by each comparison or one of them.
fn by_comparisons(patients: usize, width: usize, only: Option<&String>) {
    let stored = columns(&draw(patients, width, 1));
    let asked = columns(&draw(1_000, width, 2));
    for (name, comparison) in comparisons(&stored, width) {
        if only.is_some_and(|only| only != name) {
            continue;
        }
        let candidates = comparison.place(&stored).unwrap();
        let placed = comparison.place(&asked).unwrap();
        let search = Search::new(&comparison, &candidates);
        for queries in [1, 2, 1_000] {
            let rows: Vec<usize> = (0..queries).collect();
            let queries = Queries {
                placed: &placed,
                rows: &rows,
                own: &vec![None; rows.len()],
            };
            let seconds = best(|| {
                let found = search.nearest(&queries, NEIGHBOURS);
                assert!(found.iter().all(|one| one.cases.len() == NEIGHBOURS));
            });
            println!(
                "{:>6} queries of {patients} x {width}, {name}: {seconds:.3} s",
                rows.len()
            );
        }
    }
}

fn columns(matrix: &Array2<f64>) -> Vec<Column> {
    let columns = matrix.columns().into_iter().enumerate();
    columns
        .map(|(place, values)| Column {
            name: format!("x{place}"),
            values: Values::Numeric(values.to_owned()),
        })
        .collect()
}

fn comparisons(stored: &[Column], width: usize) -> Vec<(&'static str, Comparison)> {
    let names: Vec<String> = (0..width).map(|place| format!("x{place}")).collect();
    let rows = names.iter().enumerate().map(|(column, name)| {
        let scaling = Scaling {
            mean: 0.0,
            scale: 1.0,
            imputed: 0.0,
        };
        MatrixRow::new(name.clone(), column, Transform::Identity, scaling).unwrap()
    });
    let standardised = Standardisation::from_rows(rows.collect(), Vec::new(), Vec::new()).unwrap();
    let plain = |measure| Comparison::Metric(Metric::plain(&names, standardised.clone(), measure));
    let terms = names.iter().map(|name| Term {
        name: name.clone(),
        kind: TermKind::Numeric {
            imputed: 0.0,
            knots: Vec::new(),
        },
        indicator: false,
    });
    let weights: Vec<f64> = (0..width).map(|place| 0.5 + place as f64 / 64.0).collect();
    let metric = draw(width, 8, 3);
    let learned = Metric::learned(&names, standardised.clone(), metric, Measure::Euclidean);
    let mahalanobis = Metric::mahalanobis(&names, standardised.clone(), stored);
    vec![
        ("euclidean", plain(Measure::Euclidean)),
        ("mahalanobis", Comparison::Metric(mahalanobis.unwrap())),
        ("learned, rank 8", Comparison::Metric(learned.unwrap())),
        ("cosine", plain(Measure::Cosine)),
        ("manhattan", plain(Measure::Manhattan)),
        (
            "regression-weighted",
            Comparison::Weighted(Weighted::of(Terms::new(terms.collect()), weights).unwrap()),
        ),
        ("gower", Comparison::Gower(Gower::of_columns(stored))),
    ]
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
