//! A regression of a cohort's outcome on its columns.

use ndarray::{Array1, Array2, Axis, s};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::cohort::Column;
use crate::cohort::spline::curve;
use crate::learn::regression::cox::Ties;
use crate::learn::regression::newton::{Ending, Maximum};
use crate::learn::regression::ridge::penalised;
use crate::learn::regression::sums::{Aliased, Scaling};
use crate::learn::regression::terms::{TermKind, Terms, TermsError};
use crate::numeric::chi_squared::above;
use crate::numeric::portable::{Factor, dot, image, product};

/// What the outcome is regressed by: it follows from its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// A number: linear regression.
    Linear,
    /// Two classes: logistic regression of the second.
    Logistic,
    /// A survival time: Cox regression.
    Cox(Ties),
    /// A survival time: a hazard that is constant in cells of time, and the same for all sites.
    Exponential {
        /// Cells with an event, each of which has a parameter.
        cells: u32,
    },
}

/// A fitted regression. Coefficients are in the columns' own units; that of a column which others already say is 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// What was fitted.
    pub model: Model,
    /// The features, as they were fixed at the fit.
    pub terms: Terms,
    /// Patients without a missing value, that it was fitted to.
    pub patients: u64,
    /// Patients who were excluded for a missing value.
    pub left_out: u64,
    /// Events, or patients of the second class; 0 of a linear regression.
    pub events: u64,
    /// The constant, where there is one.
    pub intercept: f64,
    /// The hazard of a patient of zeros in each cell with an event, where there are cells.
    pub hazards: Vec<f64>,
    /// One a column of [`Terms::names`].
    pub coefficients: Array1<f64>,
    /// Their covariance, p x p; rows and columns of a constant, or of log hazards, come first.
    pub covariance: Array2<f64>,
    /// The residual standard deviation of a linear regression.
    pub residual_deviation: Option<f64>,
    /// Log-likelihood, without the penalty.
    pub log_likelihood: f64,
    /// The log-likelihood without any column.
    pub null_log_likelihood: f64,
    /// Columns that others already say: its name, and theirs (none of a constant).
    pub aliased: Vec<(String, Vec<String>)>,
    /// The ridge, stated or chosen: see [`Ridge::Stated`](crate::learn::regression::Ridge::Stated).
    pub ridge: f64,
    /// Newton steps.
    pub steps: u32,
    /// How it ended; columns are numbers of [`Terms::names`].
    pub ending: Ending,
    pub(super) scaling: Scaling,
}

/// What a fit is put together from: of one cohort, or of what several sites added up to.
#[derive(Debug, Clone, PartialEq)]
pub struct FitParts {
    /// What was fitted.
    pub model: Model,
    /// The features.
    pub terms: Terms,
    /// How their columns were moved and scaled.
    pub scaling: Scaling,
    /// The ridge: see [`Ridge::Stated`](crate::learn::regression::Ridge::Stated).
    pub ridge: f64,
    /// What Newton's method found, on the scaled columns.
    pub maximum: Maximum,
    /// The log-likelihood without any column.
    pub null_log_likelihood: f64,
    /// Events, or patients of the second class.
    pub events: u64,
    /// Patients who were excluded.
    pub left_out: u64,
}

/// A coefficient and how sure it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Its column, or `(constant)`.
    pub name: String,
    /// The coefficient, in the outcome's unit per unit of the column; a log odds or log hazard ratio.
    pub value: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The chance of a value at least as far from 0 if it were 0 (Wald).
    pub p: f64,
}

impl Model {
    /// Whether it has a constant, which is then the first of the fitted columns.
    #[must_use]
    pub fn has_intercept(self) -> bool {
        match self {
            Self::Linear | Self::Logistic => true,
            Self::Cox(_) | Self::Exponential { .. } => false,
        }
    }

    /// Parameters that come before the coefficients of the columns: a constant, or log hazards.
    #[must_use]
    pub fn leading(self) -> usize {
        match self {
            Self::Linear | Self::Logistic => 1,
            Self::Cox(_) => 0,
            Self::Exponential { cells } => cells as usize,
        }
    }
}

/// The log-likelihood of normal residuals with this sum of squares, their variance being its mean.
#[must_use]
pub fn normal_log_likelihood(squares: f64, patients: f64) -> f64 {
    let variance = squares / patients;
    -0.5 * patients * (libm::log(2.0 * std::f64::consts::PI * variance) + 1.0)
}

impl Fit {
    /// Puts a fit together, back in the columns' own units.
    #[must_use]
    pub fn assemble(parts: FitParts) -> Self {
        let FitParts {
            model,
            terms,
            scaling,
            maximum,
            ..
        } = parts;
        let names = terms.names();
        let ones = model.leading();
        let back = scaling.back(ones);
        let own_units = image(&back, &maximum.at);
        let patients = maximum.patients as f64;
        let (variance, log_likelihood) = match model {
            Model::Linear => {
                let squares = -2.0 * maximum.log_likelihood;
                let free = (patients - maximum.at.len() as f64).max(0.0);
                let value = normal_log_likelihood(squares, patients);
                (Some(squares / free), value)
            }
            Model::Logistic | Model::Cox(_) | Model::Exponential { .. } => {
                (None, maximum.log_likelihood)
            }
        };
        let size = back.ncols();
        let penalty = scaling.penalty(parts.ridge, model);
        let inverse = Factor::of(&penalised(&maximum.information, &penalty)).map_or_else(
            || Array2::from_elem((size, size), f64::NAN),
            |factor| factor.solve_all(&Array2::eye(size)),
        );
        let aliased = |one: &Aliased| {
            let by = one.by.iter().map(|column| names[*column].clone());
            (names[one.column].clone(), by.collect())
        };
        let place = |column: &usize| Some(scaling.kept[column.checked_sub(ones)?]);
        Self {
            model,
            patients: maximum.patients,
            left_out: parts.left_out,
            events: parts.events,
            intercept: if model.has_intercept() {
                own_units[0]
            } else {
                0.0
            },
            hazards: match model {
                Model::Linear | Model::Logistic | Model::Cox(_) => Vec::new(),
                Model::Exponential { .. } => own_units.slice(s![..ones]).mapv(libm::exp).to_vec(),
            },
            coefficients: own_units.slice_move(s![ones..]),
            covariance: product(&product(&back, &inverse), &back.t()) * variance.unwrap_or(1.0),
            residual_deviation: variance.map(f64::sqrt),
            log_likelihood,
            null_log_likelihood: parts.null_log_likelihood,
            aliased: scaling.aliased.iter().map(aliased).collect(),
            ridge: parts.ridge,
            steps: maximum.steps,
            ending: match &maximum.ending {
                Ending::Separated(columns) => {
                    Ending::Separated(columns.iter().filter_map(place).collect())
                }
                ending @ (Ending::Converged | Ending::StepLimit) => ending.clone(),
            },
            terms,
            scaling,
        }
    }

    /// Other fitted parameters than its own, as [`Fit::coefficients`] has them.
    #[must_use]
    pub fn in_own_units(&self, at: &Array1<f64>) -> Vec<f64> {
        let ones = self.model.leading();
        let own_units = image(&self.scaling.back(ones), at);
        own_units.slice(s![ones..]).to_vec()
    }

    /// Every coefficient with its standard error, interval of confidence `level` (0 to 1) and Wald test: by Student's t
    /// of a linear regression, by the normal distribution of the others. Columns that others already say have NaN.
    #[must_use]
    pub fn estimates(&self, level: f64) -> Vec<Estimate> {
        let ones = usize::from(self.model.has_intercept());
        let before = self.model.leading() - ones;
        let free = self.patients as f64 - self.parameters() as f64;
        let constant = self
            .model
            .has_intercept()
            .then(|| ("(constant)".to_owned(), self.intercept));
        let named = self
            .terms
            .names()
            .into_iter()
            .zip(self.coefficients.iter().copied());
        let law = Law::of(self.model, free);
        let width = law.quantile(0.5 + level / 2.0);
        constant
            .into_iter()
            .chain(named)
            .enumerate()
            .map(|(place, (name, value))| {
                let left_out = place >= ones && !self.scaling.kept.contains(&(place - ones));
                let variance = self.covariance[(before + place, before + place)];
                let error = if left_out { f64::NAN } else { variance.sqrt() };
                Estimate {
                    name,
                    value,
                    standard_error: error,
                    low: value - width * error,
                    high: value + width * error,
                    p: 2.0 * law.beyond((value / error).abs()),
                }
            })
            .collect()
    }

    /// By how much of its unit patients differ usually in each column: the standard deviation of a number, 1 of a level.
    #[must_use]
    pub fn steps(&self) -> Vec<f64> {
        let mut steps = self.scaling.deviations.to_vec();
        for (term, block) in self.terms.terms().iter().zip(self.terms.blocks()) {
            let counted = match &term.kind {
                TermKind::Numeric { .. } => block.end - usize::from(term.indicator)..block.end,
                TermKind::Categorical { .. } => block,
            };
            steps[counted].fill(1.0);
        }
        steps
    }

    /// The value of each column for a patient whose numbers are their means and whose levels are the first.
    #[must_use]
    pub fn references(&self) -> Vec<f64> {
        let mut references = vec![0.0; self.coefficients.len()];
        for (term, block) in self.terms.terms().iter().zip(self.terms.blocks()) {
            let TermKind::Numeric { knots, .. } = &term.kind else {
                continue;
            };
            let mean = self.scaling.means[block.start];
            let columns = block.start..block.end - usize::from(term.indicator);
            for (part, column) in columns.enumerate() {
                references[column] = curve(mean, knots, part);
            }
        }
        references
    }

    /// Wald's chi-squared of a feature, all its columns together, its degrees of freedom and its p; none of a feature
    /// that others already say.
    #[must_use]
    pub fn wald(&self, term: usize) -> Option<(f64, usize, f64)> {
        let ones = self.model.leading();
        let columns: Vec<usize> = self.terms.blocks()[term]
            .clone()
            .filter(|column| self.scaling.kept.contains(column))
            .collect();
        let degrees = (!columns.is_empty()).then_some(columns.len())?;
        let places: Vec<usize> = columns.iter().map(|column| column + ones).collect();
        let covariance = self
            .covariance
            .select(Axis(0), &places)
            .select(Axis(1), &places);
        let values = self.coefficients.select(Axis(0), &columns);
        let chi_squared = dot(&values, &Factor::of(&covariance)?.solve(&values));
        Some((chi_squared, degrees, above(chi_squared, degrees)))
    }

    /// Akaike's criterion, -2 log-likelihood + 2 parameters (the variance of a linear regression is one).
    #[must_use]
    pub fn aic(&self) -> f64 {
        let variance = usize::from(self.model == Model::Linear);
        2.0 * (self.parameters() + variance) as f64 - 2.0 * self.log_likelihood
    }

    /// Coefficients and log hazards that were fitted.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.scaling.kept.len() + self.model.leading()
    }

    /// The linear predictor of every patient, missing values filled in: a mean, log odds, or log hazard ratio to a patient
    /// of zeros.
    ///
    /// # Errors
    /// [`TermsError`] where the columns are not those of the fit.
    pub fn linear_predictor(&self, columns: &[Column]) -> Result<Array1<f64>, TermsError> {
        Ok(image(&self.terms.matrix(columns)?, &self.coefficients) + self.intercept)
    }

    /// In words, what is to be known of the fit before it is believed: excluded patients, columns that others already
    /// say, columns without an end.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let names = self.terms.names();
        let mut remarks = Vec::new();
        for (name, by) in &self.aliased {
            remarks.push(match by.as_slice() {
                [] => format!("{name} is constant and has no coefficient"),
                by => format!(
                    "{name} follows from {} and has no coefficient",
                    by.join(", ")
                ),
            });
        }
        match &self.ending {
            Ending::Converged => {}
            Ending::Separated(columns) => {
                let named: Vec<&str> = columns.iter().map(|column| &*names[*column]).collect();
                remarks.push(format!(
                    "{} parts the outcomes perfectly, so that its coefficient has no end; use a larger ridge, or leave it out",
                    named.join(", ")
                ));
            }
            Ending::StepLimit => remarks.push(format!("no maximum after {} steps", self.steps)),
        }
        remarks
    }
}

/// The distribution of a coefficient over its standard error.
enum Law {
    Normal(Normal),
    Student(StudentsT),
    /// No patient is left over to tell the variance.
    Unknown,
}

impl Law {
    fn of(model: Model, free: f64) -> Self {
        match model {
            Model::Linear => StudentsT::new(0.0, 1.0, free).map_or(Self::Unknown, Self::Student),
            Model::Logistic | Model::Cox(_) | Model::Exponential { .. } => {
                Self::Normal(Normal::standard())
            }
        }
    }

    fn quantile(&self, share: f64) -> f64 {
        match self {
            Self::Normal(law) => law.inverse_cdf(share),
            Self::Student(law) => law.inverse_cdf(share),
            Self::Unknown => f64::NAN,
        }
    }

    fn beyond(&self, value: f64) -> f64 {
        match self {
            _ if value.is_nan() => f64::NAN,
            Self::Normal(law) => law.sf(value),
            Self::Student(law) => law.sf(value),
            Self::Unknown => f64::NAN,
        }
    }
}
