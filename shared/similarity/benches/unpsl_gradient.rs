//! Loss and gradient of UnPSL at n = 2,000, d = 200, m = 32, beside the three matrix products that it is
//! made of, on one and on two threads. `unpsl_gradient.py` does the same arithmetic in NumPy.

#![allow(clippy::print_stdout)] // a measurement speaks by it

use std::hint::black_box;
use std::time::Instant;

use ndarray::Array2;
use rand_distr::{Distribution, StandardNormal};
use rayon::ThreadPoolBuilder;
use similarity::learn::unpsl::{Form, Labels, PairLoss, PairWeightValues, Pairs};
use similarity::numeric::linear_algebra::{product_into, transposed_product_into};
use similarity::numeric::seed::Seed;

const PATIENTS: usize = 2_000;
const FEATURES: usize = 200;
const RANK: usize = 32;
/// Measurements, of which the middle one is told.
const SAMPLES: usize = 30;

fn normal(rows: usize, columns: usize, index: u64) -> Array2<f64> {
    let mut stream = Seed(1).stream("bench", index);
    Array2::from_shape_simple_fn((rows, columns), || StandardNormal.sample(&mut stream))
}

fn main() {
    let x = normal(PATIENTS, FEATURES, 0);
    let w = normal(FEATURES, RANK, 1) / ((FEATURES * RANK) as f64).sqrt();
    let codes = |classes: u32| {
        (0..PATIENTS as u32)
            .map(|patient| patient % classes)
            .collect()
    };
    let classes = Labels::Classes(codes(2));
    let sign = |(i, j): (usize, usize)| if (i + j) % 2 == 0 { 1_i8 } else { -1 };
    let labels = Array2::from_shape_fn((PATIENTS, PATIENTS), sign);
    let labelled = Labels::pairs(labels).expect("a symmetric matrix of labels");
    let weights = PairWeightValues {
        similar: 1.0,
        dissimilar: 1.0,
    };
    for threads in [1, 2] {
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("a thread pool");
        for (name, labels) in [("classes", &classes), ("pair labels", &labelled)] {
            let loss = PairLoss::new(
                &x.view(),
                labels,
                Pairs::All,
                weights,
                Form::InnerProduct,
                Seed(1),
            );
            let mut gradient = Array2::zeros((FEATURES, RANK));
            let name = format!("gradient, {name}, {threads} threads");
            let step = || {
                black_box(loss.value_and_gradient(&w.view(), 1.0, &mut gradient.view_mut()));
            };
            pool.install(|| measure(&name, step));
        }
        let g = normal(PATIENTS, PATIENTS, 2);
        let mut e = Array2::zeros((PATIENTS, RANK));
        let mut s = Array2::zeros((PATIENTS, PATIENTS));
        let mut p = Array2::zeros((PATIENTS, RANK));
        let mut gradient = Array2::zeros((FEATURES, RANK));
        let products = || {
            product_into(&x.view(), &w.view(), &mut e);
            product_into(&e.view(), &e.t(), &mut s);
            product_into(&g.view(), &e.view(), &mut p);
            transposed_product_into(&x.view(), &p.view(), &mut gradient.view_mut());
        };
        pool.install(|| measure(&format!("products alone, {threads} threads"), products));
    }
}

/// Prints the median of the seconds that `step` takes.
fn measure(name: &str, mut step: impl FnMut()) {
    step();
    let sample = |_| {
        let start = Instant::now();
        step();
        start.elapsed().as_secs_f64()
    };
    let mut seconds: Vec<f64> = (0..SAMPLES).map(sample).collect();
    seconds.sort_by(f64::total_cmp);
    println!("{name}: {:.2} ms", 1e3 * seconds[SAMPLES / 2]);
}
