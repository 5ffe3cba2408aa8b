//! The run that is under way. It computes, and is stored, on a thread of its own.

use super::received::Received;
use super::{SharedStore, VERSION, locked};
use crate::clock::Clock;
use crate::store::{StoreError, Submission, failed_result};
use protocol::failure::{Code, Failure};
use protocol::job::Job;
use protocol::message::{Begin, Closed, ToSite};
use protocol::name::{OperatorName, RunId, SiteName};
use protocol::opening::Opening;
use protocol::progress::Ending;
use protocol::result::RunResult;
use protocol::run::{Action, Event, Run};
use protocol::time::Timestamp;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tokio::task::JoinHandle;
use wire::{Heard, Reply, Traffic, Warrants, as_heard, run_digest};

/// A run, and what has happened that it has not heard of yet.
pub(super) struct Course {
    submission: Submission,
    /// Bytes of every site before the run.
    before: BTreeMap<SiteName, Traffic>,
    waiting: VecDeque<Event>,
    state: State,
    cancellers: Vec<Reply<()>>,
}

/// Where the run itself is.
enum State {
    Idle(Box<Going>),
    Computing(JoinHandle<Result<Computed, StoreError>>),
    /// It cannot be gone on with.
    Gone,
}

/// A run under way, and what came of its sites.
struct Going {
    run: Run,
    /// The digest of the run, which the sites sign, and who they are that sign.
    digest: String,
    warrants: Warrants,
    received: Received,
    /// What was passed on of closed exchanges.
    heard: Heard,
}

/// What a step decided: messages and progress, once all that precedes them is stored.
pub(super) struct Stepped {
    pub(super) actions: Vec<Action>,
    /// How the run ended, as it is stored.
    pub(super) ended: Option<Ending>,
    /// How a study opened by the run.
    pub(super) opening: Option<Opening>,
}

struct Computed {
    going: Option<Box<Going>>,
    stepped: Stepped,
}

impl Course {
    pub(super) fn new(submission: Submission, before: BTreeMap<SiteName, Traffic>) -> Self {
        Self {
            submission,
            before,
            waiting: VecDeque::new(),
            state: State::Gone,
            cancellers: Vec::new(),
        }
    }

    pub(super) fn run(&self) -> &RunId {
        &self.submission.run
    }

    pub(super) fn job(&self) -> &Job {
        &self.submission.job
    }

    pub(super) fn operator(&self) -> &OperatorName {
        &self.submission.operator
    }

    pub(super) fn before(&self) -> &BTreeMap<SiteName, Traffic> {
        &self.before
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle(_))
    }

    pub(super) fn has_more(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether it computes nothing, has nothing to hear, and waits for who is away.
    pub(super) fn may_yield(&self, now: Timestamp) -> bool {
        match &self.state {
            State::Idle(going) => self.waiting.is_empty() && going.run.is_stalled(now),
            State::Computing(_) | State::Gone => false,
        }
    }

    /// What takes the run up again later.
    pub(super) fn into_submission(self, now: Timestamp) -> Submission {
        let began = match &self.state {
            State::Idle(going) => going.run.progress(now).times.began,
            State::Computing(_) | State::Gone => self.submission.began,
        };
        Submission {
            began,
            ..self.submission
        }
    }

    /// Keeps an event for the next step. A site that comes again and again is kept once.
    pub(super) fn push(&mut self, event: Event) {
        if let Event::Connected(site) = &event {
            self.waiting
                .retain(|known| !matches!(known, Event::Connected(other) if other == site));
        }
        self.waiting.push_back(event);
    }

    /// Cancels the run, and keeps who wants to hear once it is.
    pub(super) fn cancel(&mut self, reply: Option<Reply<()>>) {
        self.cancellers.extend(reply);
        self.push(Event::Cancelled);
    }

    pub(super) fn answer_cancellers(self) {
        for reply in self.cancellers {
            let _ = reply.send(Ok(()));
        }
    }

    /// Begins the run, or goes on with one that had begun, and tells it what waits.
    pub(super) fn open(&mut self, warrants: Warrants, clock: Clock, store: SharedStore) {
        let submission = self.submission.clone();
        let events = std::mem::take(&mut self.waiting);
        self.state = State::Computing(tokio::task::spawn_blocking(move || {
            let id = submission.run.clone();
            let text = submission.job.text.clone();
            let seed = submission.seed;
            match begun(submission, warrants, clock, &store)? {
                Ok(going) => compute(going, events, &BTreeMap::new(), clock, &store),
                Err(reason) => {
                    tracing::error!(run = %id, reason, "a stored run cannot be gone on with");
                    let text_of = format!("the run cannot be gone on with: {reason}");
                    let failed = failed_result(id, text, seed, Failure::new(Code::Store, text_of));
                    let ended = Some(locked(&store).end(failed, clock.now())?);
                    let actions = Vec::new();
                    let stepped = Stepped {
                        actions,
                        ended,
                        opening: None,
                    };
                    Ok(Computed {
                        going: None,
                        stepped,
                    })
                }
            }
        }));
    }

    /// Tells the run what waits; `traffic` is what the sites sent and received in it so far.
    pub(super) fn step(
        &mut self,
        traffic: BTreeMap<SiteName, Traffic>,
        clock: Clock,
        store: SharedStore,
    ) {
        self.state = match std::mem::replace(&mut self.state, State::Gone) {
            State::Idle(going) => {
                let events = std::mem::take(&mut self.waiting);
                State::Computing(tokio::task::spawn_blocking(move || {
                    compute(going, events, &traffic, clock, &store)
                }))
            }
            other => other,
        };
    }

    /// Waits for the step under way, and for ever where there is none. Safe to drop and ask again.
    pub(super) async fn stepped(
        active: &mut Option<Self>,
        clock: Clock,
        store: &SharedStore,
    ) -> Result<Stepped, StoreError> {
        let Some(course) = active else {
            return std::future::pending().await;
        };
        let State::Computing(computing) = &mut course.state else {
            return std::future::pending().await;
        };
        let joined = computing.await;
        course.state = State::Gone;
        match joined {
            Ok(computed) => {
                let Computed { going, stepped } = computed?;
                if let Some(going) = going {
                    course.state = State::Idle(going);
                }
                Ok(stepped)
            }
            Err(error) => {
                tracing::error!(run = %course.run(), %error, "a run broke the coordinator's arithmetic");
                course.give_up(clock, store)
            }
        }
    }

    /// Waits until nothing is written any more.
    pub(super) async fn rest(&mut self) {
        if let State::Computing(computing) = &mut self.state {
            let _ = computing.await;
            self.state = State::Gone;
        }
    }

    fn give_up(&self, clock: Clock, store: &SharedStore) -> Result<Stepped, StoreError> {
        let text = "the coordinator could not go on with the run; its log says more";
        let failure = Failure::new(Code::Internal, text);
        let one = &self.submission;
        let failed = failed_result(one.run.clone(), one.job.text.clone(), one.seed, failure);
        Ok(Stepped {
            actions: Vec::new(),
            ended: Some(locked(store).end(failed, clock.now())?),
            opening: None,
        })
    }
}

/// A run that begins now, or goes on from its records; why it cannot.
fn begun(
    submission: Submission,
    warrants: Warrants,
    clock: Clock,
    store: &SharedStore,
) -> Result<Result<Box<Going>, String>, StoreError> {
    let Submission {
        run,
        operator,
        job,
        seed,
        warrant,
        began,
        ..
    } = submission;
    let begin = Begin {
        run: run.clone(),
        job: job.text.clone(),
        seed,
        warrant: warrant.clone(),
        opening: None,
    };
    let digest = run_digest(&begin, operator.as_str());
    let opening = match opening_of(&job, store)? {
        Ok(opening) => opening,
        Err(reason) => return Ok(Err(reason)),
    };
    let new = |run, job, began| {
        let run = Run::new(run, job, seed, warrant, began);
        match &opening {
            Some(opening) => run.opened(opening),
            None => run,
        }
    };
    let mut heard = Heard::after(opening.as_ref());
    let Some(began) = began else {
        let began = clock.now();
        locked(store).begin(&run, began)?;
        tracing::info!(%run, %operator, "a run begins");
        let run = new(run, job, began);
        let received = Received::default();
        return Ok(Ok(Box::new(Going {
            run,
            digest,
            warrants,
            received,
            heard,
        })));
    };
    let records = match locked(store).records(&run) {
        Ok(records) => records,
        Err(error) => return Ok(Err(error.to_string())),
    };
    tracing::info!(%run, exchanges = records.len(), "a run goes on");
    records
        .iter()
        .for_each(|record| heard.add(&as_heard(Closed::new(run.clone(), record.clone()))));
    let received = Received::of_records(&job.sites, &records);
    let resumed = new(run, job, began).resume(records, clock.now());
    let going = |run| Going {
        run,
        digest,
        warrants,
        received,
        heard,
    };
    let going = resumed.map(|run| Box::new(going(run)));
    Ok(going.map_err(|error| error.to_string()))
}

/// How the study of a job opened; none of a job that opens it.
fn opening_of(
    job: &Job,
    store: &SharedStore,
) -> Result<Result<Option<Opening>, String>, StoreError> {
    if job.opens_study() {
        return Ok(Ok(None));
    }
    let Some(study) = &job.study else {
        return Ok(Err("it is of no study".to_owned()));
    };
    let known = locked(store).study(&study.name)?;
    let opening = known.and_then(|known| known.opening);
    let absent = || "its study has not opened".to_owned();
    Ok(opening.map(Some).ok_or_else(absent))
}

/// Steps the run through what happened; what is to be stored is stored before anything after it is done.
fn compute(
    going: Box<Going>,
    events: VecDeque<Event>,
    traffic: &BTreeMap<SiteName, Traffic>,
    clock: Clock,
    store: &SharedStore,
) -> Result<Computed, StoreError> {
    let mut stepped = Stepped {
        actions: Vec::new(),
        ended: None,
        opening: None,
    };
    let Going {
        mut run,
        digest,
        warrants,
        mut received,
        mut heard,
    } = *going;
    for event in events {
        if let Event::Answered { site, answer, .. } = &event {
            received.note(site, answer);
        }
        let event = warrants.proven(&digest, &run, event);
        let (next, actions) = run.step(clock.now(), event);
        run = next;
        // Made once of what is stored, for all who hear it.
        let mut told: Option<Arc<Closed>> = None;
        for action in actions {
            match action {
                Action::Store(closed) => {
                    locked(store).keep(run.id(), &closed.record)?;
                    let closed = match closed.total {
                        Some(_) => Arc::new(as_heard(Closed::clone(&closed))),
                        None => closed,
                    };
                    heard.add(&closed);
                    told = Some(closed);
                }
                Action::End(ending) => {
                    stepped.opening = opened(&run, &ending, &digest, store)?;
                    let result = whole(run.result(VERSION), traffic, &received, &heard);
                    stepped.ended = Some(locked(store).end(result, clock.now())?);
                }
                Action::Send { site, message } => {
                    let message = shared(message, told.as_ref());
                    stepped.actions.push(Action::Send { site, message });
                }
                action @ (Action::Retell { .. } | Action::Report(_)) => {
                    stepped.actions.push(action);
                }
            }
        }
    }
    let going = stepped.ended.is_none().then(|| {
        Box::new(Going {
            run,
            digest,
            warrants,
            received,
            heard,
        })
    });
    Ok(Computed { going, stepped })
}

/// What closed in the form that all hear, in the place of a copy of its own.
fn shared(message: ToSite, heard: Option<&Arc<Closed>>) -> ToSite {
    match (message, heard) {
        (ToSite::Closed(closed), Some(heard))
            if closed.record.exchange == heard.record.exchange =>
        {
            ToSite::Closed(Arc::clone(heard))
        }
        (message, _) => message,
    }
}

/// How a study opens by a run that ends, where it does: on the disk before the run has ended.
fn opened(
    run: &Run,
    ending: &Ending,
    digest: &str,
    store: &SharedStore,
) -> Result<Option<Opening>, StoreError> {
    let study = run.job().study.as_ref();
    let study = study.filter(|_| run.job().opens_study() && super::is_result(ending));
    let (Some(study), Some(opening)) = (study, run.opening(digest)) else {
        return Ok(None);
    };
    locked(store).open_study(&study.name, &opening)?;
    Ok(Some(opening))
}

/// The result of a run with what its machine does not see: what travelled, and what closed.
fn whole(
    mut result: RunResult,
    traffic: &BTreeMap<SiteName, Traffic>,
    received: &Received,
    heard: &Heard,
) -> RunResult {
    for site in &mut result.sites {
        let own = SiteName::new(&site.name).ok();
        let own = own.and_then(|name| traffic.get(&name).copied());
        let own = own.unwrap_or_default();
        site.bytes_sent = own.bytes_sent;
        site.bytes_received = own.bytes_received;
        site.messages = received.of(&site.name);
    }
    result.pooled.heard = heard.digest();
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use protocol::message::Warrant;
    use std::sync::Mutex;

    #[tokio::test]
    async fn a_run_that_breaks_the_arithmetic_fails_and_the_store_says_so() {
        let job = "name = \"a\"\nmethod = \"unpsl\"\nsites = [\"north\", \"south\"]\n[outcome]\ncolumn = \"y\"\n\
            kind = \"binary\"\npositive = [\"1\"]\n[[features]]\nname = \"x\"\nkind = \"numeric\"\n[unpsl]\n";
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(&home.path().join("store")).unwrap();
        let submission = Submission {
            run: RunId::new("a1").unwrap(),
            operator: OperatorName::new("a").unwrap(),
            job: Job::parse(job).unwrap(),
            seed: 1,
            warrant: Warrant::default(),
            submitted: Timestamp(0),
            began: None,
        };
        store.submit(&submission).unwrap();
        let store = Arc::new(Mutex::new(store));
        let mut course = Course::new(submission.clone(), BTreeMap::new());
        let held = Arc::clone(&store);
        course.state = State::Computing(tokio::task::spawn_blocking(move || {
            let _held = held.lock();
            panic!("a count that does not fit")
        }));
        let mut active = Some(course);
        let stepped = Course::stepped(&mut active, Clock::start(Timestamp(0)), &store)
            .await
            .unwrap();
        let internal = |ending: &Ending| matches!(ending, Ending::Failed(failure) if failure.code == Code::Internal);
        assert!(stepped.ended.as_ref().is_some_and(internal));
        let kept = locked(&store)
            .result(&submission.run, &crate::store::Reach::All)
            .unwrap()
            .unwrap();
        assert!(internal(&kept.ending));
    }
}
