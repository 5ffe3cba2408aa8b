//! Carries out what `protocol::run` decides. One run at a time; the others wait in their turn. A run that waits for a site that is
//! away lets those go first whose sites are there.
//!
//! The driver itself only passes on: a run computes and is stored on a thread of its own (`course`), jobs are
//! parsed and results read on others (`calls`), so that no input keeps it from the next caller.

mod attendance;
mod calls;
mod course;
mod keeping;
mod looks;
mod queue;
mod received;
mod seen;
mod studies;

use crate::audit::Audit;
use crate::clock::Clock;
use crate::journals::Journals;
use crate::store::{Store, StoreError, Submission};
use attendance::Heard;
use course::{Course, Stepped};
pub use keeping::Keeping;
pub use looks::{ClosedRound, Look, OwnStudy, Presence, Rounds, Sight};
use protocol::message::{Closed, Waiting};
use protocol::name::{OperatorName, RunId, SiteName};
use protocol::progress::{Ending, Progress};
use protocol::run::{Action, Event};
use protocol::study::StudyName;
use protocol::time::Timestamp;
use queue::Queue;
pub use seen::Seen;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use studies::Studies;
use tokio::sync::{Semaphore, mpsc, watch};
use wire::{Incoming, SiteSender, Traffic, Warrants};

/// The coordinator's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Messages of sites that wait for the driver.
const INBOX_MAX: usize = 64;
/// Calls of operators that are worked on at the same time.
const CALLS_AT_ONCE_MAX: usize = 64;
/// The driver looks at the clock at least this often.
const TICK_MAX: Duration = Duration::from_secs(1);

/// The store, which one thread at a time writes or reads.
type SharedStore = Arc<Mutex<Store>>;
/// Exchanges that closed in a run and are on their way to sites that missed them.
type Resent = Arc<Mutex<BTreeMap<(RunId, u32), Weak<Closed>>>>;

/// Who comes to a driver.
pub struct Arrivals {
    /// Sites and operators.
    pub incoming: mpsc::Receiver<Incoming>,
    /// Operators who look at pages.
    pub looks: mpsc::Receiver<Look>,
}

impl From<mpsc::Receiver<Incoming>> for Arrivals {
    /// Where there are no pages.
    fn from(incoming: mpsc::Receiver<Incoming>) -> Self {
        let (_, looks) = mpsc::channel(1);
        Self { incoming, looks }
    }
}

struct Driver {
    clock: Clock,
    store: SharedStore,
    /// What operators did.
    audit: Audit,
    /// For how long results are kept.
    retain: Option<Duration>,
    /// Operators who see and end what is everybody's.
    administrators: BTreeSet<OperatorName>,
    /// When older ones were last taken away.
    swept: Option<Timestamp>,
    /// By which it is judged whether an answer is the site's own.
    warrants: Warrants,
    sites: BTreeMap<SiteName, Connected>,
    /// When each that has come was here.
    presence: BTreeMap<SiteName, Presence>,
    /// Bytes of connections that are gone.
    past: BTreeMap<SiteName, Traffic>,
    connections: u64,
    heard: mpsc::Sender<Heard>,
    queue: Queue,
    active: Option<Course>,
    resent: Resent,
    /// Runs that are queued or under way.
    shown: BTreeMap<RunId, Shown>,
    calls: Arc<Semaphore>,
    done: mpsc::Sender<calls::Done>,
    journals: Journals,
    studies: Studies,
    /// Whether some run may wait for other sites than its sites were sent.
    waits_are_due: bool,
    /// When they last were.
    waits_sent: Option<Timestamp>,
    seen: Seen,
}

/// A run that has not ended, as its operator sees it.
struct Shown {
    operator: OperatorName,
    submitted: Timestamp,
    study: Option<StudyName>,
    sites: Vec<SiteName>,
    progress: watch::Sender<Progress>,
    rounds: Rounds,
    /// Which sites it waits for, as the others were last sent it.
    waiting: Option<Waiting>,
}

struct Connected {
    /// Tells this connection from an earlier one of the same site.
    number: u64,
    sender: SiteSender,
}

/// Serves runs until `stop` is ready. A run that is active then goes on from its last stored
/// exchange when the coordinator is started again.
///
/// # Errors
/// [`StoreError`]: what cannot be stored must not be sent.
pub async fn drive(
    keeping: Keeping,
    warrants: Warrants,
    Arrivals {
        mut incoming,
        mut looks,
    }: Arrivals,
    seen: Seen,
    stop: impl Future<Output = ()>,
) -> Result<(), StoreError> {
    let (heard, mut inbox) = mpsc::channel(INBOX_MAX);
    let (done, mut calls_done) = mpsc::channel(CALLS_AT_ONCE_MAX);
    let mut driver = Driver::resume(keeping, warrants, (heard, done), seen)?;
    let mut stop = std::pin::pin!(stop);
    loop {
        driver.begin_next();
        driver.sweep();
        driver.send_waits();
        driver.seen.unfinished(driver.shown.len());
        let is_idle = driver.active.as_ref().is_none_or(Course::is_idle);
        tokio::select! {
            () = &mut stop => break,
            caller = incoming.recv() => match caller {
                Some(Incoming::Site { name, version, sender, receiver }) => {
                    driver.site_came(name, &version, sender, receiver);
                }
                Some(Incoming::Operator { operator, call }) => driver.call(&operator, call),
                None => break,
            },
            Some(look) = looks.recv() => driver.look(look),
            Some(done) = calls_done.recv() => driver.call_done(done)?,
            // What the sites say waits while the run computes.
            Some(heard) = inbox.recv(), if is_idle => driver.hear(heard),
            stepped = Course::stepped(&mut driver.active, driver.clock, &driver.store), if !is_idle => driver.carry_out(stepped)?,
            () = tokio::time::sleep(TICK_MAX), if is_idle => driver.feed(Event::Tick),
        }
    }
    // What is being written is written to its end.
    if let Some(course) = &mut driver.active {
        course.rest().await;
    }
    Ok(())
}

impl Driver {
    fn begin_next(&mut self) {
        let (sites, studies) = (&self.sites, &self.studies);
        let may_begin = |one: &Submission| studies.may_begin(&one.job);
        let is_ready = |one: &Submission| {
            may_begin(one) && one.job.sites.iter().all(|site| sites.contains_key(site))
        };
        let now = self.clock.now();
        let yields = |course: &Course| course.may_yield(now);
        if self.active.as_ref().is_some_and(yields) && self.queue.has(is_ready) {
            // It waits for who is away, and goes on from its last stored exchange when they are back.
            let waiting = self.active.take().map(|course| course.into_submission(now));
            waiting.into_iter().for_each(|one| self.queue.push(one));
        }
        if self.active.is_some() {
            return;
        }
        let next = self.queue.next(is_ready);
        let Some(submission) = next.or_else(|| self.queue.next(may_begin)) else {
            return;
        };
        let before = self
            .sites
            .keys()
            .map(|site| (site.clone(), self.traffic(site)));
        let mut course = Course::new(submission, before.collect());
        for site in self.sites.keys() {
            course.push(Event::Connected(site.clone()));
        }
        course.push(Event::Tick);
        let warrants = self.warrants.clone();
        course.open(warrants, self.clock, Arc::clone(&self.store));
        self.active = Some(course);
        self.send_queue_places();
    }

    /// Tells the active run what happened.
    fn feed(&mut self, event: Event) {
        if let Some(course) = &mut self.active {
            course.push(event);
        }
        self.step();
    }

    /// Lets the active run compute, where it does not and something has happened.
    fn step(&mut self) {
        let Some(mut course) = self.active.take() else {
            return;
        };
        if course.is_idle() && course.has_more() {
            let traffic = self.traffic_since(course.before());
            course.step(traffic, self.clock, Arc::clone(&self.store));
        }
        self.active = Some(course);
    }

    /// Carries out what a step of the active run decided and stored.
    fn carry_out(&mut self, stepped: Result<Stepped, StoreError>) -> Result<(), StoreError> {
        let Stepped {
            actions,
            ended,
            opening,
        } = stepped?;
        if let (Some(course), Some(opening)) = (&self.active, opening) {
            self.studies.open(course.job(), opening);
        }
        for action in actions {
            match action {
                // Done where it was decided.
                Action::Store(_) => drop(self.seen.exchanges.inc()),
                Action::End(_) => {}
                Action::Send { site, message } => {
                    if let Some(connected) = self.sites.get(&site)
                        && let Err(error) = connected.sender.send(message)
                    {
                        tracing::warn!(%site, %error, "a message was not sent");
                    }
                }
                Action::Retell { site, until } => self.resend_closed(&site, until),
                Action::Report(progress) => self.show(progress),
            }
        }
        match ended {
            Some(ending) => {
                if let Some(course) = self.active.take() {
                    self.ended(course.run(), ending);
                    course.answer_cancellers();
                }
                self.keep_journals();
            }
            None => self.step(),
        }
        Ok(())
    }

    /// Sends a site what closed in the active run, each exchange read from the store when the site is ready for it: once for all sites
    /// that it is on its way to.
    fn resend_closed(&self, site: &SiteName, until: u32) {
        let (Some(course), Some(connected)) = (&self.active, self.sites.get(site)) else {
            return;
        };
        let (run, store) = (course.run().clone(), Arc::clone(&self.store));
        let resent = Arc::clone(&self.resent);
        let closed = (0..=until).map_while(move |exchange| {
            let mut resent = resent.lock().unwrap_or_else(PoisonError::into_inner);
            let place = (run.clone(), exchange);
            if let Some(known) = resent.get(&place).and_then(Weak::upgrade) {
                return Some(known);
            }
            let record = locked(&store).record(&run, exchange);
            let record = record.unwrap_or_else(|error| {
                tracing::error!(%run, exchange, %error, "what closed cannot be read");
                None
            });
            let closed = Arc::new(Closed::new(run.clone(), record?));
            resent.retain(|_, one| one.strong_count() > 0);
            resent.insert(place, Arc::downgrade(&closed));
            Some(closed)
        });
        if let Err(error) = connected.sender.send_closed(closed) {
            tracing::warn!(%site, %error, "a message was not sent");
        }
    }

    /// Keeps where the journals end. What is not kept, because the coordinator ends before, is heard again.
    fn keep_journals(&self) {
        let (store, heads) = (Arc::clone(&self.store), self.journals.heads().clone());
        tokio::task::spawn_blocking(move || {
            if let Err(error) = locked(&store).keep_journals(&heads) {
                tracing::error!(%error, "could not keep where the sites' journals end");
            }
        });
    }

    fn show(&mut self, mut progress: Progress) {
        if let Some(shown) = self.shown.get_mut(&progress.run) {
            shown.rounds.note(&progress);
        }
        let Some(shown) = self.shown.get(&progress.run) else {
            return;
        };
        progress.times.submitted = Some(shown.submitted);
        progress.operator = Some(shown.operator.clone());
        let is_news = shown.progress.send_if_modified(|known| {
            let news = *known != progress;
            *known = progress;
            news
        });
        self.waits_are_due |= is_news;
    }

    /// Shows the end of a run, which from now on is read from the store.
    fn ended(&mut self, run: &RunId, ending: Ending) {
        tracing::info!(%run, status = ending.status(), "a run ended");
        self.seen.ended(&ending);
        let ended = self.clock.now();
        if let Some(shown) = self.shown.remove(run) {
            shown.progress.send_if_modified(|progress| {
                let ending = Some(ending);
                if progress.ending == ending {
                    return false;
                }
                "ended".clone_into(&mut progress.phase);
                progress.waiting_for.clear();
                progress.ahead = None;
                progress.times.ended = Some(ended);
                progress.ending = ending;
                true
            });
        }
    }

    /// Bytes of a site over all its connections.
    fn traffic(&self, site: &SiteName) -> Traffic {
        let past = self.past.get(site).copied().unwrap_or_default();
        let present = self
            .sites
            .get(site)
            .map(|known| known.sender.traffic())
            .unwrap_or_default();
        Traffic {
            bytes_sent: past.bytes_sent + present.bytes_sent,
            bytes_received: past.bytes_received + present.bytes_received,
        }
    }

    fn add_past(&mut self, site: &SiteName, traffic: Traffic) {
        let past = self.past.entry(site.clone()).or_default();
        past.bytes_sent += traffic.bytes_sent;
        past.bytes_received += traffic.bytes_received;
    }

    /// Bytes of every site that is or was connected, beyond those `before`.
    fn traffic_since(&self, before: &BTreeMap<SiteName, Traffic>) -> BTreeMap<SiteName, Traffic> {
        let sites = self.sites.keys().chain(self.past.keys());
        let since = |site: &SiteName| {
            let all = self.traffic(site);
            let before = before.get(site).copied().unwrap_or_default();
            let traffic = Traffic {
                bytes_sent: all.bytes_sent.saturating_sub(before.bytes_sent),
                bytes_received: all.bytes_received.saturating_sub(before.bytes_received),
            };
            (site.clone(), traffic)
        };
        sites.map(since).collect()
    }
}

/// The store, whatever became of the thread that held it before: what that one had begun is rolled back.
fn locked(store: &Mutex<Store>) -> std::sync::MutexGuard<'_, Store> {
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True where an ending is a result that an operator can use.
#[must_use]
pub fn is_result(ending: &Ending) -> bool {
    matches!(
        ending,
        Ending::Converged | Ending::Completed | Ending::RoundLimit
    )
}

#[cfg(test)]
mod tests;
