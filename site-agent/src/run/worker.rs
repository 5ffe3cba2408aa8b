//! Carries out what the coordinator asks of one cohort. Everything that leaves passes the gate and
//! is in the ledger and the journal, on the disk, before the caller gets it.

pub(super) mod again;
mod covered;
mod notice;

use super::stop::{Halt, Stop};
use super::summing::{Keyed, Summing};
use crate::books::chain::ChainError;
use crate::books::identity::RunDigest;
use crate::books::journal::{self, Entry, Journal};
use crate::books::ledger::{Asks, Ledger};
use crate::books::transcript;
use crate::config::SiteConfig;
use crate::method::{self, Computation, class_counts, described};
use crate::source::{CohortProblems, SiteCohort};
use crate::studies::{self, Frozen};
use notice::notice;
use privacy::{Admission, CohortFacts, Gate, Steepness};
use protocol::failure::{Code, Refusal};
use protocol::job::Job;
use protocol::message::card::Request as CardRequest;
use protocol::message::{Answer, Ask, Begin, Closed, Description, JournalHead, Reply, Request};
use protocol::name::{OperatorName, RunId};
use protocol::study::CertificateFingerprint;
use protocol::time::Timestamp;
use similarity::numeric::seed::Seed;
use std::path::PathBuf;
use wire::Sealed;

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
    digest: RunDigest,
    operator: String,
    /// The certificate that signed the job.
    certificate: Option<CertificateFingerprint>,
    seed: Seed,
    job: Result<Job, Stop>,
    /// None where the job or the run cannot be followed.
    summing: Option<Summing>,
    admitted: Option<Admitted>,
}

/// A cohort that the policy admitted, with the gate that its answers leave by. It lives as long as its run.
struct Admitted {
    /// Patients of the study, rounded up to ten.
    patients_at_most: u64,
    description: Description,
    computation: Computation,
    gate: Gate,
}

/// A cohort that was read.
struct ReadCohort {
    cohort: SiteCohort,
    /// The frozen patients that it was read from.
    frozen: Frozen,
    /// What the run leaves at this site.
    folder: PathBuf,
    /// What it asks about patients of others, where it does.
    asks: Result<Option<Asks>, Stop>,
    /// The digest of the study that the run counts for.
    counts_for: Option<String>,
}

/// What becomes of a question.
type Outcome = Result<Sealed, Halt>;

impl Worker {
    /// Opens the site's books.
    ///
    /// # Errors
    /// [`ChainError`] where the journal or the ledger cannot be trusted or written.
    pub fn open(config: SiteConfig, now: Timestamp) -> Result<Self, ChainError> {
        journal::is_beside_its_ledger(&config.folder)?;
        let journal = Journal::open(&config.folder, now)?;
        let ledger = Ledger::open(&config.folder, journal.ledger().as_ref())?;
        Ok(Self {
            config,
            journal,
            ledger,
            current: None,
        })
    }

    /// Makes ready for a run and forgets any other; said again of the run at hand, it changes nothing. `operator`
    /// is who signed the job, as the caller has judged its warrant.
    pub fn begin(&mut self, begin: Begin, operator: Result<OperatorName, Refusal>) {
        let name = operator.as_ref().map_or("", OperatorName::as_str);
        let digest = RunDigest::of(&begin, name);
        let Begin { run, job, seed, .. } = begin.clone();
        let known = self.current.as_ref();
        if known.is_some_and(|known| known.run == run && known.digest == digest) {
            return;
        }
        let parsed = |operator: OperatorName| match Job::parse(&job) {
            Ok(job) => Ok((operator.to_string(), job)),
            Err(errors) => Err(Stop::failed(
                Code::Job,
                format!("the job cannot be read here: {errors}"),
            )),
        };
        let (operator, mut job) = match operator.map_err(Stop::Refused).and_then(parsed) {
            Ok((operator, job)) => (operator, Ok(job)),
            Err(stop) => (String::new(), Err(stop)),
        };
        let summing = match job
            .as_ref()
            .ok()
            .map(|job| self.summing(&begin, job, &digest))
        {
            Some(Ok(summing)) => Some(summing),
            Some(Err(stop)) => {
                job = Err(stop);
                None
            }
            None => None,
        };
        self.current = Some(Current {
            run,
            digest,
            operator,
            certificate: begin
                .warrant
                .chain
                .first()
                .map(|one| wire::fingerprint_of_der(one)),
            seed: Seed(seed),
            job,
            summing,
            admitted: None,
        });
    }

    /// Makes ready to follow the run.
    fn summing(&self, begin: &Begin, job: &Job, digest: &RunDigest) -> Result<Summing, Stop> {
        let folder = &self.config.folder;
        let begun = transcript::begin(folder, &digest.to_string(), begin).and_then(|()| {
            transcript::make_room(folder, &begin.run, self.config.transcripts_bytes_max)
        });
        if let Err(error) = begun {
            tracing::error!(%error, "a copy of the run could not be begun");
        }
        let secret = self.ledger.secret("keys");
        let digest = digest.to_string();
        let keyed = Keyed::read(&self.config.folder, begin, job, &digest)?;
        Summing::new(begin, job, &digest, &self.config.site, &secret, keyed)
    }

    /// Takes notice of an exchange that closed in the run at hand. Where another process of this site answered in it, this one
    /// makes itself ready for what comes.
    ///
    /// # Errors
    /// [`ChainError`] where the books could not be written: then nothing may be sent.
    pub fn follow(&mut self, closed: &Closed, now: Timestamp) -> Result<(), ChainError> {
        let own = self.current.as_mut();
        let Some(current) = own.filter(|current| current.run == closed.run) else {
            return Ok(());
        };
        // Its cohort comes first: the keys that are judged are for it.
        if current.admitted_elsewhere(closed)
            && let Err(stop) = Halt::apart(current.admit(&self.config, &mut self.ledger, now))?
            && let Some(summing) = &mut current.summing
        {
            summing.give_up(stop);
        }
        let Some(summing) = &mut current.summing else {
            return Ok(());
        };
        let again = summing.follow(closed, &self.config);
        if summing.follower().is_void() {
            self.ledger.void(&current.digest)?;
            if let Some(study) = current.job.as_ref().ok().and_then(|job| job.study.as_ref()) {
                let (run, study) = (&closed.run, study.name.as_str());
                tracing::error!(
                    %run,
                    study,
                    "the run is void: its sum is not one that patients can have. Prove that this site's answers are right: \
                     kindred-site-agent study audit {study}"
                );
            }
        }
        let again = again.filter(|request| *request != Request::Introduce);
        if let (Some(request), Some(admitted)) = (again, &mut current.admitted) {
            drop(admitted.computation.answer(&request));
        }
        Ok(())
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
            crate::kernels::give_back();
        }
    }

    /// Answers one exchange of the run at hand; `None` where it is of another run.
    ///
    /// # Errors
    /// [`ChainError`] where the books could not be written: then nothing may be sent.
    pub fn answer(
        &mut self,
        ask: &Ask,
        now: Timestamp,
    ) -> Result<Option<Reply<Sealed>>, ChainError> {
        let own = self.current.as_mut();
        let Some(current) = own.filter(|current| current.run == ask.run) else {
            return Ok(None);
        };
        let answered = match &ask.request {
            Request::Introduce => current.introduce(&self.config, &mut self.ledger, ask, now),
            Request::Encapsulate => current.encapsulate(&self.config, ask),
            Request::Describe => current.describe(&self.config, &mut self.ledger, ask, now),
            _ => current.answer(&mut self.ledger, ask),
        };
        let mut answered = Halt::apart(answered)?;
        // The study is open once its counts allow sums of it to be released.
        let is_open = matches!(&ask.request, Request::Card(CardRequest::Sum { .. }));
        let study = current.job.as_ref().ok().and_then(|job| job.study.as_ref());
        if let (Some(study), Some(summing)) = (study, &mut current.summing)
            && is_open
            && answered.is_ok()
            && let Some(opening) = summing.take_opening()
        {
            match studies::opened::keep(&self.config.folder, &study.name, &opening)? {
                true => studies::left_out::log(&self.config, &study.name),
                false => answered = Err(other_patients()),
            }
        }
        let sealed = answered.unwrap_or_else(|stop| wire::seal(notice(stop)));
        let summing = current.summing.as_mut();
        let signature = summing.map_or(Vec::new(), |summing| summing.sign(ask.exchange, &sealed));
        let entry = Entry::new(now, &ask.run, ask.exchange, &sealed);
        self.journal
            .append(&entry.with_ledger(self.ledger.head()))?;
        Ok(Some(Reply {
            run: ask.run.clone(),
            exchange: ask.exchange,
            journal: Some(self.journal_head()),
            signature,
            answer: sealed,
        }))
    }
}

impl Current {
    /// The policy first, then the cohort, then the policy on the cohort; nothing is computed before.
    fn admit(
        &mut self,
        config: &SiteConfig,
        ledger: &mut Ledger,
        now: Timestamp,
    ) -> Result<(), Halt> {
        let job = self.job.clone()?;
        let frozen = studies::for_run(config, &job, self.certificate.as_ref(), now)?;
        let frozen = frozen.map_err(refused)?;
        let left_out = self.summing.as_ref().map_or(&[][..], Summing::left_out);
        let frozen = frozen.without(left_out);
        let folder = run_folder(config, &self.run);
        let asks = method::asks(&job, folder.parent().unwrap_or(&folder));
        let known = asks.as_ref().ok().and_then(Option::as_ref);
        let counts_for = job.study.as_ref().filter(|_| !job.opens_study());
        let counts_for = counts_for.map(|study| study.digest());
        let used = counts_for.as_ref();
        let used = used.map(|study| ledger.used(study, &self.digest, known));
        let facts = job.facts(&self.operator);
        let admission = config.policy.admit(&facts, &used.unwrap_or_default());
        let admission = admission.map_err(refused)?;
        let cohort = frozen.cohort(&job);
        let cohort = cohort.map_err(|problems| unfit(&problems, &job))?;
        cohort.log_remarks();
        let read = ReadCohort {
            cohort,
            frozen,
            folder,
            asks,
            counts_for,
        };
        self.open_gate(config, ledger, &admission, job, read)
    }

    /// Judges the cohort, and makes ready to answer.
    fn open_gate(
        &mut self,
        config: &SiteConfig,
        ledger: &mut Ledger,
        admission: &Admission,
        job: Job,
        read: ReadCohort,
    ) -> Result<(), Halt> {
        let ReadCohort {
            cohort,
            frozen,
            folder,
            asks,
            counts_for,
        } = read;
        let classes = class_counts(cohort.cohort.outcome(), job.cohort.outcome.kind.horizon());
        let description = described(&cohort, classes);
        let facts = CohortFacts {
            patients: description.patients,
            judged: cohort.patients_in_pairs(),
            classes: description.classes.clone(),
            so_far: ledger.so_far(&self.digest),
        };
        // A policy's minimum of patients speaks before what the outcome lacks, and that before a minimum of the classes: else
        // the two would tell codings apart that differ by few patients.
        let few = description.patients < config.policy.rules().patients_min;
        let cohort = match cohort.learnable() {
            Err(problems) if !few => return Err(unfit(&problems, &job).into()),
            cohort => cohort,
        };
        let gate = admission.cohort(&facts).map_err(refused)?;
        let cohort = cohort.map_err(|problems| unfit(&problems, &job))?;
        let asks = asks?;
        let description = without_classes(description, &job);
        let (rules, secret) = (config.policy.rules(), ledger.secret("forest"));
        let computation = Computation::new(job, self.seed, cohort, folder, rules, secret)?;
        let computation = computation.holding_out(gate.held_out());
        let description = description.holding_out(gate.held_out());
        if let Some(summing) = &mut self.summing {
            summing.settle(frozen.commitment(), &config.folder)?;
        }
        ledger.begin(&self.digest, &self.run, counts_for)?;
        if let Some(asks) = asks {
            ledger.ask(&self.digest, asks)?;
        }
        self.admitted = Some(Admitted {
            patients_at_most: frozen.patients_at_most(),
            description,
            computation,
            gate,
        });
        Ok(())
    }
}

impl Admitted {
    /// The answer to a question, where nothing of it is too steep; else why not, and whether the brake has shut the gate.
    fn answer_braked(&mut self, request: &Request) -> Result<Answer, (Stop, bool)> {
        let asked = self.computation.steepness(request);
        self.brake(asked).map_err(|stop| (stop, true))?;
        let answer = match request {
            Request::Describe => Ok(Answer::Described(self.description.clone())),
            request => self.computation.answer(request),
        };
        let answer = answer.map_err(|stop| (stop, false))?;
        let found = answer.metric();
        let found = found.and_then(|metric| self.computation.steepness_of(metric));
        self.brake(found).map_err(|stop| (stop, true))?;
        Ok(answer)
    }

    /// Shuts the gate where a question, or what was found at it, is too steep.
    fn brake(&mut self, found: impl IntoIterator<Item = Steepness>) -> Result<(), Stop> {
        let mut found = found.into_iter();
        found.try_for_each(|steepness| self.gate.brake(steepness).map_err(refused))
    }
}

/// What is released of the cohort. The patients that a study excludes are known once its card has described it, and a class without them would
/// reveal theirs.
fn without_classes(mut description: Description, job: &Job) -> Description {
    if job.opens_study() {
        description.classes.fill(0);
    }
    description
}

/// The study opens again, and excludes other patients than before.
fn other_patients() -> Stop {
    let text =
        "the study opened before without other patients, and sums over both would tell theirs";
    Stop::Refused(Refusal {
        rule: "study".to_owned(),
        text: text.to_owned(),
    })
}

/// All of it into the site's log; little of it to the coordinator.
fn unfit(problems: &CohortProblems, job: &Job) -> Stop {
    for problem in problems.problems() {
        tracing::error!("{problem}");
    }
    Stop::Unfit(problems.for_coordinator(job))
}

fn refused(refusal: privacy::Refusal) -> Stop {
    Stop::Refused(refusal.into())
}

/// Where the local results of a run are.
#[must_use]
pub fn run_folder(config: &SiteConfig, run: &RunId) -> PathBuf {
    config.folder.join("runs").join(run.as_str())
}
