//! The patients of the study: five functions of made-up features, with three kinds of outcome (section 4.1).

use std::f64::consts::PI;

use ndarray::{Array1, Array2};
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, Exp1, StandardNormal};
use similarity::cohort::{Cohort, Column, Outcome, Values};
use similarity::numeric::seed::Seed;

/// Of a data set's patients, those to learn from: three of four.
const TRAINING: (usize, usize) = (3, 4);
/// Correlation of neighbouring features of the checkerboard.
const NEIGHBOURS: f64 = 0.9;
/// The mean time of censoring beside the median time of the event. The paper states neither; 2 leaves about one of three censored.
const CENSORING: f64 = 2.0;

/// What a patient's outcome follows from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// Friedman (1991).
    Friedman,
    /// Zhu, Zeng and Kosorok (2015), scenario 3.
    Checkerboard,
    /// Meier, van de Geer and Buehlmann (2009), first.
    Meier1,
    /// The same, second, of features in 0 to 1: as printed, of features in -1 to 1, it has another error.
    Meier2,
    /// Van der Laan, Polley and Hubbard (2007), with its term -x4 x7, which the paper's print lacks.
    VanDerLaan,
    /// Meier 2 as printed.
    Meier2Printed,
    /// Van der Laan as printed.
    VanDerLaanPrinted,
}

/// What is to be predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A number.
    Number,
    /// One of two classes.
    Class,
    /// A right-censored time.
    Survival,
}

impl Function {
    /// Every one.
    pub const ALL: [Self; 7] = [
        Self::Friedman,
        Self::Checkerboard,
        Self::Meier1,
        Self::Meier2,
        Self::VanDerLaan,
        Self::Meier2Printed,
        Self::VanDerLaanPrinted,
    ];
    /// Those of the paper, mended.
    pub const USUAL: [Self; 5] = [
        Self::Friedman,
        Self::Checkerboard,
        Self::Meier1,
        Self::Meier2,
        Self::VanDerLaan,
    ];

    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Friedman => "Friedman",
            Self::Checkerboard => "Checkerboard",
            Self::Meier1 => "Meier 1",
            Self::Meier2 => "Meier 2",
            Self::VanDerLaan => "van der Laan",
            Self::Meier2Printed => "Meier 2 as printed",
            Self::VanDerLaanPrinted => "van der Laan as printed",
        }
    }

    /// f of one patient, without noise. `x` has at least 20 features.
    fn of(self, x: &[f64]) -> f64 {
        let wide = |feature: usize| 2.0 * (x[feature - 1] - 0.5);
        let meier_2 = |x: [f64; 4]| {
            let [first, second, third, fourth] = x;
            let turn = 2.0 * PI * fourth;
            -first
                + (2.0 * second - 1.0).powi(2)
                + (2.0 * PI * third).sin() / (2.0 - turn.sin())
                + 2.0 * turn.cos()
                + 4.0 * turn.cos().powi(2)
        };
        let van_der_laan =
            || wide(1) * wide(2) + wide(3).powi(2) + wide(8) * wide(10) - wide(6).powi(2);
        match self {
            Self::Friedman => {
                10.0 * (PI * x[0] * x[1]).sin()
                    + 20.0 * (x[2] - 0.5).powi(2)
                    + 10.0 * x[3]
                    + 5.0 * x[4]
            }
            Self::Checkerboard => 2.0 * x[4] * x[9] + 2.0 * x[14] * x[19],
            Self::Meier1 => -(2.0 * wide(1)).sin() + wide(2).powi(2) + wide(3) - (wide(4)).exp(),
            Self::Meier2 => meier_2([x[0], x[1], x[2], x[3]]),
            Self::Meier2Printed => meier_2([wide(1), wide(2), wide(3), wide(4)]),
            Self::VanDerLaan => van_der_laan() - wide(4) * wide(7),
            Self::VanDerLaanPrinted => van_der_laan(),
        }
    }

    /// The deviation of its noise.
    fn noise(self) -> f64 {
        match self {
            Self::Friedman | Self::Checkerboard => 1.0,
            _ => 0.5,
        }
    }

    fn features(
        self,
        patients: usize,
        features: usize,
        stream: &mut impl rand::Rng,
    ) -> Array2<f64> {
        let mut x = Array2::zeros((patients, features));
        for mut row in x.rows_mut() {
            let mut last = 0.0;
            for (place, value) in row.iter_mut().enumerate() {
                *value = match self {
                    Self::Checkerboard => {
                        let drawn: f64 = StandardNormal.sample(stream);
                        // A chain whose features i and j have the correlation 0.9^|i - j|.
                        let fresh = (1.0 - NEIGHBOURS * NEIGHBOURS).sqrt();
                        last = match place {
                            0 => drawn,
                            _ => NEIGHBOURS * last + fresh * drawn,
                        };
                        last
                    }
                    _ => stream.random_range(0.0..1.0),
                };
            }
        }
        x
    }
}

impl Kind {
    /// In the order of the paper's tables.
    pub const ALL: [Self; 3] = [Self::Number, Self::Class, Self::Survival];

    /// Its name on the command line and in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Class => "class",
            Self::Survival => "survival",
        }
    }

    /// How predictions of it are judged.
    #[must_use]
    pub fn measure(self) -> &'static str {
        match self {
            Self::Number => "mean squared error",
            Self::Class => "accuracy",
            Self::Survival => "concordance",
        }
    }
}

/// Patients to learn from, and others to predict.
pub(crate) struct Split {
    pub(crate) training: Cohort,
    pub(crate) test: Cohort,
}

impl Split {
    /// The first `training` patients of a random order.
    pub(crate) fn of(cohort: &Cohort, training: usize, stream: &mut impl rand::Rng) -> Self {
        let all: Vec<usize> = (0..cohort.patients()).collect();
        let order = Self::drawn(&all, all.len(), stream);
        let (first, last) = order.split_at(training.min(order.len()));
        Self {
            training: cohort.select(first),
            test: cohort.select(last),
        }
    }

    /// So many of `rows`, in a random order.
    pub(crate) fn drawn(rows: &[usize], count: usize, stream: &mut impl rand::Rng) -> Vec<usize> {
        let mut order = rows.to_vec();
        order.shuffle(stream);
        order.truncate(count);
        order
    }
}

/// One data set of a function.
pub(crate) fn drawn(
    function: Function,
    kind: Kind,
    [patients, features]: [usize; 2],
    seed: Seed,
    repeat: u64,
) -> Split {
    let name = format!(
        "study {} {} {patients} {features}",
        function.name(),
        kind.name()
    );
    let mut stream = seed.stream(&name, repeat);
    let x = function.features(patients, features, &mut stream);
    let noise = function.noise();
    let f: Array1<f64> = x
        .rows()
        .into_iter()
        .map(|row| {
            let drawn: f64 = StandardNormal.sample(&mut stream);
            function.of(&row.to_vec()) + noise * drawn
        })
        .collect();
    let outcome = match kind {
        Kind::Number => Outcome::Numeric(f),
        Kind::Class => classes(&f, &mut stream),
        Kind::Survival => survival(&f, &mut stream),
    };
    let columns = x.columns().into_iter().enumerate();
    let columns = columns.map(|(place, values)| Column {
        name: format!("x{}", place + 1),
        values: Values::Numeric(values.to_owned()),
    });
    let cohort = Cohort::new(columns.collect(), outcome).expect("as many outcomes as rows");
    // The patients are drawn independently: the first three of four are as good as any.
    let order: Vec<usize> = (0..patients).collect();
    let (first, last) = order.split_at(patients * TRAINING.0 / TRAINING.1);
    Split {
        training: cohort.select(first),
        test: cohort.select(last),
    }
}

pub(crate) fn median(values: &Array1<f64>) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        0 => (sorted[middle - 1] + sorted[middle]) / 2.0,
        _ => sorted[middle],
    }
}

pub(crate) fn two_classes(codes: Array1<u32>) -> Outcome {
    Outcome::Classes {
        codes,
        levels: vec!["negative".to_owned(), "positive".to_owned()],
    }
}

/// Positive with the chance 1 / (1 + exp(M - f)), M the median.
fn classes(f: &Array1<f64>, stream: &mut impl rand::Rng) -> Outcome {
    let middle = median(f);
    let drawn = f.mapv(|f| {
        let chance = 1.0 / (1.0 + (middle - f).exp());
        u32::from(stream.random_range(0.0..1.0) < chance)
    });
    two_classes(drawn)
}

/// Times with the hazard exp(f), and times of censoring of an exponential distribution.
fn survival(f: &Array1<f64>, stream: &mut impl rand::Rng) -> Outcome {
    let mut exponential = |mean: f64| {
        let drawn: f64 = Exp1.sample(stream);
        mean * drawn
    };
    let times = f.mapv(|f| exponential((-f).exp()));
    let censoring = CENSORING * median(&times);
    let ends = times.mapv(|_| exponential(censoring));
    let positive = |time: f64| time.max(f64::MIN_POSITIVE);
    Outcome::Survival {
        time: Array1::from_shape_fn(f.len(), |row| positive(times[row].min(ends[row]))),
        event: Array1::from_shape_fn(f.len(), |row| times[row] <= ends[row]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_the_values_that_their_formulas_have() {
        let x: Vec<f64> = (0..20).map(|place| f64::from(place) / 20.0).collect();
        // by Python's math, of 0, 1/20, 2/20, ...
        let wanted = [
            5.700000, 1.510000, 0.422712, 3.861066, 1.040000, 9.510612, 1.320000,
        ];
        for (function, wanted) in Function::ALL.into_iter().zip(wanted) {
            let found = function.of(&x);
            assert!((found - wanted).abs() < 1e-6, "{} {found}", function.name());
        }
    }

    #[test]
    fn neighbouring_features_of_the_checkerboard_are_correlated_and_classes_even() {
        let split = drawn(Function::Checkerboard, Kind::Class, [4000, 20], Seed(1), 0);
        let numbers = |place: usize| match &split.training.columns()[place].values {
            Values::Numeric(values) => values.clone(),
            Values::Categorical { .. } => panic!("not numbers"),
        };
        let (one, next, third) = (numbers(6), numbers(7), numbers(8));
        let n = one.len() as f64;
        assert!((one.dot(&next) / n - 0.9).abs() < 0.06);
        assert!((one.dot(&third) / n - 0.81).abs() < 0.06);
        let Outcome::Classes { codes, .. } = split.training.outcome() else {
            panic!("no classes")
        };
        let share = f64::from(codes.sum()) / n;
        assert!((share - 0.5).abs() < 0.04, "{share}");
        assert_eq!(
            (split.training.patients(), split.test.patients()),
            (3000, 1000)
        );
    }

    #[test]
    fn some_times_are_censored_and_a_data_set_repeats() {
        let draw = |repeat| drawn(Function::Meier1, Kind::Survival, [800, 20], Seed(1), repeat);
        let events = |split: &Split| match split.training.outcome() {
            Outcome::Survival { event, time } => {
                assert!(time.iter().all(|time| *time > 0.0));
                event.iter().filter(|event| **event).count()
            }
            _ => panic!("no times"),
        };
        let (one, same, other) = (draw(0), draw(0), draw(1));
        assert_eq!(events(&one), events(&same));
        assert_ne!(events(&one), events(&other));
        assert!((300..500).contains(&events(&one)), "{}", events(&one));
    }
}
