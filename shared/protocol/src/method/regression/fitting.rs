//! The fits of a run by sums over the sites: which features are fitted, where all sites evaluate, and what is found.

use super::attempt::Attempt;
use super::judging;
use super::message::{Answer, Evaluating, Request, Weighing};
use super::model::{Model, Selection, Stopped};
use super::settings::RegressionSettings;
use crate::checks::unexpected;
use crate::cohort::CohortSpecification;
use crate::exchange::{Asking, Closed, Course, Stage, Turn, count};
use crate::failure::{Code, Failure};
use crate::limits::REGRESSION_COLUMNS_MAX;
use crate::message;
use crate::stage::preparing::Prepared;
use ndarray::Array2;
use similarity::cohort::standardise::{Feature, Standardisation};
use similarity::learn::regression::cox::RiskTerms;
use similarity::learn::regression::hazards::{Proportionality, TimeScale};
use similarity::learn::regression::newton::Wanted;
use similarity::learn::regression::rows::Rows;
use similarity::learn::regression::selection::Search;
use similarity::learn::regression::{self, Fit};
use similarity::learn::unpsl::SecondMoments;
use std::sync::Arc;

/// Fits under way.
#[derive(Debug, Clone)]
pub(crate) struct Fitting {
    settings: RegressionSettings,
    cohort: Arc<CohortSpecification>,
    sources: Sources,
    /// Of all features, before anything was asked.
    whole: Attempt,
    /// What is fitted now, or was fitted last.
    attempt: Attempt,
    /// Which features are worth their coefficients; none before all are fitted, or where all stay.
    search: Option<Search<Attempt>>,
    evaluations: u32,
    /// Fits, and their coefficients, that were asked for.
    fits: u32,
    coefficients: u64,
    /// Why the search ended before its time.
    stopped: Option<Stopped>,
    state: State,
}

/// What the columns of every model follow from.
#[derive(Debug, Clone)]
struct Sources {
    features: Vec<Feature>,
    standardisation: Standardisation,
    moments: SecondMoments,
}

#[derive(Debug, Clone)]
enum State {
    Stepping,
    /// Whether effects change with time.
    Testing(Box<Fit>),
}

/// What was fitted.
#[derive(Debug, Clone)]
pub(crate) struct Fitted {
    pub(crate) model: Model,
    /// Where.
    pub(crate) point: Evaluating,
}

impl Sources {
    fn rows(&self, chosen: &[usize]) -> Rows {
        Rows::new(&self.features, &self.standardisation, &self.moments, chosen)
    }
}

impl Fitting {
    /// Of prepared sites, all patients or all but a fold.
    pub(crate) fn start(
        settings: &RegressionSettings,
        cohort: Arc<CohortSpecification>,
        prepared: &Prepared,
        fold: Option<u32>,
    ) -> Result<Self, Failure> {
        let outcome = |text: &str| Failure::new(Code::Outcome, text);
        let family = settings.model(&cohort.outcome.kind).ok_or_else(|| {
            outcome("a regression wants two classes, a number or a survival time")
        })?;
        let moments = prepared
            .second_moments
            .clone()
            .ok_or_else(|| Failure::new(Code::Protocol, "no second moments were summed"))?;
        let sources = Sources {
            features: cohort.standardised_columns(),
            standardisation: prepared.standardisation.clone(),
            moments,
        };
        let all: Vec<usize> = (0..sources.features.len()).collect();
        let rows = sources.rows(&all);
        let named = rows.terms.names().len();
        if named > REGRESSION_COLUMNS_MAX {
            let text = format!("found {named} columns, wanted at most {REGRESSION_COLUMNS_MAX}");
            return Err(Failure::new(Code::Settings, text));
        }
        let parameters = rows.fitted.len() + usize::from(family.has_intercept());
        let patients = sources.moments.patients;
        let all_parts = parameters as u64 * u64::from(settings.parts);
        if rows.fitted.is_empty() || !settings.allows(all_parts, patients) {
            let text = format!(
                "found {all_parts} coefficients and {patients} patients over all sites, wanted at least one column that varies, \
                 and three patients for each coefficient"
            );
            return Err(Failure::new(Code::Settings, text));
        }
        let ends = ends(
            settings,
            &cohort,
            family,
            rows.fitted.len(),
            &prepared.events,
        )?;
        let whole = Attempt::new(settings, family, rows, ends, fold);
        Ok(Self {
            settings: settings.clone(),
            cohort,
            sources,
            attempt: whole.clone(),
            search: None,
            evaluations: 0,
            fits: 1,
            coefficients: whole.coefficients(),
            stopped: None,
            state: State::Stepping,
            whole,
        })
    }

    fn request(&self) -> Request {
        match (&self.state, self.attempt.terms()) {
            (State::Testing(_), Some(terms)) => Request::Weigh(Weighing {
                point: self.attempt.point(),
                weights: Arc::new(self.proportionality(terms).weights().to_vec()),
            }),
            _ => self.attempt.request(),
        }
    }

    /// The test of proportional hazards on the scale of Kaplan and Meier.
    fn proportionality<'r>(&self, terms: &'r RiskTerms) -> Proportionality<'r> {
        let counts = self.attempt.counts();
        let scale = TimeScale::KaplanMeier.at(&self.times(), &counts);
        Proportionality::new(terms, &scale, &counts.events)
    }

    /// When each cell ends.
    fn times(&self) -> Vec<f64> {
        let grid = self.cohort.grid_of_events();
        let ends = self.attempt.ends().iter();
        ends.filter_map(|end| Some(grid?.border(*end))).collect()
    }

    /// Whether another evaluation may be asked for.
    fn may_ask(&self) -> bool {
        self.evaluations < self.settings.round_limit
    }

    /// Goes on to the next model of the search, where there is one; else the attempt is the model that is left.
    fn search_on(&mut self) -> bool {
        let Some(criterion) = self.settings.selection else {
            return false;
        };
        let mut found = Some((self.attempt.weighed(), self.attempt.clone()));
        loop {
            let search = match &mut self.search {
                Some(search) => {
                    search.learn(found.take());
                    search
                }
                empty => {
                    let Some((weighed, attempt)) = found.take() else {
                        return false;
                    };
                    let features = self.sources.features.len();
                    empty.insert(Search::new(criterion, features, weighed, attempt))
                }
            };
            self.attempt = search.best().clone();
            let Some(wanted) = search.wanted() else {
                return false;
            };
            let rows = self.sources.rows(&wanted);
            if rows.fitted.is_empty() {
                continue;
            }
            let next = self.attempt.reduced(&self.settings, rows);
            if next.newton().wanted() == Wanted::Nothing {
                self.fits += 1;
                found = Some((next.weighed(), next));
                continue;
            }
            self.stopped = self.stops(&next);
            if self.stopped.is_some() {
                return false;
            }
            self.fits += 1;
            self.coefficients += next.coefficients();
            self.attempt = next;
            return true;
        }
    }

    /// Why a further fit is not asked for.
    fn stops(&self, next: &Attempt) -> Option<Stopped> {
        let coefficients = self.coefficients + next.coefficients();
        let patients = self.sources.moments.patients;
        if !self.may_ask() {
            Some(Stopped::Evaluations)
        } else if !self.settings.allows(coefficients, patients) {
            Some(Stopped::Coefficients)
        } else {
            None
        }
    }

    /// What it comes to.
    fn fitted(&self, fit: &Fit, products: Option<&[Array2<f64>]>) -> Fitted {
        let mut model = Model::of(fit, self.settings.confidence);
        model.evaluations = self.evaluations;
        model.evaluations_max = self.settings.round_limit;
        if let (Some(terms), Some(products)) = (self.attempt.terms(), products) {
            model.baseline = fit.baseline(&self.times(), terms);
            if let Ok(products) = products.try_into() {
                let test = self.proportionality(terms);
                model.proportionality = test.tests(products, &fit.terms, &fit.places());
            }
        }
        if let Some(criterion) = self.settings.selection {
            let removed = self.search.as_ref().map_or(&[][..], Search::removed);
            let features = &self.cohort.features;
            let selection = Selection::new(criterion, removed, features, self.fits, self.stopped);
            model.selection = Some(selection);
            model.remarks.extend(self.stopped.map(Stopped::remark));
        }
        Fitted {
            model,
            point: self.attempt.best(),
        }
    }

    pub(super) fn course(&self) -> Course {
        Course {
            round: self.evaluations,
            round_limit: self.settings.round_limit,
            objective: self.attempt.newton().log_likelihood().map(|value| -value),
            ..Course::default()
        }
    }
}

/// Where the cells of follow-up of a Cox regression of so many columns end; none of another.
fn ends(
    settings: &RegressionSettings,
    cohort: &CohortSpecification,
    family: regression::Model,
    columns: usize,
    events: &[u64],
) -> Result<Vec<u32>, Failure> {
    let (Some(grid), regression::Model::Cox(_)) = (cohort.grid_of_events(), family) else {
        return Ok(Vec::new());
    };
    let at_least = settings.events_min(columns);
    let found = match settings.is_alone {
        // Who is censored between two events is then at risk at the first of them alone.
        true => Some((1..=grid.cells()).collect()),
        false => cells(events, settings.time_cells, at_least),
    };
    found.ok_or_else(|| {
        let text = format!("found fewer than {at_least} events before the horizon over all sites");
        Failure::new(Code::Outcome, text)
    })
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

    fn reminds(&self) -> bool {
        false
    }

    fn ask(&self, _: usize) -> Option<message::Request> {
        Some(message::Request::Regression(self.request()))
    }

    fn judge(&self, _: usize, patients: u64, answer: &message::Answer) -> Result<(), Failure> {
        judging::answer(answer, &self.attempt.empty(&self.request()), patients)
    }

    fn blank(&self) -> Option<message::Answer> {
        let empty = self.attempt.empty(&self.request());
        Some(message::Answer::Regression(empty))
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
        if let State::Testing(fit) = &self.state {
            let Answer::Products(products) = sum else {
                return Err(Failure::new(Code::Protocol, "no products were summed"));
            };
            return Ok(Turn::Done(self.fitted(fit, Some(&products))));
        }
        match sum {
            Answer::Products(products) => self.attempt.take_products(&products),
            sum => {
                self.evaluations += 1;
                self.attempt.take_values(sum);
            }
        }
        match self.attempt.newton().wanted() {
            Wanted::Information => return Ok(Turn::Ask),
            Wanted::Value if self.may_ask() => return Ok(Turn::Ask),
            // What is not fitted to its end is no better than the best before it.
            Wanted::Value => {
                if let Some(search) = &self.search {
                    self.attempt = search.best().clone();
                    self.stopped = Some(Stopped::Evaluations);
                }
            }
            Wanted::Nothing => {
                if self.search_on() {
                    return Ok(Turn::Ask);
                }
            }
        }
        let fit = self.attempt.fit();
        let converged = fit.ending == regression::Ending::Converged;
        // Of a fold nobody asks whether hazards are proportional.
        let is_whole = self.whole.point().design.fold.is_none();
        if converged && is_whole && self.attempt.is_cox() && self.attempt.terms().is_some() {
            self.state = State::Testing(Box::new(fit));
            return Ok(Turn::Ask);
        }
        Ok(Turn::Done(self.fitted(&fit, None)))
    }
}
