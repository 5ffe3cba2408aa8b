//! From a cohort to a fit: complete patients, scaled columns, and the way back to the columns' own units.

use ndarray::{Array1, Array2, Axis};

use crate::cohort::{Cohort, Outcome};
use crate::learn::regression::cox::{FollowUp, Ties};
use crate::learn::regression::fit::{Fit, FitParts, Model, normal_log_likelihood};
use crate::learn::regression::glm::Family;
use crate::learn::regression::newton::{Maximum, Newton, Wanted};
use crate::learn::regression::ridge::Ridge;
use crate::learn::regression::selection::Weighed;
use crate::learn::regression::sums::{ColumnSums, Products, Scaling};
use crate::learn::regression::terms::{Terms, TermsError};
use crate::numeric::precision::Precision;

/// How a regression is made.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    /// How strong the ridge is.
    pub ridge: Ridge,
    /// How tied events of a Cox regression are taken.
    pub ties: Ties,
    /// Degrees of freedom of the spline of each column, 1 being a line; lines alone where it is empty.
    pub splines: Vec<usize>,
    /// The terms, where they are known already: then every patient takes part, and these say what stands for a missing value.
    pub terms: Option<Terms>,
}

/// A regression that cannot be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RegressionError {
    /// The columns do not give terms.
    #[error(transparent)]
    Terms(#[from] TermsError),
    /// More than two classes.
    #[error("found an outcome of {found} classes, wanted 2, a number or a survival time")]
    Classes {
        /// Number of classes.
        found: usize,
    },
    /// One class only.
    #[error("all patients with complete values have the same outcome")]
    OneOutcome,
    /// Nobody had an event.
    #[error("no patient with complete values had an event")]
    NoEvents,
    /// A time that cannot be.
    #[error("found a follow-up below 0 or not finite")]
    Times,
    /// As many coefficients as patients.
    #[error(
        "found {columns} coefficients and {patients} patients with complete values; wanted fewer coefficients than \
         patients, or a ridge above 0"
    )]
    TooManyColumns {
        /// Coefficients.
        columns: usize,
        /// Patients without a missing value.
        patients: usize,
    },
    /// No column says anything.
    #[error("every column is constant; wanted one that varies")]
    NothingVaries,
    /// An unusable ridge.
    #[error("found a ridge of {found}, wanted a finite number of at least 0")]
    Ridge {
        /// What was found.
        found: f64,
    },
}

/// Complete patients, ready for sums.
pub(super) struct Prepared {
    terms: Terms,
    scaling: Scaling,
    /// Their fitted columns, moved and scaled.
    pub(super) design: Array2<f64>,
    pub(super) target: Target,
    left_out: u64,
}

/// What is regressed.
pub(super) enum Target {
    Glm(Family, Array1<f64>),
    Cox {
        follow_up: FollowUp,
        time: Array1<f64>,
        event: Array1<bool>,
        ties: Ties,
    },
}

/// Fits the regression that the outcome asks for, on the patients without a missing value.
///
/// # Errors
/// [`RegressionError`].
pub fn fit(cohort: &Cohort, settings: &Settings) -> Result<Fit, RegressionError> {
    fit_and_weigh(cohort, settings).map(|(fit, _)| fit)
}

/// The same, and what a search for the features that matter looks at.
pub(super) fn fit_and_weigh(
    cohort: &Cohort,
    settings: &Settings,
) -> Result<(Fit, Weighed), RegressionError> {
    let prepared = Prepared::new(cohort, settings)?;
    let model = prepared.target.model();
    let penalty = |ridge: f64| prepared.scaling.penalty(ridge, model);
    let begun = Newton::new(penalty(settings.ridge.first()), Precision::Exact);
    let newton = prepared.maximised(match settings.ridge {
        Ridge::Stated(_) => begun,
        Ridge::Chosen => begun.choosing(model),
    });
    let ridge = newton.ridge().unwrap_or(settings.ridge.first());
    let maximum = newton.maximum(prepared.design.nrows() as u64);
    let places = prepared.scaling.places(&prepared.terms, model);
    let weighed = Weighed::of(model, &maximum, &penalty(ridge), &places);
    Ok((prepared.fit(maximum, ridge), weighed))
}

impl Prepared {
    pub(super) fn new(cohort: &Cohort, settings: &Settings) -> Result<Self, RegressionError> {
        let ridge = settings.ridge.first();
        if !(ridge.is_finite() && ridge >= 0.0) {
            return Err(RegressionError::Ridge { found: ridge });
        }
        let (rows, terms) = match &settings.terms {
            Some(terms) => ((0..cohort.patients()).collect(), terms.clone()),
            None => {
                let lines = vec![1; cohort.columns().len()];
                let splines = match settings.splines.is_empty() {
                    true => &lines,
                    false => &settings.splines,
                };
                let terms = Terms::of_columns(cohort.columns(), splines)?;
                (cohort.complete(), terms)
            }
        };
        let target = Target::of(cohort.outcome(), &rows, settings)?;
        let matrix = terms.matrix(cohort.select(&rows).columns())?;
        let means = ColumnSums::of(&matrix.view()).means();
        let products = Products::of(&matrix.view(), &means);
        let scaling = Scaling::new(&terms, means, &products);
        if scaling.kept().is_empty() {
            return Err(RegressionError::NothingVaries);
        }
        let intercept = target.model().has_intercept();
        let columns = terms.names().len() + usize::from(intercept);
        if columns >= rows.len() && ridge == 0.0 {
            return Err(RegressionError::TooManyColumns {
                columns,
                patients: rows.len(),
            });
        }
        Ok(Self {
            design: scaling.apply(&matrix.view(), intercept),
            terms,
            scaling,
            target,
            left_out: (cohort.patients() - rows.len()) as u64,
        })
    }

    /// Newton's method at its end.
    fn maximised(&self, mut newton: Newton) -> Newton {
        let design = self.design.view();
        while newton.wanted() != Wanted::Nothing {
            let at = newton.asked();
            let sums = match &self.target {
                Target::Glm(family, y) => family.sums(&design, y, at),
                Target::Cox {
                    follow_up, ties, ..
                } => follow_up.sums(&design, at, *ties),
            };
            newton.learn_value(sums.log_likelihood, sums.gradient);
            if newton.wanted() == Wanted::Information {
                newton.learn_information(sums.information);
            }
        }
        newton
    }

    /// The fit at what Newton's method found.
    fn fit(&self, maximum: Maximum, ridge: f64) -> Fit {
        let (null_log_likelihood, events) = self.target.without_columns();
        Fit::assemble(FitParts {
            model: self.target.model(),
            terms: self.terms.clone(),
            scaling: self.scaling.clone(),
            ridge,
            maximum,
            null_log_likelihood,
            events,
            left_out: self.left_out,
        })
    }
}

impl Target {
    fn of(outcome: &Outcome, rows: &[usize], settings: &Settings) -> Result<Self, RegressionError> {
        match outcome {
            Outcome::Numeric(values) => {
                let y = values.select(Axis(0), rows);
                if y.iter().all(|value| *value == y[0]) {
                    return Err(RegressionError::OneOutcome);
                }
                Ok(Self::Glm(Family::Linear, y))
            }
            Outcome::Classes { levels, .. } if levels.len() != 2 => Err(RegressionError::Classes {
                found: levels.len(),
            }),
            Outcome::Classes { codes, .. } => {
                let y = codes.select(Axis(0), rows).mapv(f64::from);
                let positive = y.sum();
                if positive == 0.0 || positive == y.len() as f64 {
                    return Err(RegressionError::OneOutcome);
                }
                Ok(Self::Glm(Family::Logistic, y))
            }
            Outcome::Survival { time, event } => {
                let time = time.select(Axis(0), rows);
                let event = event.select(Axis(0), rows);
                if time.iter().any(|time| !(time.is_finite() && *time >= 0.0)) {
                    return Err(RegressionError::Times);
                }
                let follow_up = FollowUp::exact(&time, &event);
                if follow_up.events() == 0 {
                    return Err(RegressionError::NoEvents);
                }
                Ok(Self::Cox {
                    follow_up,
                    time,
                    event,
                    ties: settings.ties,
                })
            }
        }
    }

    fn model(&self) -> Model {
        match self {
            Self::Glm(Family::Linear, _) => Model::Linear,
            Self::Glm(Family::Logistic, _) => Model::Logistic,
            Self::Cox { ties, .. } => Model::Cox(*ties),
        }
    }

    /// The log-likelihood without any column, and the events.
    fn without_columns(&self) -> (f64, u64) {
        match self {
            Self::Glm(Family::Linear, y) => {
                let mean = y.sum() / y.len() as f64;
                let squares = y.iter().map(|value| (value - mean).powi(2)).sum();
                (normal_log_likelihood(squares, y.len() as f64), 0)
            }
            Self::Glm(Family::Logistic, y) => {
                let (all, positive) = (y.len() as f64, y.sum());
                let negative = all - positive;
                let value =
                    positive * libm::log(positive / all) + negative * libm::log(negative / all);
                (value, positive as u64)
            }
            Self::Cox {
                follow_up,
                time,
                ties,
                ..
            } => {
                let (nothing, at) = (Array2::zeros((time.len(), 0)), Array1::zeros(0));
                let terms = follow_up.terms(&nothing.view(), &at, *ties);
                (terms.log_likelihood, follow_up.events())
            }
        }
    }
}
