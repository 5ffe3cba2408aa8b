//! Whether a regression suits some patients, whatever it was learned from.
//!
//! Fitted coefficients suit the patients of every site, or nearly. Others are somebody's choice, or a step that went too
//! far. Who chooses them, and knows all but one value of every patient, reads that value from the sums at 240 of them.

use ndarray::{Array1, Axis};

use crate::cohort::Outcome;
use crate::learn::regression::Ties;
use crate::learn::regression::cox::FollowUp;
use crate::numeric::precision::Fit;

/// By how much a regression may suit patients worse than none, in log-likelihood; the second of every patient, where that is more. Of 400
/// questions of honest fits, of hospitals of 14 to 303 patients, the worst was at -1.3.
const LOSS: f64 = 2.0;
const LOSS_A_PATIENT: f64 = 0.02;
/// Newton's steps for the constant at most, and how small the last may be.
const STEPS_MAX: usize = 50;
const STEP_MIN: f64 = 1e-6;
/// By how much one step changes the constant at most: the log odds of few patients bend much.
const STEP_MAX: f64 = 2.0;

/// Some patients, and their log-likelihood without any feature.
#[derive(Debug, Clone)]
pub enum Gain {
    /// Numbers, whose sums say the same anywhere.
    Numbers,
    /// Of each patient whether it is of the second class.
    Classes {
        /// One a patient.
        second: Array1<bool>,
        /// The log-likelihood at the constant that suits them best.
        without: f64,
    },
    /// Survival times.
    Survival {
        /// Up to the horizon.
        follow_up: FollowUp,
        /// The partial log-likelihood, by Efron's approximation.
        without: f64,
    },
}

impl Gain {
    /// Of patients with this outcome, of whose survival times what is up to the `horizon` counts.
    #[must_use]
    pub fn of(outcome: &Outcome, horizon: f64) -> Self {
        match outcome {
            Outcome::Numeric(_) => Self::Numbers,
            Outcome::Classes { codes, .. } => {
                let second = codes.mapv(|code| code == 1);
                let without = of_classes(&Array1::zeros(second.len()), &second);
                Self::Classes { second, without }
            }
            Outcome::Survival { time, event } => {
                let follow_up = FollowUp::until(time, event, horizon);
                let without = of_times(&Array1::zeros(time.len()), &follow_up);
                Self::Survival { follow_up, without }
            }
        }
    }

    /// Whether these linear predictors suit the patients; those of numbers always do. Patients of one class, or without an event, say
    /// nothing of it, and so they never do.
    ///
    /// # Panics
    /// Where there are not as many predictors as patients.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // patients are far below 2^52
    pub fn fit(&self, predictors: &Array1<f64>) -> Fit {
        let Some(gain) = self.by(predictors) else {
            return Fit::SUITS;
        };
        let loss = LOSS.max(LOSS_A_PATIENT * predictors.len() as f64);
        match self.has_both() && gain >= -loss {
            true => Fit::SUITS,
            false => Fit::UNFIT,
        }
    }

    /// Whether some patients have what others have not: without it there is no likelihood to lose.
    fn has_both(&self) -> bool {
        match self {
            Self::Numbers => true,
            Self::Classes { without, .. } | Self::Survival { without, .. } => *without < 0.0,
        }
    }

    /// By how much the log-likelihood of the patients rises from no features at all to these linear predictors; none of numbers.
    ///
    /// Of classes each side has the constant that suits these patients best, so that another share of the second class counts for
    /// nothing. Of survival times it is that of these patients alone.
    fn by(&self, predictors: &Array1<f64>) -> Option<f64> {
        match self {
            Self::Numbers => None,
            Self::Classes { second, without } => Some(of_classes(predictors, second) - without),
            Self::Survival { follow_up, without } => {
                Some(of_times(predictors, follow_up) - without)
            }
        }
    }
}

/// The partial log-likelihood, by Efron's approximation.
fn of_times(predictors: &Array1<f64>, follow_up: &FollowUp) -> f64 {
    let column = predictors.view().insert_axis(Axis(1));
    let sums = follow_up.sums(&column, &Array1::ones(1), Ties::Efron);
    sums.log_likelihood
}

/// The log-likelihood with the best constant; 0, which it comes near without an end, where all are of one class.
#[allow(clippy::cast_precision_loss)] // patients are far below 2^52
fn of_classes(predictors: &Array1<f64>, second: &Array1<bool>) -> f64 {
    let count = second.iter().filter(|is_second| **is_second).count();
    if count == 0 || count == second.len() {
        return 0.0;
    }
    let log_odds = libm::log(count as f64 / (second.len() - count) as f64);
    let mut constant = log_odds - predictors.mean().unwrap_or(0.0);
    for _ in 0..STEPS_MAX {
        let (mut expected, mut curvature) = (0.0, 0.0);
        for predictor in predictors {
            let share = 1.0 / (1.0 + libm::exp(-(predictor + constant)));
            expected += share;
            curvature += share * (1.0 - share);
        }
        let step = (count as f64 - expected) / curvature.max(f64::MIN_POSITIVE);
        let step = step.clamp(-STEP_MAX, STEP_MAX);
        constant += step;
        if step.abs() < STEP_MIN {
            break;
        }
    }
    let patients = predictors.iter().zip(second);
    let each = patients.map(|(predictor, is_second)| {
        // Of whoever is of the other class, the same seen from there.
        let towards = match is_second {
            true => predictor + constant,
            false => -(predictor + constant),
        };
        towards.min(0.0) - libm::log1p(libm::exp(-towards.abs()))
    });
    each.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    fn gain(predictors: &Array1<f64>, outcome: &Outcome, horizon: f64) -> Option<f64> {
        Gain::of(outcome, horizon).by(predictors)
    }

    fn suits(predictors: &Array1<f64>, outcome: &Outcome) -> bool {
        Gain::of(outcome, 1.0).fit(predictors) == Fit::SUITS
    }

    fn classes(codes: Array1<u32>) -> Outcome {
        let levels = vec!["healthy".to_owned(), "ill".to_owned()];
        Outcome::Classes { codes, levels }
    }

    /// R 4.2.2: `logLik(glm(y ~ 1 + offset(eta), family = binomial)) - logLik(glm(y ~ 1, family = binomial))`, and
    /// `diff(coxph(Surv(t, e) ~ eta, init = 1, iter.max = 0)$loglik)` taken against `init = 0`, of survival 3.5.3.
    #[test]
    fn gains_are_those_of_r() {
        let predictors = array![-2.0, 0.5, 1.5, -0.5, 2.5, 0.0, 1.0, -1.0];
        let outcome = classes(array![0, 1, 1, 0, 1, 1, 0, 0]);
        let found = gain(&predictors, &outcome, 10.0).unwrap();
        assert!((found - 1.915_285_311_967_83).abs() < 1e-8, "{found}");
        let shifted = gain(&(&predictors + 5.0), &outcome, 10.0).unwrap();
        assert!((shifted - found).abs() < 1e-8, "a constant changes it");
        let survival = Outcome::Survival {
            time: array![5.0, 3.0, 2.0, 6.0, 1.0, 4.0, 3.0, 7.0],
            event: array![true, true, true, false, true, false, true, true],
        };
        let found = gain(&predictors, &survival, 10.0).unwrap();
        assert!((found - 3.060_056_151_976_15).abs() < 1e-8, "{found}");
    }

    #[test]
    fn what_is_steep_must_suit_the_patients() {
        let outcome = classes(Array1::from_shape_fn(100, |row| (row % 2) as u32));
        let against = Array1::from_shape_fn(100, |row| if row % 2 == 0 { 1.0 } else { -1.0 });
        assert!(suits(&-&against, &outcome));
        assert!(!suits(&against, &outcome));
        assert!(suits(&(&against * 0.01), &outcome));
        assert!(!suits(&(&against * f64::NAN), &outcome));
        assert!(!suits(&(&against * f64::INFINITY), &outcome));
        let numbers = Outcome::Numeric(against.clone());
        assert!(suits(&(&against * 9.0), &numbers));
    }

    #[test]
    fn what_fits_worse_than_nothing_has_a_negative_gain() {
        let predictors = array![2.0, -2.0, 2.0, -2.0];
        let against = classes(array![0, 1, 0, 1]);
        assert!(gain(&predictors, &against, 1.0).unwrap() < -5.0);
        let one_class = classes(array![1, 1, 1, 1]);
        assert_eq!(gain(&predictors, &one_class, 1.0), Some(0.0));
        assert!(!suits(&predictors, &one_class));
        let event = Array1::from_elem(4, false);
        let time = array![1.0, 2.0, 3.0, 4.0];
        assert!(!suits(&predictors, &Outcome::Survival { time, event }));
        let numbers = Outcome::Numeric(predictors.clone());
        assert_eq!(gain(&predictors, &numbers, 1.0), None);
        // Nothing overflows, and what is no number is none.
        let far = array![1e6, -1e6, 1e6, -1e6];
        assert!(gain(&far, &against, 1.0).unwrap() < -1e5);
        let none = array![f64::NAN, 0.0, 0.0, 0.0];
        assert!(gain(&none, &against, 1.0).unwrap().is_nan());
    }
}
