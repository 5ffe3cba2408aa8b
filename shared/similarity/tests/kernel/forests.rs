//! Every kernel of a forest predicts, better centred with a penalty than as in the paper, and its intervals hold.

use super::*;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use similarity::cohort::{Cohort, Column, Outcome, Values};
use similarity::compare::proximity::kernel::{Kernel, Training};
use similarity::learn::forest::{Settings, grow};
use similarity::numeric::seed::Seed;

/// Friedman's first function of ten features, with noise of deviation 1.
fn friedman(patients: usize, index: u64) -> Cohort {
    let mut stream = Seed(30).stream("friedman", index);
    let columns: Vec<Array1<f64>> = (0..10)
        .map(|_| {
            (0..patients)
                .map(|_| stream.random_range(0.0..1.0))
                .collect()
        })
        .collect();
    let y = (0..patients).map(|row| {
        let noise: f64 = StandardNormal.sample(&mut stream);
        10.0 * (std::f64::consts::PI * columns[0][row] * columns[1][row]).sin()
            + 20.0 * (columns[2][row] - 0.5).powi(2)
            + 10.0 * columns[3][row]
            + 5.0 * columns[4][row]
            + noise
    });
    let y: Array1<f64> = y.collect();
    let named = columns
        .into_iter()
        .enumerate()
        .map(|(place, values)| Column {
            name: format!("x{place}"),
            values: Values::Numeric(values),
        });
    Cohort::new(named.collect(), Outcome::Numeric(y)).unwrap()
}

fn outcome(cohort: &Cohort) -> &Array1<f64> {
    match cohort.outcome() {
        Outcome::Numeric(values) => values,
        Outcome::Classes { .. } | Outcome::Survival { .. } => panic!("not numbers"),
    }
}

#[test]
fn kernels_of_a_forest_predict_better_than_the_forest_and_intervals_hold_what_they_say() {
    let (cohort, new) = (friedman(300, 0), friedman(400, 1));
    let settings = Settings {
        trees: 200,
        ..Settings::for_outcome(cohort.outcome())
    };
    let grown = grow(&cohort, &settings, Seed(2)).unwrap();
    let nodes = grown.forest.apply(cohort.columns()).unwrap();
    let training = Training {
        forest: &grown.forest,
        in_bag: &grown.in_bag,
        nodes: &nodes,
    };
    let asked = grown.forest.apply(new.columns()).unwrap();
    let (y, wanted) = (outcome(&cohort), outcome(&new));
    let error =
        |predicted: &Array1<f64>| (predicted - wanted).mapv(|one| one * one).mean().unwrap();
    let spread = wanted.var(0.0);
    for kernel in [
        Kernel::Proximity,
        Kernel::Path,
        Kernel::Depth { omega: 0.5 },
        Kernel::Kerf,
    ] {
        let square = kernel.square(training).unwrap();
        let cross = kernel.rectangular(training, &asked).unwrap();
        let paper = Ridge::fit(&square, y, Mode::Paper).unwrap();
        let better = Ridge::fit(&square, y, Mode::LeaveOneOut).unwrap();
        let (paper, better) = (
            error(&paper.predict(&cross)),
            error(&better.predict(&cross)),
        );
        assert!(better < 0.45 * spread, "{kernel:?} {better} of {spread}");
        assert!(better < paper * 1.05, "{kernel:?} {better} {paper}");
        if kernel == Kernel::Path {
            let own = Array1::ones(new.patients());
            let noises: Vec<f64> = (-8..4).map(|power| 4.0_f64.powi(power)).collect();
            let fit = Gaussian::fit_best(&square, y, &noises).unwrap();
            let predicted = fit.predict(&cross, &own, 0.9);
            let inside = predicted
                .iter()
                .zip(wanted)
                .filter(|(one, y)| (one.low..=one.high).contains(*y));
            let share = inside.count() as f64 / wanted.len() as f64;
            // The forest has seen the outcomes of the patients that its kernel compares: intervals are a little narrow.
            assert!((0.65..=0.98).contains(&share), "{share}");
        }
    }
}
