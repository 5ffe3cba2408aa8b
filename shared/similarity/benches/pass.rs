//! One pass over the pairs of a site, the hot loop of every round: the loss with the site's own threshold, Gamma and T. Beside it the
//! three matrix products that it cannot do without. `pass.py` does the same arithmetic in NumPy.

#![allow(clippy::print_stdout)] // a measurement speaks by it

use std::hint::black_box;
use std::time::Instant;

use ndarray::{Array1, Array2};
use rand_distr::{Distribution, StandardNormal};
use rayon::ThreadPoolBuilder;
use similarity::learn::unpsl::{Form, Labels, Settings, SiteObjective, Totals, summarise};
use similarity::numeric::linear_algebra::{product_into, transposed_product_into};
use similarity::numeric::seed::Seed;

/// Patients, features: as the hospitals of one large set, as a usual cohort, and as one of many columns.
const SIZES: [(usize, usize); 3] = [(735, 15), (2_000, 50), (2_000, 200)];
const RANK: usize = 8;
/// Measurements, of which the middle one is told.
const SAMPLES: usize = 15;

fn normal(rows: usize, columns: usize, index: u64) -> Array2<f64> {
    let mut stream = Seed(1).stream("bench", index);
    Array2::from_shape_simple_fn((rows, columns), || StandardNormal.sample(&mut stream))
}

fn main() {
    for threads in [1, 2] {
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("a thread pool");
        for (patients, features) in SIZES {
            pool.install(|| measured(patients, features, threads));
        }
    }
}

fn measured(patients: usize, features: usize, threads: usize) {
    let x = normal(patients, features, 0);
    let w = normal(features, RANK, 1) / ((features * RANK) as f64).sqrt();
    let codes: Array1<u32> = (0..patients as u32).map(|patient| patient % 2).collect();
    let labels = Labels::Classes(codes);
    for form in [Form::InnerProduct, Form::Distance] {
        let settings = Settings {
            rank: RANK,
            lambda_correlation: 0.0,
            form,
            ..Settings::default()
        };
        let totals = Totals::of(&[summarise(&labels, settings.pairs, Seed(1))]);
        let site = SiteObjective::new(&x.view(), &labels, &settings, &totals, Seed(1), None);
        let site = site.expect("an objective");
        let name = format!("{patients} x {features}, {form:?}, {threads} threads");
        measure(&name, || {
            black_box(site.derivatives(&w, None).expect("derivatives"));
        });
    }
    let a = normal(patients, patients, 2);
    let mut e = Array2::zeros((patients, RANK));
    let mut s = Array2::zeros((patients, patients));
    let mut ax = Array2::zeros((patients, features));
    let mut gamma = Array2::zeros((features, features));
    measure(
        &format!("{patients} x {features}, products alone, {threads} threads"),
        || {
            product_into(&x.view(), &w.view(), &mut e);
            product_into(&e.view(), &e.t(), &mut s);
            product_into(&a.view(), &x.view(), &mut ax);
            transposed_product_into(&x.view(), &ax.view(), &mut gamma.view_mut());
        },
    );
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
