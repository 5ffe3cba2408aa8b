//! Patients' rows from the steps of a logistic likelihood.
//!
//! Where a site tells its own sums and coefficients are T w with a huge T, every patient's chance is 0 or 1 by the side of w'x = c on which it
//! lies. Where c moves past one patient, the gradient changes by that patient's row, 1 before it.

use super::site::{FEATURES, PATIENTS, Site, said, table, unpsl};
use super::{OPEN, assert_refused};
use kindred_tests::federation::RUN;
use ndarray::{Array1, Array2, Axis, s};
use protocol::message::regression::{self as message, Design, Evaluating};
use protocol::message::{Answer, Request};
use std::sync::Arc;

/// The evaluations that the job allows.
const EVALUATIONS: usize = 100;

fn job() -> String {
    let (head, _) = unpsl("")
        .split_once("[unpsl]")
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    head.replace("method = \"unpsl\"", "method = \"regression\"")
        + &format!("[regression]\nround_limit = {EVALUATIONS}\n")
}

/// The likelihood at T (w'x - c), w looking along the first feature.
fn look(steep: f64, border: f64) -> Request {
    let mut at = vec![0.0; 1 + FEATURES];
    (at[0], at[1]) = (-steep * border, steep);
    Request::Regression(message::Request::Evaluate(Evaluating {
        design: Arc::new(Design {
            rows: (0..FEATURES as u32).collect(),
            fold: None,
        }),
        at: Arc::new(at),
    }))
}

/// The patients as the site standardises them.
fn truth(text: &str) -> Array2<f64> {
    let rows = text.lines().skip(1).flat_map(|line| {
        let cells = line.split(',').skip(3);
        cells
            .map(|cell| cell.parse::<f64>().unwrap())
            .collect::<Vec<_>>()
    });
    let matrix = Array2::from_shape_vec((PATIENTS, FEATURES), rows.collect()).unwrap();
    let means = matrix.mean_axis(Axis(0)).unwrap();
    let deviations = matrix.std_axis(Axis(0), 0.0);
    (matrix - means) / deviations
}

/// How many rows a scan of the border tells whole, how many questions were answered, and the last answer.
fn scan(rules: &str, steep: f64) -> (usize, usize, Answer) {
    let text = table(PATIENTS, 1);
    let mut site = Site::open(&text, rules);
    site.begin(RUN, &job(), 5);
    let told = site.tell();
    site.prepare(&told);
    let truth = truth(&text);
    let (mut gradients, mut last): (Vec<Array1<f64>>, _) = (Vec::new(), None);
    for question in 0..EVALUATIONS {
        let border = -2.4 + 4.8 * question as f64 / EVALUATIONS as f64;
        let answer = site.ask(look(steep, border));
        if let Answer::Regression(message::Answer::Likelihood(sums)) = &answer {
            gradients.push(sums.gradient.clone());
        }
        last = Some(answer);
    }
    let is_known = |jump: &Array1<f64>| {
        let row = jump.slice(s![1..]);
        let away = |patient: ndarray::ArrayView1<'_, f64>| {
            (&patient - &row)
                .mapv(f64::abs)
                .fold(0.0, |most: f64, one| most.max(*one))
        };
        (jump[0] - 1.0).abs() < 1e-6 && truth.outer_iter().any(|patient| away(patient) < 1e-6)
    };
    let jumps = gradients.windows(2).map(|two| &two[1] - &two[0]);
    let whole = jumps.filter(is_known).count();
    (whole, gradients.len(), last.unwrap())
}

/// Without the brake this tells whole rows; with it the first question shuts the run.
#[test]
fn rows_of_patients_do_not_come_from_steps_of_a_likelihood() {
    let (whole, answered, _) = scan("similarity_max = 1e30\n", 1e9);
    println!("without a brake {answered} evaluations tell {whole} of {PATIENTS} rows");
    assert!(whole > 20, "the attack bites no more: {whole}");
    let (whole, answered, last) = scan(OPEN, 1e9);
    assert_eq!((whole, answered), (0, 0), "{}", said(&last));
    assert_refused(&last, "similarity_max");
    // As steep as the site allows.
    let (whole, answered, _) = scan(OPEN, 9.9);
    assert_eq!((whole, answered), (0, EVALUATIONS));
}

/// A site of its own is fitted by more coefficients than a third of its patients: its sums would be nearly its rows.
#[test]
fn more_coefficients_than_a_third_of_the_patients_tell_nothing() {
    let text = table(30, 3);
    let mut site = Site::open(&text, OPEN);
    site.begin(RUN, &job(), 5);
    let told = site.tell();
    site.prepare(&told);
    assert_refused(&site.ask(look(0.0, 0.0)), "parameters_max");
}
