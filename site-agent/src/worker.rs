//! Carries out what the coordinator asks of one cohort. Everything that leaves passes the gate and
//! is in the journal, on the disk, before the caller gets it.

use crate::chain::ChainError;
use crate::config::SiteConfig;
use crate::journal::{Entry, Journal};
use crate::ledger::{CohortCounts, Ledger};
use crate::results;
use crate::source::{self, SiteCohort};
use ndarray::{Array1, Array2};
use privacy::{Gate, Released};
use protocol::job::{GriddedColumn, Job, Method, UnpslSettings};
use protocol::message::{
    Answer, ColumnHistogram, ColumnMoments, Contribution, Description, Failure, Finished, Problem,
    Quartiles, Refusal, Request, Round, SecondMoments, Totals,
};
use protocol::name::RunId;
use protocol::time::Timestamp;
use similarity::cohort::{BelowZero, Outcome, Values};
use similarity::quantile::{Histogram, QuantileError};
use similarity::seed::Seed;
use similarity::standardise::Standardisation;
use similarity::unpsl::{Correlation, CorrelationScope, Labels, SiteObjective, summarise};
use std::path::PathBuf;
use std::sync::Arc;

/// Steps of the local solver in one round at most.
const ITERATIONS_MAX: usize = 200;

/// The worker of one site: its configuration, its books, and the run at hand.
pub struct Worker {
    config: SiteConfig,
    journal: Journal,
    ledger: Ledger,
    current: Option<Current>,
}

/// One run at this site.
struct Current {
    run: RunId,
    operator: String,
    seed: Seed,
    job: Result<Job, Failure>,
    admitted: Option<Admitted>,
    prepared: Option<Prepared>,
    objective: Option<SiteObjective>,
}

/// A cohort that the policy admitted, with the gate that it leaves by.
struct Admitted {
    cohort: SiteCohort,
    classes: Vec<u64>,
    gate: Gate,
}

/// The cohort as the solver sees it.
struct Prepared {
    matrix: Array2<f64>,
    standardisation: Standardisation,
    labels: Labels,
    totals: Totals,
    pooled: Option<Arc<Correlation>>,
}

/// Why there is no answer of the cohort.
enum Stop {
    Unfit(Vec<Problem>),
    Refused(Refusal),
    Failed(Failure),
}

impl Worker {
    /// Opens the site's books.
    ///
    /// # Errors
    /// [`ChainError`] where the journal or the ledger cannot be trusted or written.
    pub fn open(config: SiteConfig, now: Timestamp) -> Result<Self, ChainError> {
        let journal = Journal::open(&config.folder, now)?;
        let ledger = Ledger::open(&config.folder)?;
        Ok(Self {
            config,
            journal,
            ledger,
            current: None,
        })
    }

    /// Makes ready for a run and forgets any other.
    pub fn begin(&mut self, run: RunId, job: &str, seed: u64, operator: String) {
        let job = Job::parse(job)
            .map_err(|errors| failed("KDR-JOB", format!("the job cannot be read here: {errors}")));
        self.current = Some(Current {
            run,
            operator,
            seed: Seed(seed),
            job,
            admitted: None,
            prepared: None,
            objective: None,
        });
    }

    /// Lets go of a run that is over.
    pub fn let_go(&mut self, run: &RunId) {
        if self
            .current
            .as_ref()
            .is_some_and(|current| current.run == *run)
        {
            self.current = None;
        }
    }

    /// Answers one exchange of the run at hand; `None` where it is not `run`.
    ///
    /// # Errors
    /// [`ChainError`] where the books could not be written: then nothing may be sent.
    pub fn answer(
        &mut self,
        run: &RunId,
        exchange: u32,
        request: Request,
        now: Timestamp,
    ) -> Result<Option<Released<Answer>>, ChainError> {
        let Some(current) = self.current.as_mut().filter(|current| current.run == *run) else {
            return Ok(None);
        };
        if let Request::Round(round) = &request {
            self.ledger.round(run, round.number)?;
        }
        let answer = match current.compute(request, &self.config, &mut self.ledger)? {
            Ok(answer) => current.release(answer),
            Err(stop) => Err(stop),
        };
        let released = answer.unwrap_or_else(Stop::notice);
        let encoded = wire::encode_answer(released.value());
        self.journal
            .append(&Entry::new(now, run, exchange, &released, &encoded))?;
        Ok(Some(released))
    }
}

impl Current {
    fn compute(
        &mut self,
        request: Request,
        config: &SiteConfig,
        ledger: &mut Ledger,
    ) -> Result<Result<Answer, Stop>, ChainError> {
        Ok(match request {
            Request::Describe => return self.describe(config, ledger),
            Request::Moments => self.moments(),
            Request::Quantiles => self.quantiles(),
            Request::Prepare {
                moments,
                quartiles,
                totals,
            } => self.prepare(&moments, &quartiles, totals),
            Request::Correlate { second_moments } => self.correlate(&second_moments),
            Request::Round(round) => self.round(&round),
            Request::Finish { consensus } => self.finish(&consensus, config),
        })
    }

    fn release(&mut self, answer: Answer) -> Result<Released<Answer>, Stop> {
        let Some(admitted) = &mut self.admitted else {
            return Err(Stop::early());
        };
        admitted
            .gate
            .release(answer)
            .map_err(|refusal| Stop::Refused(refusal.into()))
    }

    /// The policy first, then the cohort, then the policy on the cohort; nothing is computed before.
    fn describe(
        &mut self,
        config: &SiteConfig,
        ledger: &mut Ledger,
    ) -> Result<Result<Answer, Stop>, ChainError> {
        let job = match &self.job {
            Ok(job) => job,
            Err(failure) => return Ok(Err(Stop::Failed(failure.clone()))),
        };
        let admission = match config.policy.admit(&job.facts(&self.operator)) {
            Ok(admission) => admission,
            Err(refusal) => return Ok(Err(Stop::Refused(refusal.into()))),
        };
        let mut cohort = match source::read_cohort(&config.source, job, &mut |progress| {
            tracing::info!(rows = progress.rows, "reading the cohort");
        }) {
            Ok(cohort) => cohort,
            Err(problems) => {
                for problem in problems.problems() {
                    tracing::error!("{problem}");
                }
                return Ok(Err(Stop::Unfit(problems.for_coordinator())));
            }
        };
        let patients = cohort.cohort.patients() as u64;
        let classes = class_counts(cohort.cohort.outcome());
        let fingerprint = ledger.fingerprint(cohort.identifiers());
        let counts = CohortCounts {
            patients,
            classes: classes.clone(),
        };
        let gate = match admission.cohort(&ledger.facts(&self.run, &fingerprint, counts)) {
            Ok(gate) => gate,
            Err(refusal) => return Ok(Err(Stop::Refused(refusal.into()))),
        };
        // After the fingerprint, which knows the cohort by its values as the source has them.
        if let Err(error) = cohort.cohort.take_logarithms(&job.logarithms()) {
            return Ok(Err(Stop::below_zero(error)));
        }
        ledger.begin(&self.run, &fingerprint)?;
        let description = Description {
            patients,
            classes: classes.clone(),
        };
        self.admitted = Some(Admitted {
            cohort,
            classes,
            gate,
        });
        Ok(Ok(Answer::Described(description)))
    }

    fn moments(&mut self) -> Result<Answer, Stop> {
        let settings = self.unpsl()?;
        let admitted = self.admitted()?;
        let columns = ColumnMoments::of_cohort(&admitted.cohort.cohort).map_err(Stop::numeric)?;
        let summary = summarise(&labels(admitted)?, settings.objective.pairs, self.seed);
        Ok(Answer::Moments { columns, summary })
    }

    /// Histograms of the gridded columns; the gate joins their groups until none is small.
    fn quantiles(&mut self) -> Result<Answer, Stop> {
        let job = self.job()?;
        let columns = self.admitted()?.cohort.cohort.columns();
        let mut histograms = Vec::new();
        for GriddedColumn { column, grid, .. } in job.gridded_columns() {
            let Values::Numeric(values) = &columns[column].values else {
                return Err(Stop::early());
            };
            histograms.push(match Histogram::of(values.view(), grid, 1) {
                Ok(histogram) => ColumnHistogram {
                    ends: histogram.groups().iter().map(|group| group.end).collect(),
                    counts: histogram.groups().iter().map(|group| group.count).collect(),
                },
                Err(QuantileError::TooFew { .. }) => ColumnHistogram::default(),
                Err(error) => return Err(Stop::numeric(error)),
            });
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
        let columns = self.job()?.standardised_columns();
        let admitted = self.admitted()?;
        let standardisation =
            Standardisation::from_moments(&columns, moments, quartiles).map_err(Stop::numeric)?;
        let matrix = standardisation
            .apply(&admitted.cohort.cohort)
            .map_err(Stop::numeric)?;
        let second_moments = (settings.objective.correlation == CorrelationScope::Pooled)
            .then(|| SecondMoments::of_matrix(&matrix.view()));
        let labels = labels(admitted)?;
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
        let objective = self.objective()?;
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

    fn finish(&mut self, consensus: &Array2<f64>, config: &SiteConfig) -> Result<Answer, Stop> {
        let settings = self.unpsl()?;
        let value = self.objective()?.value(consensus).map_err(Stop::numeric)?;
        let (Some(prepared), Some(admitted)) = (&self.prepared, &self.admitted) else {
            return Err(Stop::early());
        };
        let local = results::LocalResults {
            matrix: &prepared.matrix,
            standardisation: &prepared.standardisation,
            outcome: admitted.cohort.cohort.outcome(),
            patients: &admitted.cohort.patients,
            metric: consensus,
            neighbours: settings.neighbours,
        };
        let folder = run_folder(config, &self.run);
        results::write(&local, &folder)
            .map_err(|error| Stop::Failed(failed("KDR-RESULTS", error.to_string())))?;
        let evaluation = results::evaluate(&local, admitted.classes.len());
        Ok(Answer::Finished(Finished {
            objective: value,
            evaluation,
        }))
    }

    /// The site's part of the objective, made once a preparation.
    fn objective(&mut self) -> Result<&SiteObjective, Stop> {
        let settings = self.unpsl()?.objective;
        let Some(prepared) = &self.prepared else {
            return Err(Stop::early());
        };
        if self.objective.is_none() {
            let patients = prepared.matrix.view();
            let Prepared {
                labels,
                totals,
                pooled,
                ..
            } = prepared;
            let made = match pooled {
                Some(pooled) => SiteObjective::with_pooled_correlation(
                    &patients,
                    labels,
                    &settings,
                    totals,
                    self.seed,
                    Arc::clone(pooled),
                ),
                None => SiteObjective::new(&patients, labels, &settings, totals, self.seed),
            };
            self.objective = Some(made.map_err(Stop::numeric)?);
        }
        self.objective.as_ref().ok_or_else(Stop::early)
    }

    fn unpsl(&self) -> Result<UnpslSettings, Stop> {
        match &self.job {
            Ok(job) => {
                let Method::Unpsl(settings) = &job.method;
                Ok(settings.clone())
            }
            Err(failure) => Err(Stop::Failed(failure.clone())),
        }
    }

    fn job(&self) -> Result<&Job, Stop> {
        self.job
            .as_ref()
            .map_err(|failure| Stop::Failed(failure.clone()))
    }

    fn admitted(&self) -> Result<&Admitted, Stop> {
        self.admitted.as_ref().ok_or_else(Stop::early)
    }
}

impl Stop {
    fn notice(self) -> Released<Answer> {
        match self {
            Self::Unfit(problems) => Released::notice(problems),
            Self::Refused(refusal) => Released::notice(refusal),
            Self::Failed(failure) => Released::notice(failure),
        }
    }

    /// A request came before the one that it builds on: the site was started again.
    fn early() -> Self {
        Self::Failed(failed(
            "KDR-STATE",
            "the site was started again and has lost this run; submit the job again".to_owned(),
        ))
    }

    fn below_zero(error: BelowZero) -> Self {
        tracing::error!(patients = error.patients, "{error}");
        Self::Unfit(vec![Problem {
            column: error.column,
            found: "a number below 0".to_owned(),
            wanted: "0 or more, for its logarithm is taken".to_owned(),
        }])
    }

    fn numeric(error: impl std::error::Error) -> Self {
        Self::Failed(failed("KDR-UNPSL", error.to_string()))
    }
}

/// Where the local results of a run are.
#[must_use]
pub fn run_folder(config: &SiteConfig, run: &RunId) -> PathBuf {
    config.folder.join("runs").join(run.as_str())
}

fn labels(admitted: &Admitted) -> Result<Labels, Stop> {
    match admitted.cohort.cohort.outcome() {
        Outcome::Classes { codes, .. } => Ok(Labels::Classes(codes.clone())),
        Outcome::Numeric(_) | Outcome::Survival { .. } => Err(Stop::Failed(failed(
            "KDR-OUTCOME",
            "this method wants a binary or categorical outcome".to_owned(),
        ))),
    }
}

fn class_counts(outcome: &Outcome) -> Vec<u64> {
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

fn failed(code: &str, text: String) -> Failure {
    Failure {
        code: code.to_owned(),
        text,
    }
}
