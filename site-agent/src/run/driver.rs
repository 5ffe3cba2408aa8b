//! Carries out what `protocol::site` decides: one stream to the coordinator, one worker thread.

use super::orders::{self, ORDERS_MAX, Order, Orders};
pub use super::seen::Seen;
use super::worker::Worker;
use crate::books::chain::ChainError;
use crate::config::SiteConfig;
use crate::studies;
use protocol::failure::Refusal;
use protocol::message::{Begin, Reply, ToCoordinator, ToSite, Waiting};
use protocol::name::{OperatorName, RunId, SiteName};
use protocol::site::{Action, Event, Site};
use protocol::study::SignedApproval;
use protocol::time::Timestamp;
use report::moment;
use service::pauses::Pauses;
use service::supervisor;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use tokio::sync::{mpsc, oneshot, watch};
use wire::{ConnectionError, CoordinatorReceiver, CoordinatorSender, Dial, Remedy, Sealed};

/// The agent's version, as the coordinator receives it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// How long the conversation waits where the worker's queue is full.
const FULL_PAUSE: Duration = Duration::from_millis(5);
/// How long an agent that stops waits for the coordinator to take its leave.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(2);
/// How often the agent looks for new approvals.
const LOOK: Duration = Duration::from_secs(1);
/// Answers that wait while the stream is down.
const COMPUTED_MAX: usize = 8;

/// The agent cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The coordinator refused the site, or is not the one that the authority vouches for.
    #[error("the coordinator at {coordinator} cannot be joined")]
    Refused {
        /// Its address.
        coordinator: String,
        /// Why.
        #[source]
        source: ConnectionError,
    },
    /// The worker's thread has panicked.
    #[error(
        "the worker failed in a way that it should not: a fault of Kindred, whose place the log has. Nothing was sent; \
         start the agent again"
    )]
    Worker,
    /// The journal or the ledger cannot be written or trusted: nothing may leave.
    #[error("the site's books stop the agent")]
    Books(#[from] ChainError),
}

/// What the worker says: an answer, which is in the journal, or why nothing may be sent.
type Computed = Result<Reply<Sealed>, ChainError>;

/// Attends the coordinator until `next` is ready, dialling again whenever the stream is lost. Gives what comes next; where that is something,
/// the worker has ended, and whatever it had begun is in the books.
///
/// # Errors
/// [`AgentError`] where dialling again cannot help.
pub async fn serve<T>(
    config: SiteConfig,
    dial: Dial,
    seen: &Seen,
    next: impl Future<Output = Option<T>>,
) -> Result<Option<T>, AgentError> {
    let coordinator = config.coordinator.to_string();
    if let Err(source) = dial.tls.check_site(&config.site) {
        return Err(AgentError::Refused {
            coordinator,
            source,
        });
    }
    let mut worker = Worker::open(config.clone(), now())?;
    let approvals = Approvals::new(&config);
    let (mut desk, mut ended) = start_worker(approvals, move |order| {
        carry_out(&mut worker, &config, order)
    });
    let (stopping, stopped) = watch::channel(());
    supervisor::ready();
    let next = {
        let attending = attend((&coordinator, &dial), seen, &mut desk, stopped);
        let mut attending = std::pin::pin!(attending);
        let next = tokio::select! {
            next = next => next,
            _ = &mut ended => return Err(AgentError::Worker),
            attended = &mut attending => return attended.map(|()| None),
        };
        drop(stopping);
        // Whoever does not answer in time is left all the same.
        let _ = tokio::time::timeout(LEAVE_TIMEOUT, attending).await;
        next
    };
    drop(desk);
    if next.is_some() {
        // Two workers at once would write one journal.
        let _ = ended.await;
    }
    Ok(next)
}

/// Attends until `stopped` says so, and then leaves in good order; an error is why it cannot attend.
async fn attend(
    (coordinator, dial): (&str, &Dial),
    seen: &Seen,
    desk: &mut Desk,
    mut stopped: watch::Receiver<()>,
) -> Result<(), AgentError> {
    let mut site = Site::default();
    let mut pauses = Pauses::default();
    let mut has_joined = false;
    loop {
        let attended = tokio::select! {
            attended = wire::attend(dial, VERSION) => attended,
            _ = stopped.changed() => return Ok(()),
        };
        let error = match attended {
            Ok((sender, receiver)) => {
                (has_joined, pauses) = (true, Pauses::default());
                tracing::info!(%coordinator, "joined the coordinator");
                seen.joined();
                match converse(&mut site, (sender, receiver), seen, desk, &mut stopped).await {
                    Ended::Lost(error) => error,
                    Ended::Books(error) => return Err(AgentError::Books(error)),
                    Ended::Worker => return Err(AgentError::Worker),
                    Ended::Left => return Ok(()),
                }
            }
            Err(error) => error,
        };
        let remedy = error.remedy();
        seen.lost(error.code());
        // Whoever stands between could show a wrong certificate: only before the first success does it tell that the
        // configuration is wrong, and then a person should hear of it at once.
        if remedy == Remedy::Person && !has_joined {
            return Err(AgentError::Refused {
                coordinator: coordinator.to_owned(),
                source: error,
            });
        }
        let pause = pauses.next(remedy);
        let (code, seconds) = (error.code().name(), pause.as_secs_f64());
        match remedy {
            Remedy::Soon => tracing::warn!(code, %error, "lost the coordinator; trying again"),
            Remedy::Later | Remedy::Person => {
                tracing::error!(code, seconds, %error, "the coordinator cannot be joined as things are; trying again later");
            }
            Remedy::Replaced => tracing::error!(
                code,
                seconds,
                "another holder of this site's certificate took its place; trying again later. Run one agent only; if \
                 no other is yours, have the certificate revoked and a new one issued"
            ),
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {},
            _ = stopped.changed() => return Ok(()),
        }
    }
}

/// Why a conversation ended.
enum Ended {
    Lost(ConnectionError),
    Books(ChainError),
    Worker,
    Left,
}

async fn converse(
    site: &mut Site<Sealed>,
    (sender, mut receiver): (CoordinatorSender, CoordinatorReceiver),
    seen: &Seen,
    desk: &mut Desk,
    stopped: &mut watch::Receiver<()>,
) -> Ended {
    desk.approvals.said.clear();
    let mut look = tokio::time::interval(LOOK);
    loop {
        let event = tokio::select! {
            _ = look.tick() => {
                for approved in desk.approvals.news().await {
                    // A stream that is down is noticed by the receiver; all is said again on the next.
                    let _ = sender.send(ToCoordinator::Approved(approved)).await;
                }
                continue;
            },
            message = receiver.next() => match message {
                Ok(message) => {
                    if let ToSite::Proposed(_) = &message {
                        // An approval that was said before the proposal was passed over.
                        desk.approvals.said.clear();
                    }
                    Event::Received(message)
                }
                Err(error) => return Ended::Lost(error),
            },
            computed = desk.computed.recv() => match computed {
                Some(Ok(reply)) => {
                    seen.answered();
                    Event::Computed(reply)
                }
                Some(Err(error)) => return Ended::Books(error),
                None => return Ended::Worker,
            },
            _ = stopped.changed() => {
                // The coordinator receives the end of this side's words, and ends its own.
                drop(sender);
                while receiver.next().await.is_ok() {}
                return Ended::Left;
            }
        };
        let (next, actions) = std::mem::take(site).step(event);
        *site = next;
        for action in actions {
            match action {
                // A stream that is down is noticed by the receiver; the answer is stored.
                Action::Send(message) => drop(sender.send(message).await),
                Action::Wait(waiting) => say(&waiting),
                // What closed or was proposed is never skipped: the worker takes one after the other.
                kept @ (Action::Follow(_) | Action::Close(_) | Action::Propose(_)) => {
                    while !desk.orders.push(kept.clone()) {
                        tokio::time::sleep(FULL_PAUSE).await;
                    }
                }
                order => {
                    if !desk.orders.push(order) {
                        tracing::warn!(
                            "ignored a question: {ORDERS_MAX} wait for the worker already"
                        );
                    }
                }
            }
        }
    }
}

/// The worker, as the conversation sees it.
struct Desk {
    orders: Orders,
    computed: mpsc::Receiver<Computed>,
    approvals: Approvals,
}

/// What this site has approved, and what of it was said on this stream. Approvals are made by another process.
struct Approvals {
    folder: PathBuf,
    site: SiteName,
    said: BTreeSet<String>,
}

impl Approvals {
    fn new(config: &SiteConfig) -> Self {
        Self {
            folder: config.folder.clone(),
            site: config.site.clone(),
            said: BTreeSet::new(),
        }
    }

    /// Approvals that were not said yet. One that cannot be read is in the log, once.
    async fn news(&mut self) -> Vec<SignedApproval> {
        let (folder, site, said) = (self.folder.clone(), self.site.clone(), self.said.clone());
        let read = tokio::task::spawn_blocking(move || studies::unsaid(&folder, &site, &said));
        let news = match read.await {
            Ok(Ok(news)) => news,
            Ok(Err(error)) => {
                tracing::error!(%error, "what this site has approved cannot be read");
                return Vec::new();
            }
            Err(_) => return Vec::new(),
        };
        let mut approvals = Vec::new();
        for (name, approval) in news {
            match approval {
                Ok(approval) => approvals.extend(approval),
                Err(error) => {
                    tracing::error!(study = name, %error, "what this site has approved cannot be read");
                }
            }
            self.said.insert(name);
        }
        approvals
    }
}

/// Reading and solving block, so they have a thread of their own. The second value is ready once the thread has ended and let go of all it
/// held: before its orders do only by a panic, and an agent without a worker would be connected and mute.
fn start_worker(
    approvals: Approvals,
    carry_out: impl FnMut(Order) -> Option<Computed> + Send + 'static,
) -> (Desk, oneshot::Receiver<()>) {
    let (orders, inbox) = orders::orders();
    let (outbox, computed) = mpsc::channel(COMPUTED_MAX);
    let (alive, panicked) = oneshot::channel();
    std::thread::spawn(move || {
        // Dropped with this thread's stack, in whatever way it ends.
        let _alive: oneshot::Sender<()> = alive;
        let mut carry_out = carry_out;
        while let Some(order) = inbox.next() {
            if let Some(computed) = carry_out(order)
                && outbox.blocking_send(computed).is_err()
            {
                return;
            }
        }
    });
    let desk = Desk {
        orders,
        computed,
        approvals,
    };
    (desk, panicked)
}

fn carry_out(worker: &mut Worker, config: &SiteConfig, order: Order) -> Option<Computed> {
    match order {
        Action::Send(_) | Action::Wait(_) => None,
        Action::Begin(begin) => {
            let operator = signed_by(&begin, config);
            worker.begin(begin, operator);
            None
        }
        Action::Propose(study) => {
            if let Err(error) = studies::proposed::keep(config, &study) {
                tracing::error!(%error, "a study that was proposed could not be kept");
            }
            None
        }
        Action::Close(digests) => {
            if let Err(error) = studies::close(config, &digests) {
                tracing::error!(%error, "that studies were closed could not be noted");
            }
            None
        }
        Action::LetGo { run, ending } => {
            tracing::info!(%run, %ending, "the run is over");
            worker.let_go(&run);
            None
        }
        Action::Follow(closed) => {
            let followed = worker.follow(&closed, now()).map(|()| None);
            unless_changed(worker, &closed.run, followed)
        }
        Action::Compute(ask) => {
            let answered = worker.answer(&ask, now());
            unless_changed(worker, &ask.run, answered)
        }
    }
}

/// Says in the log who a run waits for.
fn say(waiting: &Waiting) {
    let away: Vec<&str> = waiting.away.iter().map(SiteName::as_str).collect();
    let since = waiting.since.and_then(moment).unwrap_or_default();
    tracing::info!(
        run = %waiting.run,
        since,
        "the run waits for {}, not connected; it goes on once they are back",
        away.join(", ")
    );
}

/// What the worker says, and nothing where a study's files were changed: its run waits, and those of other studies go on.
fn unless_changed(
    worker: &mut Worker,
    run: &RunId,
    said: Result<Option<Reply<Sealed>>, ChainError>,
) -> Option<Computed> {
    match said {
        Err(error @ ChainError::Study { .. }) => {
            tracing::error!(
                %run,
                %error,
                "the run waits for this site, which answers nothing of a study whose files were changed; put them back, \
                 and start the agent again"
            );
            worker.let_go(run);
            None
        }
        said => said.transpose(),
    }
}

/// The operator who signed a run's job; nobody else's word counts.
pub(super) fn signed_by(begin: &Begin, config: &SiteConfig) -> Result<OperatorName, Refusal> {
    let Begin {
        run,
        job,
        seed,
        warrant,
        opening: _,
    } = begin;
    let refused = |text: String| Refusal {
        rule: "operators".to_owned(),
        text,
    };
    let warrants = config.warrants().map_err(|error| {
        tracing::error!(%run, %error, "nobody can be believed to have signed the job");
        refused("the site cannot judge who signed the job; its log says why".to_owned())
    })?;
    match warrants.operator(run, job, *seed, warrant) {
        Ok(operator) => {
            tracing::info!(%run, %operator, "a run begins");
            Ok(operator)
        }
        Err(error) => {
            tracing::warn!(%run, %error, "a run is refused");
            Err(refused(error.to_string()))
        }
    }
}

/// The wall clock.
#[must_use]
pub fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::{Exit, Exits};
    use protocol::message::{Ask, Request};

    fn approvals() -> Approvals {
        Approvals {
            folder: PathBuf::new(),
            site: SiteName::new("north").unwrap(),
            said: BTreeSet::new(),
        }
    }

    #[tokio::test]
    async fn a_worker_that_panics_is_noticed_at_once() {
        let (desk, panicked) = start_worker(approvals(), |_| panic!("of the test"));
        let run = RunId::new("run").unwrap();
        let (exchange, request) = (1, Request::Describe);
        let order = Action::Compute(Ask {
            run,
            exchange,
            request,
        });
        assert!(desk.orders.push(order));
        let noticed = tokio::time::timeout(Duration::from_secs(5), panicked).await;
        assert!(noticed.is_ok());
        assert_eq!(AgentError::Worker.exit(), Exit::Failed);
    }

    #[tokio::test]
    async fn a_worker_with_nothing_to_do_is_alive() {
        let (desk, panicked) = start_worker(approvals(), |_| None);
        let noticed = tokio::time::timeout(Duration::from_millis(200), panicked).await;
        assert!(noticed.is_err());
        drop(desk);
    }
}
