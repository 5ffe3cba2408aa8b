//! The fits of a run by sums over the sites: which features are fitted, where all sites evaluate, and what is found.

use super::attempt::Attempt;
use super::message::{Answer, Finishing, Request, Sums};
use super::model::{Model, Selection, Stopped};
use super::settings::RegressionSettings;
use super::{common, judging};
use crate::checks::{ROUNDING, fault, unexpected};
use crate::cohort::CohortSpecification;
use crate::exchange::{Asking, Closed, Course, Stage, Turn};
use crate::failure::{Code, Failure};
use crate::limits::REGRESSION_COLUMNS_MAX;
use crate::message;
use crate::stage::preparing::Prepared;
use similarity::cohort::standardise::{Feature, Standardisation};
use similarity::learn::regression::absolute::CommonBaseline;
use similarity::learn::regression::exponential::{Cells, ends};
use similarity::learn::regression::hazards::proportionality;
use similarity::learn::regression::newton::Wanted;
use similarity::learn::regression::rows::Rows;
use similarity::learn::regression::selection::Search;
use similarity::learn::regression::{self, Fit, Model as Family, Ridge};
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
    /// Events and time of the cells of a common baseline, once they are known.
    cells: Option<Cells>,
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
    /// By how much rounding moves a number of the sums at most, in patients.
    error: f64,
}

#[derive(Debug, Clone)]
enum State {
    /// How many events the cells of a common baseline have, and for how long patients are followed in them.
    Counting,
    Stepping,
    /// Whether effects change with time.
    Testing(Box<Fit>),
}

/// What was fitted.
#[derive(Debug, Clone)]
pub(crate) struct Fitted {
    pub(crate) model: Model,
    /// Where, and what weighs a distance.
    pub(crate) finishing: Finishing,
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
            error: (settings.precision_of(family)).error_of_sum(prepared.totals.sites),
        };
        let all: Vec<usize> = (0..sources.features.len()).collect();
        let rows = sources.rows(&all);
        let named = rows.terms.names().len();
        if named > REGRESSION_COLUMNS_MAX {
            let text = format!("found {named} columns, wanted at most {REGRESSION_COLUMNS_MAX}");
            return Err(Failure::new(Code::Settings, text));
        }
        let parameters = rows.fitted.len() + family.leading();
        let patients = sources.moments.patients;
        let all_parts = parameters as u64 * u64::from(settings.parts);
        if rows.fitted.is_empty() || !settings.allows(all_parts, patients) {
            let text = format!(
                "found {all_parts} coefficients and {patients} patients over all sites, wanted at least one column that varies, \
                 and three patients for each coefficient{}",
                match settings.largest {
                    0 => "",
                    _ => " without those of the largest site",
                }
            );
            return Err(Failure::new(Code::Settings, text));
        }
        let whole = Attempt::new(settings, family, rows, (Vec::new(), fold));
        let state = match family {
            Family::Exponential { .. } => State::Counting,
            Family::Linear | Family::Logistic | Family::Cox(_) => State::Stepping,
        };
        Ok(Self {
            cells: None,
            settings: settings.clone(),
            cohort,
            sources,
            attempt: whole.clone(),
            search: None,
            evaluations: 0,
            fits: 1,
            coefficients: whole.coefficients(),
            stopped: None,
            state,
            whole,
        })
    }

    fn request(&self) -> Request {
        match self.state {
            State::Counting => Request::Evaluate(self.attempt.cells_alone()),
            State::Stepping => Request::Evaluate(self.attempt.point()),
            State::Testing(_) => Request::Test(self.attempt.best()),
        }
    }

    /// Nothing, of the shape that answers what is asked.
    fn empty(&self) -> Answer {
        let columns = self.attempt.newton().asked().len();
        let leading = self.attempt.family().leading();
        match self.state {
            State::Counting => no_cells(leading),
            State::Stepping => Answer::Likelihood(Sums::zero(columns)),
            State::Testing(_) => no_proportionality(self.attempt.family(), columns),
        }
    }

    /// Too few events reveal their patients. Of all patients, or all but a fold.
    fn has_events(&self) -> Result<(), Failure> {
        let at_least = self.settings.events_min();
        let is_few = |events: u64| self.attempt.is_survival() && events < at_least;
        match self.attempt.events().is_some_and(is_few) {
            false => Ok(()),
            true => {
                let text =
                    format!("found fewer than {at_least} events before the horizon over all sites");
                Err(Failure::new(Code::Outcome, text))
            }
        }
    }

    /// Takes what cells of a common baseline have, and begins with the features, of which nothing has been asked before.
    fn begin(&mut self, (sums, counted): (&Sums, &[u64])) -> Result<(), Failure> {
        let cells = Cells::of(sums);
        self.has_followed(&cells, counted)?;
        self.whole = self
            .whole
            .clone()
            .of_cells(&self.settings, &cells, sums.patients);
        self.attempt = self.whole.clone();
        self.cells = Some(cells);
        self.state = State::Stepping;
        self.has_events()
    }

    /// A sum over a cell in which few are followed would be a sum over few. A site that has many there, or has made them up, counts for half of
    /// who is wanted: without its own patients as many of others are left.
    #[allow(clippy::cast_precision_loss)] // patients are far below 2^52
    fn has_followed(&self, cells: &Cells, counted: &[u64]) -> Result<(), Failure> {
        if self.settings.is_alone {
            return Ok(());
        }
        let Some(ends) = self.ends(cells) else {
            return Ok(());
        };
        let (at_least, of_one) = (
            self.settings.cell_patients_min(),
            self.settings.cell_patients_max(),
        );
        let mut begin = 0.0;
        for ((end, followed), counted) in ends.into_iter().zip(&cells.followed).zip(counted) {
            // Whoever is followed all through a cell is followed for its length.
            if *counted as f64 * (end - begin) > followed * (1.0 + ROUNDING) + ROUNDING {
                let found = "more patients in a cell of time than are followed there";
                return Err(fault(found, "at most as many"));
            }
            if *counted < at_least {
                let text = format!(
                    "fewer than {at_least} patients on average are followed from time {begin} to {end} over all sites, where of each site at \
                     most {of_one} count; a common baseline needs as many in each of its cells: fewer cells, or an earlier horizon"
                );
                return Err(Failure::new(Code::Outcome, text));
            }
            begin = end;
        }
        Ok(())
    }

    /// The ends of the cells of a common baseline.
    fn ends(&self, cells: &Cells) -> Option<Vec<f64>> {
        let horizon = self.cohort.outcome.kind.horizon();
        let cells = u32::try_from(cells.events.len()).ok()?;
        horizon.is_finite().then(|| ends(horizon, cells))
    }

    /// What makes the risk of any patient; none without a common baseline.
    fn common(&self, fit: &Fit) -> Option<CommonBaseline> {
        let cells = self.cells.as_ref()?;
        let ends = self.ends(cells)?;
        Some(common::of(
            (cells, &ends),
            fit,
            (&self.settings, &self.cohort),
        ))
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
        } else if !self.settings.allows_in_all(coefficients, patients) {
            Some(Stopped::Coefficients)
        } else {
            None
        }
    }

    /// What it comes to.
    fn fitted(&self, fit: &Fit, test: Option<&Sums>) -> Fitted {
        let mut model = Model::of(fit, self.settings.confidence);
        model.evaluations = self.evaluations;
        model.evaluations_max = self.settings.round_limit;
        if let Some(sums) = test {
            let leading = fit.model.leading();
            model.proportionality = proportionality(sums, leading, &fit.terms, &fit.places());
        }
        let common = self.common(fit);
        model.baseline = common
            .iter()
            .flat_map(|common| common.steps.clone())
            .collect();
        let all: Vec<usize> = (0..self.sources.features.len()).collect();
        model.impute(&self.sources.rows(&all).terms);
        if let Some(criterion) = self.settings.selection {
            let removed = self.search.as_ref().map_or(&[][..], Search::removed);
            let features = &self.cohort.features;
            let selection = Selection::new(criterion, removed, features, self.fits, self.stopped);
            model.selection = Some(selection);
            model.remarks.extend(self.stopped.map(Stopped::remark));
        }
        let weights = self.attempt.weights();
        if let Some(weights) = weights {
            model.weigh(&fit.in_own_units(weights));
        }
        if self.settings.ridge == Ridge::Chosen {
            let text = "was chosen from the data by restricted likelihood";
            model
                .remarks
                .push(format!("the ridge, {:.4}, {text}", fit.ridge));
        }
        Fitted {
            model,
            finishing: Finishing {
                point: self.attempt.best(),
                weights: weights.map(|weights| Arc::new(weights.to_vec())),
                common: common.map(Arc::new),
            },
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

/// Nothing, in the shape of the events and the time of each cell.
pub(super) fn no_cells(cells: usize) -> Answer {
    Answer::Cells {
        sums: Sums::zero(cells),
        counted: vec![0; cells],
    }
}

/// Nothing, in the shape of a test of so many columns, each as it is and times the time; the cells of a baseline once.
pub(super) fn no_proportionality(family: Family, columns: usize) -> Answer {
    let twice = match family {
        Family::Exponential { .. } => 2 * columns - family.leading(),
        Family::Linear | Family::Logistic | Family::Cox(_) => 2 * columns,
    };
    Answer::Proportionality(Sums::zero(twice))
}

impl Asking for Fitting {
    fn phase(&self) -> &'static str {
        "fitting"
    }

    fn ask(&self, _: usize) -> Option<message::Request> {
        Some(message::Request::Regression(self.request()))
    }

    fn judge(&self, _: usize, patients: u64, answer: &message::Answer) -> Result<(), Failure> {
        judging::answer(answer, &self.empty(), patients)?;
        match (&self.state, answer) {
            (State::Stepping, message::Answer::Regression(Answer::Likelihood(sums))) => self
                .attempt
                .judge(&self.sources.moments, self.sources.error, sums),
            // Cells have no bound but those that are held to later. A test follows from what was judged before, and nothing is asked after it.
            (State::Counting | State::Testing(_) | State::Stepping, _) => Ok(()),
        }
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
            message::Answer::Regression(Answer::Cells { sums, counted }) => {
                self.evaluations += 1;
                self.begin((&sums, &counted))?;
                return Ok(Turn::Ask);
            }
            message::Answer::Regression(
                Answer::Likelihood(sums) | Answer::Proportionality(sums),
            ) => sums,
            other => return Err(unexpected(&other, "sums over the patients")),
        };
        if let State::Testing(fit) = &self.state {
            return Ok(Turn::Done(self.fitted(fit, Some(&sum))));
        }
        self.evaluations += 1;
        let answered_by_others = (!self.settings.is_alone).then_some(&self.sources.moments);
        self.attempt.take(sum, answered_by_others);
        self.has_events()?;
        match self.attempt.newton().wanted() {
            Wanted::Information | Wanted::Value if self.may_ask() => return Ok(Turn::Ask),
            // What is not fitted to its end is no better than the best before it.
            Wanted::Information | Wanted::Value => {
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
        if converged && is_whole && self.attempt.is_survival() {
            self.state = State::Testing(Box::new(fit));
            return Ok(Turn::Ask);
        }
        Ok(Turn::Done(self.fitted(&fit, None)))
    }
}
