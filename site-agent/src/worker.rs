//! Carries out what the coordinator asks of one cohort. Everything that leaves passes the gate and
//! is in the journal, on the disk, before the caller gets it.

use crate::chain::ChainError;
use crate::computation::{Computation, Stop, class_counts};
use crate::config::SiteConfig;
use crate::forest::TreeRelease;
use crate::journal::{Entry, Journal};
use crate::ledger::{CohortCounts, Ledger};
use crate::source::{self, ReadProgress};
use privacy::{Gate, Released};
use protocol::job::Job;
use protocol::message::{Answer, Begin, JournalHead, Refusal, Request};
use protocol::name::{OperatorName, RunId};
use protocol::time::Timestamp;
use similarity::seed::Seed;
use std::path::PathBuf;

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
    job: Result<Job, Stop>,
    admitted: Option<Admitted>,
}

/// A cohort that the policy admitted, with the gate that its answers leave by.
struct Admitted {
    computation: Computation,
    gate: Gate,
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

    /// Makes ready for a run and forgets any other. `operator` is who signed the job, as the caller has
    /// judged its warrant.
    pub fn begin(&mut self, begin: Begin, operator: Result<OperatorName, Refusal>) {
        let Begin { run, job, seed, .. } = begin;
        let parsed = |operator: OperatorName| match Job::parse(&job) {
            Ok(job) => Ok((operator.to_string(), job)),
            Err(errors) => Err(Stop::failed(
                "KDR-JOB",
                format!("the job cannot be read here: {errors}"),
            )),
        };
        let (operator, job) = match operator.map_err(Stop::Refused).and_then(parsed) {
            Ok((operator, job)) => (operator, Ok(job)),
            Err(stop) => (String::new(), Err(stop)),
        };
        self.current = Some(Current {
            run,
            operator,
            seed: Seed(seed),
            job,
            admitted: None,
        });
    }

    /// Where the site's journal ends.
    #[must_use]
    pub fn journal_head(&self) -> JournalHead {
        let head = self.journal.head();
        JournalHead {
            entries: head.entries,
            hash: head.hash.clone(),
        }
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
        if let Some(number) = request.round() {
            self.ledger.round(run, number)?;
        }
        let admitted = match request {
            Request::Describe => current.admit(&self.config, &mut self.ledger)?,
            _ => Ok(()),
        };
        let released = admitted
            .and_then(|()| current.release(request))
            .unwrap_or_else(notice);
        let encoded = wire::encode_answer(released.value());
        self.journal
            .append(&Entry::new(now, run, exchange, &released, &encoded))?;
        Ok(Some(released))
    }
}

impl Current {
    /// The policy first, then the cohort, then the policy on the cohort; nothing is computed before.
    fn admit(
        &mut self,
        config: &SiteConfig,
        ledger: &mut Ledger,
    ) -> Result<Result<(), Stop>, ChainError> {
        let job = match &self.job {
            Ok(job) => job,
            Err(stop) => return Ok(Err(stop.clone())),
        };
        let admission = match config.policy.admit(&job.facts(&self.operator)) {
            Ok(admission) => admission,
            Err(refusal) => return Ok(Err(Stop::Refused(refusal.into()))),
        };
        let cell_min = config.policy.rules().cell_min;
        let mut progress = |progress: ReadProgress| {
            tracing::info!(rows = progress.rows, "reading the cohort");
        };
        let read = source::read_for_release(&config.source, job, cell_min, &mut progress);
        let cohort = match read {
            Ok(cohort) => cohort,
            Err(problems) => {
                for problem in problems.problems() {
                    tracing::error!("{problem}");
                }
                return Ok(Err(Stop::Unfit(problems.for_coordinator(job))));
            }
        };
        cohort.log_remarks();
        // Of the cohort as the source has it, before logarithms are taken.
        let fingerprint = ledger.fingerprint(cohort.identifiers());
        let counts = CohortCounts {
            patients: cohort.cohort.patients() as u64,
            classes: class_counts(cohort.cohort.outcome()),
        };
        let gate = match admission.cohort(&ledger.facts(&self.run, &fingerprint, counts)) {
            Ok(gate) => gate,
            Err(refusal) => return Ok(Err(Stop::Refused(refusal.into()))),
        };
        let folder = run_folder(config, &self.run);
        let rules = config.policy.rules();
        let patients_min = rules.terminal_node_min.max(rules.cell_min);
        let release = TreeRelease {
            seed: Seed(ledger.secret("forest", self.seed.0)),
            patients_min: u32::try_from(patients_min).unwrap_or(u32::MAX),
        };
        let computation = match Computation::new(job.clone(), self.seed, cohort, folder, release) {
            Ok(computation) => computation,
            Err(stop) => return Ok(Err(stop)),
        };
        ledger.begin(&self.run, &fingerprint)?;
        self.admitted = Some(Admitted { computation, gate });
        Ok(Ok(()))
    }

    fn release(&mut self, request: Request) -> Result<Released<Answer>, Stop> {
        let admitted = self.admitted.as_mut().ok_or_else(Stop::early)?;
        let answer = admitted.computation.answer(request)?;
        admitted
            .gate
            .release(answer)
            .map_err(|refusal| Stop::Refused(refusal.into()))
    }
}

fn notice(stop: Stop) -> Released<Answer> {
    match stop {
        Stop::Unfit(problems) => Released::notice(problems),
        Stop::Refused(refusal) => Released::notice(refusal),
        Stop::Failed(failure) => Released::notice(failure),
    }
}

/// Where the local results of a run are.
#[must_use]
pub fn run_folder(config: &SiteConfig, run: &RunId) -> PathBuf {
    config.folder.join("runs").join(run.as_str())
}
