//! What a comparison asks, stage by stage: it prepares, learns what is learnt across sites without each fold, and has all families
//! judged by the patients of the folds.

use super::learning::FoldMetrics;
use super::message::{Answer, FamilyCounts, Judging, Request};
use super::model::Model;
use super::settings::{CompareSettings, Family};
use super::{judging, pooling};
use crate::assessment::Assessment;
use crate::cohort::{CohortSpecification, Grids, MissingShare};
use crate::exchange::{Asking, Closed, Course, Stage, Turn};
use crate::failure::{Code, Failure};
use crate::message::{self, ColumnHistogram, Totals};
use crate::method::forest::growing::{Cuts, Grown, Shares};
use crate::method::regression::fitting::Fitting;
use crate::method::regression::message::Evaluating;
use crate::method::room::{MethodSettings, MethodStages};
use crate::method::{Beginning, drawn_in_words, judges_in_words};
use crate::progress::Ending;
use crate::stage::preparing::{Preparable, Preparation, Prepared};
use ndarray::Array2;
use similarity::numeric::precision::Precision;
use similarity::numeric::seed::Seed;
use std::sync::Arc;

/// Why nothing is compared.
const TOO_FEW: &str = "found too few patients to judge by folds at some sites; wanted enough at all of them, or at three";

/// A comparison under way.
#[derive(Debug, Clone)]
pub(crate) struct Compare {
    settings: CompareSettings,
    cohort: Arc<CohortSpecification>,
    seed: Seed,
    /// Sites of the run.
    sites: usize,
    /// Patients of each class over all of them.
    classes: Vec<u64>,
    /// What they come to on the grids of numbers.
    counts: Arc<Vec<ColumnHistogram>>,
    /// Sites whose held-out patients judge; none where there are too few.
    judges: Option<u64>,
    /// What was learnt so far.
    metrics: Vec<Array2<f64>>,
    regressions: Vec<Evaluating>,
    grown: Option<Grown>,
    model: Model,
    missing: Vec<MissingShare>,
    state: State,
}

#[derive(Debug, Clone)]
enum State {
    Preparing(Box<Preparation<CompareSettings>>),
    Learning {
        prepared: Arc<Prepared>,
        metrics: Box<FoldMetrics>,
    },
    Fitting {
        prepared: Arc<Prepared>,
        fold: u32,
        fitting: Box<Fitting>,
    },
    Growing(Box<Shares>),
    Judging(Box<Judge>),
}

/// The last exchange.
#[derive(Debug, Clone)]
struct Judge {
    settings: CompareSettings,
    cohort: Arc<CohortSpecification>,
    asked: Judging,
    /// The common forest, where it is compared.
    grown: Option<Grown>,
}

impl Compare {
    /// A run that begins.
    pub(crate) fn new(settings: &CompareSettings, beginning: &Beginning) -> Self {
        let cohort = Arc::clone(&beginning.cohort);
        let mut own = settings.clone();
        own.regression.largest = beginning.largest;
        let preparation = Preparation::new(own.clone(), beginning);
        Self {
            settings: own,
            cohort,
            seed: beginning.seed,
            sites: beginning.sites,
            classes: beginning.description.classes.clone(),
            counts: Arc::clone(&beginning.counts),
            judges: match settings.validation() {
                Some(_) => beginning.description.judging(beginning.sites as u64),
                None => Some(beginning.sites as u64),
            },
            metrics: Vec::new(),
            regressions: Vec::new(),
            grown: None,
            model: Model {
                patients: beginning.description.patients,
                neighbours: settings.neighbours,
                folds: settings.folds,
                families: Vec::new(),
                left_out: Vec::new(),
            },
            missing: Vec::new(),
            state: State::Preparing(Box::new(preparation)),
        }
    }

    fn learn(&mut self, prepared: Arc<Prepared>) -> Result<(), Failure> {
        let rows = prepared.standardisation.rows().len();
        self.settings.unpsl = self.settings.unpsl.clone().of_rows(rows);
        if !self.settings.learns_metrics() {
            return self.fit(prepared, 0);
        }
        let metrics = FoldMetrics::begin(&self.settings, &prepared, self.seed);
        let metrics = Box::new(metrics);
        self.state = State::Learning { prepared, metrics };
        Ok(())
    }

    /// The regression without this fold; after the last, or where there can be none, what comes next.
    fn fit(&mut self, prepared: Arc<Prepared>, fold: u32) -> Result<(), Failure> {
        if !self.settings.fits_regressions() || fold == self.settings.folds {
            return self.grow();
        }
        let (settings, cohort) = (&self.settings.regression, Arc::clone(&self.cohort));
        match Fitting::start(settings, cohort, &prepared, Some(fold)) {
            Ok(fitting) => {
                self.state = State::Fitting {
                    prepared,
                    fold,
                    fitting: Box::new(fitting),
                };
            }
            Err(failure) => {
                self.without_regressions(&failure.text);
                self.grow()?;
            }
        }
        Ok(())
    }

    /// No fold's regression is judged.
    fn without_regressions(&mut self, why: &str) {
        self.regressions.clear();
        let families = self.settings.families.iter().copied();
        let regressions: Vec<Family> = families.filter(|one| one.is_of_regression()).collect();
        self.leave_out(&regressions, why);
    }

    /// The common forest, where it is compared; then all are judged.
    fn grow(&mut self) -> Result<(), Failure> {
        if !self.settings.grows_in_common() {
            self.judge();
            return Ok(());
        }
        let (settings, cohort) = (&self.settings, &self.cohort);
        let cuts = Cuts::of(
            &MethodSettings::grids(settings, cohort),
            cohort.features.len(),
            &self.counts,
        )?;
        let shares = Shares::of(&settings.forest, cohort, self.sites, &self.classes, &cuts);
        self.state = State::Growing(Box::new(shares));
        Ok(())
    }

    fn judge(&mut self) {
        let left_out = &self.model.left_out;
        let is_there = |family: &Family| left_out.iter().all(|(out, _)| out != family);
        let mut settings = self.settings.clone();
        settings.families.retain(is_there);
        self.state = State::Judging(Box::new(Judge {
            settings,
            cohort: Arc::clone(&self.cohort),
            asked: Judging {
                metrics: Arc::new(std::mem::take(&mut self.metrics)),
                regressions: Arc::new(std::mem::take(&mut self.regressions)),
                forest: None,
                judges: u32::try_from(self.judges.unwrap_or(0)).unwrap_or(u32::MAX),
            },
            grown: self.grown.take(),
        }));
    }

    /// Of the families that the job compares these are not judged.
    fn leave_out(&mut self, families: &[Family], why: &str) {
        let named = families.iter().filter(|family| self.settings.has(**family));
        let told = named.map(|family| (*family, why.to_owned()));
        self.model.left_out.extend(told);
    }
}

impl MethodStages for Compare {
    type Settings = CompareSettings;
    type Model = Model;

    fn settings(&self) -> &CompareSettings {
        &self.settings
    }

    fn asking(&self) -> &dyn Asking {
        match &self.state {
            State::Preparing(preparation) => preparation.as_ref(),
            State::Learning { metrics, .. } => metrics.as_ref(),
            State::Fitting { fitting, .. } => fitting.as_ref(),
            State::Growing(shares) => shares.as_ref(),
            State::Judging(judge) => judge.as_ref(),
        }
    }

    fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure> {
        match &mut self.state {
            State::Preparing(preparation) => {
                if let Turn::Done(prepared) = preparation.close(closed)? {
                    self.missing.clone_from(&prepared.missing);
                    let sites = self.sites as u64;
                    let Some(judges) = self.judges else {
                        return Err(Failure::new(Code::Folds, TOO_FEW));
                    };
                    closed.notes.extend(judges_in_words(judges, sites));
                    closed.notes.extend(drawn_in_words(&prepared.totals));
                    self.learn(Arc::new(prepared))?;
                }
            }
            State::Learning { prepared, metrics } => {
                if let Turn::Done(learned) = metrics.close(closed)? {
                    let prepared = Arc::clone(prepared);
                    match learned {
                        Some(metrics) => self.metrics = metrics,
                        None => self.leave_out(
                            &[Family::Unpsl],
                            "the metric of a fold is empty: a smaller lambda_sparsity in [unpsl] leaves more of it",
                        ),
                    }
                    self.fit(prepared, 0)?;
                }
            }
            State::Fitting {
                prepared,
                fold,
                fitting,
            } => {
                if let Turn::Done(fitted) = fitting.close(closed)? {
                    let (prepared, fold) = (Arc::clone(prepared), *fold);
                    if fitted.model.converged {
                        self.regressions.push(fitted.finishing.point);
                        self.fit(prepared, fold + 1)?;
                    } else {
                        self.without_regressions(
                            "the regression of a fold has no maximum, or was not fitted in time: a larger ridge in [regression] gives it one",
                        );
                        self.grow()?;
                    }
                }
            }
            State::Growing(shares) => {
                if let Turn::Done(grown) = shares.close(closed)? {
                    self.grown = Some(grown);
                    self.judge();
                }
            }
            State::Judging(judge) => {
                self.model.families = pooling::pooled(closed, judge.asked.judges)?;
                return Ok(Turn::Done(Ending::Completed));
            }
        }
        Ok(Turn::Ask)
    }

    fn model(&self) -> Model {
        self.model.clone()
    }

    /// What all patients together miss of the features.
    fn missing(&self) -> &[MissingShare] {
        &self.missing
    }

    /// There is no last word of each site.
    fn assessment(&self) -> Option<&Assessment> {
        None
    }
}

impl Judge {
    fn nobody(&self) -> Vec<FamilyCounts> {
        judging::nobody(&self.settings, &self.cohort.outcome.kind)
    }
}

impl Asking for Judge {
    fn phase(&self) -> &'static str {
        "judging held-out patients"
    }

    fn ask(&self, site: usize) -> Option<message::Request> {
        let forest = self.grown.as_ref().map(|grown| grown.judging(site));
        let asked = Judging {
            forest,
            ..self.asked.clone()
        };
        Some(message::Request::Compare(Request::Judge(asked)))
    }

    fn judge(&self, _: usize, patients: u64, answer: &message::Answer) -> Result<(), Failure> {
        let kind = &self.cohort.outcome.kind;
        judging::answer(&self.settings, kind, answer, patients)
    }

    fn blank(&self) -> Option<message::Answer> {
        Some(message::Answer::Compare(Answer::Judged(self.nobody())))
    }

    fn course(&self) -> Course {
        Course::default()
    }
}

impl Preparable for CompareSettings {
    fn grids(&self, cohort: &CohortSpecification) -> Grids {
        MethodSettings::grids(self, cohort)
    }

    fn multiplies(&self) -> bool {
        self.fits_regressions()
    }

    fn correlates(&self) -> bool {
        false
    }

    fn centres_sites(&self) -> Option<Precision> {
        None
    }

    fn pairs_max(&self, patients: u64) -> u64 {
        match self.learns_metrics() {
            true => self.unpsl.pairs_max(patients),
            false => 0,
        }
    }

    fn accepts_totals(&self, totals: &Totals) -> Result<(), Failure> {
        if self.learns_metrics() {
            self.unpsl.accepts_totals(totals)?;
        }
        match self.fits_regressions() {
            true => self.regression.accepts_totals(totals),
            false => Ok(()),
        }
    }

    fn accepts_rows(&self, rows: usize) -> Result<(), Failure> {
        match self.learns_metrics() {
            true => self.unpsl.accepts_rows(rows),
            false => Ok(()),
        }
    }

    fn round_limit(&self) -> u32 {
        0
    }
}
