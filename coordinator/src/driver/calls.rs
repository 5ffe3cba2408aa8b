//! What operators ask. A run is its operator's own: for everybody else it is not there.

use super::{Driver, Rounds, SharedStore, Shown, locked, studies};
use crate::audit::{Act, Audit, By, Entry};
use crate::store::{
    KeptStudy, Known, Listed, Reach, StoreError, Submission, UNREADABLE, unreadable,
};
use protocol::failure::{Code, Failure};
use protocol::job::Job;
use protocol::message::Warrant;
use protocol::name::{OperatorName, RunId, SiteName};
use protocol::progress::{Ending, Progress, Times};
use protocol::run::{Action, Event, Run};
use protocol::study::{SignedApproval, StudyName};
use protocol::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, watch};
use wire::{OperatorCall, Reply};

/// A call that was worked on, and that the driver must know of.
pub(super) enum Done {
    /// A job was read.
    Submitted {
        operator: OperatorName,
        /// What is to be queued; none where nothing new was submitted.
        submission: Option<Box<Submission>>,
        answer: Result<RunId, Failure>,
        reply: Reply<RunId>,
        /// The study that is proposed by it.
        study: Option<Box<KeptStudy>>,
    },
    /// A hospital has approved a study.
    Approved {
        site: SiteName,
        approved: SignedApproval,
    },
    /// A run was taken from the queue; who asked for it, where somebody did.
    Cancelled {
        run: RunId,
        ending: Ending,
        reply: Option<Reply<()>>,
    },
    /// A study was closed.
    StudyClosed { study: StudyName, reply: Reply<()> },
    /// The store failed.
    Broken(StoreError),
}

/// A job as it came.
struct Submitted {
    operator: OperatorName,
    job: String,
    seed: u64,
    warrant: Warrant,
    at: Timestamp,
    /// Whether it may be queued.
    room: Result<(), Failure>,
}

impl Driver {
    pub(super) fn call(&mut self, operator: &OperatorName, call: OperatorCall) {
        let whose = self.reach(operator);
        match call {
            OperatorCall::Submit {
                job,
                seed,
                warrant,
                reply,
            } => {
                let Some(permit) = self.permit() else {
                    let _ = reply.send(Err(busy()));
                    return;
                };
                let submitted = Submitted {
                    operator: operator.clone(),
                    job,
                    seed,
                    warrant,
                    at: self.clock.now(),
                    room: self.queue.reserve(operator),
                };
                self.submit(submitted, reply, permit);
            }
            OperatorCall::Watch { run, reply } => match self.own(&run, &whose) {
                Some(shown) => {
                    let _ = reply.send(Ok(shown.progress.subscribe()));
                }
                None => self.read(whose, run, reply, |store, run, whose| {
                    let summary = locked(store).summary(run, whose);
                    Ok(summary?.map(|progress| Ok(watch::Sender::new(progress).subscribe())))
                }),
            },
            OperatorCall::Cancel { run, reply } => {
                let act = self.act(operator, Act::Cancelled).on_run(run.as_str());
                self.cancel(whose, &run, self.noted(act, reply));
            }
            OperatorCall::Remove { run, reply } => self.remove(operator, run, reply),
            OperatorCall::FetchResult { run, reply } => match self.own(&run, &whose) {
                Some(_) => {
                    let text = "the run has not ended; watch it until it has";
                    let _ = reply.send(Err(Failure::new(Code::Running, text)));
                }
                None => {
                    let act = self.act(operator, Act::Fetched).on_run(run.as_str());
                    let reply = self.noted(act, reply);
                    self.read(whose, run, reply, |store, run, whose| {
                        Ok(locked(store).result(run, whose)?.map(Ok))
                    });
                }
            },
            OperatorCall::List { reply } => self.list(whose, reply),
            OperatorCall::ListStudies { reply } => {
                let _ = reply.send(Ok(self.list_studies(&whose)));
            }
            OperatorCall::CloseStudy { study, reply } => {
                let act = self.act(operator, Act::Closed).on_study(study.as_str());
                self.close_study(&whose, &study, self.noted(act, reply));
            }
        }
    }

    /// Takes note of a call that was worked on.
    pub(super) fn call_done(&mut self, done: Done) -> Result<(), StoreError> {
        match done {
            Done::Submitted {
                operator,
                submission,
                answer,
                reply,
                study,
            } => {
                self.queue.release(&operator);
                if let Some(study) = study {
                    self.proposed(*study);
                }
                if let Some(submission) = submission {
                    self.enqueue(*submission);
                    self.end_runs_of_closed();
                }
                let _ = reply.send(answer);
            }
            Done::Approved { site, approved } => self.approved(site, approved),
            Done::Cancelled { run, ending, reply } => {
                self.ended(&run, ending);
                reply.into_iter().for_each(|reply| drop(reply.send(Ok(()))));
            }
            Done::StudyClosed { study, reply } => {
                self.study_closed(&study);
                let _ = reply.send(Ok(()));
            }
            Done::Broken(error) => return Err(error),
        }
        Ok(())
    }

    pub(super) fn enqueue(&mut self, submission: Submission) {
        let Submission {
            run,
            operator,
            job,
            seed,
            warrant,
            submitted,
            ..
        } = submission.clone();
        let study = job.study.as_ref().map(|study| study.name.clone());
        let sites = job.sites.clone();
        let queued = Run::new(run.clone(), job, seed, warrant, submitted);
        let mut progress = queued.progress(self.clock.now());
        "queued".clone_into(&mut progress.phase);
        progress.operator = Some(operator.clone());
        progress.times = Times {
            submitted: Some(submitted),
            ..Times::default()
        };
        let progress = watch::Sender::new(progress);
        let shown = Shown {
            waiting: None,
            operator,
            submitted,
            study,
            sites,
            progress,
            rounds: Rounds::default(),
        };
        self.shown.insert(run, shown);
        self.queue.push(submission);
        self.send_queue_places();
    }

    /// Tells every queued run how many come before it.
    pub(super) fn send_queue_places(&self) {
        let active = u32::from(self.active.is_some());
        for (ahead, run) in (active..).zip(self.queue.order()) {
            if let Some(shown) = self.shown.get(run) {
                shown.progress.send_if_modified(|progress| {
                    let news = progress.ahead != Some(ahead);
                    progress.ahead = Some(ahead);
                    news
                });
            }
        }
    }

    pub(super) fn permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.calls).try_acquire_owned().ok()
    }

    /// What an operator may see and end: their own, or as an administrator everybody's.
    pub(super) fn reach(&self, operator: &OperatorName) -> Reach {
        match self.administrators.contains(operator) {
            true => Reach::All,
            false => Reach::Own(operator.clone()),
        }
    }

    /// A run of these that has not ended.
    pub(super) fn own(&self, run: &RunId, whose: &Reach) -> Option<&Shown> {
        let shown = self.shown.get(run);
        shown.filter(|shown| whose.has(&shown.operator))
    }

    fn submit(&self, submitted: Submitted, reply: Reply<RunId>, permit: OwnedSemaphorePermit) {
        let (store, done) = (Arc::clone(&self.store), self.done.clone());
        let audit = self.audit.clone();
        tokio::task::spawn_blocking(move || {
            let operator = submitted.operator.clone();
            let told = match take(submitted, &store, &audit) {
                Ok((submission, answer, study)) => Done::Submitted {
                    operator,
                    submission,
                    answer,
                    reply,
                    study: study.map(Box::new),
                },
                Err(error) => Done::Broken(error),
            };
            drop(permit);
            // Nobody is left to hear where the driver has stopped.
            let _ = done.blocking_send(told);
        });
    }

    /// Reads something of a run that has ended.
    pub(super) fn read<T: Send + 'static>(
        &self,
        whose: Reach,
        run: RunId,
        reply: Reply<T>,
        find: impl FnOnce(
            &SharedStore,
            &RunId,
            &Reach,
        ) -> Result<Option<Result<T, Failure>>, StoreError>
        + Send
        + 'static,
    ) {
        let Some(permit) = self.permit() else {
            let _ = reply.send(Err(busy()));
            return;
        };
        let store = Arc::clone(&self.store);
        tokio::task::spawn_blocking(move || {
            let found = match find(&store, &run, &whose) {
                Ok(Some(found)) => found,
                Ok(None) => Err(unknown(&run)),
                Err(error) => Err(unread(&run, &error)),
            };
            let _ = reply.send(found);
            drop(permit);
        });
    }

    fn cancel(&mut self, whose: Reach, run: &RunId, reply: Reply<()>) {
        let active = self.active.as_mut();
        let own = active.filter(|course| course.run() == run);
        if let Some(course) = own.filter(|course| whose.has(course.operator())) {
            course.cancel(Some(reply));
            return self.feed(Event::Tick);
        }
        let is_own = self.own(run, &whose).is_some();
        let Some(submission) = is_own.then(|| self.queue.remove(run)).flatten() else {
            return self.read(whose, run.clone(), reply, |store, run, whose| {
                let summary = locked(store).summary(run, whose)?;
                Ok(summary.map(|summary| over(&summary)))
            });
        };
        self.end(submission, Some(reply));
    }

    /// Ends a run that was taken from the queue.
    pub(super) fn end(&mut self, submission: Submission, reply: Option<Reply<()>>) {
        self.send_queue_places();
        let (store, done, clock) = (Arc::clone(&self.store), self.done.clone(), self.clock);
        tokio::task::spawn_blocking(move || {
            let run = submission.run.clone();
            let told = match cancelled(submission, clock.now(), &store) {
                Ok(ending) => Done::Cancelled { run, ending, reply },
                Err(error) => Done::Broken(error),
            };
            let _ = done.blocking_send(told);
        });
    }

    fn list(&self, whose: Reach, reply: Reply<Vec<Progress>>) {
        let Some(permit) = self.permit() else {
            let _ = reply.send(Err(busy()));
            return;
        };
        let own = self.shown.iter();
        let own = own.filter(|(_, shown)| whose.has(&shown.operator));
        let live: BTreeMap<RunId, Progress> = own
            .map(|(run, shown)| (run.clone(), shown.progress.borrow().clone()))
            .collect();
        let store = Arc::clone(&self.store);
        tokio::task::spawn_blocking(move || {
            let listed = locked(&store).list(&whose);
            let listed = listed.map(|rows| {
                rows.into_iter()
                    .filter_map(|row| state(row, &live))
                    .collect()
            });
            let _ = reply.send(listed.map_err(|error| {
                tracing::error!(%error, "the runs of an operator cannot be listed");
                Failure::new(Code::Store, error.to_string())
            }));
            drop(permit);
        });
    }
}

/// The same job with the same token is the same run, however often it is submitted.
fn take(submitted: Submitted, store: &SharedStore, audit: &Audit) -> Result<Taken, StoreError> {
    let Submitted {
        operator,
        job,
        seed,
        warrant,
        at,
        room,
    } = submitted;
    let parsed = match Job::parse(&job) {
        Ok(parsed) => parsed,
        Err(errors) => return Ok(refused(Failure::new(Code::Job, errors.to_string()))),
    };
    let Ok(run) = wire::run_id(&operator, &warrant.token) else {
        let text = "the token makes no run id";
        return Ok(refused(Failure::new(Code::Job, text)));
    };
    // Until it is kept no other call is taken: not one with the same token, and none that proposes a study of the same name.
    let store = locked(store);
    if let Some(earlier) = earlier(store.known(&run, &job, seed)?, &run) {
        return Ok(earlier);
    }
    if let Err(full) = room {
        return Ok(refused(full));
    }
    let study = match studies::take(&parsed, (&run, &operator), &warrant, at, &store)? {
        Ok(study) => study,
        Err(failure) => return Ok(refused(failure)),
    };
    let submission = Submission {
        run: run.clone(),
        operator: operator.clone(),
        job: parsed,
        seed,
        warrant,
        submitted: at,
        began: None,
    };
    let act = |did| Entry::new(at, By::from(&operator), did).on_run(run.as_str());
    audit.note(&match (&study, &submission.job.study) {
        (Some(proposed), _) => act(Act::Proposed).on_study(proposed.study.name.as_str()),
        (None, Some(study)) => act(Act::Submitted).on_study(study.name.as_str()),
        (None, None) => act(Act::Submitted),
    })?;
    if let Some(study) = &study {
        store.propose(&study.study, &run, at)?;
    }
    store.submit(&submission)?;
    Ok((Some(Box::new(submission)), Ok(run), study))
}

/// What is answered where a token was used before.
fn earlier(known: Known, run: &RunId) -> Option<Taken> {
    match known {
        Known::New => None,
        Known::Same => Some((None, Ok(run.clone()), None)),
        Known::Other => {
            let text = "this token stands for another job or seed; use a new token";
            Some(refused(Failure::new(Code::Token, text)))
        }
    }
}

/// What is queued, what is answered, and the study that is proposed.
type Taken = (
    Option<Box<Submission>>,
    Result<RunId, Failure>,
    Option<KeptStudy>,
);

fn refused(failure: Failure) -> Taken {
    (None, Err(failure), None)
}

/// Ends a run that was queued.
fn cancelled(
    submission: Submission,
    now: Timestamp,
    store: &SharedStore,
) -> Result<Ending, StoreError> {
    let Submission {
        run,
        job,
        seed,
        warrant,
        submitted,
        ..
    } = submission;
    let queued = Run::new(run, job, seed, warrant, submitted);
    let (run, actions) = queued.step(now, Event::Cancelled);
    debug_assert!(
        actions
            .iter()
            .any(|action| matches!(action, Action::End(_)))
    );
    locked(store).end(run.result(super::VERSION), now)
}

/// A row of a list; none of a run that is only being submitted.
fn state(row: Listed, live: &BTreeMap<RunId, Progress>) -> Option<Progress> {
    let Some(run) = row.run else {
        return RunId::new(UNREADABLE).ok().map(unreadable);
    };
    let known = match (live.get(&run), row.summary) {
        (Some(progress), _) => Some(progress.clone()),
        (None, Some(summary)) => Some(summary),
        (None, None) if row.ended => Some(unreadable(run)),
        (None, None) => None,
    };
    let operator = row.operator;
    known.map(|progress| Progress {
        operator,
        ..progress
    })
}

fn unknown(run: &RunId) -> Failure {
    let text = format!("found no run {run}; `job list` shows all of yours");
    Failure::new(Code::Run, text)
}

/// What is said to whoever cancels a run that has ended: nothing where it was cancelled, as a call may be made twice.
fn over(run: &Progress) -> Result<(), Failure> {
    let how = match &run.ending {
        Some(Ending::Cancelled) => return Ok(()),
        Some(Ending::Failed(failure)) => format!("failed ({})", failure.code),
        Some(ending) => ending.status().replace('_', " "),
        None => run.phase.clone(),
    };
    let text = format!(
        "run {} has ended already: {how}; `job result` fetches what it left",
        run.run
    );
    Err(Failure::new(Code::Ended, text))
}

fn unread(run: &RunId, error: &StoreError) -> Failure {
    tracing::error!(%run, %error, "a run in the store cannot be read");
    Failure::new(
        Code::Store,
        format!("the run {run} cannot be read: {error}"),
    )
}

pub(super) fn busy() -> Failure {
    let text = "too many calls at the same time; try again";
    Failure::new(Code::Busy, text)
}
