//! Promise: what is learned from a kernel is what scikit-learn and an independent solver learn from it, and what cannot be learned is
//! refused with its reason.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // functions that tests share, and what was counted

mod chances;
mod forests;
mod prediction;

use ndarray::{Array1, Array2, Axis, array, s};
use rand_distr::{Distribution, StandardNormal};
use serde_json::Value;
use similarity::compare::laplace::{Norm, laplace};
use similarity::learn::kernel::KernelFitError;
use similarity::learn::kernel::gaussian::Gaussian;
use similarity::learn::kernel::landmarks::{LandmarkRidge, Landmarks};
use similarity::learn::kernel::logistic::Logistic;
use similarity::learn::kernel::ridge::{Mode, Ridge};
use similarity::learn::kernel::survival::SurvivalMachine;
use similarity::numeric::linear_algebra::symmetric_eigen;
use similarity::numeric::seed::Seed;
use std::path::PathBuf;

struct Expected {
    all: Value,
    x: Array2<f64>,
    y: Array1<f64>,
    kernel: Array2<f64>,
    cross: Array2<f64>,
}

fn numbers(value: &Value) -> Array1<f64> {
    let all = value.as_array().unwrap().iter();
    all.map(|one| one.as_f64().unwrap()).collect()
}

fn matrix(value: &Value) -> Array2<f64> {
    let rows: Vec<Array1<f64>> = value.as_array().unwrap().iter().map(numbers).collect();
    Array2::from_shape_fn((rows.len(), rows[0].len()), |(i, j)| rows[i][j])
}

fn flags(value: &Value) -> Array1<bool> {
    let all = value.as_array().unwrap().iter();
    all.map(|one| one.as_bool().unwrap()).collect()
}

fn expected() -> Expected {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/reference/kernel/kernel.json");
    let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let x = matrix(&all["x"]);
    let train = usize::try_from(all["train"].as_u64().unwrap()).unwrap();
    let (known, new) = x.view().split_at(Axis(0), train);
    let sigma = all["sigma"].as_f64().unwrap();
    Expected {
        kernel: laplace(known, known, Norm::L2, sigma).unwrap(),
        cross: laplace(new, known, Norm::L2, sigma).unwrap(),
        y: numbers(&all["y"]).slice(s![..train]).to_owned(),
        x,
        all,
    }
}

fn near(found: &Array1<f64>, wanted: &Array1<f64>, within: f64) {
    assert_eq!(found.len(), wanted.len());
    for (found, wanted) in found.iter().zip(wanted) {
        assert!((found - wanted).abs() < within, "{found} {wanted}");
    }
}

#[test]
fn ridge_regression_and_its_leave_one_out_are_those_of_scikit_learn() {
    let expected = expected();
    for case in expected.all["ridge"].as_array().unwrap() {
        let lambda = case["lambda"].as_f64().unwrap();
        let fit = Ridge::fit(&expected.kernel, &expected.y, Mode::Given(lambda)).unwrap();
        near(
            &fit.predict(&expected.cross),
            &numbers(&case["predicted"]),
            1e-8,
        );
        near(&fit.left_out, &numbers(&case["left_out"]), 1e-8);
    }
    let paper = Ridge::fit(&expected.kernel, &expected.y, Mode::Paper).unwrap();
    assert_eq!((paper.lambda, paper.constant), (0.0, 0.0));
    near(
        &paper.predict(&expected.cross),
        &numbers(&expected.all["paper"]),
        1e-8,
    );
    // What was chosen has the least error of what could be.
    let best = Ridge::fit(&expected.kernel, &expected.y, Mode::LeaveOneOut).unwrap();
    for case in expected.all["ridge"].as_array().unwrap() {
        let given = Mode::Given(case["lambda"].as_f64().unwrap());
        let other = Ridge::fit(&expected.kernel, &expected.y, given).unwrap();
        assert!(best.left_out_error(&expected.y) < other.left_out_error(&expected.y) * 1.02);
    }
}

#[test]
fn logistic_regression_is_that_of_scikit_learn() {
    let expected = expected();
    let case = &expected.all["logistic"];
    let lambda = case["lambda"].as_f64().unwrap();
    let fit = Logistic::fit(&expected.kernel, &flags(&case["positive"]), lambda).unwrap();
    near(
        &fit.predict(&expected.cross),
        &numbers(&case["chance"]),
        1e-5,
    );
    assert!(fit.weights.sum().abs() < 1e-8);
}

#[test]
fn a_gaussian_process_is_that_of_scikit_learn_but_for_its_scale() {
    let expected = expected();
    let case = &expected.all["gaussian"];
    let number = |name: &str| case[name].as_f64().unwrap();
    let kernel = expected.x.view();
    let squared = |i: usize, j: usize| {
        let differences = &kernel.row(i) - &kernel.row(j);
        (-differences.mapv(|one| one * one).sum() / (2.0 * number("length").powi(2))).exp()
    };
    let known = expected.y.len();
    let square = Array2::from_shape_fn((known, known), |(i, j)| squared(i, j));
    let new = kernel.nrows() - known;
    let cross = Array2::from_shape_fn((new, known), |(i, j)| squared(known + i, j));
    let fit = Gaussian::fit(&square, &expected.y, number("noise")).unwrap();
    let predicted = fit.predict(&cross, &Array1::ones(new), 0.9);
    let means: Array1<f64> = predicted.iter().map(|one| one.mean).collect();
    near(&means, &numbers(&case["mean"]), 1e-9);
    let deviations: Array1<f64> = predicted
        .iter()
        .map(|one| one.deviation / fit.scale.sqrt())
        .collect();
    near(&deviations, &numbers(&case["deviation"]), 1e-7);
    // scikit-learn's likelihood is that of scale 1.
    let n = known as f64;
    let at_one = fit.log_likelihood + 0.5 * n * (fit.scale.ln() + 1.0) - 0.5 * n * fit.scale;
    assert!((at_one - number("log_likelihood")).abs() < 1e-7, "{at_one}");
    assert!(
        predicted
            .iter()
            .all(|one| one.low < one.mean && one.mean < one.high)
    );
}

/// Of outcomes that the process itself draws, nine of ten of new patients lie in the interval for nine of ten.
#[test]
fn intervals_hold_as_many_outcomes_as_they_say() {
    const DRAWS: u64 = 60;
    const NOISE: f64 = 0.1;
    let expected = expected();
    let rows = expected.x.view();
    let all = laplace(rows, rows, Norm::L2, 2.0).unwrap();
    let eigen = symmetric_eigen(&all).unwrap();
    let root = &eigen.vectors * &eigen.values.mapv(|value| value.max(0.0).sqrt());
    let known = expected.y.len();
    let new = rows.nrows() - known;
    let mut counts = [0.0; 3];
    let levels = [0.5, 0.9, 0.99];
    for draw in 0..DRAWS {
        let mut stream = Seed(draw).stream("process", 0);
        let mut normal = || -> f64 { StandardNormal.sample(&mut stream) };
        let own = Array1::from_shape_simple_fn(rows.nrows(), &mut normal);
        let noise = Array1::from_shape_simple_fn(rows.nrows(), &mut normal);
        let y = 3.0 + 2.0 * (root.dot(&own) + noise * NOISE.sqrt());
        let seen = y.slice(s![..known]).to_owned();
        let noises: Vec<f64> = (-6..3).map(|power| 2.0_f64.powi(power)).collect();
        let fit = Gaussian::fit_best(&expected.kernel, &seen, &noises).unwrap();
        for (count, level) in counts.iter_mut().zip(levels) {
            let predicted = fit.predict(&expected.cross, &Array1::ones(new), level);
            let inside = predicted.iter().zip(y.slice(s![known..]));
            let inside = inside.filter(|(one, y)| (one.low..=one.high).contains(y));
            *count += inside.count() as f64;
        }
    }
    let shares = counts.map(|count| count / (DRAWS as f64 * new as f64));
    println!("{shares:.3?} of {levels:?}");
    for (share, level) in shares.iter().zip(levels) {
        assert!((share - level).abs() < 0.05, "{shares:?} of {levels:?}");
    }
}

#[test]
fn without_censoring_the_survival_machine_is_support_vector_regression() {
    let expected = expected();
    let time = numbers(&expected.all["time"]);
    let case = &expected.all["uncensored"];
    let event = Array1::from_elem(time.len(), true);
    let bound = case["C"].as_f64().unwrap();
    let fit = SurvivalMachine::fit(&expected.kernel, &time, &event, bound, 1e-9).unwrap();
    near(
        &fit.predict(&expected.cross),
        &numbers(&case["predicted"]),
        1e-5,
    );
    assert!(fit.gap().abs() < 1e-8, "{}", fit.gap());
}

#[test]
fn with_censoring_it_is_the_whole_program_solved_otherwise() {
    let expected = expected();
    let time = numbers(&expected.all["time"]);
    for case in expected.all["survival"].as_array().unwrap() {
        let (event, bound) = (flags(&case["event"]), case["C"].as_f64().unwrap());
        let fit = SurvivalMachine::fit(&expected.kernel, &time, &event, bound, 1e-8).unwrap();
        let cost = case["cost"].as_f64().unwrap();
        assert!(
            (fit.primal / cost - 1.0).abs() < 1e-6,
            "{} {cost}",
            fit.primal
        );
        assert!(fit.gap().abs() < 1e-7, "{}", fit.gap());
        near(
            &fit.predict(&expected.cross),
            &numbers(&case["predicted"]),
            1e-3,
        );
        assert!(fit.weights.sum().abs() < 1e-9);
        for (weight, event) in fit.weights.iter().zip(&event) {
            let low = if *event { -bound } else { 0.0 };
            assert!((low..=bound).contains(weight));
        }
        let own = fit.predict(&expected.kernel);
        let found = concordance(&time, &event, &own);
        assert!(
            (found - case["concordance"].as_f64().unwrap()).abs() < 0.005,
            "{found}"
        );
    }
}

/// The share of pairs, of whom one is known to have had the event first, whose predicted times are in this order.
fn concordance(time: &Array1<f64>, event: &Array1<bool>, predicted: &Array1<f64>) -> f64 {
    let (mut right, mut all) = (0.0, 0.0);
    for i in (0..time.len()).filter(|row| event[*row]) {
        for j in (0..time.len())
            .filter(|other| time[*other] > time[i] || (time[*other] == time[i] && !event[*other]))
        {
            all += 1.0;
            right += match predicted[j] - predicted[i] {
                apart if apart > 0.0 => 1.0,
                apart if apart < 0.0 => 0.0,
                _ => 0.5,
            };
        }
    }
    right / all
}

#[test]
fn landmarks_make_the_kernel_that_numpy_makes_and_all_patients_the_whole_one() {
    let expected = expected();
    let case = &expected.all["landmarks"];
    let rows: Vec<usize> = case["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| usize::try_from(row.as_u64().unwrap()).unwrap())
        .collect();
    let own = expected
        .kernel
        .select(Axis(0), &rows)
        .select(Axis(1), &rows);
    let vectors = Landmarks::new(&own)
        .unwrap()
        .embed(&expected.kernel.select(Axis(1), &rows));
    let made = vectors.dot(&vectors.t());
    let wanted = matrix(&case["kernel"]);
    assert!(
        made.iter()
            .zip(&wanted)
            .all(|(found, wanted)| (found - wanted).abs() < 1e-9)
    );
    let all = Landmarks::new(&expected.kernel).unwrap();
    assert_eq!(all.dimensions(), expected.y.len());
    let fit = LandmarkRidge::fit(all, &expected.kernel, &expected.y, 0.1).unwrap();
    let whole = Ridge::fit(&expected.kernel, &expected.y, Mode::Given(0.1)).unwrap();
    near(
        &fit.predict(&expected.cross),
        &whole.predict(&expected.cross),
        1e-8,
    );
}

#[test]
fn what_cannot_be_learned_is_refused_with_its_reason() {
    let one = Array2::<f64>::ones((4, 4));
    let y = array![1.0, 2.0, 3.0, 5.0];
    let eye = Array2::<f64>::eye(4);
    let ridge = |kernel: &Array2<f64>, mode| Ridge::fit(kernel, &y, mode);
    // Identical patients: singular, unless a penalty helps.
    assert!(matches!(
        ridge(&one, Mode::Given(0.0)),
        Err(KernelFitError::Singular { .. })
    ));
    let paper = ridge(&one, Mode::Paper).unwrap();
    assert!(
        paper.lambda > 0.0 && (paper.predict(&one)[0] - 2.75).abs() < 1e-3,
        "{paper:?}"
    );
    let best = ridge(&one, Mode::LeaveOneOut).unwrap();
    assert!(
        best.predict(&one)
            .iter()
            .all(|value| (value - 2.75).abs() < 1e-6)
    );
    assert!(matches!(
        ridge(&-eye.clone(), Mode::Given(0.5)),
        Err(KernelFitError::Singular { .. })
    ));
    assert!(matches!(
        ridge(&Array2::zeros((4, 4)), Mode::Paper),
        Err(KernelFitError::Singular { .. })
    ));
    assert!(matches!(
        ridge(&eye, Mode::Given(-1.0)),
        Err(KernelFitError::Setting { .. })
    ));
    assert!(matches!(
        ridge(&Array2::eye(3), Mode::Paper),
        Err(KernelFitError::Shape { wanted: 4, .. })
    ));
    let mut holed = eye.clone();
    holed[(2, 1)] = f64::NAN;
    assert!(matches!(
        ridge(&holed, Mode::Paper),
        Err(KernelFitError::Entry { row: 2, column: 1 })
    ));
    let same = Array1::from_elem(4, true);
    assert!(matches!(
        Logistic::fit(&eye, &same, 1.0),
        Err(KernelFitError::OneOutcome)
    ));
    let two = array![true, false, true, false];
    assert!(matches!(
        Logistic::fit(&eye, &two, 0.0),
        Err(KernelFitError::Setting { .. })
    ));
    // Classes that are parted perfectly have an end all the same, for the penalty holds it.
    let parted = Array2::from_shape_fn((4, 4), |(i, j)| if i % 2 == j % 2 { 1.0 } else { 0.0 });
    let fit = Logistic::fit(&parted, &two, 1e-3).unwrap();
    assert!(fit.predict(&parted)[0] > 0.95);
    assert!(matches!(
        Gaussian::fit(&eye, &y, 0.0),
        Err(KernelFitError::Setting { .. })
    ));
    assert!(matches!(
        Gaussian::fit(&-eye.clone(), &y, 0.5),
        Err(KernelFitError::LinearAlgebra(_))
    ));
    let censored = Array1::from_elem(4, false);
    let machine = SurvivalMachine::fit(&eye, &y, &censored, 1.0, 1e-6);
    assert!(matches!(machine, Err(KernelFitError::NoEvent)));
    // Identical patients are one: the time that costs least is a median.
    let machine = SurvivalMachine::fit(&one, &y, &Array1::from_elem(4, true), 1.0, 1e-9).unwrap();
    assert!(
        (2.0..=3.0).contains(&machine.predict(&one)[0]),
        "{machine:?}"
    );
    assert!(machine.gap().abs() < 1e-9);
    assert!(matches!(
        Landmarks::new(&Array2::zeros((3, 3))),
        Err(KernelFitError::Singular { .. })
    ));
}
