//! How strong a ridge is: stated, or the one that the data ask for.
//!
//! Coefficients b, each per standard deviation of its column, are taken to come of a normal distribution of variance 1 / ridge. The
//! chosen ridge makes the outcomes likeliest once the coefficients are integrated out (the restricted likelihood, by Laplace's
//! approximation; Patterson and Thompson 1971, Wood 2011). It follows from one fit's maximum, so that several sites are asked for
//! nothing more than the fit itself. A cross-validation would fit every candidate without every fold.
//!
//! With l the log-likelihood, H its information at a maximum b0, P0 the penalty there, D the penalty of a ridge of 1, and
//! A = H + ridge D, the quadratic at b0 has its penalised maximum at c = A^-1 (H + P0) b0, and
//! -2 log of the restricted likelihood = -2 l(c) + ridge c'Dc + log det A - p log ridge + constant.
//! Of a linear regression, whose variance is not known either, the first two are (n - q) log(their sum), with q columns that have no
//! penalty.

use ndarray::Array1;

use crate::learn::regression::fit::Model;
use crate::learn::regression::newton::{Factor, Maximum, inner, penalised};

/// Ridges are tried by these powers of 2, times the information that a column has on average, ...
const POWERS: std::ops::RangeInclusive<i32> = -20..=10;
/// ... and between the neighbours of the best by so many thirds.
const THIRDS: u32 = 30;

/// How strong the ridge of a regression is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ridge {
    /// Half of it times the sum of the squared coefficients, each per standard deviation of its column, is taken from the
    /// log-likelihood (of a linear regression from -1/2 of the sum of squared residuals); 0 is the plain fit.
    Stated(f64),
    /// The one that the data ask for.
    Chosen,
}

impl Default for Ridge {
    fn default() -> Self {
        Self::Stated(0.0)
    }
}

impl Ridge {
    /// The ridge of the first fit. From that of 1 a ridge is chosen: it has a maximum also where columns part the outcomes.
    #[must_use]
    pub fn first(self) -> f64 {
        match self {
            Self::Stated(ridge) => ridge,
            Self::Chosen => 1.0,
        }
    }

    /// The ridge of the fit that follows the first; none where nothing follows. `penalty` is that of a ridge of 1, and of 0 where a
    /// column has none.
    #[must_use]
    pub fn next(self, model: Model, first: &Maximum, penalty: &Array1<f64>) -> Option<f64> {
        match self {
            Self::Stated(_) => None,
            Self::Chosen => chosen(model, first, penalty, self.first()),
        }
    }
}

/// The ridge under which the outcomes are likeliest; none where the maximum has no curvature.
fn chosen(model: Model, maximum: &Maximum, penalty: &Array1<f64>, ridge: f64) -> Option<f64> {
    let penalties: f64 = penalty.sum();
    let own = penalty.iter().zip(maximum.information.diag());
    let information: f64 = own.filter(|(one, _)| **one > 0.0).map(|(_, own)| own).sum();
    let unit = information / penalties;
    if !(unit.is_finite() && unit > 0.0) {
        return None;
    }
    let quadratic = Quadratic::new(model, maximum, penalty, ridge);
    let at = |power: f64| unit * libm::exp2(power);
    let tried = POWERS.map(|power| (quadratic.value(at(power.into())), f64::from(power)));
    let (_, best) = tried
        .filter(|(value, _)| value.is_finite())
        .reduce(|best, one| if one.0 < best.0 { one } else { best })?;
    let (mut low, mut high) = (best - 1.0, best + 1.0);
    for _ in 0..THIRDS {
        let third = (high - low) / 3.0;
        let (one, other) = (low + third, high - third);
        match quadratic.value(at(one)) <= quadratic.value(at(other)) {
            true => high = other,
            false => low = one,
        }
    }
    Some(at((low + high) / 2.0))
}

/// A log-likelihood near its maximum under a first penalty.
struct Quadratic<'m> {
    model: Model,
    maximum: &'m Maximum,
    /// Of a ridge of 1.
    penalty: &'m Array1<f64>,
    /// Columns with a penalty.
    penalised: f64,
    /// Of the log-likelihood, without the penalty.
    gradient: Array1<f64>,
    /// (H + P0) b0.
    pull: Array1<f64>,
}

impl<'m> Quadratic<'m> {
    fn new(model: Model, maximum: &'m Maximum, penalty: &'m Array1<f64>, ridge: f64) -> Self {
        let gradient = ridge * (penalty * &maximum.at);
        let rows = maximum.information.outer_iter();
        let curved: Array1<f64> = rows.map(|row| inner(&row.to_owned(), &maximum.at)).collect();
        Self {
            pull: &curved + &gradient,
            penalised: penalty.iter().filter(|one| **one > 0.0).count() as f64,
            gradient,
            model,
            maximum,
            penalty,
        }
    }

    /// Smaller is likelier.
    fn value(&self, ridge: f64) -> f64 {
        let Maximum {
            at,
            patients,
            log_likelihood,
            information,
            ..
        } = self.maximum;
        let penalty = ridge * self.penalty;
        let Some(factor) = Factor::of(&penalised(information, &penalty)) else {
            return f64::INFINITY;
        };
        let found = factor.solve(&self.pull);
        let away = &found - at;
        let rows = information.outer_iter();
        let curved: Array1<f64> = rows.map(|row| inner(&row.to_owned(), &away)).collect();
        let there = log_likelihood + inner(&self.gradient, &away) - 0.5 * inner(&curved, &away);
        let twice = inner(&(&penalty * &found), &found) - 2.0 * there;
        let misfit = match self.model {
            Model::Linear => {
                let free = *patients as f64 - (at.len() as f64 - self.penalised);
                free * libm::log(twice)
            }
            Model::Logistic | Model::Cox(_) | Model::Exponential { .. } => twice,
        };
        misfit + factor.log_determinant() - self.penalised * libm::log(ridge)
    }
}
