//! Carries out what `protocol::site` decides: one stream to the coordinator, one worker thread.

use crate::chain::ChainError;
use crate::config::SiteConfig;
use crate::worker::Worker;
use privacy::Released;
use protocol::message::{Answer, Begin, Refusal};
use protocol::name::{OperatorName, RunId};
use protocol::site::{Action, Event, Site};
use protocol::time::Timestamp;
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;
use wire::{ConnectionError, CoordinatorReceiver, CoordinatorSender, Dial, Warrants};

/// The agent's version, as the coordinator hears it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The first and the longest pause before the coordinator is dialled again.
const RETRY: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(5)];

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
    /// The journal or the ledger cannot be written or trusted: nothing may leave.
    #[error("the site's books stop the agent")]
    Books(#[from] ChainError),
}

/// What the worker says.
type Computed = Result<(RunId, u32, Released<Answer>), ChainError>;

/// Attends the coordinator until `stop` is ready, dialling again whenever the stream is lost.
///
/// # Errors
/// [`AgentError`] where dialling again cannot help.
pub async fn serve(
    config: SiteConfig,
    dial: Dial,
    stop: impl Future<Output = ()>,
) -> Result<(), AgentError> {
    let coordinator = config.coordinator.to_string();
    let (orders, mut computed) =
        start_worker(Worker::open(config, now())?, dial.tls.warrants().clone());
    let mut site = Site::default();
    let mut pause = RETRY[0];
    let mut stop = std::pin::pin!(stop);
    loop {
        let joined = tokio::select! {
            () = &mut stop => return Ok(()),
            joined = wire::attend(&dial, VERSION) => joined,
        };
        match joined {
            Ok((sender, receiver)) => {
                pause = RETRY[0];
                tracing::info!(%coordinator, "joined the coordinator");
                let ended = tokio::select! {
                    () = &mut stop => return Ok(()),
                    ended = converse(&mut site, sender, receiver, &orders, &mut computed) => ended,
                };
                match ended {
                    Ended::Lost(error) if error.is_final() => {
                        return Err(AgentError::Refused {
                            coordinator,
                            source: error,
                        });
                    }
                    Ended::Lost(error) => tracing::warn!(%error, "lost the coordinator"),
                    Ended::Books(error) => return Err(AgentError::Books(error)),
                }
            }
            Err(error) if error.is_final() => {
                return Err(AgentError::Refused {
                    coordinator,
                    source: error,
                });
            }
            Err(error) => tracing::warn!(%error, "the coordinator is not there; trying again"),
        }
        tokio::select! {
            () = &mut stop => return Ok(()),
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(RETRY[1]),
        }
    }
}

/// Why a conversation ended.
enum Ended {
    Lost(ConnectionError),
    Books(ChainError),
}

async fn converse(
    site: &mut Site,
    sender: CoordinatorSender,
    mut receiver: CoordinatorReceiver,
    orders: &mpsc::UnboundedSender<Action>,
    computed: &mut mpsc::UnboundedReceiver<Computed>,
) -> Ended {
    loop {
        let event = tokio::select! {
            message = receiver.next() => match message {
                Ok(message) => Event::Received(message),
                Err(error) => return Ended::Lost(error),
            },
            Some(computed) = computed.recv() => match computed {
                Ok((run, exchange, answer)) => Event::Computed { run, exchange, answer },
                Err(error) => return Ended::Books(error),
            },
        };
        let (next, actions) = std::mem::take(site).step(event);
        *site = next;
        for action in actions {
            match action {
                // A stream that is down is noticed by the receiver; the answer is stored.
                Action::Send(message) => drop(sender.send(message).await),
                order => drop(orders.send(order)),
            }
        }
    }
}

/// Reading and solving block, so they have a thread of their own. Orders are few: the coordinator
/// asks one exchange at a time.
fn start_worker(
    mut worker: Worker,
    warrants: Warrants,
) -> (
    mpsc::UnboundedSender<Action>,
    mpsc::UnboundedReceiver<Computed>,
) {
    let (orders, mut inbox) = mpsc::unbounded_channel();
    let (outbox, computed) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        while let Some(order) = inbox.blocking_recv() {
            let answered = match order {
                Action::Send(_) => None,
                Action::Begin(begin) => {
                    let operator = signed_by(&begin, &warrants);
                    worker.begin(begin, operator);
                    None
                }
                Action::LetGo { run, ending } => {
                    tracing::info!(%run, %ending, "the run is over");
                    worker.let_go(&run);
                    None
                }
                Action::Compute {
                    run,
                    exchange,
                    request,
                } => worker
                    .answer(&run, exchange, request, now())
                    .map(|answer| answer.map(|answer| (run, exchange, answer)))
                    .transpose(),
            };
            if let Some(answered) = answered
                && outbox.send(answered).is_err()
            {
                return;
            }
        }
    });
    (orders, computed)
}

/// The operator who signed a run's job; nobody else's word counts.
fn signed_by(begin: &Begin, warrants: &Warrants) -> Result<OperatorName, Refusal> {
    let Begin {
        run,
        job,
        seed,
        warrant,
    } = begin;
    match warrants.operator(run, job, *seed, warrant) {
        Ok(operator) => {
            tracing::info!(%run, %operator, "a run begins");
            Ok(operator)
        }
        Err(error) => {
            tracing::warn!(%run, %error, "a run is refused");
            Err(Refusal {
                rule: "operators".to_owned(),
                text: error.to_string(),
            })
        }
    }
}

/// The wall clock.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
