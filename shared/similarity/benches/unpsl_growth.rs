//! The gradient of UnPSL beside the machine's dgemm, a whole local update (4.21), and how both grow
//! in n, d and m.
//!
//! `cargo bench -p similarity --bench unpsl_growth`. What is compared is timed in turns.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::hint::black_box;
use std::time::Instant;

use ndarray::Array2;
use rand_distr::{Distribution, StandardNormal};
use rayon::ThreadPoolBuilder;
use similarity::learn::unpsl::{
    Form, Labels, PairLoss, PairWeightValues, Pairs, Settings, SiteObjective, Totals, start,
    summarise,
};
use similarity::numeric::linear_algebra::{product_into, transposed_product_into};
use similarity::numeric::seed::Seed;

const REPEATS: usize = 15;
/// L-BFGS steps of the local update.
const STEPS: usize = 10;
/// rho of the local update: the first round's of one site.
const PENALTY: f64 = 0.045;

#[derive(Clone, Copy)]
struct Shape {
    patients: usize,
    features: usize,
    rank: usize,
}

const BASE: Shape = Shape {
    patients: 2_000,
    features: 200,
    rank: 32,
};

fn main() {
    for threads in [1, 2] {
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| beside_dgemm(threads));
    }
    growth();
}

fn normal(rows: usize, columns: usize, index: u64) -> Array2<f64> {
    let mut stream = Seed(1).stream("bench", index);
    Array2::from_shape_simple_fn((rows, columns), || StandardNormal.sample(&mut stream))
}

fn classes(patients: usize) -> Labels {
    Labels::Classes((0..patients as u32).map(|patient| patient % 2).collect())
}

fn seconds(act: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    act();
    begin.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// XW, EE', GE and X'P at full size, as a general matrix product makes them.
struct Products {
    x: Array2<f64>,
    w: Array2<f64>,
    g: Array2<f64>,
    e: Array2<f64>,
    s: Array2<f64>,
    p: Array2<f64>,
    gradient: Array2<f64>,
}

impl Products {
    fn new(x: &Array2<f64>, w: &Array2<f64>) -> Self {
        let (patients, rank) = (x.nrows(), w.ncols());
        let zeros = || Array2::zeros((patients, rank));
        Self {
            x: x.clone(),
            w: w.clone(),
            g: normal(patients, patients, 2),
            e: zeros(),
            s: Array2::zeros((patients, patients)),
            p: zeros(),
            gradient: Array2::zeros(w.raw_dim()),
        }
    }

    fn run(&mut self) {
        product_into(&self.x.view(), &self.w.view(), &mut self.e);
        product_into(&self.e.view(), &self.e.t(), &mut self.s);
        product_into(&self.g.view(), &self.e.view(), &mut self.p);
        transposed_product_into(
            &self.x.view(),
            &self.p.view(),
            &mut self.gradient.view_mut(),
        );
    }

    /// Additions and multiplications of one run.
    fn operations(&self) -> f64 {
        let (patients, features) = self.x.dim();
        (4 * patients * (patients + features) * self.w.ncols()) as f64
    }
}

fn beside_dgemm(threads: usize) {
    let Shape {
        patients,
        features,
        rank,
    } = BASE;
    let x = normal(patients, features, 0);
    let w = normal(features, rank, 1) / ((features * rank) as f64).sqrt();
    let loss = pair_loss(&x);
    let mut products = Products::new(&x, &w);
    let mut gradient = Array2::zeros(w.raw_dim());
    let (mut of_products, mut of_gradient, mut of_value) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        of_products.push(seconds(|| products.run()));
        of_gradient.push(seconds(|| {
            loss.value_and_gradient(&w.view(), 1.0, &mut gradient.view_mut());
        }));
        of_value.push(seconds(|| {
            black_box(loss.value(&w.view(), 1.0));
        }));
    }
    let (alone, whole) = (median(of_products), median(of_gradient));
    let shares = format!(
        "{:.0} % of dgemm's rate by the operations of the formula, {:.0} % by those done (S is symmetric)",
        100.0 * alone / whole,
        100.0 * alone / whole * done(BASE)
    );
    println!(
        "{threads} threads: dgemm {:.1} GFLOP/s; products alone {:.2} ms, loss and gradient {:.2} ms: {shares}; loss {:.2} ms",
        products.operations() / alone / 1e9,
        alone * 1e3,
        whole * 1e3,
        median(of_value) * 1e3
    );
    let site = site(BASE);
    let start = start(site.settings(), features, Seed(1), 0);
    let mut evaluations = 0;
    let update = median(
        (0..3)
            .map(|_| {
                seconds(|| {
                    let update = site.solve(&start, &start, PENALTY, 1e-6, STEPS).unwrap();
                    evaluations = update.evaluations;
                })
            })
            .collect(),
    );
    println!(
        "           local update, {STEPS} steps, {evaluations} gradients: {:.0} ms",
        update * 1e3
    );
}

/// The share of the formula's operations that is left where blocks of S below the diagonal are not made.
fn done(shape: Shape) -> f64 {
    let (n, d) = (shape.patients as f64, shape.features as f64);
    (1.5 * n + 2.0 * d) / (2.0 * n + 2.0 * d)
}

fn pair_loss(x: &Array2<f64>) -> PairLoss {
    let weights = PairWeightValues {
        similar: 1.0,
        dissimilar: 1.0,
    };
    let labels = classes(x.nrows());
    PairLoss::new(
        &x.view(),
        &labels,
        Pairs::All,
        weights,
        Form::InnerProduct,
        Seed(1),
    )
}

fn site(shape: Shape) -> SiteObjective {
    let x = normal(shape.patients, shape.features, 0);
    let labels = classes(shape.patients);
    let settings = Settings {
        rank: shape.rank,
        ..Settings::paper()
    };
    let totals = Totals::of(&[summarise(&labels, settings.pairs, Seed(1))]);
    SiteObjective::new(&x.view(), &labels, &settings, &totals, Seed(1), None).unwrap()
}

/// Each of n, d and m doubled twice, in turns, and the exponent of a line through the logarithms.
fn growth() {
    let shapes = |grow: fn(Shape, usize) -> Shape| [1, 2, 4].map(|factor| grow(BASE, factor));
    let axes: [(&str, [Shape; 3]); 3] = [
        (
            "n",
            shapes(|base, factor| Shape {
                patients: factor * base.patients,
                ..base
            }),
        ),
        (
            "d",
            shapes(|base, factor| Shape {
                features: factor * base.features,
                ..base
            }),
        ),
        (
            "m",
            shapes(|base, factor| Shape {
                rank: factor * base.rank,
                ..base
            }),
        ),
    ];
    println!("\nfrom n = 2,000, d = 200, m = 32, times 1, 2 and 4; all threads");
    for (name, shapes) in axes {
        let gradients = medians(&shapes.map(gradient_of));
        let updates = medians(&shapes.map(update_of));
        for (work, times) in [("gradient", gradients), ("local update", updates)] {
            let shown: Vec<String> = times
                .iter()
                .map(|time| format!("{:.1}", time * 1e3))
                .collect();
            println!(
                "{name}: {work:<12} {} ms, exponent {:.2}",
                shown.join(", "),
                exponent(&times)
            );
        }
    }
}

type Work = Box<dyn Fn()>;

fn gradient_of(shape: Shape) -> Work {
    let site = site(shape);
    let start = start(site.settings(), shape.features, Seed(1), 0);
    Box::new(move || {
        let mut gradient = Array2::zeros(start.raw_dim());
        site.value_and_gradient(&start, &mut gradient).unwrap();
    })
}

/// Three steps, so that the number of gradients differs little between shapes.
fn update_of(shape: Shape) -> Work {
    let site = site(shape);
    let start = start(site.settings(), shape.features, Seed(1), 0);
    Box::new(move || {
        site.solve(&start, &start, PENALTY, 1e-6, 3).unwrap();
    })
}

fn medians(works: &[Work; 3]) -> [f64; 3] {
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..5 {
        for (times, work) in times.iter_mut().zip(works) {
            times.push(seconds(work));
        }
    }
    times.map(median)
}

/// The slope of the logarithms at 1, 2 and 4 by least squares, which the middle has no part in.
fn exponent(times: &[f64; 3]) -> f64 {
    (times[2] / times[0]).ln() / 4.0_f64.ln()
}
