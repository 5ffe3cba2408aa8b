//! The two kinds of caller: site agents, which attend, and operators, who ask.

use crate::connection::dial::{Dial, Line};
use crate::connection::failing::{ConnectionError, SendError};
use crate::connection::status::{self, with_version};
use crate::connection::stream::{ByteCounts, Inbox, OutboxSender, outbox};
use crate::encoding::assembly::Assembly;
use crate::encoding::sealed::Sealed;
use crate::encoding::values;
use crate::generated as pb;
use crate::identity::warrant::Signer;
use crate::message::{progress, study, to_coordinator, to_site};
use protocol::failure::Code;
use protocol::message::{ToCoordinator, ToSite};
use protocol::name::RunId;
use protocol::progress::Progress;
use protocol::result::RunResult;
use protocol::study::{StudyName, StudyState};
use std::sync::Arc;
use std::time::SystemTime;
use tokio_stream::StreamExt;
use tonic::Streaming;

/// Runs that are listed at most.
const RUNS_LISTED_MAX: usize = 10_000;
/// Studies that are listed at most.
const STUDIES_LISTED_MAX: usize = 1_000;

/// A site's stream to the coordinator.
#[derive(Debug, Clone)]
pub struct CoordinatorSender {
    outbox: OutboxSender<ToCoordinator<Sealed>>,
}

impl CoordinatorSender {
    /// Queues a message, waiting while the queue is full. An answer leaves as the bytes that it was sealed to.
    ///
    /// # Errors
    /// [`SendError::Closed`] where the connection is gone.
    pub async fn send(&self, message: ToCoordinator<Sealed>) -> Result<(), SendError> {
        self.outbox
            .messages
            .send(message)
            .await
            .map_err(|_| SendError::Closed)
    }
}

/// The coordinator's stream to a site.
pub struct CoordinatorReceiver {
    inbox: Inbox<pb::ToSiteFrame>,
    counts: Arc<ByteCounts>,
}

impl CoordinatorReceiver {
    /// The next message. Safe to drop and ask again.
    ///
    /// # Errors
    /// [`ConnectionError`], also where the coordinator ended the stream without a word.
    pub async fn next(&mut self) -> Result<ToSite, ConnectionError> {
        self.inbox
            .next()
            .await?
            .ok_or_else(|| ConnectionError::Disconnected {
                reason: "the coordinator ended the stream".to_owned(),
            })
    }

    /// Bytes of encoded frames that this site has sent so far.
    #[must_use]
    pub fn bytes_sent(&self) -> u64 {
        self.counts.sent()
    }

    /// Bytes of encoded frames that this site has received so far.
    #[must_use]
    pub fn bytes_received(&self) -> u64 {
        self.counts.received()
    }
}

impl std::fmt::Debug for CoordinatorReceiver {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("CoordinatorReceiver")
    }
}

/// Connects a site agent and says hello with its version.
///
/// # Errors
/// [`ConnectionError`]; its code tells whether the address, the proxy, a certificate, the role or
/// the version is at fault.
pub async fn attend(
    dial: &Dial,
    version: &str,
) -> Result<(CoordinatorSender, CoordinatorReceiver), ConnectionError> {
    let line = dial.connect().await?;
    let counts = Arc::new(ByteCounts::default());
    let (outbox, frames) = outbox(to_coordinator::frames, Arc::clone(&counts));
    let sender = CoordinatorSender { outbox };
    let hello = ToCoordinator::Hello {
        version: version.to_owned(),
    };
    sender
        .send(hello)
        .await
        .map_err(|_| ConnectionError::Disconnected {
            reason: "the stream closed at once".to_owned(),
        })?;
    let request = with_version(frames.map_while(Result::ok));
    let response = line.federation().attend(request).await;
    let response =
        response.map_err(|status| ConnectionError::of_status(&status, &line.fault, "an answer"))?;
    let inbox = Inbox::new(response.into_inner(), Arc::clone(&counts), line.fault);
    Ok((sender, CoordinatorReceiver { inbox, counts }))
}

/// An operator's connection.
#[derive(Debug, Clone)]
pub struct OperatorClient {
    line: Line,
    signer: Signer,
}

/// Whether the coordinator can be reached and accepts a site's certificate, without attending it: an agent that runs is not
/// disturbed. Gives the coordinator's clock, where it says what that shows.
///
/// # Errors
/// [`ConnectionError`] says what stands between.
pub async fn probe(dial: &Dial) -> Result<Option<SystemTime>, ConnectionError> {
    let line = dial.connect().await?;
    let listed = line
        .operations()
        .list(with_version(pb::ListRequest {}))
        .await;
    let Err(status) = listed else {
        return Ok(None);
    };
    match ConnectionError::of_status(&status, &line.fault, "an answer") {
        // It has read the certificate, and a site is no operator.
        ConnectionError::Refused(failure) if failure.code == Code::Role => {
            Ok(status::clock(&status))
        }
        error => Err(error),
    }
}

impl OperatorClient {
    /// Connects an operator.
    ///
    /// # Errors
    /// [`ConnectionError`], as [`attend`].
    pub async fn connect(dial: &Dial) -> Result<Self, ConnectionError> {
        Ok(Self {
            line: dial.connect().await?,
            signer: dial.tls.signer.clone(),
        })
    }

    /// Signs a job's text and submits it. The same job with the same token gives the same run.
    ///
    /// # Errors
    /// [`ConnectionError::Refused`] carries the coordinator's reason.
    pub async fn submit(
        &self,
        job: &str,
        seed: u64,
        token: &str,
    ) -> Result<RunId, ConnectionError> {
        let warrant = self.signer.sign(job, seed, token);
        let warrant = warrant.map_err(|error| ConnectionError::Tls {
            reason: error.to_string(),
        })?;
        let request = with_version(pb::SubmitRequest {
            job: job.to_owned(),
            seed,
            warrant: Some(to_site::warrant_to_proto(warrant)),
        });
        let reply = self.line.operations().submit(request).await;
        let reply = reply.map_err(|status| self.failed(&status))?.into_inner();
        values::run_id(&reply.run).map_err(ConnectionError::Protocol)
    }

    /// The run's progress, from its present state to its end.
    ///
    /// # Errors
    /// [`ConnectionError::Refused`] carries the coordinator's reason.
    pub async fn watch(&self, run: &RunId) -> Result<ProgressReceiver, ConnectionError> {
        let response = self.line.operations().watch(run_request(run)).await;
        let progress = response
            .map_err(|status| self.failed(&status))?
            .into_inner();
        Ok(ProgressReceiver {
            progress,
            line: self.line.clone(),
        })
    }

    /// Cancels a run.
    ///
    /// # Errors
    /// [`ConnectionError::Refused`] carries the coordinator's reason.
    pub async fn cancel(&self, run: &RunId) -> Result<(), ConnectionError> {
        let reply = self.line.operations().cancel(run_request(run)).await;
        reply.map(|_| ()).map_err(|status| self.failed(&status))
    }

    /// Takes away what a run that has ended left at the coordinator.
    ///
    /// # Errors
    /// [`ConnectionError::Refused`] carries the coordinator's reason.
    pub async fn remove(&self, run: &RunId) -> Result<(), ConnectionError> {
        let reply = self.line.operations().remove(run_request(run)).await;
        reply.map(|_| ()).map_err(|status| self.failed(&status))
    }

    /// What a run that has ended left.
    ///
    /// # Errors
    /// [`ConnectionError::Refused`] carries the coordinator's reason.
    pub async fn result(&self, run: &RunId) -> Result<RunResult, ConnectionError> {
        let response = self.line.operations().fetch_result(run_request(run)).await;
        let mut frames = response
            .map_err(|status| self.failed(&status))?
            .into_inner();
        let mut assembly = Assembly::<pb::ResultFrame>::default();
        while let Some(frame) = frames
            .message()
            .await
            .map_err(|status| self.failed(&status))?
        {
            if let Some(result) = assembly.push(frame).map_err(ConnectionError::Protocol)? {
                return Ok(result);
            }
        }
        let reason = "the stream ended before the result was whole".to_owned();
        Err(ConnectionError::Disconnected { reason })
    }

    /// Every run that the coordinator knows, the newest first.
    ///
    /// # Errors
    /// [`ConnectionError::Refused`] carries the coordinator's reason.
    pub async fn list(&self) -> Result<Vec<Progress>, ConnectionError> {
        let response = self
            .line
            .operations()
            .list(with_version(pb::ListRequest {}))
            .await;
        let progress = response
            .map_err(|status| self.failed(&status))?
            .into_inner();
        let mut receiver = ProgressReceiver {
            progress,
            line: self.line.clone(),
        };
        let mut runs = Vec::new();
        while let Some(run) = receiver.next().await? {
            runs.push(run);
            values::at_most("a list of runs", runs.len(), RUNS_LISTED_MAX)
                .map_err(ConnectionError::Protocol)?;
        }
        Ok(runs)
    }

    /// The studies that name the operator, the newest first.
    ///
    /// # Errors
    /// [`ConnectionError`] where the line broke or the coordinator refused.
    pub async fn studies(&self) -> Result<Vec<StudyState>, ConnectionError> {
        let request = with_version(pb::ListStudiesRequest {});
        let response = self.line.operations().list_studies(request).await;
        let mut found = response
            .map_err(|status| self.failed(&status))?
            .into_inner();
        let mut studies = Vec::new();
        while let Some(one) = found
            .message()
            .await
            .map_err(|status| self.failed(&status))?
        {
            studies.push(study::state(one).map_err(ConnectionError::Protocol)?);
            values::at_most("a list of studies", studies.len(), STUDIES_LISTED_MAX)
                .map_err(ConnectionError::Protocol)?;
        }
        Ok(studies)
    }

    /// Ends a study.
    ///
    /// # Errors
    /// [`ConnectionError`] where the line broke or the coordinator refused.
    pub async fn close_study(&self, study: &StudyName) -> Result<(), ConnectionError> {
        let request = with_version(pb::CloseStudyRequest {
            study: study.to_string(),
        });
        let response = self.line.operations().close_study(request).await;
        response.map_err(|status| self.failed(&status))?;
        Ok(())
    }

    fn failed(&self, status: &tonic::Status) -> ConnectionError {
        ConnectionError::of_status(status, &self.line.fault, "an answer")
    }
}

/// The progress of a run, as it goes.
pub struct ProgressReceiver {
    progress: Streaming<pb::Progress>,
    line: Line,
}

impl ProgressReceiver {
    /// The next state; none after the one with the ending. States that came and went while the
    /// operator was slow are skipped.
    ///
    /// # Errors
    /// [`ConnectionError`] where the connection was lost.
    pub async fn next(&mut self) -> Result<Option<Progress>, ConnectionError> {
        let progress =
            self.progress.message().await.map_err(|status| {
                ConnectionError::of_status(&status, &self.line.fault, "progress")
            })?;
        progress
            .map(progress::progress)
            .transpose()
            .map_err(ConnectionError::Protocol)
    }
}

impl std::fmt::Debug for ProgressReceiver {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ProgressReceiver")
    }
}

fn run_request(run: &RunId) -> tonic::Request<pb::RunRequest> {
    with_version(pb::RunRequest {
        run: run.as_str().to_owned(),
    })
}
