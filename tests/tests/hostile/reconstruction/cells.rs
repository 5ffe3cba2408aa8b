//! The sums of one cell of follow-up, as a Cox regression tells them of all sites together: S0 = sum_i exp(b'x_i) and S1 = sum_i x_i exp(b'x_i)
//! over the patients of the cell, at every b that the fit comes by. The rules let a cell have so many events that all evaluations that
//! a job may make tell fewer numbers of them than they have values. Who reads the sums knows how many patients they are, and looks for their rows
//! by L-BFGS from draws that have the cell's mean, which the sums at b = 0 tell exactly.

use super::normal;
use super::search::minimised;
use ndarray::{Array1, Array2, ArrayView1, Axis};
use protocol::job::Job;
use protocol::method::Method;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

const FEATURES: usize = 6;
const RECOVERED: f64 = 0.1;
const STARTS: u64 = 5;

/// The sums of some patients at some coefficients.
struct Told {
    at: Array1<f64>,
    sum: f64,
    moved: Array1<f64>,
}

fn told(rows: &Array2<f64>, at: &Array1<f64>) -> Told {
    let weights = rows.dot(at).mapv(f64::exp);
    Told {
        sum: weights.sum(),
        moved: rows.t().dot(&weights),
        at: at.clone(),
    }
}

/// Squares of what the sums of `rows` are off, each beside the sum of weights, and their derivative by the rows.
fn misfit(rows: &Array2<f64>, heard: &[Told]) -> (f64, Array2<f64>) {
    let mut square = 0.0;
    let mut slope = Array2::zeros(rows.raw_dim());
    for heard in heard {
        let weights = rows.dot(&heard.at).mapv(f64::exp);
        let off = (weights.sum() - heard.sum) / heard.sum;
        let moved = (rows.t().dot(&weights) - &heard.moved) / heard.sum;
        square += off * off + moved.dot(&moved);
        let along = rows.dot(&moved) + off;
        for (patient, mut slope) in slope.rows_mut().into_iter().enumerate() {
            let weight = 2.0 * weights[patient] / heard.sum;
            slope.scaled_add(weight * along[patient], &heard.at);
            slope.scaled_add(weight, &moved);
        }
    }
    (square, slope)
}

/// Rows with correlated columns, some of them yes or no.
fn patients(count: usize, draw: &mut ChaCha8Rng) -> Array2<f64> {
    let mut rows = Array2::from_shape_simple_fn((count, FEATURES), || normal(draw));
    for mut row in rows.rows_mut() {
        row[1] = 0.6 * row[0] + 0.8 * row[1];
        row[5] = if row[5] > 0.0 { 1.0 } else { -1.0 };
    }
    rows
}

/// Coefficients on the way of Newton's method from 0, as many as a job may ask about: it halves what is left, which parts them more than a
/// fit does, whose last ones are all but equal.
fn coefficients(count: u32) -> Vec<Array1<f64>> {
    let end = Array1::from(vec![0.8, -0.6, 0.4, 0.5, -0.3, 0.7]);
    let turned = Array1::from(vec![0.2, 0.3, -0.4, 0.1, 0.5, -0.2]);
    let mut left = 1.0;
    let mut all = vec![Array1::zeros(FEATURES)];
    for step in 1..count {
        left *= 0.5;
        let aside = if step % 2 == 0 { left } else { -left };
        all.push(&end * (1.0 - left) + &turned * aside);
    }
    all
}

/// Of each patient how far the nearest row is that was found, beside the patient's own size; ascending.
fn distances(found: &Array2<f64>, truth: &Array2<f64>) -> Vec<f64> {
    let size = |row: ArrayView1<'_, f64>| row.dot(&row).sqrt();
    let nearest = |patient: ArrayView1<'_, f64>| {
        let far = found
            .rows()
            .into_iter()
            .map(|row| size((&row - &patient).view()));
        far.fold(f64::INFINITY, f64::min) / size(patient)
    };
    let mut all: Vec<f64> = truth.rows().into_iter().map(nearest).collect();
    all.sort_by(f64::total_cmp);
    all
}

struct Attack {
    left: f64,
    recovered: usize,
    median: f64,
    /// Of the draws that the search began with.
    guessed: f64,
}

/// The best fit of some starts.
fn attack(count: usize, evaluations: u32, steps: usize) -> Attack {
    let mut draw = ChaCha8Rng::seed_from_u64(7);
    let truth = patients(count, &mut draw);
    let heard: Vec<Told> = coefficients(evaluations)
        .iter()
        .map(|at| told(&truth, at))
        .collect();
    let mean = &heard[0].moved / heard[0].sum;
    let mut best: Option<Attack> = None;
    for _ in 0..STARTS {
        let mut guess = patients(count, &mut draw);
        let shift = &mean - &guess.mean_axis(Axis(0)).unwrap();
        guess += &shift;
        let shaped =
            |at: &Array1<f64>| Array2::from_shape_vec((count, FEATURES), at.to_vec()).unwrap();
        let flat = |rows: &Array2<f64>| rows.iter().copied().collect::<Array1<f64>>();
        let found = minimised(flat(&guess), steps, |at| {
            let (left, slope) = misfit(&shaped(at), &heard);
            (left, flat(&slope))
        });
        let found = shaped(&found);
        let left = misfit(&found, &heard).0;
        let (away, begun) = (distances(&found, &truth), distances(&guess, &truth));
        if best.as_ref().is_none_or(|best| left < best.left) {
            best = Some(Attack {
                left,
                recovered: away.iter().filter(|far| **far < RECOVERED).count(),
                median: away[count / 2],
                guessed: begun[count / 2],
            });
        }
    }
    let best = best.unwrap();
    println!(
        "{count} patients, {evaluations} evaluations: {} numbers of {} values; misfit {:.1e}; {} rows found, median {:.2}, of draws {:.2}",
        evaluations as usize * (1 + FEATURES),
        count * FEATURES,
        best.left,
        best.recovered,
        best.median,
        best.guessed
    );
    best
}

/// As the default settings have it of a survival time.
fn default_settings() -> (u32, usize) {
    let job = "name = \"cox\"\nmethod = \"regression\"\nsites = [\"north\", \"south\", \"east\"]\n\
               [outcome]\ncolumn = \"days\"\nkind = \"survival\"\nevent = \"died\"\nhorizon = 1000\n\
               [[features]]\nname = \"age\"\nkind = \"numeric\"\n[regression]\n";
    let job = Job::parse(job).unwrap();
    let Method::Regression(settings) = &job.method else {
        panic!("a regression");
    };
    let events = settings.events_min(FEATURES);
    (settings.round_limit, usize::try_from(events).unwrap())
}

#[test]
fn the_sums_of_a_cell_tell_none_of_its_patients() {
    let (evaluations, events) = default_settings();
    let found = attack(events, evaluations, 4_000);
    assert!(
        found.left < 1e-7,
        "the search did not fit the sums: {:e}",
        found.left
    );
    assert_eq!(found.recovered, 0);
    assert!(found.median > 0.7 * found.guessed);
}

/// Without the rule: four patients of a cell are told whole.
#[test]
fn the_sums_of_a_cell_of_four_tell_them_all() {
    let (evaluations, _) = default_settings();
    let found = attack(4, evaluations, 20_000);
    assert_eq!(found.recovered, 4, "misfit {:e}", found.left);
}
