//! Promise: a chance of an event by a time holds among patients with such a score, and its interval of 95 % holds the truth nearly so often.
//!
//!     KINDRED_DRAWS=40 cargo test --workspace --test kernel -- chances --nocapture > tests/reference/survival/chances.txt

use ndarray::{Array1, Array2, Axis};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use similarity::cohort::{Cohort as Patients, Column, Outcome, Values};
use similarity::compare::proximity::kernel::{Kernel, OutOfBag};
use similarity::compare::{Comparison, Gower, Placed, Proximity, Weighted};
use similarity::learn::{forest, regression};
use similarity::numeric::seed::Seed;
use similarity::uses::prediction::risk::Risk;
use similarity::uses::prediction::{Cohort, KernelOf, Learner, Machine};

/// Fresh patients, whose true chances are known.
const FRESH: usize = 20_000;
/// Places among them, by their scores, at which intervals are looked at, and how many nearest scores are such a score.
const PLACES: usize = 19;
const SUCH: usize = 1_000;
/// The times, by the share of events of all until then.
const TIMES: [f64; 2] = [0.45, 1.1];
const SHAPE: f64 = 1.2;

/// A made-up population.
#[derive(Debug, Clone, Copy)]
struct Case {
    patients: usize,
    /// Whether the hazard is no straight line of the features.
    is_curved: bool,
    /// The end of uniform censoring.
    lost: f64,
    by: By,
}

/// What compares.
#[derive(Debug, Clone, Copy)]
enum By {
    Gower,
    /// A forest that has seen the outcomes: who is held out is compared by the trees that have not seen it.
    Forest,
    /// A regression's distance, which has seen all outcomes.
    Regression,
}

struct Held {
    of_score: usize,
    of_patient: usize,
    all: usize,
}

fn eta(row: ndarray::ArrayView1<'_, f64>, is_curved: bool) -> f64 {
    match is_curved {
        true => row[0].sin() - 0.5 * row[1] * row[1] + 0.6 * row[0] * row[2],
        false => 0.7 * row[0] - 0.5 * row[1],
    }
}

fn chance(eta: f64, time: f64) -> f64 {
    -(-time.powf(SHAPE) * eta.exp()).exp_m1()
}

fn columns(x: &Array2<f64>) -> Vec<Column> {
    let column = |(place, values): (usize, ndarray::ArrayView1<'_, f64>)| Column {
        name: format!("feature {place}"),
        values: Values::Numeric(values.to_owned()),
    };
    x.columns().into_iter().enumerate().map(column).collect()
}

fn compared(by: By, patients: Patients, draw: u64) -> (Comparison, Placed) {
    let columns = patients.columns();
    match by {
        By::Gower => {
            let gower = Comparison::Gower(Gower::of_columns(columns));
            let placed = gower.place(columns).unwrap();
            (gower, placed)
        }
        By::Regression => {
            let fit = regression::fit(&patients, &regression::Settings::default()).unwrap();
            let weighted = Comparison::Weighted(Weighted::new(&fit).unwrap());
            let placed = weighted.place(columns).unwrap();
            (weighted, placed)
        }
        By::Forest => {
            let settings = forest::Settings {
                trees: 100,
                ..forest::Settings::for_outcome(patients.outcome())
            };
            let grown = forest::grow(&patients, &settings, Seed(draw)).unwrap();
            let placed = Placed::Nodes {
                nodes: grown.forest.apply(columns).unwrap(),
                bags: Some(OutOfBag::new(&grown.in_bag)),
            };
            let proximity = Proximity::new(grown.forest, None).unwrap();
            (Comparison::Proximity(proximity), placed)
        }
    }
}

fn drawn(case: Case, draw: u64) -> Held {
    let mut stream = Seed(draw).stream("patients", 0);
    let mut normal =
        |count| Array2::from_shape_simple_fn((count, 4), || StandardNormal.sample(&mut stream));
    let (known, fresh): (Array2<f64>, Array2<f64>) = (normal(case.patients), normal(FRESH));
    let of = |x: &Array2<f64>| x.map_axis(Axis(1), |row| eta(row, case.is_curved));
    let hidden: Array1<f64> = of(&known).mapv(|eta| {
        let even: f64 = stream.random_range(0.0..1.0);
        (-(1.0 - even).ln() / eta.exp()).powf(1.0 / SHAPE)
    });
    let lost: Array1<f64> = hidden.mapv(|_| stream.random_range(0.05..case.lost));
    let event: Array1<bool> = hidden
        .iter()
        .zip(&lost)
        .map(|(one, other)| one <= other)
        .collect();
    let time: Array1<f64> = hidden
        .iter()
        .zip(&lost)
        .map(|(one, other)| one.min(*other))
        .collect();
    let outcome = Outcome::Survival {
        time: time.clone(),
        event: event.clone(),
    };
    let (known, fresh_columns) = (columns(&known), columns(&fresh));
    let patients = Patients::new(known.clone(), outcome.clone()).unwrap();
    let (gower, placed) = compared(case.by, patients, draw);
    let cohort = Cohort {
        placed: &placed,
        outcome: &outcome,
    };
    let kernel = KernelOf::new(&gower, Kernel::Proximity).unwrap();
    let rows: Vec<usize> = (0..case.patients).collect();
    let machine = Machine::learn(&kernel, &cohort, &rows, Learner::Survival, Seed(draw)).unwrap();
    let held = machine
        .cross_fitted(&kernel, &cohort, Learner::Survival, Seed(draw))
        .unwrap();
    let scores = held.forecast.scores(true).unwrap();
    let risk = Risk::of(&scores, &time, &event).unwrap();
    let forecast = machine
        .forecast(&kernel, &gower.place(&fresh_columns).unwrap())
        .unwrap();
    let scores = forecast.scores(true).unwrap();
    let truth = of(&fresh);
    let mut order: Vec<usize> = (0..FRESH).collect();
    order.sort_by(|one, other| scores[*one].total_cmp(&scores[*other]));
    let mut found = Held::NOBODY;
    for by in TIMES {
        for place in 1..=PLACES {
            let middle = place * FRESH / (PLACES + 1);
            let such = &order[middle - SUCH / 2..middle + SUCH / 2];
            let Some(told) = risk.by(scores[order[middle]], by) else {
                continue;
            };
            let holds =
                |true_chance: f64| usize::from((told.low..=told.high).contains(&true_chance));
            let sum: f64 = such.iter().map(|row| chance(truth[*row], by)).sum();
            found.of_score += holds(sum / such.len() as f64);
            found.of_patient += holds(chance(truth[order[middle]], by));
            found.all += 1;
        }
    }
    found
}

impl Held {
    const NOBODY: Self = Self {
        of_score: 0,
        of_patient: 0,
        all: 0,
    };

    fn add(&mut self, other: &Self) {
        self.of_score += other.of_score;
        self.of_patient += other.of_patient;
        self.all += other.all;
    }

    fn say(&self, of: &str) {
        let share = |part: usize| part as f64 / self.all as f64;
        println!(
            "{:.3} {:.3} {of}",
            share(self.of_score),
            share(self.of_patient)
        );
    }
}

fn cases() -> impl Iterator<Item = Case> {
    let by = [By::Gower, By::Forest, By::Regression].into_iter();
    let patients = by.flat_map(|by| [150, 400].map(|patients| (by, patients)));
    let curved = patients.flat_map(|of| [false, true].map(|is_curved| (of, is_curved)));
    curved.flat_map(|((by, patients), is_curved)| {
        [4.0, 1.5].map(|lost| Case {
            patients,
            is_curved,
            lost,
            by,
        })
    })
}

#[test]
fn intervals_of_chances_hold_the_truth_of_patients_with_such_a_score() {
    let draws = std::env::var("KINDRED_DRAWS").map_or(2, |draws| draws.parse().unwrap());
    println!(
        "coverage over {draws} draws: of the chance among patients with such a score, and of the patient's own"
    );
    let mut whole = Held::NOBODY;
    for case in cases() {
        let mut held = Held::NOBODY;
        (0..draws).for_each(|draw| held.add(&drawn(case, draw)));
        held.say(&format!("{case:?}"));
        whole.add(&held);
    }
    whole.say("all");
    let share = whole.of_score as f64 / whole.all as f64;
    assert!(share > 0.93, "{share}");
}
