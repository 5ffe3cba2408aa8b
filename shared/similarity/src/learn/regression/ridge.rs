//! How strong a ridge is: stated, or chosen from the data.
//!
//! The chosen ridge takes the coefficients b, each per standard deviation of its column, to come from a normal distribution of
//! variance 1 / ridge. It makes the outcomes likeliest once the coefficients are integrated out: restricted likelihood by Laplace's
//! approximation (Patterson and Thompson 1971; Breslow and Clayton 1993). Every evaluation of Newton's method shows it anew, so that a fit
//! across sites has no exchange for it. A cross-validation would fit every candidate without every fold.
//!
//! With l the log-likelihood, g its gradient and H its information at coefficients b0, D the penalty of a ridge of 1, and
//! A = H + ridge D, the quadratic at b0 has its penalised maximum at c = A^-1 (H b0 + g), and
//! -2 log of the restricted likelihood = -2 l(c) + ridge c'Dc + log det A - p log ridge + constant.
//! Of a linear regression, whose variance is unknown too, the first two are (n - q) log(their sum), with q columns that have no
//! penalty.

use ndarray::{Array1, Array2};

use crate::learn::regression::fit::Model;
use crate::learn::regression::newton::Known;
use crate::numeric::portable::{Factor, dot, image};

/// Ridges are tried at these powers of 2, times the information that a column has on average, ...
const POWERS: std::ops::RangeInclusive<i32> = -20..=10;
/// ... and between the neighbours of the best by so many thirds.
const THIRDS: u32 = 20;

/// How strong the ridge of a regression is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ridge {
    /// Half of it times the sum of the squared coefficients, each per standard deviation of its column, is taken from the
    /// log-likelihood (of a linear regression from -1/2 of the sum of squared residuals); 0 is the plain fit.
    Stated(f64),
    /// Chosen from the data.
    Chosen,
}

impl Default for Ridge {
    fn default() -> Self {
        Self::Stated(0.0)
    }
}

impl Ridge {
    /// The ridge before anything is known. A chosen one begins at 1, so that there is a maximum also where columns part the outcomes.
    #[must_use]
    pub fn first(self) -> f64 {
        match self {
            Self::Stated(ridge) => ridge,
            Self::Chosen => 1.0,
        }
    }
}

/// A ridge that was chosen at an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The ridge.
    pub ridge: f64,
    /// Where the quadratic of the evaluation has its maximum under it.
    pub at: Array1<f64>,
    /// How far that is from the evaluation: (c - b0)'A(c - b0), in squared standard errors.
    pub away: f64,
}

/// The ridge under which the outcomes are likeliest; none where the evaluation has no curvature. `penalty` is that of a ridge of 1,
/// and of 0 where a column has none.
#[must_use]
pub fn chosen(model: Model, known: &Known<'_>, penalty: &Array1<f64>) -> Option<Choice> {
    let own = penalty.iter().zip(known.information.diag());
    let own = own.filter(|(penalty, _)| **penalty > 0.0);
    let information: f64 = own.map(|(_, own)| own).sum();
    let unit = information / penalty.sum();
    if !(unit.is_finite() && unit > 0.0) {
        return None;
    }
    let quadratic = Quadratic::new(model, known, penalty);
    let at = |power: f64| unit * libm::exp2(power);
    let value = |power: f64| quadratic.value(at(power));
    let tried = POWERS.map(|power| (value(power.into()), f64::from(power)));
    let (_, best) = tried
        .filter(|(value, _)| value.is_finite())
        .reduce(|best, one| if one.0 < best.0 { one } else { best })?;
    let (mut low, mut high) = (best - 1.0, best + 1.0);
    for _ in 0..THIRDS {
        let third = (high - low) / 3.0;
        let (one, other) = (low + third, high - third);
        match value(one) <= value(other) {
            true => high = other,
            false => low = one,
        }
    }
    quadratic.at(at((low + high) / 2.0))
}

/// The information with the penalty on its diagonal.
#[must_use]
pub fn penalised(information: &Array2<f64>, penalty: &Array1<f64>) -> Array2<f64> {
    let mut information = information.clone();
    let diagonal = information.diag_mut().into_iter().zip(penalty);
    diagonal.for_each(|(entry, penalty)| *entry += penalty);
    information
}

/// A log-likelihood near coefficients at which it was evaluated.
struct Quadratic<'q> {
    model: Model,
    known: &'q Known<'q>,
    /// Of a ridge of 1.
    penalty: &'q Array1<f64>,
    /// Columns with a penalty.
    penalised: f64,
    /// H b0 + g.
    pull: Array1<f64>,
}

impl<'q> Quadratic<'q> {
    fn new(model: Model, known: &'q Known<'q>, penalty: &'q Array1<f64>) -> Self {
        Self {
            pull: &image(known.information, known.at) + &known.gradient,
            penalised: penalty.iter().filter(|one| **one > 0.0).count() as f64,
            model,
            known,
            penalty,
        }
    }

    /// -2 log of the restricted likelihood, but for a constant.
    fn value(&self, ridge: f64) -> f64 {
        let Known {
            at,
            log_likelihood,
            gradient,
            information,
        } = self.known;
        let penalty = ridge * self.penalty;
        let Some(factor) = Factor::of(&penalised(information, &penalty)) else {
            return f64::INFINITY;
        };
        let found = factor.solve(&self.pull);
        let away = &found - *at;
        let curved = image(information, &away);
        let there = log_likelihood + dot(gradient, &away) - 0.5 * dot(&curved, &away);
        let twice = dot(&(&penalty * &found), &found) - 2.0 * there;
        let misfit = match self.model {
            Model::Linear => {
                // The first column is of ones: its information is the number of patients.
                let patients = information.first().copied().unwrap_or(0.0);
                let free = patients - (at.len() as f64 - self.penalised);
                free * libm::log(twice)
            }
            Model::Logistic | Model::Cox(_) | Model::Exponential { .. } => twice,
        };
        misfit + factor.log_determinant() - self.penalised * libm::log(ridge)
    }

    fn at(&self, ridge: f64) -> Option<Choice> {
        let curvature = penalised(self.known.information, &(ridge * self.penalty));
        let at = Factor::of(&curvature)?.solve(&self.pull);
        let away = &at - self.known.at;
        Some(Choice {
            away: dot(&image(&curvature, &away), &away),
            ridge,
            at,
        })
    }
}
