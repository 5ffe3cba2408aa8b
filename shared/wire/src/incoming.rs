//! Who came to the coordinator, and the ends by which its program talks with them.

use crate::connection::asked::Asked;
use crate::connection::failing::{ConnectionError, SendError};
use crate::connection::status;
use crate::connection::stream::{ByteCounts, Inbox, OutboxSender};
use crate::encoding::raw::ToCoordinatorFrame;
use protocol::failure::Failure;
use protocol::message::{Answer, Closed, ToCoordinator, ToSite, Warrant};
use protocol::name::{OperatorName, RunId, SiteName};
use protocol::progress::Progress;
use protocol::result::RunResult;
use protocol::study::{StudyName, StudyState};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

/// Who came to the coordinator.
#[derive(Debug)]
pub enum Incoming {
    /// A site attends. Whether it replaces an earlier connection of the same name is the
    /// program's to decide: dropping both ends of one, or closing it, lets go of it.
    Site {
        /// Its name, from its certificate.
        name: SiteName,
        /// Version of its agent.
        version: String,
        /// Messages to it.
        sender: SiteSender,
        /// Messages from it.
        receiver: SiteReceiver,
    },
    /// An operator asks.
    Operator {
        /// Their name, from their certificate.
        operator: OperatorName,
        /// What they ask, with the place for the answer.
        call: OperatorCall,
    },
}

/// The place for an answer, or for the reason that there is none.
pub type Reply<T> = oneshot::Sender<Result<T, Failure>>;

/// What an operator asks.
#[derive(Debug)]
pub enum OperatorCall {
    /// Start a run, or find the one that the same job with the same token has started.
    Submit {
        /// The job's text.
        job: String,
        /// Seed of the run.
        seed: u64,
        /// The operator's word for it, which was judged.
        warrant: Warrant,
        /// The run.
        reply: Reply<RunId>,
    },
    /// Follow a run. The latest state is what counts: each change of the channel is shown, until
    /// one carries the ending.
    Watch {
        /// The run.
        run: RunId,
        /// Its present state and all that follow.
        reply: Reply<watch::Receiver<Progress>>,
    },
    /// Cancel a run.
    Cancel {
        /// The run.
        run: RunId,
        /// Done.
        reply: Reply<()>,
    },
    /// Take away what a run that has ended left.
    Remove {
        /// The run.
        run: RunId,
        /// Done.
        reply: Reply<()>,
    },
    /// What a run left.
    FetchResult {
        /// The run.
        run: RunId,
        /// The result, once the run has ended.
        reply: Reply<RunResult>,
    },
    /// The studies that name the operator, the newest first.
    ListStudies {
        /// Where they stand.
        reply: Reply<Vec<StudyState>>,
    },
    /// End a study.
    CloseStudy {
        /// The study.
        study: StudyName,
        /// Done.
        reply: Reply<()>,
    },
    /// Every run, the newest first.
    List {
        /// Their states.
        reply: Reply<Vec<Progress>>,
    },
}

/// Messages in a row, each made when the connection takes it.
pub(crate) type Messages = Box<dyn Iterator<Item = ToSite> + Send>;

/// Messages to one site.
#[derive(Debug, Clone)]
pub struct SiteSender {
    pub(crate) outbox: OutboxSender<Messages>,
    pub(crate) counts: Arc<ByteCounts>,
    pub(crate) asked: Arc<Asked>,
}

/// Bytes of encoded frames of one connection, as its site counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Bytes that the site sent.
    pub bytes_sent: u64,
    /// Bytes that the site received.
    pub bytes_received: u64,
}

impl SiteSender {
    /// Queues a message without waiting.
    ///
    /// # Errors
    /// [`SendError`] where the connection is gone, or where the site is so slow that the
    /// connection was dropped.
    pub fn send(&self, message: ToSite) -> Result<(), SendError> {
        self.asked.note(&message);
        self.queue(Box::new(std::iter::once(message)))
    }

    /// Queues exchanges that closed, before all that is queued later and in the place of one message. One at a time is made, when
    /// the site is ready for it.
    ///
    /// # Errors
    /// As [`SiteSender::send`].
    pub fn send_closed(
        &self,
        closed: impl Iterator<Item = Arc<Closed>> + Send + 'static,
    ) -> Result<(), SendError> {
        self.queue(Box::new(closed.map(ToSite::Closed)))
    }

    fn queue(&self, messages: Messages) -> Result<(), SendError> {
        match self.outbox.messages.try_send(messages) {
            Ok(()) => Ok(()),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(SendError::Closed),
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.outbox.close(status::slow());
                Err(SendError::Overflow)
            }
        }
    }

    /// Ends the connection and tells the site why; what is still queued is not sent.
    pub fn close(&self, reason: Failure) {
        self.outbox.close(reason);
    }

    /// Bytes so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        Traffic {
            bytes_sent: self.counts.received(),
            bytes_received: self.counts.sent(),
        }
    }
}

/// Messages from one site.
pub struct SiteReceiver {
    /// Boxed because it is large and moves about inside of [`Incoming`].
    pub(crate) inbox: Box<Inbox<ToCoordinatorFrame>>,
    pub(crate) outbox: OutboxSender<Messages>,
}

impl SiteReceiver {
    /// The next message; none where the site left in good order. Safe to drop and ask again.
    ///
    /// # Errors
    /// [`ConnectionError`] where the site is lost or broke the protocol; the stream is over.
    pub async fn next(&mut self) -> Result<Option<ToCoordinator<Answer>>, ConnectionError> {
        let message = tokio::select! {
            biased;
            message = self.inbox.next() => message,
            () = self.outbox.close.closed() => Err(ConnectionError::Disconnected {
                reason: "the stream was closed".to_owned(),
            }),
        };
        if let Err(error) = &message {
            self.outbox.close(error.to_failure());
        }
        message
    }
}

impl std::fmt::Debug for SiteReceiver {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SiteReceiver")
    }
}
