//! What a run of regression leaves to its operator.

use super::placing;
use crate::cohort::Feature;
use crate::cohort::{CohortSpecification, Value};
use crate::exchange::{Course, count};
use crate::method::room::{MethodModel, Placing};
use crate::method::{Unplaced, placed};
use similarity::cohort::spline::curve;
use similarity::judge::paired::holm;
pub use similarity::learn::regression::absolute::{Risk, risk_of_reference};
pub use similarity::learn::regression::exponential::HazardStep;
pub use similarity::learn::regression::hazards::ProportionalityTest;
use similarity::learn::regression::selection;
pub use similarity::learn::regression::selection::Criterion;
use similarity::learn::regression::terms::{Term, TermKind, Terms};
use similarity::learn::regression::{Ending, Estimate, Fit};
pub use similarity::learn::regression::{Model as Family, Ties};

/// Points of a drawn curve, but one.
const POINTS: u32 = 120;

/// A regression of the patients of all sites.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// What was fitted.
    pub family: Family,
    /// Patients that it was fitted to.
    pub patients: u64,
    /// Events, or patients of the second class; 0 of a linear regression.
    pub events: u64,
    /// Log-likelihood at the coefficients, without the penalty.
    pub log_likelihood: f64,
    /// The log-likelihood without any column.
    pub null_log_likelihood: f64,
    /// Akaike's criterion.
    pub aic: f64,
    /// The residual standard deviation of a linear regression.
    pub residual_deviation: Option<f64>,
    /// One a column, the constant first where there is one.
    pub coefficients: Vec<Coefficient>,
    /// Wald's test of each feature, all its columns together.
    pub features: Vec<FeatureTest>,
    /// What is to be known before it is believed.
    pub remarks: Vec<String>,
    /// Whether the maximum was found.
    pub converged: bool,
    /// Newton steps.
    pub steps: u32,
    /// Evaluations, and how many there may be.
    pub evaluations: u32,
    /// See `evaluations`.
    pub evaluations_max: u32,
    /// Of a survival time whether effects change with time.
    pub proportionality: Vec<ProportionalityTest>,
    /// The hazard of a patient of zeros, where all sites have one baseline.
    pub baseline: Vec<HazardStep>,
    /// The features that have a spline.
    pub splines: Vec<Spline>,
    /// What stands for a missing value of each feature of the job, after its transform: of the patients of all sites.
    pub imputed: Vec<Value>,
    /// What a selection of features did; none where all stay.
    pub selection: Option<Selection>,
}

/// A feature's natural cubic spline.
#[derive(Debug, Clone, PartialEq)]
pub struct Spline {
    /// The feature.
    pub feature: String,
    /// Its knots, rising, in the feature's unit after its transform.
    pub knots: Vec<f64>,
}

impl Spline {
    /// Whether a column is the feature itself or a curved part of it.
    #[must_use]
    pub fn has(&self, column: &str) -> bool {
        let rest = column.strip_prefix(&self.feature);
        rest.is_some_and(|rest| rest.bytes().all(|one| one == b'\''))
    }
}

/// A backward selection.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// What a feature must be worth to stay.
    pub criterion: Criterion,
    /// What left, in order.
    pub removed: Vec<Removed>,
    /// Models that were fitted.
    pub fits: u32,
    /// Why it ended before its time; none where it did not.
    pub stopped: Option<Stopped>,
}

/// A feature that left.
#[derive(Debug, Clone, PartialEq)]
pub struct Removed {
    /// The feature.
    pub feature: String,
    /// Coefficients that left with it.
    pub degrees: u32,
    /// Akaike's criterion without it, or its Wald p.
    pub value: f64,
}

/// Why a selection ended before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The job's evaluations were used up.
    Evaluations,
    /// The coefficients of one more fit would have been too many for the patients.
    Coefficients,
}

impl Stopped {
    /// In words.
    #[must_use]
    pub fn remark(self) -> String {
        let why = match self {
            Self::Evaluations => "the evaluations of round_limit were used up",
            Self::Coefficients => {
                "with one more fit the coefficients of all fits would have been more than a third of the patients"
            }
        };
        format!("the selection ended before its time, because {why}; more features might have left")
    }
}

impl Selection {
    /// Of a search among `features` that took so many fits.
    pub(super) fn new(
        criterion: Criterion,
        removed: &[selection::Removed],
        features: &[Feature],
        fits: u32,
        stopped: Option<Stopped>,
    ) -> Self {
        let named = removed.iter().map(|one| Removed {
            feature: features[one.feature].name.clone(),
            degrees: count(one.degrees),
            value: one.value,
        });
        Self {
            criterion,
            removed: named.collect(),
            fits,
            stopped,
        }
    }
}

/// A coefficient in its own unit, and how sure it is. What could not be estimated has none of the other numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Coefficient {
    /// Its column: a feature, `feature=level` or `feature=missing`, or `(constant)`.
    pub name: String,
    /// The coefficient: a log odds or log hazard ratio.
    pub value: f64,
    /// By how much of its unit patients differ usually: the standard deviation of a number, 1 of a level and of the constant.
    pub step: f64,
    /// The mean of a number, in its unit after its transform; 0 of a level and of the constant.
    pub reference: f64,
    /// Its standard error, the ends of its interval and Wald's p.
    pub sureness: Option<Sureness>,
    /// What a distance weighs the column by, where that is not the coefficient: the coefficient under the ridge that the data ask for.
    pub weight: Option<f64>,
}

/// How sure a coefficient is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sureness {
    /// Its standard error.
    pub standard_error: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The chance of a value at least as far from 0 if it were 0.
    pub p: f64,
}

/// Wald's test of a feature.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureTest {
    /// The feature.
    pub feature: String,
    /// Its chi-squared.
    pub chi_squared: f64,
    /// Degrees of freedom.
    pub degrees: u32,
    /// The chance of a larger one if all its coefficients were 0.
    pub p: f64,
}

impl Model {
    /// Of a fit, with intervals of this confidence.
    pub(super) fn of(fit: &Fit, confidence: f64) -> Self {
        let ones = usize::from(fit.model.has_intercept());
        let steps = std::iter::repeat_n(1.0, ones).chain(fit.steps());
        let references = std::iter::repeat_n(0.0, ones).chain(fit.references());
        let coefficient = |(one, (step, reference)): (Estimate, (f64, f64))| Coefficient {
            name: one.name,
            value: one.value,
            weight: None,
            step,
            reference,
            sureness: (one.standard_error.is_finite() && one.p.is_finite()).then_some(Sureness {
                standard_error: one.standard_error,
                low: one.low,
                high: one.high,
                p: one.p,
            }),
        };
        let terms = fit.terms.terms().iter().enumerate();
        let tests = terms.filter_map(|(place, term)| {
            let (chi_squared, degrees, p) = fit.wald(place)?;
            let is_known = chi_squared.is_finite() && p.is_finite();
            is_known.then(|| FeatureTest {
                feature: term.name.clone(),
                chi_squared,
                degrees: count(degrees),
                p,
            })
        });
        let spline = |term: &Term| match &term.kind {
            TermKind::Numeric { knots, .. } if !knots.is_empty() => Some(Spline {
                feature: term.name.clone(),
                knots: knots.clone(),
            }),
            TermKind::Numeric { .. } | TermKind::Categorical { .. } => None,
        };
        Self {
            splines: fit.terms.terms().iter().filter_map(spline).collect(),
            imputed: Vec::new(),
            selection: None,
            family: fit.model,
            patients: fit.patients,
            events: fit.events,
            log_likelihood: fit.log_likelihood,
            null_log_likelihood: fit.null_log_likelihood,
            aic: fit.aic(),
            residual_deviation: fit.residual_deviation,
            coefficients: fit
                .estimates(confidence)
                .into_iter()
                .zip(steps.zip(references))
                .map(coefficient)
                .collect(),
            features: tests.collect(),
            remarks: fit.remarks(),
            converged: fit.ending == Ending::Converged,
            steps: fit.steps,
            evaluations: 0,
            evaluations_max: 0,
            proportionality: Vec::new(),
            baseline: Vec::new(),
        }
    }

    /// Notes what stands for missing values, by the terms of all features.
    pub(super) fn impute(&mut self, terms: &Terms) {
        let imputed = terms.terms().iter().map(|term| match term.kind {
            TermKind::Numeric { imputed, .. } => Value::Number(imputed),
            TermKind::Categorical { imputed, .. } => Value::Level(imputed as usize),
        });
        self.imputed = imputed.collect();
    }

    /// Gives the coefficients, but the constant, what a distance weighs their columns by.
    pub(super) fn weigh(&mut self, weights: &[f64]) {
        let constants = self.coefficients.len().saturating_sub(weights.len());
        let columns = self.coefficients.iter_mut().skip(constants);
        for (coefficient, weight) in columns.zip(weights) {
            coefficient.weight = Some(*weight);
        }
    }

    /// Of a run that has fitted nothing.
    pub(super) fn nothing(family: Family) -> Self {
        Self {
            family,
            patients: 0,
            events: 0,
            log_likelihood: 0.0,
            null_log_likelihood: 0.0,
            aic: 0.0,
            residual_deviation: None,
            coefficients: Vec::new(),
            features: Vec::new(),
            remarks: Vec::new(),
            converged: false,
            steps: 0,
            evaluations: 0,
            evaluations_max: 0,
            proportionality: Vec::new(),
            baseline: Vec::new(),
            splines: Vec::new(),
            imputed: Vec::new(),
            selection: None,
        }
    }

    /// How far its evaluations came.
    #[must_use]
    pub fn course(&self) -> Course {
        Course {
            round: self.evaluations,
            round_limit: self.evaluations_max,
            objective: (!self.coefficients.is_empty()).then_some(-self.log_likelihood),
            ..Course::default()
        }
    }

    /// What a spline adds to the linear predictor beside its middle knot, at points from a tenth of the knots' span before the first to
    /// as far behind the last.
    #[must_use]
    pub fn along(&self, spline: &Spline) -> Vec<(f64, f64)> {
        let knots = &spline.knots;
        let (Some(first), Some(last)) = (knots.first(), knots.last()) else {
            return Vec::new();
        };
        let own: Vec<f64> = self
            .coefficients
            .iter()
            .filter(|one| spline.has(&one.name))
            .map(|one| one.value)
            .collect();
        let at = |x: f64| -> f64 {
            let parts = own.iter().enumerate();
            parts
                .map(|(part, value)| value * curve(x, knots, part))
                .sum()
        };
        let (middle, margin) = (at(knots[knots.len() / 2]), (last - first) / 10.0);
        let step = (last - first + 2.0 * margin) / f64::from(POINTS);
        let points = (0..=POINTS).map(|point| first - margin + step * f64::from(point));
        points.map(|x| (x, at(x) - middle)).collect()
    }

    /// The features whose effect changes with time beyond chance, with their p by Holm's correction over all features.
    #[must_use]
    pub fn changing(&self, level: f64) -> Vec<(&str, f64)> {
        let named = |test: &'_ ProportionalityTest| test.term.is_some();
        let tests = self.proportionality.iter().filter(|test| named(test));
        let chances: Vec<f64> = tests.clone().map(|test| test.p).collect();
        let names = tests.filter_map(|test| test.term.as_deref());
        let all = names.zip(holm(&chances));
        all.filter(|(_, p)| *p < level).collect()
    }

    /// How ties were taken; none but of a Cox regression.
    #[must_use]
    pub fn ties(&self) -> Option<Ties> {
        match self.family {
            Family::Cox(ties) => Some(ties),
            Family::Linear | Family::Logistic | Family::Exponential { .. } => None,
        }
    }

    /// Whether it is of a survival time.
    #[must_use]
    pub fn is_survival(&self) -> bool {
        match self.family {
            Family::Cox(_) | Family::Exponential { .. } => true,
            Family::Linear | Family::Logistic => false,
        }
    }
}

impl MethodModel for Model {
    fn course(&self) -> Course {
        Self::course(self)
    }

    fn judges(&self) -> Option<u32> {
        None
    }

    fn is_learnt(&self, _: bool) -> bool {
        !self.coefficients.is_empty()
    }

    /// Every number of it is one over all patients, or of a gate of its own.
    fn publish(&mut self, _: u64) {}

    fn placing(&self) -> Option<&dyn Placing> {
        Some(self)
    }
}

impl Placing for Model {
    fn coordinates(&self, cohort: &CohortSpecification) -> usize {
        match self.coefficients.is_empty() {
            true => 0,
            false => cohort.features.len(),
        }
    }

    /// A curve is known by its knots, and patients of elsewhere are placed by straight lines alone.
    fn place(
        &self,
        cohort: &CohortSpecification,
        patients: &[Vec<Value>],
    ) -> Result<Vec<Vec<f64>>, Unplaced> {
        match self.splines.is_empty() {
            true => placed(patients, |patient| placing::place(self, cohort, patient)),
            false => Err(Unplaced::Nothing),
        }
    }
}
