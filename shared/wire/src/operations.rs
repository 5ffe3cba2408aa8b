//! The service that operators call, handed on to the program call by call.

use crate::connection::status::{self, unavailable};
use crate::encoding::assembly::Frames;
use crate::encoding::values;
use crate::generated as pb;
use crate::generated::operations_server::Operations;
use crate::identity::warrant::Warrants;
use crate::incoming::{Incoming, OperatorCall, Reply};
use crate::message::progress::progress_to_proto;
use crate::message::study::{state_to_proto, study_name};
use crate::message::to_site::warrant;
use protocol::limits::JOB_LENGTH_MAX;
use protocol::name::{OperatorName, RunId};
use protocol::progress::Progress;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_stream::wrappers::WatchStream;
use tokio_stream::{Iter, Stream};
use tonic::{Code, Request, Response, Status};

pub(crate) struct Operator {
    warrants: Warrants,
    incoming: mpsc::Sender<Incoming>,
    stopped: watch::Receiver<bool>,
}

impl Operator {
    pub(crate) fn new(
        warrants: Warrants,
        incoming: mpsc::Sender<Incoming>,
        stopped: watch::Receiver<bool>,
    ) -> Self {
        Self {
            warrants,
            incoming,
            stopped,
        }
    }

    /// Hands a call to the program and waits for its answer.
    async fn ask<T>(
        &self,
        operator: OperatorName,
        call: impl FnOnce(Reply<T>) -> OperatorCall,
    ) -> Result<T, Status> {
        let (reply, answer) = oneshot::channel();
        let incoming = Incoming::Operator {
            operator,
            call: call(reply),
        };
        self.incoming
            .send(incoming)
            .await
            .map_err(|_| unavailable())?;
        let answer = answer.await.map_err(|_| unavailable())?;
        answer.map_err(|failure| status::status(Code::FailedPrecondition, &failure))
    }
}

#[tonic::async_trait]
impl Operations for Operator {
    async fn submit(
        &self,
        request: Request<pb::SubmitRequest>,
    ) -> Result<Response<pb::SubmitReply>, Status> {
        let operator = operator(&request)?;
        let pb::SubmitRequest {
            job,
            seed,
            warrant: found,
        } = request.into_inner();
        let job = values::text("a job's text", job, JOB_LENGTH_MAX);
        let job = job.map_err(|error| status::protocol_violation(&error))?;
        let warrant = values::present("a warrant", found).and_then(warrant);
        let warrant = warrant.map_err(|error| status::protocol_violation(&error))?;
        if !matches!(self.warrants.signer(&job, seed, &warrant), Ok(name) if name == operator) {
            return Err(status::unsigned());
        }
        let call = |reply| OperatorCall::Submit {
            job,
            seed,
            warrant,
            reply,
        };
        let run = self.ask(operator, call).await?;
        Ok(Response::new(pb::SubmitReply {
            run: run.as_str().to_owned(),
        }))
    }

    type WatchStream = WatchedProgress;

    async fn watch(
        &self,
        request: Request<pb::RunRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let operator = operator(&request)?;
        let run = run(request.into_inner())?;
        let progress = self
            .ask(operator, |reply| OperatorCall::Watch { run, reply })
            .await?;
        Ok(Response::new(WatchedProgress::new(
            progress,
            self.stopped.clone(),
        )))
    }

    async fn cancel(
        &self,
        request: Request<pb::RunRequest>,
    ) -> Result<Response<pb::CancelReply>, Status> {
        let operator = operator(&request)?;
        let run = run(request.into_inner())?;
        self.ask(operator, |reply| OperatorCall::Cancel { run, reply })
            .await?;
        Ok(Response::new(pb::CancelReply {}))
    }

    async fn remove(
        &self,
        request: Request<pb::RunRequest>,
    ) -> Result<Response<pb::RemoveReply>, Status> {
        let operator = operator(&request)?;
        let run = run(request.into_inner())?;
        self.ask(operator, |reply| OperatorCall::Remove { run, reply })
            .await?;
        Ok(Response::new(pb::RemoveReply {}))
    }

    type FetchResultStream = ResultStream;

    async fn fetch_result(
        &self,
        request: Request<pb::RunRequest>,
    ) -> Result<Response<Self::FetchResultStream>, Status> {
        let operator = operator(&request)?;
        let run = run(request.into_inner())?;
        let result = self
            .ask(operator, |reply| OperatorCall::FetchResult { run, reply })
            .await?;
        Ok(Response::new(tokio_stream::iter(ResultFrames(Frames::of(
            result,
        )))))
    }

    type ListStudiesStream = Iter<std::vec::IntoIter<Result<pb::StudyState, Status>>>;

    async fn list_studies(
        &self,
        request: Request<pb::ListStudiesRequest>,
    ) -> Result<Response<Self::ListStudiesStream>, Status> {
        let operator = operator(&request)?;
        let studies = self
            .ask(operator, |reply| OperatorCall::ListStudies { reply })
            .await?;
        let studies: Vec<_> = studies
            .into_iter()
            .map(|study| Ok(state_to_proto(study)))
            .collect();
        Ok(Response::new(tokio_stream::iter(studies)))
    }

    async fn close_study(
        &self,
        request: Request<pb::CloseStudyRequest>,
    ) -> Result<Response<pb::CloseStudyReply>, Status> {
        let operator = operator(&request)?;
        let study = study_name(&request.into_inner().study);
        let study = study.map_err(|error| status::protocol_violation(&error))?;
        self.ask(operator, |reply| OperatorCall::CloseStudy { study, reply })
            .await?;
        Ok(Response::new(pb::CloseStudyReply {}))
    }

    type ListStream = Iter<std::vec::IntoIter<Result<pb::Progress, Status>>>;

    async fn list(
        &self,
        request: Request<pb::ListRequest>,
    ) -> Result<Response<Self::ListStream>, Status> {
        let operator = operator(&request)?;
        let runs = self
            .ask(operator, |reply| OperatorCall::List { reply })
            .await?;
        let runs: Vec<_> = runs
            .into_iter()
            .map(|run| Ok(progress_to_proto(run)))
            .collect();
        Ok(Response::new(tokio_stream::iter(runs)))
    }
}

type ResultStream = Iter<ResultFrames>;

/// The frames of a result, none of which fails.
pub(crate) struct ResultFrames(Frames<pb::ResultFrame>);

impl Iterator for ResultFrames {
    type Item = Result<pb::ResultFrame, Status>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(Ok)
    }
}

/// States of a run until the one with the ending.
pub(crate) struct WatchedProgress {
    states: WatchStream<Progress>,
    stopped: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_over: bool,
}

impl WatchedProgress {
    fn new(states: watch::Receiver<Progress>, mut stopped: watch::Receiver<bool>) -> Self {
        let stopped = async move {
            // An error means that the server is gone, which is a stop as well.
            let _ = stopped.wait_for(|is_stopping| *is_stopping).await;
        };
        Self {
            states: WatchStream::new(states),
            stopped: Box::pin(stopped),
            is_over: false,
        }
    }
}

impl Stream for WatchedProgress {
    type Item = Result<pb::Progress, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        match Pin::new(&mut self.states).poll_next(context) {
            Poll::Ready(Some(progress)) => {
                self.is_over = progress.ending.is_some();
                return Poll::Ready(Some(Ok(progress_to_proto(progress))));
            }
            // The program let go of a run that has not ended: it is going down.
            Poll::Ready(None) => {}
            Poll::Pending => std::task::ready!(self.stopped.as_mut().poll(context)),
        }
        self.is_over = true;
        Poll::Ready(Some(Err(unavailable())))
    }
}

fn operator<T>(request: &Request<T>) -> Result<OperatorName, Status> {
    let operator = request.extensions().get::<OperatorName>().cloned();
    operator.ok_or_else(|| status::wrong_role(None, "operator"))
}

fn run(request: pb::RunRequest) -> Result<RunId, Status> {
    values::run_id(&request.run).map_err(|error| status::protocol_violation(&error))
}
