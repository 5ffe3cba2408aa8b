//! A hospital that chooses all questions of a regression, as steep as every hospital allows, and knows all of every patient but one
//! value: other features, and how each fared. It looks for that value in the sums of the others.

mod weighed;

use ndarray::{Array1, Array2, Axis, s};
use privacy::Steepness;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use similarity::cohort::Outcome;
use similarity::learn::regression::cox::{FollowUp, Ties};
use similarity::learn::regression::gain::Gain;
use similarity::learn::regression::glm::Family;
use similarity::learn::regression::rounding::Rounding;
use similarity::learn::regression::sums::Sums;
use similarity::numeric::linear_algebra::Cholesky;
use similarity::numeric::precision::{Fit, nearest};
use similarity::numeric::seed::Seed;

/// Patients of each of the three hospitals that are honest.
const PATIENTS: usize = 60;
/// Columns that the attacker knows: a constant, and four features.
const KNOWN: usize = 5;
/// A value is read where it is known to so much of a standard deviation.
const READ: f64 = 0.05;
/// Who takes part in runs.
const MODELS: [Model; 3] = [
    Model::Logistic(Share::Half),
    Model::Logistic(Share::Rare),
    Model::Cox,
];
/// Questions of some 20 runs, and of 100, which is what a study has unless its text says otherwise.
const QUESTIONS: [usize; 2] = [240, 1_200];

/// What one hospital has.
struct Hospital {
    /// n x (known columns, and the secret): the constant, then features, standardised over all hospitals.
    features: Array2<f64>,
    class: Array1<f64>,
    time: Array1<f64>,
    event: Array1<bool>,
}

/// What the secret is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Secret {
    /// A number.
    Value,
    /// Whether a patient is of a level, which three of ten are.
    Level,
}

/// How the known features are spread.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Tails {
    Light,
    /// As a laboratory's: a few patients are far from all others.
    Heavy,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Model {
    Logistic(Share),
    Cox,
}

/// How many patients are of the second class.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Share {
    Half,
    /// About as few as a hospital's policy admits.
    Rare,
    /// All are of the first: no such hospital is in a run.
    None,
}

impl Share {
    /// The log odds of patients of means.
    fn log_odds(self) -> f64 {
        match self {
            Self::Half => 0.0,
            Self::Rare => -1.4,
            Self::None => f64::NEG_INFINITY,
        }
    }
}

/// By Box and Muller: with the tails that a sum of few draws lacks.
fn normal(random: &mut ChaCha8Rng) -> f64 {
    let (radius, angle) = (random.random::<f64>(), random.random::<f64>());
    (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

fn hospitals(seed: Seed, (secret, tails): (Secret, Tails), share: Share) -> Vec<Hospital> {
    let random = &mut seed.stream("patients", 0);
    let count = 3 * PATIENTS;
    let mut features = Array2::from_shape_simple_fn((count, KNOWN + 1), || normal(random));
    if tails == Tails::Heavy {
        let mut known = features.slice_mut(s![.., 1..KNOWN]);
        known.mapv_inplace(|value| (1.5 * value).exp());
    }
    if secret == Secret::Level {
        features
            .column_mut(KNOWN)
            .mapv_inplace(|value| f64::from(u8::from(value > 0.5244)));
    }
    for mut column in features.columns_mut() {
        let (mean, deviation) = (column.mean().unwrap(), column.std(0.0));
        column.mapv_inplace(|value| (value - mean) / deviation);
    }
    features.column_mut(0).fill(1.0);
    let own = |first: usize| {
        let features = features.slice(s![first..first + PATIENTS, ..]).to_owned();
        let score = features.slice(s![.., 1..]).sum_axis(Axis(1)) * 0.3;
        let mut chance = || 1.0 - random.random::<f64>();
        let class =
            score.mapv(|score| f64::from(u8::from(chance() < logistic(score + share.log_odds()))));
        let until: Array1<f64> = score.mapv(|score| -chance().ln() / score.exp());
        let censored: Array1<f64> = score.mapv(|_| 2.0 * chance());
        let seen = until.iter().zip(&censored);
        Hospital {
            time: seen.clone().map(|(until, end)| until.min(*end)).collect(),
            event: seen.map(|(until, end)| until <= end).collect(),
            features,
            class,
        }
    };
    (0..count).step_by(PATIENTS).map(own).collect()
}

fn logistic(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

/// Questions in all directions of what is known, each as steep as every hospital allows.
fn questions(hospitals: &[Hospital], model: Model, count: usize, seed: Seed) -> Vec<Array1<f64>> {
    let random = &mut seed.stream("questions", 0);
    let ask = |_| {
        let mut at = Array1::from_shape_simple_fn(KNOWN + 1, || normal(random));
        at[KNOWN] = 0.0;
        farthest(20.0, |far| is_allowed(hospitals, model, &(&at * far))) * at
    };
    (0..count).map(ask).collect()
}

/// How far it is fine to go, up to `most`.
fn farthest(most: f64, is_fine: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, most);
    for _ in 0..30 {
        let middle = (low + high) / 2.0;
        match is_fine(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

/// Whether no hospital's brake stops a question.
fn is_allowed(hospitals: &[Hospital], model: Model, at: &Array1<f64>) -> bool {
    let is_steep = |own: &Hospital| {
        let predictors = own.features.dot(at);
        let second = own.class.sum();
        let (from, centre) = match model {
            Model::Logistic(_) => {
                let odds = (second + 0.5) / (PATIENTS as f64 - second + 0.5);
                (odds.ln(), odds.ln())
            }
            Model::Cox => (predictors.mean().unwrap(), 0.0),
        };
        let squares = predictors.mapv(|one| (one - from).powi(2)).mean().unwrap();
        Steepness::Predictor { squares, centre }.is_too_much()
    };
    !hospitals.iter().any(is_steep)
}

impl Hospital {
    fn outcome(&self, model: Model) -> Outcome {
        match model {
            Model::Logistic(_) => Outcome::Classes {
                codes: self.class.mapv(|class| u32::from(class == 1.0)),
                levels: vec!["negative".to_owned(), "positive".to_owned()],
            },
            Model::Cox => Outcome::Survival {
                time: self.time.clone(),
                event: self.event.clone(),
            },
        }
    }

    fn fit(&self, model: Model, at: &Array1<f64>) -> Fit {
        Gain::of(&self.outcome(model), f64::MAX).fit(&self.features.dot(at))
    }

    fn sums(&self, model: Model, at: &Array1<f64>) -> Sums {
        match model {
            Model::Logistic(_) => Family::Logistic.sums(&self.features.view(), &self.class, at),
            Model::Cox => {
                let follow_up = FollowUp::exact(&self.time, &self.event);
                follow_up.sums(&self.features.view(), at, Ties::Efron)
            }
        }
    }

    /// How much each patient's secret counts in what is said of it, by the attacker's own arithmetic: in the information that it shares with
    /// each known column, and then in the gradient. (KNOWN + 1) x n.
    fn weights(&self, model: Model, at: &Array1<f64>) -> Array2<f64> {
        let known = self.features.slice(s![.., ..KNOWN]);
        let predictors = self.features.dot(at);
        let mut weights = Array2::zeros((KNOWN + 1, PATIENTS));
        match model {
            Model::Logistic(_) => {
                let expected = predictors.mapv(logistic);
                weights.row_mut(KNOWN).assign(&(&self.class - &expected));
                let spread = expected.mapv(|share| share * (1.0 - share));
                weights
                    .slice_mut(s![..KNOWN, ..])
                    .assign(&(&known.t() * &spread));
            }
            Model::Cox => {
                let hazards = predictors.mapv(f64::exp);
                for event in (0..PATIENTS).filter(|patient| self.event[*patient]) {
                    let is_at_risk = |other: usize| self.time[other] >= self.time[event];
                    let share = Array1::from_shape_fn(PATIENTS, |other| match is_at_risk(other) {
                        true => hazards[other],
                        false => 0.0,
                    });
                    let share = &share / share.sum();
                    weights[[KNOWN, event]] += 1.0;
                    weights.row_mut(KNOWN).scaled_add(-1.0, &share);
                    let apart = &known - &share.dot(&known);
                    let mut of_known = weights.slice_mut(s![..KNOWN, ..]);
                    of_known += &(&apart.t() * &share);
                }
            }
        }
        weights
    }
}

/// How finely hospitals answer.
#[derive(Clone, Copy, PartialEq)]
enum Answering {
    /// As finely whatever is asked, as they did.
    Alike,
    /// Less finely where a question does not suit their patients, as they do.
    AsItSuits,
}

/// How each hospital rounds what it says, by its own secret.
fn roundings(hospitals: &[Hospital]) -> Vec<Rounding> {
    let roundings = hospitals.iter().enumerate().map(|(place, own)| {
        let hidden = Some((Seed(place as u64), ""));
        Rounding::of(&own.features.view(), 0, hidden).unwrap()
    });
    roundings.collect()
}

/// The best guess of the secrets of all, where they are standard normal: by ridge regression of all that is said of them on what each
/// patient adds, each as finely known as the attacker can work out.
fn guessed(
    hospitals: &[Hospital],
    model: Model,
    asked: &[Array1<f64>],
    answering: Answering,
) -> Array1<f64> {
    let roundings = roundings(hospitals);
    let patients = hospitals.len() * PATIENTS;
    let mut spread = Array2::<f64>::eye(patients);
    let mut known = Array1::<f64>::zeros(patients);
    for at in asked {
        let mut variance = Array1::<f64>::zeros(KNOWN + 1);
        let mut sum = Array1::<f64>::zeros(KNOWN + 1);
        let mut rows = Array2::zeros((KNOWN + 1, patients));
        let places = rows.axis_chunks_iter_mut(Axis(1), PATIENTS);
        for ((own, rounding), mut rows) in hospitals.iter().zip(&roundings).zip(places) {
            let fit = match answering {
                Answering::Alike => Fit::SUITS,
                Answering::AsItSuits => own.fit(model, at),
            };
            let exact = own.sums(model, at);
            let mut sums = rounding.rounded(exact.clone(), at, fit);
            if answering == Answering::Alike {
                let step = Rounding::steps(fit)[0];
                sums.information = exact.information.mapv(|one| nearest(one, step));
            }
            sum += &sums.information.row(KNOWN);
            sum[KNOWN] += sums.gradient[KNOWN] - sums.information[[KNOWN, KNOWN]];
            let [fine, coarse] = match answering {
                // Both were as fine.
                Answering::Alike => [Rounding::steps(fit)[0]; 2],
                Answering::AsItSuits => Rounding::steps(fit),
            };
            variance += coarse * coarse / 12.0;
            variance[KNOWN] += (fine * fine - coarse * coarse) / 12.0;
            rows.assign(&own.weights(model, at));
        }
        let weighted = &rows.t() / &variance;
        spread += &weighted.dot(&rows);
        known += &weighted.dot(&sum);
    }
    let solved = Cholesky::factor(&spread).unwrap();
    let solved = solved.solve(&known.insert_axis(Axis(1)));
    solved.column(0).to_owned()
}

/// How many secrets are read.
fn right(hospitals: &[Hospital], secret: Secret, guesses: &Array1<f64>) -> usize {
    let secrets = hospitals.iter().flat_map(|own| own.features.column(KNOWN));
    let pairs = secrets.zip(guesses);
    let is_right = |(own, guess): &(&f64, &f64)| match secret {
        Secret::Value => (*own - *guess).abs() < READ,
        // Half of the way between the two levels.
        Secret::Level => (**own > 0.0) == (**guess > 0.6547),
    };
    pairs.filter(is_right).count()
}

/// Where the sums of the hospitals are largest.
fn optimum(hospitals: &[Hospital], model: Model) -> Array1<f64> {
    let mut at = Array1::<f64>::zeros(KNOWN + 1);
    for _ in 0..15 {
        let mut sum = Sums::zero(KNOWN + 1);
        for own in hospitals {
            sum.merge(&own.sums(model, &at));
        }
        let information = sum.information + Array2::<f64>::eye(KNOWN + 1);
        let step = Cholesky::factor(&information).unwrap();
        at += &step.solve(&sum.gradient.insert_axis(Axis(1))).column(0);
    }
    at
}

/// The same directions from `centre`, each as far as it suits the patients of every hospital.
fn suited(
    hospitals: &[Hospital],
    model: Model,
    centre: &Array1<f64>,
    directions: &[Array1<f64>],
) -> Vec<Array1<f64>> {
    let at = |direction: &Array1<f64>, far: f64| centre + &(direction * far);
    let suited = directions.iter().map(|direction| {
        let is_fine = |far: f64| {
            let question = at(direction, far);
            let suits = |own: &Hospital| own.fit(model, &question) == Fit::SUITS;
            is_allowed(hospitals, model, &question) && hospitals.iter().all(suits)
        };
        at(direction, farthest(1.5, is_fine))
    });
    suited.collect()
}

/// Of 180 secrets those that are read.
struct Read {
    by_guessing: usize,
    /// With the brake on steep predictors alone, as it was.
    before: usize,
    /// By the best of four ways to ask.
    now: usize,
}

fn attack(seed: Seed, (secret, tails): (Secret, Tails), model: Model, count: usize) -> Read {
    let share = match model {
        Model::Logistic(share) => share,
        Model::Cox => Share::Half,
    };
    let hospitals = hospitals(seed, (secret, tails), share);
    let steep = questions(&hospitals, model, count, seed);
    let read = |asked: &[Array1<f64>], answering| {
        let guesses = guessed(&hospitals, model, asked, answering);
        right(&hospitals, secret, &guesses)
    };
    let mut fitted = optimum(&hospitals, model);
    fitted[KNOWN] = 0.0;
    let centres = [Array1::zeros(KNOWN + 1), fitted];
    let suited = centres.map(|centre| suited(&hospitals, model, &centre, &steep));
    let both = [&steep[..], &suited[1]].concat();
    let all = suited.iter().chain([&steep, &both]);
    let now = all.map(|asked| read(asked, Answering::AsItSuits));
    let read = Read {
        by_guessing: right(&hospitals, secret, &Array1::zeros(3 * PATIENTS)),
        before: read(&steep, Answering::Alike),
        now: now.max().unwrap(),
    };
    println!(
        "{model:?}, {secret:?}, {tails:?}, {count} questions: {} by guessing, {} before, {} now",
        read.by_guessing, read.before, read.now
    );
    read
}

#[test]
fn answers_are_what_the_attacker_works_out() {
    for model in MODELS {
        let hospitals = hospitals(Seed(0), (Secret::Value, Tails::Light), Share::Half);
        for at in questions(&hospitals, model, 5, Seed(0)) {
            for own in &hospitals {
                let sums = own.sums(model, &at);
                let found = own.weights(model, &at).dot(&own.features.column(KNOWN));
                for known in 0..KNOWN {
                    assert!((found[known] - sums.information[[known, KNOWN]]).abs() < 1e-9);
                }
                assert!((found[KNOWN] - sums.gradient[KNOWN]).abs() < 1e-9);
            }
        }
    }
}

/// As long as all questions were answered alike, and the information as finely as the gradient, 240 of them read up to 153 of 180 values,
/// and all levels.
#[test]
fn whoever_knows_all_but_one_value_and_chooses_all_questions_reads_few() {
    for seed in 0..2 {
        let mut before = 0;
        for model in MODELS {
            let read = |secret| attack(Seed(seed), (secret, Tails::Light), model, QUESTIONS[0]);
            let values = read(Secret::Value);
            before = before.max(values.before);
            assert!(values.now <= values.by_guessing + 20);
            let levels = read(Secret::Level);
            assert!(levels.before >= 170, "the attack is no longer carried out");
            assert!(levels.now <= levels.by_guessing + 36);
        }
        assert!(before >= 120, "the attack is no longer carried out");
    }
}

/// Patients who are far from all others count most in a sum.
#[test]
fn patients_far_from_all_others_are_not_read_either() {
    for model in MODELS {
        let read = |secret| attack(Seed(0), (secret, Tails::Heavy), model, QUESTIONS[0]);
        let values = read(Secret::Value);
        assert!(values.now <= values.by_guessing + 20);
        let levels = read(Secret::Level);
        assert!(levels.now <= levels.by_guessing + 36);
    }
}

/// Of patients of one class all questions have the best log-likelihood there is, with a constant that is far enough. They say nothing of
/// whether one suits them.
#[test]
fn patients_of_one_class_are_read_no_better() {
    let model = Model::Logistic(Share::None);
    for count in QUESTIONS {
        let read = |secret| attack(Seed(0), (secret, Tails::Light), model, count);
        let values = read(Secret::Value);
        assert!(values.before >= 25, "the attack is no longer carried out");
        assert!(values.now <= values.by_guessing + 20);
        let levels = read(Secret::Level);
        assert!(levels.now <= levels.by_guessing + 46);
    }
}

/// All runs of a study tell no more of a value than a fifth of them, and somewhat more of a level.
#[test]
fn all_runs_of_a_study_tell_few_more() {
    for model in &MODELS[1..] {
        let read = |secret| attack(Seed(0), (secret, Tails::Light), *model, QUESTIONS[1]);
        let (values, levels) = (read(Secret::Value), read(Secret::Level));
        assert!(values.now <= values.by_guessing + 20);
        assert!(levels.now <= levels.by_guessing + 46);
    }
}
