//! What a site computes of its cohort, exchange by exchange. It knows no policy and no network:
//! whoever holds it decides whether an answer may leave.
//!
//! # To add a method
//!
//! A folder here answers the method's requests, explains its messages, writes what stays at the site, and says what `room` wants of it;
//! nothing else in this crate names a method.

mod card;
mod cluster;
mod compare;
mod figures;
pub(crate) use figures::survival_curve;
pub mod forest;
mod held_out;
mod neighbours;
mod preparation;
pub mod regression;
mod room;
mod scores;
pub mod unpsl;

pub use crate::books::key::Secret;
use crate::books::ledger::Asks;
use crate::explain::kinds::Explained;
use crate::run::stop::Stop;
use crate::source::SiteCohort;
use ndarray::{Array1, Array2};
use preparation::{Prepared, spread};
use privacy::{HeldOut, Rules, Steepness};
use protocol::failure::Code;
use protocol::job::Job;
use protocol::message::{
    Answer, ColumnHistogram, ColumnMoments, Description, OtherRequest, Request, SecondMoments,
    SiteMoments,
};
use protocol::method::Method;
pub(crate) use room::Wants;
use room::{AtSite, Preparing, Ready};
use similarity::cohort::quantile::{Grid, counts};
use similarity::cohort::{Outcome, Values};
use similarity::numeric::precision::Precision;
use similarity::numeric::seed::Seed;
use std::path::{Path, PathBuf};

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

macro_rules! registry {
    ($($Name:ident $room:ident,)*) => {
        /// What is the method's own.
        enum Own {
            $($Name(Box<$room::Own>),)*
        }

        impl Own {
            fn begin(method: &Method, ready: Ready<'_>) -> Result<Self, Stop> {
                Ok(match method {
                    $(Method::$Name(settings) => Self::$Name(Box::new(AtSite::begin(settings, ready)?)),)*
                })
            }

            fn answer(
                &mut self,
                site: &SiteRun,
                prepared: Result<&Prepared, Stop>,
                request: &Request,
            ) -> Result<Answer, Stop> {
                match self {
                    $(Self::$Name(own) => {
                        let request = request.try_into().map_err(|OtherRequest| Stop::other_method())?;
                        AtSite::answer(own.as_mut(), site, prepared, request)
                    })*
                }
            }

            fn preparing(&mut self) -> Option<&mut dyn Preparing> {
                match self { $(Self::$Name(own) => AtSite::preparing(own.as_mut()),)* }
            }
        }

        /// The kinds of message that a job would make a site send, and what is said of the method as a whole.
        pub(crate) fn explained(rules: &Rules, job: &Job) -> Explained {
            match &job.method { $(Method::$Name(settings) => <$room::Own as AtSite>::explained(settings, job, rules),)* }
        }

        /// What a job asks about patients of others; none where it asks no such thing. `runs` has what earlier runs have left.
        ///
        /// # Errors
        /// [`Stop::Refused`] where the run that it asks by has left nothing here for it.
        pub(crate) fn asks(job: &Job, runs: &Path) -> Result<Option<Asks>, Stop> {
            match &job.method { $(Method::$Name(settings) => <$room::Own as AtSite>::asks(settings, job, runs),)* }
        }

        /// Which patients a job is of, and what of them it takes.
        pub(crate) fn wants(job: &Job) -> Wants {
            match &job.method { $(Method::$Name(settings) => <$room::Own as AtSite>::wants(settings),)* }
        }
    };
}

protocol::methods!(registry);

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
        let ready = Ready {
            job: &job,
            runs: folder.parent().unwrap_or(&folder),
            cohort: &mut cohort,
            rules,
            secret,
        };
        let own = Own::begin(&job.method, ready)?;
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
                let own = self.own.preparing();
                let held_out = match own.is_some_and(|own| own.can_validate(site)) {
                    true => HeldOut::Judges,
                    false => HeldOut::Nothing,
                };
                Ok(Answer::Described(site.description(held_out)))
            }
            Request::Moments => self.moments(),
            Request::Spread(preparing) => {
                site.has_columns()?;
                let own = self.own.preparing().ok_or_else(Stop::other_method)?;
                let precision = own.precision();
                Ok(Answer::Spread(spread(site, preparing, precision)?))
            }
            Request::Prepare(preparing) => {
                let own = self.own.preparing().ok_or_else(Stop::other_method)?;
                let is_again = |prepared: &Prepared| prepared.is_by(preparing);
                // Asked again, it says the same; the columns may be gone by then.
                let prepared = match self.prepared.take().filter(is_again) {
                    Some(prepared) => prepared,
                    None => {
                        site.has_columns()?;
                        Prepared::new(site, preparing)?
                    }
                };
                let of_own = || SecondMoments::of_patients(&prepared.patients);
                let second_moments = own.multiplies().then(of_own);
                let is_coarse = preparing.within.is_some() && own.precision() == Precision::Rounded;
                let second_moments = match is_coarse {
                    true => second_moments.map(SecondMoments::in_halves),
                    false => second_moments,
                };
                own.forget();
                if !own.reads_values() {
                    self.site.cohort.let_columns_go();
                }
                self.prepared = Some(prepared);
                Ok(Answer::Prepared(second_moments))
            }
            Request::Correlate(second_moments) => {
                let prepared = self.prepared.as_mut().ok_or_else(Stop::early)?;
                prepared.correlate(second_moments)?;
                if let Some(own) = self.own.preparing() {
                    own.forget();
                }
                Ok(Answer::Correlated)
            }
            of_method => {
                let prepared = self.prepared.as_ref().ok_or_else(Stop::early);
                self.own.answer(site, prepared, of_method)
            }
        }
    }

    /// What its patients come to on the grids of its job, cell by cell: for a run in this process, whose study nobody has opened.
    ///
    /// # Errors
    /// [`Stop::Failed`] where a column that is counted holds no numbers, or the columns are gone.
    pub fn counts(&self) -> Result<Vec<ColumnHistogram>, Stop> {
        self.site.has_columns()?;
        let SiteRun { job, cohort, .. } = &self.site;
        let grids = job.grids();
        let columns = cohort.cohort.columns();
        let numbers = grids.columns.iter();
        let numbers = numbers.map(|one| on_grid(&columns[one.column].values, one.grid));
        let events = grids
            .events
            .map(|grid| Ok(events_on(grid, cohort.cohort.outcome())));
        numbers.chain(events).collect()
    }

    fn moments(&mut self) -> Result<Answer, Stop> {
        self.site.has_columns()?;
        let columns = ColumnMoments::of_cohort(&self.site.cohort.cohort);
        let columns = columns.map_err(|error| Stop::numeric(Code::Numbers, error))?;
        let own = self.own.preparing().ok_or_else(Stop::other_method)?;
        Ok(Answer::Moments(SiteMoments {
            columns,
            summary: own.summary(&self.site)?,
        }))
    }

    /// Where what stays at the site is written.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.site.folder
    }

    /// The job.
    #[must_use]
    pub fn job(&self) -> &Job {
        &self.site.job
    }

    /// Rows d of the standardised matrix; none before it is prepared.
    #[must_use]
    pub fn rows(&self) -> Option<usize> {
        let prepared = self.prepared.as_ref();
        prepared.map(|prepared| prepared.matrix().ncols())
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

impl SiteRun {
    /// What comes before the preparation reads the columns.
    fn has_columns(&self) -> Result<(), Stop> {
        match self.cohort.is_without_columns() {
            true => Err(Stop::late()),
            false => Ok(()),
        }
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

/// How many numbers each cell of a grid has; the gate gathers few.
pub(crate) fn on_grid(values: &Values, grid: Grid) -> Result<ColumnHistogram, Stop> {
    match values {
        Values::Numeric(values) => Ok(histogram(values, grid)),
        Values::Categorical { .. } => {
            let text = "a column that is counted on a grid holds no numbers";
            Err(Stop::failed(Code::Cohort, text))
        }
    }
}

/// How many events each cell of a grid of times has; of another outcome none.
pub(crate) fn events_on(grid: Grid, outcome: &Outcome) -> ColumnHistogram {
    let horizon = grid.border(grid.cells());
    let times: Array1<f64> = match outcome {
        Outcome::Survival { time, event } => {
            let seen = time.iter().zip(event);
            let seen = seen.filter(|(time, event)| **event && **time <= horizon);
            seen.map(|(time, _)| *time).collect()
        }
        Outcome::Classes { .. } | Outcome::Numeric(_) => Array1::default(0),
    };
    histogram(&times, grid)
}

fn histogram(values: &Array1<f64>, grid: Grid) -> ColumnHistogram {
    ColumnHistogram {
        ends: (1..=grid.cells()).collect(),
        counts: counts(values.view(), grid),
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
