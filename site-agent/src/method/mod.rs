//! What a site computes of its cohort, exchange by exchange. It knows no policy and no network:
//! whoever holds it decides whether an answer may leave.
//!
//! # To add a method
//!
//! A folder beside `unpsl`, `forest`, `regression`, `neighbours`, `cluster`, `compare` and `card` answers the method's requests, explains its messages and writes what stays at the
//! site. Each `match` below then lacks an arm; nothing else in this crate names a method.

mod card;
mod cluster;
mod compare;
mod figures;
pub mod forest;
mod held_out;
mod neighbours;
mod preparation;
pub mod regression;
mod scores;
pub mod unpsl;

use crate::books::ledger::Asks;
use crate::explain::kinds::Told;
use crate::run::stop::Stop;
use crate::source::SiteCohort;
use ndarray::{Array1, Array2, ArrayView1};
use preparation::Prepared;
use privacy::{HeldOut, Rules, Steepness};
use protocol::cohort::GriddedColumn;
use protocol::failure::Code;
use protocol::job::Job;
use protocol::message::{
    Answer, ColumnHistogram, ColumnMoments, Description, Request, SecondMoments, SiteMoments,
    Summary,
};
use protocol::method::Method;
use protocol::study::Study;
use similarity::cohort::quantile::{Grid, counts};
use similarity::cohort::{Outcome, Values};
use similarity::numeric::seed::Seed;
use std::path::{Path, PathBuf};

/// A number of the site's own, which nobody else can tell, for each thing that it is asked for.
pub type Secret = Box<dyn Fn(&[u8]) -> u64 + Send>;

/// What a site's number for its folds is asked by.
const FOLDS: &[u8] = b"folds";

/// One job on one cohort.
pub struct Computation {
    site: SiteRun,
    prepared: Option<Prepared>,
    own: Own,
}

/// What every method computes from.
pub(crate) struct SiteRun {
    pub(crate) job: Job,
    pub(crate) seed: Seed,
    /// What the folds are drawn from: the same for these patients whatever is asked, and known to nobody else. Drawn from the
    /// run's, each run would part them otherwise, and differences of sums over many folds would come down to single patients.
    pub(crate) folds: Seed,
    pub(crate) cohort: SiteCohort,
    /// What its patients do in a validation in which they need not judge.
    pub(crate) held_out: HeldOut,
    /// Patients of each class.
    pub(crate) classes: Vec<u64>,
    /// Where patient-level results go.
    pub(crate) folder: PathBuf,
}

/// What is the method's own.
enum Own {
    Unpsl(Box<unpsl::Learner>),
    Forest(Box<forest::Grower>),
    Regression(Box<regression::Regressor>),
    Neighbours(Box<neighbours::Counter>),
    Cluster(Box<cluster::Divider>),
    Compare(Box<compare::Comparer>),
    Card(Box<card::Tabulator>),
}

impl Computation {
    /// Makes ready to answer for `cohort`; patient-level results go into `folder`. What a method keeps small by itself
    /// follows `rules`, and what nobody else may tell `secret`.
    ///
    /// # Errors
    /// [`Stop::Unfit`] where a value has no logarithm that the job takes.
    pub fn new(
        job: Job,
        seed: Seed,
        mut cohort: SiteCohort,
        folder: PathBuf,
        rules: &Rules,
        secret: Secret,
    ) -> Result<Self, Stop> {
        cohort
            .cohort
            .take_logarithms(&job.cohort.logarithms())
            .map_err(Stop::below_zero)?;
        let folds = Seed(secret(FOLDS));
        let own = match &job.method {
            Method::Unpsl(settings) => Own::Unpsl(Box::new(unpsl::Learner::new(settings.clone()))),
            Method::Forest(settings) => Own::Forest(Box::new(forest::Grower::new(
                settings.clone(),
                rules,
                secret,
            ))),
            Method::Regression(settings) => {
                Own::Regression(Box::new(regression::Regressor::new(settings.clone())))
            }
            Method::Neighbours(settings) => {
                let runs = folder.parent().unwrap_or(&folder);
                let own = (rules, &secret);
                let counter = neighbours::Counter::new(settings, &job, &cohort, runs, own)?;
                Own::Neighbours(Box::new(counter))
            }
            Method::Cluster(settings) => {
                let runs = folder.parent().unwrap_or(&folder);
                let own = (rules, &secret);
                let divider = cluster::Divider::new(settings, &job, &cohort, runs, own)?;
                Own::Cluster(Box::new(divider))
            }
            Method::Compare(settings) => {
                let comparer = compare::Comparer::new(settings.as_ref().clone(), rules, secret);
                Own::Compare(Box::new(comparer))
            }
            Method::Card(settings) => {
                let enrolled = cohort.take_enrolled().ok_or_else(card::without_study)?;
                Own::Card(Box::new(card::Tabulator::new(settings.clone(), enrolled)))
            }
        };
        Ok(Self {
            site: SiteRun {
                classes: class_counts(cohort.cohort.outcome(), job.cohort.outcome.kind.horizon()),
                held_out: HeldOut::Judges,
                job,
                seed,
                folds,
                cohort,
                folder,
            },
            prepared: None,
            own,
        })
    }

    /// With what its patients do in a validation in which they need not judge, by the site's rules.
    #[must_use]
    pub fn holding_out(mut self, held_out: HeldOut) -> Self {
        self.site.held_out = held_out;
        self
    }

    /// Answers one exchange.
    ///
    /// # Errors
    /// [`Stop`]: why there is no answer.
    pub fn answer(&mut self, request: &Request) -> Result<Answer, Stop> {
        let site = &self.site;
        match request {
            // Whoever holds the keys introduces the site.
            Request::Introduce | Request::Encapsulate => Err(Stop::early()),
            Request::Describe => {
                // Nobody's rules stand in the way; by those of a site its worker says.
                let held_out = match self.own.can_validate(site) {
                    true => HeldOut::Judges,
                    false => HeldOut::Nothing,
                };
                Ok(Answer::Described(site.description(held_out)))
            }
            Request::Moments => self.moments(),
            Request::Quantiles => site.quantiles(),
            Request::Prepare(preparing) => {
                let multiplies = self.own.multiplies()?;
                let prepared = Prepared::new(site, preparing)?;
                let second_moments =
                    multiplies.then(|| SecondMoments::of_matrix(&prepared.matrix.view()));
                self.prepared = Some(prepared);
                self.own.forget();
                Ok(Answer::Prepared(second_moments))
            }
            Request::Correlate(second_moments) => {
                let prepared = self.prepared.as_mut().ok_or_else(Stop::early)?;
                prepared.correlate(second_moments)?;
                self.own.forget();
                Ok(Answer::Correlated)
            }
            Request::Unpsl(_)
            | Request::Forest(_)
            | Request::Regression(_)
            | Request::Neighbours(_)
            | Request::Cluster(_)
            | Request::Compare(_)
            | Request::Card(_) => self.of_method(request),
        }
    }

    /// Answers what one method asks, or another that is made of it.
    fn of_method(&mut self, request: &Request) -> Result<Answer, Stop> {
        let (site, prepared) = (&self.site, self.prepared.as_ref().ok_or_else(Stop::early));
        match (request, &mut self.own) {
            (Request::Unpsl(request), Own::Unpsl(learner)) => {
                learner.answer(site, prepared?, request)
            }
            (Request::Unpsl(request), Own::Compare(comparer)) => {
                comparer.metrics.answer(site, prepared?, request)
            }
            (Request::Forest(request), Own::Forest(grower)) => grower.answer(site, request),
            (Request::Forest(request), Own::Compare(comparer)) => {
                comparer.forests.answer(site, request)
            }
            (Request::Regression(request), Own::Regression(regressor)) => {
                regressor.answer(site, prepared?, request)
            }
            (Request::Regression(request), Own::Compare(comparer)) => {
                comparer.regressions.answer(site, prepared?, request)
            }
            (Request::Neighbours(request), Own::Neighbours(counter)) => Ok(counter.answer(request)),
            (Request::Cluster(request), Own::Cluster(divider)) => divider.answer(site, request),
            (Request::Compare(request), Own::Compare(comparer)) => {
                comparer.answer(site, prepared?, request)
            }
            (Request::Card(request), Own::Card(tabulator)) => tabulator.answer(request),
            _ => Err(Stop::other_method()),
        }
    }

    fn moments(&self) -> Result<Answer, Stop> {
        let columns = ColumnMoments::of_cohort(&self.site.cohort.cohort);
        Ok(Answer::Moments(SiteMoments {
            columns: columns.map_err(|error| Stop::numeric(Code::Numbers, error))?,
            summary: self.own.summary(&self.site)?,
            between: Vec::new(),
        }))
    }

    /// Where what stays at the site is written.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.site.folder
    }

    /// The job's name.
    #[must_use]
    pub fn job_name(&self) -> &str {
        &self.site.job.name
    }

    /// Rows d of the standardised matrix; none before it is prepared.
    #[must_use]
    pub fn rows(&self) -> Option<usize> {
        let prepared = self.prepared.as_ref();
        prepared.map(|prepared| prepared.matrix.ncols())
    }

    /// How steep a metric of the travelling shape is for the patients; none before the site is prepared.
    pub(crate) fn steepness_of(&self, metric: &Array2<f64>) -> Option<Steepness> {
        Some(Steepness::Metric {
            similarity: self.prepared.as_ref()?.similarity(metric),
            columns: metric.ncols(),
        })
    }

    /// How steep a question is for the patients: by each metric and by each regression that it has them compared by.
    pub(crate) fn steepness(&self, request: &Request) -> Vec<Steepness> {
        let metrics = request.metrics().into_iter();
        let metrics = metrics.filter_map(|metric| self.steepness_of(metric));
        let points = request.points().into_iter();
        let of_point = |point| {
            let prepared = self.prepared.as_ref()?;
            regression::steepness(&self.site, prepared, point)
        };
        metrics.chain(points.filter_map(of_point)).collect()
    }

    /// UnPSL by Algorithm 1 on this cohort alone, or on it without one fold, once it is prepared: the best of the starts.
    ///
    /// # Errors
    /// [`Stop::Failed`].
    pub fn learn(
        &self,
        settings: &protocol::method::unpsl::settings::UnpslSettings,
        fold: Option<u32>,
        observe: &mut dyn FnMut(u32, &similarity::learn::unpsl::LocalRound),
    ) -> Result<unpsl::BestStart, Stop> {
        let prepared = self.prepared.as_ref().ok_or_else(Stop::early)?;
        unpsl::learn(&self.site, prepared, settings, fold, observe)
    }

    /// The metrics of the folds of a validation, each by Algorithm 1 without the fold; none where there is no validation, or
    /// where one of them is 0.
    ///
    /// # Errors
    /// [`Stop::Failed`].
    pub fn validated(
        &self,
        settings: &protocol::method::unpsl::settings::UnpslSettings,
    ) -> Result<Vec<Array2<f64>>, Stop> {
        let learned = |fold| {
            let learned = self.learn(settings, Some(fold), &mut |_, _| ())?;
            Ok(learned.run.matrix)
        };
        let folds: Result<Vec<_>, Stop> = (0..settings.validated_folds()).map(learned).collect();
        let is_empty = |metric: &Array2<f64>| metric.iter().all(|entry| *entry == 0.0);
        let folds = folds?;
        Ok(match folds.iter().any(is_empty) {
            true => Vec::new(),
            false => folds,
        })
    }
}

impl Own {
    /// Patients and pairs, as the method counts them.
    fn summary(&self, site: &SiteRun) -> Result<Summary, Stop> {
        match self {
            Self::Unpsl(learner) => learner.summary(site),
            Self::Compare(comparer) => comparer.summary(site),
            Self::Regression(_) => Ok(regression::summary(site)),
            Self::Forest(_) | Self::Neighbours(_) | Self::Cluster(_) | Self::Card(_) => {
                Err(Stop::other_method())
            }
        }
    }

    /// Whether its patients can be parted into the folds of a validation that the job does not insist on.
    fn can_validate(&self, site: &SiteRun) -> bool {
        match self {
            Self::Unpsl(learner) => learner.folds(site).is_ok(),
            // It has nothing else to say: where it cannot, the folds themselves say why.
            Self::Compare(_) => true,
            Self::Regression(_)
            | Self::Forest(_)
            | Self::Neighbours(_)
            | Self::Cluster(_)
            | Self::Card(_) => false,
        }
    }

    /// Whether the site tells its second moments when it is prepared.
    fn multiplies(&self) -> Result<bool, Stop> {
        match self {
            Self::Unpsl(learner) => Ok(learner.correlates()),
            Self::Regression(_) => Ok(true),
            Self::Compare(comparer) => Ok(comparer.multiplies()),
            Self::Forest(_) | Self::Neighbours(_) | Self::Cluster(_) | Self::Card(_) => {
                Err(Stop::other_method())
            }
        }
    }

    /// Lets go of what was made of another preparation.
    fn forget(&mut self) {
        match self {
            Self::Unpsl(learner) => learner.forget(),
            Self::Regression(regressor) => regressor.forget(),
            Self::Compare(comparer) => comparer.forget(),
            Self::Forest(_) | Self::Neighbours(_) | Self::Cluster(_) | Self::Card(_) => {}
        }
    }
}

/// The kinds of message that a job would make a site send, and what is said of the method as a whole.
pub(crate) fn explained(rules: &Rules, job: &Job) -> Told {
    match &job.method {
        Method::Unpsl(settings) => unpsl::explain::told(rules, job, settings),
        Method::Forest(settings) => forest::explain::told(rules, job, settings),
        Method::Regression(settings) => regression::explain::told(rules, job, settings),
        Method::Neighbours(settings) => neighbours::explain::told(rules, job, settings),
        Method::Cluster(settings) => cluster::explain::told(rules, job, settings),
        Method::Compare(settings) => compare::explain::told(rules, job, settings),
        Method::Card(settings) => card::explain::told(job, settings),
    }
}

/// What a job asks about patients of others; none where it asks no such thing. `runs` has what earlier runs have left.
///
/// # Errors
/// [`Stop::Refused`] where the run that it asks by has left nothing here for it.
pub(crate) fn asks(job: &Job, runs: &Path) -> Result<Option<Asks>, Stop> {
    match &job.method {
        Method::Neighbours(settings) => neighbours::asks(settings, job, runs).map(Some),
        Method::Cluster(settings) => cluster::asks(settings, job, runs).map(Some),
        Method::Unpsl(_)
        | Method::Forest(_)
        | Method::Regression(_)
        | Method::Compare(_)
        | Method::Card(_) => Ok(None),
    }
}

/// The study of which a job wants all patients with all outcomes; none where it wants the cohort of one outcome alone.
pub(crate) fn wants_enrolled(job: &Job) -> Option<&Study> {
    match &job.method {
        Method::Card(_) => job.study.as_deref(),
        Method::Unpsl(_)
        | Method::Forest(_)
        | Method::Regression(_)
        | Method::Neighbours(_)
        | Method::Cluster(_)
        | Method::Compare(_) => None,
    }
}

/// Whether a job wants the pairs of its patients that physicians have judged.
pub(crate) fn wants_judged(job: &Job) -> bool {
    match &job.method {
        Method::Unpsl(settings) => settings.supervision.wants_judgements(),
        Method::Forest(_)
        | Method::Regression(_)
        | Method::Neighbours(_)
        | Method::Cluster(_)
        | Method::Compare(_)
        | Method::Card(_) => false,
    }
}

impl SiteRun {
    /// Histograms on the job's grids, cell by cell; the gate gathers small ones.
    fn quantiles(&self) -> Result<Answer, Stop> {
        let counted = |values: ArrayView1<'_, f64>, grid: Grid| ColumnHistogram {
            ends: (1..=grid.cells()).collect(),
            counts: counts(values, grid),
        };
        let grids = self.job.grids();
        let columns = self.cohort.cohort.columns();
        let mut histograms = Vec::new();
        for GriddedColumn { column, grid, .. } in &grids.columns {
            let Values::Numeric(values) = &columns[*column].values else {
                let text = "a column that is counted on a grid holds no numbers";
                return Err(Stop::failed(Code::Cohort, text));
            };
            histograms.push(counted(values.view(), *grid));
        }
        if let (Some(grid), Outcome::Survival { time, event }) =
            (grids.events, self.cohort.cohort.outcome())
        {
            // Who has no event in time misses it: the rule for missing values is that for the censored.
            let horizon = grid.border(grid.cells());
            let seen = time.iter().zip(event);
            let times: Array1<f64> = seen
                .map(|(time, event)| match *event && *time <= horizon {
                    true => *time,
                    false => f64::NAN,
                })
                .collect();
            histograms.push(counted(times.view(), grid));
        }
        Ok(Answer::Quantiles(histograms))
    }

    /// The class of each patient.
    pub(crate) fn classes_of(&self) -> Result<&Array1<u32>, Stop> {
        match self.cohort.cohort.outcome() {
            Outcome::Classes { codes, .. } => Ok(codes),
            Outcome::Numeric(_) | Outcome::Survival { .. } => Err(Stop::failed(
                Code::Outcome,
                "this method wants a binary or categorical outcome",
            )),
        }
    }
}

/// What is said of a cohort that is in no validation.
pub(crate) fn described(cohort: &SiteCohort, classes: Vec<u64>) -> Description {
    Description {
        patients: cohort.cohort.patients() as u64,
        classes,
        learns: 0,
        validates: 0,
        judges: 0,
    }
}

/// Patients of each class; for survival those with an event.
pub(crate) fn class_counts(outcome: &Outcome, horizon: f64) -> Vec<u64> {
    let count = |codes: &Array1<u32>, classes: usize| {
        let mut counts = vec![0; classes];
        for code in codes {
            counts[*code as usize] += 1;
        }
        counts
    };
    match outcome {
        Outcome::Classes { codes, levels } => count(codes, levels.len()),
        Outcome::Numeric(_) => Vec::new(),
        // The censored are no class: no minimum is about them.
        Outcome::Survival { time, event } => {
            let seen = time.iter().zip(event);
            let seen = seen.filter(|(time, event)| **event && **time <= horizon);
            vec![seen.count() as u64]
        }
    }
}
