//! Newton's method by sums over the sites: where all sites evaluate, and what is found.

use super::judging;
use super::message::{Answer, Design, Evaluating, Request, RiskSets, Sums, Weighing};
use super::model::Model;
use super::settings::RegressionSettings;
use crate::checks::unexpected;
use crate::cohort::CohortSpecification;
use crate::exchange::{Asking, Closed, Course, Silence, Stage, Turn, count};
use crate::failure::{Code, Failure};
use crate::limits::REGRESSION_COLUMNS_MAX;
use crate::message;
use crate::stage::preparing::Prepared;
use ndarray::Array2;
use similarity::learn::regression::cox::{CellCounts, RiskTerms};
use similarity::learn::regression::hazards::{Proportionality, TimeScale};
use similarity::learn::regression::newton::{Newton, Wanted};
use similarity::learn::regression::rows::Rows;
use similarity::learn::regression::{self, Fit, FitParts};
use std::sync::Arc;

/// A fit under way.
#[derive(Debug, Clone)]
pub(super) struct Fitting {
    settings: RegressionSettings,
    cohort: Arc<CohortSpecification>,
    family: regression::Model,
    rows: Rows,
    design: Arc<Design>,
    newton: Newton,
    /// Of the first evaluation, at 0.
    first: Option<First>,
    /// What the risk sets said where their products are wanted.
    terms: Option<RiskTerms>,
    /// Which sites told of the last question; none before the first.
    told: Option<Vec<bool>>,
    evaluations: u32,
    state: State,
}

#[derive(Debug, Clone)]
enum State {
    Stepping,
    /// Whether effects change with time.
    Testing(Box<Fit>),
}

/// What the sums at coefficients of 0 tell, whatever comes after.
#[derive(Debug, Clone)]
struct First {
    patients: u64,
    events: u64,
    null_log_likelihood: f64,
    /// Of a Cox regression.
    sets: RiskSets,
}

/// What was fitted.
#[derive(Debug, Clone)]
pub(super) struct Fitted {
    pub(super) model: Model,
    /// Where.
    pub(super) point: Evaluating,
}

impl Fitting {
    /// Of prepared sites.
    pub(super) fn start(
        settings: &RegressionSettings,
        cohort: Arc<CohortSpecification>,
        prepared: &Prepared,
    ) -> Result<Self, Failure> {
        let outcome = |text: &str| Failure::new(Code::Outcome, text);
        let family = settings.model(&cohort.outcome.kind).ok_or_else(|| {
            outcome("a regression wants two classes, a number or a survival time")
        })?;
        let moments = prepared
            .second_moments
            .as_ref()
            .ok_or_else(|| Failure::new(Code::Protocol, "no second moments were summed"))?;
        let columns = cohort.standardised_columns();
        let rows = Rows::new(&columns, &prepared.standardisation, moments);
        let named = rows.terms.names().len();
        if named > REGRESSION_COLUMNS_MAX {
            let text = format!("found {named} columns, wanted at most {REGRESSION_COLUMNS_MAX}");
            return Err(Failure::new(Code::Settings, text));
        }
        let parameters = rows.fitted.len() + usize::from(family.has_intercept());
        if rows.fitted.is_empty() || !settings.allows(parameters, moments.patients) {
            let text = format!(
                "found {parameters} coefficients and {} patients over all sites, wanted at least one column that varies, and three \
                 patients for each coefficient",
                moments.patients
            );
            return Err(Failure::new(Code::Settings, text));
        }
        let ends = match (cohort.grid_of_events(), family) {
            (Some(grid), regression::Model::Cox(_)) => {
                let at_least = settings.events_min(rows.fitted.len());
                let found = match settings.is_alone {
                    // Who is censored between two events is then at risk at the first of them alone.
                    true => Some((1..=grid.cells()).collect()),
                    false => cells(&prepared.events, settings.time_cells, at_least),
                };
                found.ok_or_else(|| {
                    let text = format!(
                        "found fewer than {at_least} events before the horizon over all sites"
                    );
                    Failure::new(Code::Outcome, text)
                })?
            }
            _ => Vec::new(),
        };
        let penalty = rows.scaling.penalty(settings.ridge, family);
        Ok(Self {
            settings: settings.clone(),
            cohort,
            family,
            design: Arc::new(Design {
                rows: rows.fitted.iter().map(|row| count(*row)).collect(),
                ends,
            }),
            newton: Newton::new(penalty),
            rows,
            first: None,
            terms: None,
            told: None,
            evaluations: 0,
            state: State::Stepping,
        })
    }

    fn point(&self) -> Evaluating {
        Evaluating {
            design: Arc::clone(&self.design),
            at: Arc::new(self.newton.asked().to_vec()),
        }
    }

    fn is_cox(&self) -> bool {
        !self.design.ends.is_empty()
    }

    fn request(&self) -> Request {
        let weighing = |weights| {
            Request::Weigh(Weighing {
                point: self.point(),
                weights: Arc::new(weights),
            })
        };
        match (&self.state, &self.terms) {
            (State::Testing(_), Some(terms)) => {
                weighing(self.proportionality(terms).weights().to_vec())
            }
            (State::Stepping, Some(terms)) => weighing(vec![terms.weights.clone()]),
            (_, None) => Request::Evaluate(self.point()),
        }
    }

    /// Nothing, of the shape that answers what is asked.
    fn empty(&self) -> Answer {
        let size = self.newton.asked().len();
        let square = || Array2::zeros((size, size));
        match (self.request(), self.is_cox()) {
            (Request::Weigh(weighing), _) => {
                Answer::Products(weighing.weights.iter().map(|_| square()).collect())
            }
            (_, true) => Answer::RiskSets {
                patients: 0,
                sets: RiskSets::zero(self.design.ends.len(), size),
            },
            (_, false) => Answer::Likelihood(Sums::zero(size)),
        }
    }

    /// The test of proportional hazards on the scale of Kaplan and Meier.
    fn proportionality<'r>(&self, terms: &'r RiskTerms) -> Proportionality<'r> {
        let counts = self.counts();
        let scale = TimeScale::KaplanMeier.at(&self.times(), &counts);
        Proportionality::new(terms, &scale, &counts.events)
    }

    /// When each cell ends.
    fn times(&self) -> Vec<f64> {
        let grid = self.cohort.grid_of_events();
        let ends = self.design.ends.iter();
        ends.filter_map(|end| Some(grid?.border(*end))).collect()
    }

    /// Patients of all sites by cells.
    fn counts(&self) -> CellCounts {
        match &self.first {
            Some(first) => CellCounts::of_sets(first.patients, &first.sets),
            None => CellCounts::of_sets(0, &RiskSets::zero(self.design.ends.len(), 0)),
        }
    }

    fn take_values(&mut self, answer: Answer) {
        self.evaluations += 1;
        let at = self.newton.asked().clone();
        match (answer, self.family) {
            (Answer::Likelihood(sums), family) => {
                self.first.get_or_insert_with(|| First::of(&sums, family));
                self.newton.learn_value(sums.log_likelihood, sums.gradient);
                if self.newton.wanted() == Wanted::Information {
                    self.newton.learn_information(sums.information);
                }
            }
            (Answer::RiskSets { patients, sets }, regression::Model::Cox(ties)) => {
                let first = self.first.get_or_insert_with(|| First {
                    patients,
                    events: sets.events().iter().sum(),
                    null_log_likelihood: sets.terms(&sets, &at, ties).log_likelihood,
                    sets: sets.clone(),
                });
                let terms = sets.terms(&first.sets, &at, ties);
                self.newton
                    .learn_value(terms.log_likelihood, terms.gradient(|_| 1.0));
                self.terms = (self.newton.wanted() == Wanted::Information).then_some(terms);
            }
            (Answer::RiskSets { .. } | Answer::Products(_), _) => {}
        }
    }

    /// Takes the products that a step wanted.
    fn take_products(&mut self, products: &[Array2<f64>]) {
        if let (Some(terms), Some(product)) = (&self.terms, products.first()) {
            let information = terms.information(product, |_| 1.0);
            self.newton.learn_information(information);
        }
    }

    /// The fit, once nothing more is wanted.
    fn fit(&self) -> Fit {
        let first = self.first.as_ref();
        Fit::assemble(FitParts {
            model: self.family,
            terms: self.rows.terms.clone(),
            scaling: self.rows.scaling.clone(),
            ridge: self.settings.ridge,
            maximum: self.newton.maximum(first.map_or(0, |first| first.patients)),
            null_log_likelihood: first.map_or(0.0, |first| first.null_log_likelihood),
            events: first.map_or(0, |first| first.events),
            left_out: 0,
        })
    }

    /// What it comes to; the point is the best, which may not be the last.
    fn fitted(&self, fit: &Fit, products: Option<&[Array2<f64>]>) -> Fitted {
        let mut model = Model::of(fit, self.settings.confidence);
        model.evaluations = self.evaluations;
        model.evaluations_max = self.settings.round_limit;
        if let (Some(terms), Some(products)) = (&self.terms, products) {
            model.baseline = fit.baseline(&self.times(), terms);
            if let Ok(products) = products.try_into() {
                let test = self.proportionality(terms);
                model.proportionality = test.tests(products, &fit.terms, &fit.places());
            }
        }
        let at = self.newton.maximum(0).at.to_vec();
        Fitted {
            model,
            point: Evaluating {
                design: Arc::clone(&self.design),
                at: Arc::new(at),
            },
        }
    }

    pub(super) fn course(&self) -> Course {
        Course {
            round: self.evaluations,
            round_limit: self.settings.round_limit,
            objective: self.newton.log_likelihood().map(|value| -value),
            ..Course::default()
        }
    }

    /// Other sites than before: their sum is of other patients, and the fit begins anew.
    fn restart(&mut self, told: &[bool]) -> bool {
        let changed = self.told.as_ref().is_some_and(|before| before != told);
        self.told = Some(told.to_vec());
        if changed {
            let penalty = self.rows.scaling.penalty(self.settings.ridge, self.family);
            self.newton = Newton::new(penalty);
            (self.first, self.terms) = (None, None);
            self.state = State::Stepping;
        }
        changed
    }
}

impl First {
    /// Of a linear or logistic regression's sums at 0.
    #[allow(clippy::cast_precision_loss)] // patients are far below 2^52
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a count of patients
    fn of(sums: &Sums, family: regression::Model) -> Self {
        let patients = sums.patients as f64;
        // The constant is the first column, of ones.
        let slope = sums.gradient.first().copied().unwrap_or(0.0);
        let (null_log_likelihood, events) = match family {
            regression::Model::Logistic => {
                let positive = (slope + patients / 2.0).round();
                let of_class = |count: f64| match count > 0.0 {
                    true => count * (count / patients).ln(),
                    false => 0.0,
                };
                let value = of_class(positive) + of_class(patients - positive);
                (value, positive as u64)
            }
            regression::Model::Linear | regression::Model::Cox(_) => {
                let squares = -2.0 * sums.log_likelihood - slope * slope / patients;
                (regression::fit::normal_log_likelihood(squares, patients), 0)
            }
        };
        Self {
            patients: sums.patients,
            events,
            null_log_likelihood,
            sets: RiskSets::zero(0, 0),
        }
    }
}

/// Where the cells of the time grid end: at most so many, each of at least so many of the events, which come by steps of their grid.
/// None where all events are too few for one.
fn cells(events: &[u64], most: u32, at_least: u64) -> Option<Vec<u32>> {
    let all: u64 = events.iter().sum();
    let wanted = at_least.max(all.div_ceil(u64::from(most))).max(1);
    if all < wanted {
        return None;
    }
    let (mut ends, mut inside, mut left) = (Vec::new(), 0, all);
    for (end, events) in (1..).zip(events) {
        inside += events;
        left -= events;
        if inside >= wanted && left >= wanted {
            ends.push(end);
            inside = 0;
        }
    }
    ends.push(count(events.len()));
    Some(ends)
}

impl Asking for Fitting {
    fn phase(&self) -> &'static str {
        "fitting"
    }

    fn silence(&self) -> Silence {
        Silence::Out
    }

    fn reminds(&self) -> bool {
        false
    }

    fn ask(&self, _: usize) -> Option<message::Request> {
        Some(message::Request::Regression(self.request()))
    }

    fn judge(&self, _: usize, patients: u64, answer: &message::Answer) -> Result<(), Failure> {
        judging::answer(answer, &self.empty(), patients)
    }

    fn blank(&self) -> Option<message::Answer> {
        Some(message::Answer::Regression(self.empty()))
    }

    fn course(&self) -> Course {
        Fitting::course(self)
    }
}

impl Stage for Fitting {
    type Output = Fitted;

    fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Fitted>, Failure> {
        let sum = match closed.take_sum()? {
            message::Answer::Regression(sum) => sum,
            other => return Err(unexpected(&other, "sums over the patients")),
        };
        let asked = self.request();
        if self.restart(closed.told) && asked != self.request() {
            closed.notes.push(
                "The sites that answered changed while the regression was fitted, which began anew with those that are there."
                    .to_owned(),
            );
            return Ok(Turn::Ask);
        }
        if let State::Testing(fit) = &self.state {
            let Answer::Products(products) = sum else {
                return Err(Failure::new(Code::Protocol, "no products were summed"));
            };
            return Ok(Turn::Done(self.fitted(fit, Some(&products))));
        }
        match sum {
            Answer::Products(products) => self.take_products(&products),
            sum => self.take_values(sum),
        }
        if self.newton.wanted() == Wanted::Information {
            return Ok(Turn::Ask);
        }
        let is_over = self.newton.wanted() == Wanted::Nothing;
        if !is_over && self.evaluations < self.settings.round_limit {
            self.terms = None;
            return Ok(Turn::Ask);
        }
        let fit = self.fit();
        let converged = fit.ending == regression::Ending::Converged;
        if converged && self.is_cox() && self.terms.is_some() {
            self.state = State::Testing(Box::new(fit));
            return Ok(Turn::Ask);
        }
        Ok(Turn::Done(self.fitted(&fit, None)))
    }
}
