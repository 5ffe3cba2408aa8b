//! What a site computes of its cohort, exchange by exchange. It knows no policy and no network:
//! whoever holds it decides whether an answer may leave.

mod stop;

use crate::forest::{Forests, Share, TreeRelease};
use crate::results;
use crate::source::SiteCohort;
use ndarray::{Array1, Array2, ArrayView1, Axis, s};
use protocol::job::{GriddedColumn, Job, Method, UnpslSettings};
use protocol::message::{
    self, Answer, ColumnHistogram, ColumnMoments, Contribution, Description, Finished, Quartiles,
    Request, Round, SecondMoments, Totals,
};
use similarity::cohort::{Outcome, Values};
use similarity::evaluate::RightCounts;
use similarity::quantile::{Grid, Histogram, QuantileError};
use similarity::seed::Seed;
use similarity::standardise::Standardisation;
use similarity::unpsl::selection::{Classified, Folds, cross_validated_counts};
use similarity::unpsl::{
    self, Correlation, CorrelationScope, Labels, LocalLimits, LocalRound, LocalRun, Settings,
    SiteObjective, summarise,
};
use std::path::PathBuf;
use std::sync::Arc;
pub(crate) use stop::EARLY;
pub use stop::Stop;

/// Steps of the local solver in one round at most.
const ITERATIONS_MAX: usize = 200;

/// Rounds of Algorithm 1 for every round that the job allows: these cross no network.
pub const ROUNDS_A_ROUND: u32 = 10;

/// One job on one cohort.
pub struct Computation {
    job: Job,
    seed: Seed,
    cohort: SiteCohort,
    classes: Vec<u64>,
    /// Where patient-level results go.
    folder: PathBuf,
    prepared: Option<Prepared>,
    objective: Option<(Part, SiteObjective)>,
    release: TreeRelease,
    share: Option<Share>,
}

/// What an objective is made of: the patients that take part, and the columns of W.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    /// The fold that is left out.
    fold: Option<u32>,
    rank: usize,
}

/// The cohort as the solver sees it.
struct Prepared {
    matrix: Array2<f64>,
    standardisation: Standardisation,
    labels: Labels,
    totals: Totals,
    pooled: Option<Arc<Correlation>>,
}

/// What Algorithm 1 found from the best of several starts.
pub struct BestStart {
    /// The start, from 0.
    pub start: u32,
    /// What came of it.
    pub run: LocalRun,
}

impl Computation {
    /// Makes ready to answer for `cohort`; patient-level results go into `folder`. Trees of a common
    /// forest grow as `release` says.
    ///
    /// # Errors
    /// [`Stop::Unfit`] where a value has no logarithm that the job takes.
    pub fn new(
        job: Job,
        seed: Seed,
        mut cohort: SiteCohort,
        folder: PathBuf,
        release: TreeRelease,
    ) -> Result<Self, Stop> {
        cohort
            .cohort
            .take_logarithms(&job.logarithms())
            .map_err(Stop::below_zero)?;
        Ok(Self {
            classes: class_counts(cohort.cohort.outcome()),
            job,
            seed,
            cohort,
            folder,
            prepared: None,
            objective: None,
            release,
            share: None,
        })
    }

    /// Answers one exchange.
    ///
    /// # Errors
    /// [`Stop`]: why there is no answer.
    pub fn answer(&mut self, request: Request) -> Result<Answer, Stop> {
        match request {
            Request::Describe => Ok(Answer::Described(Description {
                patients: self.cohort.cohort.patients() as u64,
                classes: self.classes.clone(),
            })),
            Request::Moments => self.moments(),
            Request::Quantiles => self.quantiles(),
            Request::Prepare {
                moments,
                quartiles,
                totals,
            } => self.prepare(&moments, &quartiles, totals),
            Request::Correlate { second_moments } => self.correlate(&second_moments),
            Request::Round(round) => self.round(&round),
            Request::Validate {
                models, neighbours, ..
            } => self.validate(&models, &neighbours),
            Request::Finish {
                consensus,
                neighbours,
            } => self.finish(&consensus, neighbours),
            Request::GrowOwn => self.forests()?.grow_own(),
            Request::Grow(growing) => {
                let share = self.forests()?.grow(growing, self.release)?;
                Ok(self.share.insert(share).answer())
            }
            Request::Judge(judging) => {
                let share = self.share.as_ref().ok_or_else(Stop::early)?;
                self.forests()?.judge(share, &judging)
            }
        }
    }

    /// Draws the bags of a common forest from `seed`.
    pub fn draw_bags(&mut self, seed: Seed) {
        self.release.seed = seed;
    }

    /// Rows d of the standardised matrix; none before it is prepared.
    #[must_use]
    pub fn rows(&self) -> Option<usize> {
        let prepared = self.prepared.as_ref();
        prepared.map(|prepared| prepared.matrix.ncols())
    }

    /// The mean over the patients of ||W'x||^2, a patient's similarity with itself, under a metric of the travelling shape;
    /// none before the site is prepared.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // patients are far below 2^52
    pub fn similarity(&self, metric: &Array2<f64>) -> Option<f64> {
        let matrix = &self.prepared.as_ref()?.matrix;
        let projected = matrix.dot(&metric.slice(s![..matrix.ncols(), ..]));
        let sum: f64 = projected.iter().map(|entry| entry * entry).sum();
        Some(sum / matrix.nrows() as f64)
    }

    /// UnPSL by Algorithm 1 on this cohort alone, once it is prepared: the best of the starts.
    /// `settings` are the job's, with what was chosen; `observe` sees every round as it closes, with the
    /// number of its start.
    ///
    /// # Errors
    /// [`Stop::Failed`].
    pub fn learn(
        &self,
        settings: &UnpslSettings,
        observe: &mut dyn FnMut(u32, &LocalRound),
    ) -> Result<BestStart, Stop> {
        let seed = self.seed;
        let Some(prepared) = &self.prepared else {
            return Err(Stop::early());
        };
        let objective = prepared.objective(&settings.objective, seed)?;
        let pairs = objective.summary().pairs.total();
        let penalty = settings
            .penalty
            .unwrap_or_else(|| settings.objective.penalty_start(1, pairs));
        let limits = LocalLimits {
            tolerance_absolute: settings.tolerance_absolute,
            tolerance_relative: settings.tolerance_relative,
            rounds: (ROUNDS_A_ROUND * settings.round_limit) as usize,
            ..LocalLimits::new(penalty)
        };
        let mut best: Option<BestStart> = None;
        for start in 0..settings.starts {
            let index = u64::from(start);
            let from = unpsl::start(&settings.objective, objective.features(), seed, index);
            let run = unpsl::learn_observed(&objective, from, &limits, &mut |round| {
                observe(start, round);
            })
            .map_err(Stop::numeric)?;
            if best
                .as_ref()
                .is_none_or(|best| run.objective < best.run.objective)
            {
                best = Some(BestStart { start, run });
            }
        }
        best.ok_or_else(Stop::early)
    }

    fn moments(&mut self) -> Result<Answer, Stop> {
        let settings = self.unpsl()?;
        let columns = ColumnMoments::of_cohort(&self.cohort.cohort).map_err(Stop::numeric)?;
        let summary = summarise(&self.labels()?, settings.objective.pairs, self.seed);
        Ok(Answer::Moments { columns, summary })
    }

    /// Histograms of the gridded columns; the gate joins their groups until none is small.
    fn quantiles(&mut self) -> Result<Answer, Stop> {
        let job = &self.job;
        let columns = self.cohort.cohort.columns();
        let mut histograms = Vec::new();
        for GriddedColumn { column, grid, .. } in job.gridded_columns() {
            let Values::Numeric(values) = &columns[column].values else {
                return Err(Stop::early());
            };
            histograms.push(counted(values.view(), grid)?);
        }
        if let (Some(grid), Outcome::Survival { time, event }) =
            (job.event_grid(), self.cohort.cohort.outcome())
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
            histograms.push(counted(times.view(), grid)?);
        }
        Ok(Answer::Quantiles(histograms))
    }

    fn prepare(
        &mut self,
        moments: &[ColumnMoments],
        quartiles: &[Quartiles],
        totals: Totals,
    ) -> Result<Answer, Stop> {
        let settings = self.unpsl()?;
        let columns = self.job.standardised_columns();
        let standardisation =
            Standardisation::from_moments(&columns, moments, quartiles).map_err(Stop::numeric)?;
        let matrix = standardisation
            .apply(&self.cohort.cohort)
            .map_err(Stop::numeric)?;
        let second_moments = (settings.objective.correlation == CorrelationScope::Pooled)
            .then(|| SecondMoments::of_matrix(&matrix.view()));
        let labels = self.labels()?;
        self.prepared = Some(Prepared {
            matrix,
            standardisation,
            labels,
            totals,
            pooled: None,
        });
        self.objective = None;
        Ok(Answer::Prepared { second_moments })
    }

    fn correlate(&mut self, second_moments: &SecondMoments) -> Result<Answer, Stop> {
        let Some(prepared) = &mut self.prepared else {
            return Err(Stop::early());
        };
        let pooled = Correlation::of_second_moments(second_moments).map_err(Stop::numeric)?;
        prepared.pooled = Some(Arc::new(pooled));
        self.objective = None;
        Ok(Answer::Correlated)
    }

    fn round(&mut self, round: &Round) -> Result<Answer, Stop> {
        let part = Part {
            fold: round.fold,
            rank: round.consensus.ncols(),
        };
        let objective = self.objective(part)?;
        let solution = objective
            .solve(
                &round.consensus,
                &round.centre,
                round.penalty,
                round.tolerance,
                ITERATIONS_MAX,
            )
            .map_err(Stop::numeric)?;
        Ok(Answer::Contribution(Contribution {
            matrix: solution.matrix,
            objective: solution.objective_at_consensus,
            iterations: u32::try_from(solution.iterations).unwrap_or(u32::MAX),
            gradient: round.gradient.then_some(solution.gradient_at_consensus),
        }))
    }

    /// Leave one fold out: how often its patients are classified right, summed over the folds.
    fn validate(&mut self, models: &[Array2<f64>], neighbours: &[u32]) -> Result<Answer, Stop> {
        let folds = self.folds()?;
        let rule = self.unpsl()?.neighbour_rule;
        let Some(prepared) = &self.prepared else {
            return Err(Stop::early());
        };
        let rows = self.unpsl()?.objective.matrix_rows(prepared.matrix.ncols());
        if models.len() != folds.count() || models.iter().any(|model| model.nrows() != rows) {
            let text = format!("wanted {} models of {rows} rows to validate", folds.count());
            return Err(Stop::failed("KDR-PROTOCOL", text));
        }
        let patients = Classified {
            patients: prepared.matrix.view(),
            classes: self.classes_of()?,
        };
        let features = prepared.matrix.ncols();
        let metrics: Vec<_> = models
            .iter()
            .map(|model| model.slice(s![..features, ..]))
            .collect();
        let wanted: Vec<usize> = neighbours.iter().map(|count| *count as usize).collect();
        let sums = cross_validated_counts(&patients, &folds, &metrics, rule, &wanted)
            .map_err(Stop::numeric)?;
        let counts = |RightCounts { right, wrong }| Some(message::RightCounts { right, wrong });
        Ok(Answer::Validated(sums.into_iter().map(counts).collect()))
    }

    fn finish(&mut self, consensus: &Array2<f64>, neighbours: u32) -> Result<Answer, Stop> {
        let settings = self.unpsl()?;
        let part = Part {
            fold: None,
            rank: consensus.ncols(),
        };
        let value = self
            .objective(part)?
            .value(consensus)
            .map_err(Stop::numeric)?;
        let Some(prepared) = &self.prepared else {
            return Err(Stop::early());
        };
        let local = results::LocalResults {
            matrix: &prepared.matrix,
            standardisation: &prepared.standardisation,
            outcome: self.cohort.cohort.outcome(),
            patients: &self.cohort.patients,
            metric: consensus,
            threshold: settings
                .objective
                .threshold_at(consensus, prepared.matrix.ncols()),
            neighbours,
            rule: settings.neighbour_rule,
        };
        results::write(&local, &self.folder)
            .map_err(|error| Stop::failed("KDR-RESULTS", error.to_string()))?;
        let evaluation = results::evaluate(&local, self.classes.len());
        Ok(Answer::Finished(Finished {
            objective: value,
            evaluation,
        }))
    }

    /// The site's part of the objective, made once a preparation and again for another part.
    fn objective(&mut self, part: Part) -> Result<&SiteObjective, Stop> {
        if self
            .objective
            .as_ref()
            .is_none_or(|(made, _)| *made != part)
        {
            self.objective = None;
            self.objective = Some((part, self.make_objective(part)?));
        }
        let made = self.objective.as_ref().map(|(_, objective)| objective);
        made.ok_or_else(Stop::early)
    }

    fn make_objective(&self, part: Part) -> Result<SiteObjective, Stop> {
        let Some(prepared) = &self.prepared else {
            return Err(Stop::early());
        };
        let mut settings = self.unpsl()?.objective;
        settings.rank = part.rank;
        let Some(fold) = part.fold else {
            return prepared.objective(&settings, self.seed);
        };
        let folds = self.folds()?;
        if fold as usize >= folds.count() {
            let text = format!("found fold {fold}, wanted one of {}", folds.count());
            return Err(Stop::failed("KDR-PROTOCOL", text));
        }
        let rows = folds.split(fold as usize).training;
        let labels = Labels::Classes(self.classes_of()?.select(Axis(0), &rows));
        let summary = |labels: &Labels| summarise(labels, settings.pairs, self.seed);
        let totals = prepared
            .totals
            .for_part(&summary(&prepared.labels), &summary(&labels));
        let training = Prepared {
            matrix: prepared.matrix.select(Axis(0), &rows),
            standardisation: prepared.standardisation.clone(),
            labels,
            totals,
            pooled: prepared.pooled.clone(),
        };
        training.objective(&settings, self.seed)
    }

    /// The folds of the job's cross-validation.
    fn folds(&self) -> Result<Folds, Stop> {
        let selection = self.unpsl()?.selection.ok_or_else(Stop::early)?;
        Folds::stratified(self.classes_of()?, selection.folds as usize, self.seed)
            .map_err(|error| Stop::failed("KDR-FOLDS", error.to_string()))
    }

    fn unpsl(&self) -> Result<UnpslSettings, Stop> {
        match &self.job.method {
            Method::Unpsl(settings) => Ok(settings.clone()),
            Method::Forest(_) => Err(Stop::other_method()),
        }
    }

    fn forests(&self) -> Result<Forests<'_>, Stop> {
        match &self.job.method {
            Method::Forest(settings) => Ok(Forests {
                job: &self.job,
                settings,
                seed: self.seed,
                cohort: &self.cohort,
                folder: &self.folder,
            }),
            Method::Unpsl(_) => Err(Stop::other_method()),
        }
    }

    fn labels(&self) -> Result<Labels, Stop> {
        Ok(Labels::Classes(self.classes_of()?.clone()))
    }

    /// The class of each patient.
    fn classes_of(&self) -> Result<&Array1<u32>, Stop> {
        match self.cohort.cohort.outcome() {
            Outcome::Classes { codes, .. } => Ok(codes),
            Outcome::Numeric(_) | Outcome::Survival { .. } => Err(Stop::failed(
                "KDR-OUTCOME",
                "this method wants a binary or categorical outcome".to_owned(),
            )),
        }
    }
}

impl Prepared {
    fn objective(&self, settings: &Settings, seed: Seed) -> Result<SiteObjective, Stop> {
        let patients = self.matrix.view();
        let made = match &self.pooled {
            Some(pooled) => {
                let pooled = Arc::clone(pooled);
                SiteObjective::with_pooled_correlation(
                    &patients,
                    &self.labels,
                    settings,
                    &self.totals,
                    seed,
                    pooled,
                )
            }
            None => SiteObjective::new(&patients, &self.labels, settings, &self.totals, seed),
        };
        made.map_err(Stop::numeric)
    }
}

fn counted(values: ArrayView1<'_, f64>, grid: Grid) -> Result<ColumnHistogram, Stop> {
    match Histogram::of(values, grid, 1) {
        Ok(histogram) => Ok(ColumnHistogram {
            ends: histogram.groups().iter().map(|group| group.end).collect(),
            counts: histogram.groups().iter().map(|group| group.count).collect(),
        }),
        Err(QuantileError::TooFew { .. }) => Ok(ColumnHistogram::default()),
        Err(error) => Err(Stop::numeric(error)),
    }
}

/// Patients of each class; for survival, censored and events.
pub(crate) fn class_counts(outcome: &Outcome) -> Vec<u64> {
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
        Outcome::Survival { event, .. } => count(&event.mapv(u32::from), 2),
    }
}
