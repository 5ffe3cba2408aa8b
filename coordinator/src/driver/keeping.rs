//! What a driver keeps, for how long, and how it notes what operators do.

use super::calls::{self, busy};
use super::{CALLS_AT_ONCE_MAX, Driver, Heard, Queue, Resent, Seen, Studies, locked};
use crate::audit::{Act, Audit, By, Entry};
use crate::clock::Clock;
use crate::journals::Journals;
use crate::store::{Store, StoreError, failed_result};
use protocol::failure::{Code, Failure};
use protocol::name::{OperatorName, RunId};
use service::chain::ChainError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot};
use wire::{Reply, Warrants};

/// Between two looks for results that are too old.
const SWEEP_EVERY: Duration = Duration::from_secs(3_600);

/// What a driver keeps: the runs, what operators did, and for how long it keeps what ended runs left.
pub struct Keeping {
    /// The runs.
    pub store: Store,
    /// What operators did.
    pub audit: Audit,
    /// For how long results are kept; for ever where there is none.
    pub retain: Option<Duration>,
    /// Operators who see and end what is everybody's.
    pub administrators: BTreeSet<OperatorName>,
}

impl Driver {
    /// Takes up what the store holds: the run that was active goes on, the others stay queued.
    pub(super) fn resume(
        Keeping {
            mut store,
            audit,
            retain,
            administrators,
        }: Keeping,
        warrants: Warrants,
        (heard, done): (mpsc::Sender<Heard>, mpsc::Sender<calls::Done>),
        seen: Seen,
    ) -> Result<Self, StoreError> {
        let clock = Clock::start(store.latest()?);
        let journals = Journals::new(store.journals()?);
        let studies = Studies::new(store.studies()?);
        let mut waiting = Vec::new();
        for unfinished in store.unfinished()? {
            match unfinished.submission {
                Ok(submission) => waiting.push(submission),
                Err(problems) => {
                    let run = unfinished.run;
                    tracing::error!(%run, "the job of a stored run cannot be read; the run has failed");
                    let failure = Failure::new(Code::Job, problems);
                    let failed = failed_result(run, unfinished.job, unfinished.seed, failure);
                    store.end(failed, clock.now())?;
                }
            }
        }
        let mut driver = Self {
            clock,
            store: Arc::new(Mutex::new(store)),
            audit,
            retain,
            administrators,
            swept: None,
            warrants,
            sites: BTreeMap::new(),
            presence: BTreeMap::new(),
            past: BTreeMap::new(),
            connections: 0,
            heard,
            queue: Queue::default(),
            active: None,
            resent: Resent::default(),
            shown: BTreeMap::new(),
            calls: Arc::new(Semaphore::new(CALLS_AT_ONCE_MAX)),
            done,
            journals,
            waits_are_due: false,
            waits_sent: None,
            studies,
            seen,
        };
        waiting
            .into_iter()
            .for_each(|submission| driver.enqueue(submission));
        driver.end_runs_of_closed();
        Ok(driver)
    }

    /// Takes away the results of runs that ended longer ago than they are kept, once in a while.
    pub(super) fn sweep(&mut self) {
        let (now, store) = (self.clock.now(), Arc::clone(&self.store));
        let Some(retain) = self.retain else { return };
        if self
            .swept
            .is_some_and(|swept| now.since(swept) < SWEEP_EVERY)
        {
            return;
        }
        self.swept = Some(now);
        tokio::task::spawn_blocking(move || match locked(&store).drop_ended(now, retain) {
            Ok(0) => {}
            Ok(runs) => tracing::info!(runs, "results older than retain_days were taken away"),
            Err(error) => tracing::error!(%error, "old results cannot be taken away"),
        });
    }

    /// Takes away what an operator's run has left.
    pub(super) fn remove(&self, operator: &OperatorName, run: RunId, reply: Reply<()>) {
        let whose = self.reach(operator);
        if self.own(&run, &whose).is_some() {
            let text = "the run has not ended; `job cancel` ends it";
            let _ = reply.send(Err(Failure::new(Code::Running, text)));
            return;
        }
        let act = self.act(operator, Act::Removed).on_run(run.as_str());
        let reply = self.noted(act, reply);
        self.read(whose, run, reply, |store, run, whose| {
            let removed = locked(store).remove(run, whose)?;
            Ok(removed.map(|is_gone| match is_gone {
                true => Ok(()),
                false => Err(is_card(run)),
            }))
        });
    }

    pub(super) fn act(&self, operator: &OperatorName, did: Act) -> Entry {
        Entry::new(self.clock.now(), By::from(operator), did)
    }

    /// The reply to a call that the audit log has: whoever acted gets it once the act is noted.
    pub(super) fn noted<T: Send + 'static>(&self, act: Entry, reply: Reply<T>) -> Reply<T> {
        let (own, answer) = oneshot::channel();
        let audit = self.audit.clone();
        tokio::spawn(async move {
            // Whoever drops it has said why.
            let Ok(answer) = answer.await else { return };
            let answer = match answer {
                Ok(done) => tokio::task::spawn_blocking(move || {
                    audit
                        .note(&act)
                        .map(|()| done)
                        .map_err(|error| unnoted(&error))
                })
                .await
                .unwrap_or_else(|_| Err(busy())),
                Err(failure) => Err(failure),
            };
            let _ = reply.send(answer);
        });
        own
    }
}

fn unnoted(error: &ChainError) -> Failure {
    tracing::error!(%error, "the audit log cannot be written");
    let text =
        "it was done, and the audit log cannot be written: tell whoever runs the coordinator";
    Failure::new(Code::Store, text)
}

fn is_card(run: &RunId) -> Failure {
    let text = format!("run {run} opened a study: its card stays as long as the study is known");
    Failure::new(Code::Study, text)
}
