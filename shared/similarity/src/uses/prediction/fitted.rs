//! A learner fitted to a kernel matrix, and what it says of others.

use std::borrow::Cow;

use ndarray::{Array1, Array2, ArrayView1, Axis};

use super::{Learner, PredictionError};
use crate::cohort::Outcome;
use crate::learn::kernel::KernelFitError;
use crate::learn::kernel::gaussian::{Gaussian, Predicted};
use crate::learn::kernel::landmarks::LandmarkGaussian;
use crate::learn::kernel::logistic::Logistic;
use crate::learn::kernel::survival::SurvivalMachine;

/// The share of outcomes that an interval is to hold.
pub(super) const LEVEL: f64 = 0.95;
/// The largest violation at the end of a survival machine, in standard deviations of its scaled times.
const TOLERANCE: f64 = 1e-3;
/// The least chance that counts in a logarithmic loss.
const CHANCE_MIN: f64 = 1e-12;

/// How times are scaled before a machine learns them: (t' - mean) / deviation, t' the time or, where all are above 0, its logarithm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeScale {
    /// Whether logarithms are taken.
    pub is_logarithm: bool,
    /// Of what is scaled.
    pub mean: f64,
    /// Of what is scaled, 1 where all times are equal.
    pub deviation: f64,
}

/// A learner after its fit.
#[derive(Debug, Clone)]
pub enum Fitted {
    /// Of a number, on all patients' kernel.
    Number(Gaussian),
    /// Of a number, on landmarks.
    NumberByLandmarks(LandmarkGaussian),
    /// Of classes: one machine of two (the second class), or one each.
    Classes(Vec<Logistic>),
    /// Of a survival time.
    Time(SurvivalMachine, TimeScale),
}

/// What is predicted of m patients.
#[derive(Clone, PartialEq)]
pub enum Forecast {
    /// The chance of each class, m x C; rows add up to 1.
    Classes(Array2<f64>),
    /// A number each, with its interval.
    Numbers(Vec<Predicted>),
    /// A time each: it orders patients, and is no expectation.
    Times(Vec<f64>),
}

impl TimeScale {
    pub(super) fn of(time: &Array1<f64>) -> Result<Self, PredictionError> {
        if time.iter().any(|time| *time < 0.0) {
            return Err(PredictionError::NegativeTime);
        }
        let is_logarithm = time.iter().all(|time| *time > 0.0);
        let mut scale = Self {
            is_logarithm,
            mean: 0.0,
            deviation: 1.0,
        };
        let scaled = scale.scaled(time);
        scale.mean = scaled.sum() / time.len().max(1) as f64;
        let deviation = scaled.std(0.0);
        scale.deviation = if deviation > 0.0 { deviation } else { 1.0 };
        Ok(scale)
    }

    fn scaled(&self, time: &Array1<f64>) -> Array1<f64> {
        let taken = |time: f64| {
            if self.is_logarithm {
                libm::log(time)
            } else {
                time
            }
        };
        time.mapv(|time| (taken(time) - self.mean) / self.deviation)
    }

    fn time(&self, scaled: f64) -> f64 {
        let taken = scaled * self.deviation + self.mean;
        if self.is_logarithm {
            libm::exp(taken)
        } else {
            taken
        }
    }
}

/// Classes that are learned against the rest: of two the second alone.
pub(super) fn positives(levels: usize) -> std::ops::Range<u32> {
    match levels {
        2 => 1..2,
        many => 0..u32::try_from(many).unwrap_or(u32::MAX),
    }
}

impl Fitted {
    /// Learns the outcome of as many patients as the kernel has rows; `penalty` is lambda, the noise, or C. The diagonal of the kernel is
    /// lifted; of a number by more noise, so that its intervals know of it.
    ///
    /// # Errors
    /// [`PredictionError::Unsuited`], [`PredictionError::NegativeTime`], and [`PredictionError::Fit`] where there is nothing to learn.
    pub fn new(
        kernel: &Array2<f64>,
        outcome: &Outcome,
        learner: Learner,
        (penalty, lift): (f64, f64),
    ) -> Result<Self, PredictionError> {
        let mut lifted = Cow::Borrowed(kernel);
        if lift > 0.0 && !matches!(outcome, Outcome::Numeric(_)) {
            lifted.to_mut().diag_mut().mapv_inplace(|own| own + lift);
        }
        let kernel = lifted.as_ref();
        Ok(match (learner, outcome) {
            (Learner::Ridge | Learner::Gaussian, Outcome::Numeric(values)) => {
                Self::Number(Gaussian::fit(kernel, values, penalty + lift)?)
            }
            (Learner::Logistic, Outcome::Classes { codes, levels }) => {
                let one = |class: u32| {
                    let own = codes.mapv(|code| code == class);
                    of_class(&own, own.len(), || Logistic::fit(kernel, &own, penalty))
                };
                let fits = positives(levels.len()).map(one);
                Self::Classes(fits.collect::<Result<_, _>>()?)
            }
            (Learner::Survival, Outcome::Survival { time, event }) => {
                let scale = TimeScale::of(time)?;
                let scaled = scale.scaled(time);
                let machine = SurvivalMachine::fit(kernel, &scaled, event, penalty, TOLERANCE)?;
                Self::Time(machine, scale)
            }
            _ => return Err(PredictionError::Unsuited),
        })
    }

    /// What is predicted of m patients, by their kernel with those who were learned from, m x n, and with themselves.
    #[must_use]
    pub fn forecast(&self, cross: &Array2<f64>, own: &Array1<f64>) -> Forecast {
        match self {
            Self::Number(fit) => Forecast::Numbers(fit.predict(cross, own, LEVEL)),
            Self::NumberByLandmarks(fit) => Forecast::Numbers(fit.predict(cross, own, LEVEL)),
            Self::Classes(fits) => Forecast::Classes(chances(fits, cross)),
            Self::Time(machine, scale) => {
                let scaled = machine.predict(cross);
                Forecast::Times(scaled.iter().map(|one| scale.time(*one)).collect())
            }
        }
    }

    /// alpha of every patient (or landmark), n x outputs: a column for a number, a time and two classes, else one a class.
    #[must_use]
    pub fn weights(&self) -> Array2<f64> {
        let column = |weights: &Array1<f64>| weights.clone().insert_axis(Axis(1));
        match self {
            Self::Number(fit) => column(fit.weights()),
            Self::NumberByLandmarks(fit) => column(&fit.weights),
            Self::Time(machine, _) => column(&machine.weights),
            Self::Classes(fits) => {
                let patients = fits.first().map_or(0, |fit| fit.weights.len());
                Array2::from_shape_fn((patients, fits.len()), |(row, class)| {
                    fits[class].weights[row]
                })
            }
        }
    }
}

/// One class against the rest; nobody or everybody of it in a fold is a constant chance.
pub(super) fn of_class(
    own: &Array1<bool>,
    supports: usize,
    fit: impl FnOnce() -> Result<Logistic, KernelFitError>,
) -> Result<Logistic, KernelFitError> {
    match (own.iter().any(|own| *own), own.iter().all(|own| *own)) {
        (false, _) => Ok(Logistic {
            weights: Array1::zeros(supports),
            constant: libm::log(CHANCE_MIN),
        }),
        (_, true) => Err(KernelFitError::OneOutcome),
        _ => fit(),
    }
}

fn chances(fits: &[Logistic], cross: &Array2<f64>) -> Array2<f64> {
    let each: Vec<Array1<f64>> = fits.iter().map(|fit| fit.predict(cross)).collect();
    if let [second] = each.as_slice() {
        return Array2::from_shape_fn((cross.nrows(), 2), |(row, class)| match class {
            0 => 1.0 - second[row],
            _ => second[row],
        });
    }
    let mut shares = Array2::from_shape_fn((cross.nrows(), each.len()), |(row, class)| {
        let chance = each[class][row];
        if chance < CHANCE_MIN {
            CHANCE_MIN
        } else {
            chance
        }
    });
    for mut row in shares.rows_mut() {
        let sum = row.sum();
        row /= sum;
    }
    shares
}

impl Forecast {
    /// One number a patient as [`crate::judge::predicted::Predicted`] has it: the class's code, the number, or a risk. NaN where nothing is
    /// predicted.
    #[must_use]
    pub fn values(&self) -> Vec<f64> {
        let class = |row: ArrayView1<'_, f64>| match row.sum().is_nan() {
            true => f64::NAN,
            false => crate::judge::error::largest(row.iter().copied()) as f64,
        };
        match self {
            Self::Classes(shares) => shares.outer_iter().map(class).collect(),
            Self::Numbers(numbers) => numbers.iter().map(|one| one.mean).collect(),
            Self::Times(times) => times.iter().map(|time| -time).collect(),
        }
    }

    /// Scores that rise with the hazard, where times are predicted: minus their logarithms, where all are above 0.
    #[must_use]
    pub fn scores(&self, is_logarithm: bool) -> Option<Vec<f64>> {
        let score = |time: &f64| {
            if is_logarithm {
                -libm::log(*time)
            } else {
                -time
            }
        };
        match self {
            Self::Times(times) => Some(times.iter().map(score).collect()),
            Self::Classes(_) | Self::Numbers(_) => None,
        }
    }

    /// The chance of each class, where classes are predicted.
    #[must_use]
    pub fn shares(&self) -> Option<&Array2<f64>> {
        match self {
            Self::Classes(shares) => Some(shares),
            Self::Numbers(_) | Self::Times(_) => None,
        }
    }

    /// Those at these places, in this order.
    #[must_use]
    pub fn select(&self, places: &[usize]) -> Self {
        match self {
            Self::Classes(shares) => Self::Classes(shares.select(Axis(0), places)),
            Self::Numbers(numbers) => {
                Self::Numbers(places.iter().map(|place| numbers[*place]).collect())
            }
            Self::Times(times) => Self::Times(places.iter().map(|place| times[*place]).collect()),
        }
    }

    /// Patients.
    #[must_use]
    pub fn patients(&self) -> usize {
        match self {
            Self::Classes(shares) => shares.nrows(),
            Self::Numbers(numbers) => numbers.len(),
            Self::Times(times) => times.len(),
        }
    }

    /// The sum of logarithmic losses, and the patients who have one; of classes.
    pub(super) fn loss(&self, outcome: &Outcome) -> (f64, usize) {
        let (Self::Classes(shares), Outcome::Classes { codes, .. }) = (self, outcome) else {
            return (f64::NAN, 0);
        };
        let own = codes.iter().zip(shares.outer_iter());
        let chances = own.map(|(code, row)| row[*code as usize]);
        let known = chances.filter(|chance| !chance.is_nan());
        let known: Vec<f64> = known
            .map(|chance| -libm::log(chance.max(CHANCE_MIN)))
            .collect();
        (known.iter().sum(), known.len())
    }

    /// Of several blocks of patients one.
    pub(super) fn joined(blocks: Vec<Self>) -> Option<Self> {
        let mut blocks = blocks.into_iter();
        let mut whole = blocks.next()?;
        for block in blocks {
            match (&mut whole, block) {
                (Self::Classes(whole), Self::Classes(block)) => {
                    whole.append(Axis(0), block.view()).ok()?;
                }
                (Self::Numbers(whole), Self::Numbers(block)) => whole.extend(block),
                (Self::Times(whole), Self::Times(block)) => whole.extend(block),
                _ => return None,
            }
        }
        Some(whole)
    }
}

impl std::fmt::Debug for Forecast {
    /// Length only: predictions describe patients.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} predictions", self.patients())
    }
}
