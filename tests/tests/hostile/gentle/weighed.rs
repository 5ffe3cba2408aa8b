//! The same hospital asks about coefficients of the unknown feature as well. What is said is then no longer linear in the secrets, so that it
//! has to search for them: by Gauss and Newton, from what the other questions said.

use super::{
    Answering, Hospital, KNOWN, Model, PATIENTS, QUESTIONS, Secret, Share, Tails, guessed,
    hospitals, logistic, normal, optimum, questions, right, roundings, suited,
};
use ndarray::{Array1, Array2, ArrayView1, Axis, s};
use similarity::learn::regression::rounding::Rounding;
use similarity::numeric::linear_algebra::Cholesky;
use similarity::numeric::seed::Seed;

/// Steps of the search at most, and the shortest part of one.
const STEPS_MAX: usize = 15;
const PART_MIN: f64 = 1e-4;

/// What all hospitals say at one question, and by how much rounding varies each number.
struct Said<'a> {
    at: &'a Array1<f64>,
    gradient: Array1<f64>,
    variance: f64,
}

fn said<'a>(hospitals: &[Hospital], model: Model, asked: &'a [Array1<f64>]) -> Vec<Said<'a>> {
    let roundings = roundings(hospitals);
    let of_question = |at| {
        let (mut gradient, mut variance) = (Array1::<f64>::zeros(KNOWN + 1), 0.0);
        for (own, rounding) in hospitals.iter().zip(&roundings) {
            let fit = own.fit(model, at);
            gradient += &rounding.rounded(own.sums(model, at), at, fit).gradient;
            let [step, _] = Rounding::steps(fit);
            variance += step * step / 12.0;
        }
        Said {
            at,
            gradient,
            variance,
        }
    };
    asked.iter().map(of_question).collect()
}

/// Of each hospital its features with the secrets that are believed, and its classes less what is expected of them.
fn believed(
    hospitals: &[Hospital],
    secrets: &Array1<f64>,
    at: &Array1<f64>,
) -> Vec<(Array2<f64>, Array1<f64>)> {
    let parts = secrets.axis_chunks_iter(Axis(0), PATIENTS);
    let of_hospital = |(own, secrets): (&Hospital, ArrayView1<'_, f64>)| {
        let mut features = own.features.clone();
        features.column_mut(KNOWN).assign(&secrets);
        let apart = &own.class - &features.dot(at).mapv(logistic);
        (features, apart)
    };
    hospitals.iter().zip(parts).map(of_hospital).collect()
}

/// What the secrets do not explain, with how far they are from 0.
fn loss(hospitals: &[Hospital], said: &[Said<'_>], secrets: &Array1<f64>) -> f64 {
    let of_question = |one: &Said<'_>| {
        let mut left = one.gradient.clone();
        for (features, apart) in believed(hospitals, secrets, one.at) {
            left -= &features.t().dot(&apart);
        }
        left.dot(&left) / one.variance
    };
    secrets.dot(secrets) + said.iter().map(of_question).sum::<f64>()
}

/// Secrets that explain the gradients of a logistic regression best, near `start`.
fn sought(hospitals: &[Hospital], said: &[Said<'_>], start: &Array1<f64>) -> Array1<f64> {
    let patients = hospitals.len() * PATIENTS;
    let mut secrets = start.clone();
    let mut before = loss(hospitals, said, &secrets);
    for _ in 0..STEPS_MAX {
        let mut spread = Array2::<f64>::eye(patients);
        let mut told = Array1::<f64>::zeros(patients);
        for one in said {
            let mut rows = Array2::zeros((KNOWN + 1, patients));
            let mut left = one.gradient.clone();
            let places = rows.axis_chunks_iter_mut(Axis(1), PATIENTS);
            let all = believed(hospitals, &secrets, one.at);
            for ((own, (features, apart)), mut rows) in hospitals.iter().zip(all).zip(places) {
                left -= &features.t().dot(&apart);
                let expected = &own.class - &apart;
                let moved = expected.mapv(|share| -share * (1.0 - share)) * one.at[KNOWN];
                rows.assign(&(&features.t() * &moved));
                let mut of_secret = rows.row_mut(KNOWN);
                of_secret += &apart;
            }
            left += &rows.dot(&secrets);
            spread += &(rows.t().dot(&rows) / one.variance);
            told += &(rows.t().dot(&left) / one.variance);
        }
        let solved = Cholesky::factor(&spread).unwrap();
        let solved = solved.solve(&told.insert_axis(Axis(1)));
        let step = &solved.column(0) - &secrets;
        let parts = std::iter::successors(Some(1.0), |part| Some(part / 2.0));
        let parts = parts.take_while(|part| *part > PART_MIN);
        let tried = parts.map(|part| {
            let next = &secrets + &(&step * part);
            (loss(hospitals, said, &next), next)
        });
        let Some((after, next)) = tried.into_iter().find(|(after, _)| *after < before) else {
            break;
        };
        (before, secrets) = (after, next);
    }
    secrets
}

/// Not closed. This search finds few: what is said has many explanations near which it ends. From the secrets themselves it ends near them,
/// so that whoever knows them already may check them.
#[test]
fn a_search_by_questions_that_weigh_the_secret_finds_few() {
    for seed in (0..2).map(Seed) {
        for share in [Share::Half, Share::Rare] {
            let model = Model::Logistic(share);
            let hospitals = hospitals(seed, (Secret::Value, Tails::Light), share);
            let known = questions(&hospitals, model, QUESTIONS[0], seed);
            let random = &mut seed.stream("weights", 0);
            let weighing = known.iter().map(|at| {
                let mut at = at.clone();
                at[KNOWN] = normal(random) * at.dot(&at).sqrt() / 2.0;
                at
            });
            let weighing: Vec<Array1<f64>> = weighing.collect();
            let whole = optimum(&hospitals, model);
            let mut centre = whole.clone();
            centre[KNOWN] = 0.0;
            let plain = suited(&hospitals, model, &centre, &known);
            let weighing = suited(&hospitals, model, &whole, &weighing);
            let both = [&plain[..], &weighing].concat();
            let said = said(&hospitals, model, &both);
            let first = guessed(&hospitals, model, &plain, Answering::AsItSuits);
            let mut truth = Array1::zeros(0);
            for own in &hospitals {
                truth
                    .append(Axis(0), own.features.slice(s![.., KNOWN]))
                    .unwrap();
            }
            let read = |guesses: &Array1<f64>| right(&hospitals, Secret::Value, guesses);
            let nothing = read(&Array1::zeros(truth.len()));
            let found = read(&sought(&hospitals, &said, &first));
            let kept = read(&sought(&hospitals, &said, &truth));
            println!(
                "{share:?}: {nothing} by guessing, {found} by search, {kept} from the secrets"
            );
            assert!(found <= nothing + 60, "the search finds {found}");
            assert!(kept >= 45, "nothing could be checked");
        }
    }
}
