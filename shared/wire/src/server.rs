//! The coordinator's port: who calls is known from the certificate, and what they say is handed to
//! the program as channels.

use crate::connection::asked::Asked;
use crate::connection::port::{Caller, callers};
use crate::connection::status;
use crate::connection::stream::{ByteCounts, Inbox, Outbox, outbox};
use crate::connection::transport::{
    ATTENDANCE_INTERVAL, ATTENDANCES_MAX, CONNECTION_WINDOW_BYTES, HEADER_LIST_BYTES,
    HELLO_TIMEOUT, HTTP2_FRAME_BYTES, PING_REPLY_TIMEOUT, STOP_TIMEOUT, STREAM_WINDOW_BYTES,
    STREAMS_MAX,
};
use crate::encoding::assembly::Frames;
use crate::encoding::frame::{FRAME_BYTES_MAX, REPLY_FRAME_BYTES_MAX};
use crate::encoding::raw::ToCoordinatorFrame;
use crate::generated as pb;
use crate::generated::federation_server::{Federation, FederationServer};
use crate::generated::operations_server::OperationsServer;
use crate::identity::Identity;
use crate::identity::tls::ServerTls;
use crate::incoming::{Incoming, Messages, SiteReceiver, SiteSender};
use crate::operations::Operator;
use protocol::failure::{Code, Failure};
use protocol::limits::KEEPALIVE_INTERVAL;
use protocol::message::{ToCoordinator, ToSite};
use protocol::name::SiteName;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic::transport::server::Router;
use tonic::{Request, Response, Status, Streaming};

/// The port could not be served.
#[derive(Debug, thiserror::Error)]
#[error("the coordinator's port failed: {reason}")]
pub struct ServeError {
    /// Why.
    pub reason: String,
}

/// Serves sites and operators on a bound port until `stop` is ready, then ends their streams and
/// returns within seconds. Callers appear in `incoming`.
///
/// # Errors
/// [`ServeError`] where the port fails.
pub async fn serve(
    listener: TcpListener,
    tls: ServerTls,
    incoming: mpsc::Sender<Incoming>,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let (stopping, stopped) = watch::channel(false);
    let attendance = FederationServer::new(Attendance {
        incoming: incoming.clone(),
        stopped,
        attending: Arc::default(),
    })
    .max_decoding_message_size(REPLY_FRAME_BYTES_MAX);
    let operator = OperationsServer::new(Operator::new(
        tls.warrants.clone(),
        incoming,
        stopping.subscribe(),
    ))
    .max_decoding_message_size(FRAME_BYTES_MAX);
    let router = builder()
        .add_service(InterceptedService::new(attendance, only_sites))
        .add_service(InterceptedService::new(operator, only_operators));
    serve_until(router, listener, tls, stopping, stop).await
}

/// HTTP/2 as all our ports speak it.
pub(crate) fn builder() -> Server {
    Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(PING_REPLY_TIMEOUT))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .http2_max_header_list_size(HEADER_LIST_BYTES)
        .max_frame_size(HTTP2_FRAME_BYTES)
        .max_concurrent_streams(STREAMS_MAX)
}

/// Serves on a bound port until `stop` is ready, which `stopping` then says to all streams.
pub(crate) async fn serve_until(
    router: Router,
    listener: TcpListener,
    tls: ServerTls,
    stopping: watch::Sender<bool>,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let mut stopped = stopping.subscribe();
    let port = callers(listener, tls);
    let serving = router.serve_with_incoming_shutdown(port, async move {
        // An error means that the sender is gone, which only happens behind the stop.
        let _ = stopped.wait_for(|is_stopping| *is_stopping).await;
    });
    let mut serving = std::pin::pin!(serving);
    let failed = |error: tonic::transport::Error| ServeError {
        reason: error.to_string(),
    };
    tokio::select! {
        ended = &mut serving => return ended.map_err(failed),
        () = stop => {}
    }
    stopping.send_replace(true);
    match tokio::time::timeout(STOP_TIMEOUT, serving).await {
        Ok(ended) => ended.map_err(failed),
        // A peer that does not let go in time is let go of.
        Err(_) => Ok(()),
    }
}

fn only_sites(mut request: Request<()>) -> Result<Request<()>, Status> {
    status::check_version(&request)?;
    match request
        .extensions()
        .get::<Caller>()
        .and_then(|caller| caller.identity.clone())
    {
        Some(Identity::Site(name)) => {
            request.extensions_mut().insert(name);
            Ok(request)
        }
        other => Err(status::wrong_role(other.as_ref(), "site")),
    }
}

fn only_operators(mut request: Request<()>) -> Result<Request<()>, Status> {
    status::check_version(&request)?;
    match request
        .extensions()
        .get::<Caller>()
        .and_then(|caller| caller.identity.clone())
    {
        Some(Identity::Operator(name)) => {
            request.extensions_mut().insert(name);
            Ok(request)
        }
        other => Err(status::wrong_role(other.as_ref(), "operator")),
    }
}

/// The service that sites attend.
struct Attendance {
    incoming: mpsc::Sender<Incoming>,
    stopped: watch::Receiver<bool>,
    attending: Arc<Attending>,
}

#[tonic::async_trait]
impl Federation for Attendance {
    type AttendStream = Outbox<Messages, MessagesFrames>;

    async fn attend(
        &self,
        request: Request<Streaming<ToCoordinatorFrame>>,
    ) -> Result<Response<Self::AttendStream>, Status> {
        let name = request.extensions().get::<SiteName>().cloned();
        let name = name.ok_or_else(|| status::wrong_role(None, "site"))?;
        let fault = request
            .extensions()
            .get::<Caller>()
            .map(|caller| Arc::clone(&caller.fault));
        let counts = Arc::new(ByteCounts::default());
        let (outbox, frames) = outbox(frames_of, Arc::clone(&counts));
        let asked = Arc::new(Asked::default());
        let questions = Arc::clone(&asked);
        let inbox = Inbox::of_answers(
            Box::new(move |run, exchange| questions.answered(run, exchange)),
            request.into_inner(),
            Arc::clone(&counts),
            fault.unwrap_or_default(),
        );
        let receiver = SiteReceiver {
            inbox: Box::new(inbox),
            outbox: outbox.clone(),
        };
        let sender = SiteSender {
            outbox,
            counts,
            asked,
        };
        let begins_at = self.attending.enter(&name, sender.outbox.close.clone());
        tokio::spawn(end_at_stop(
            sender.outbox.close.clone(),
            self.stopped.clone(),
        ));
        let incoming = self.incoming.clone();
        tokio::spawn(async move {
            tokio::time::sleep_until(begins_at).await;
            introduce(name, sender, receiver, incoming).await;
        });
        Ok(Response::new(frames))
    }
}

/// The frames of messages in a row.
type MessagesFrames =
    std::iter::FlatMap<Messages, Frames<pb::ToSiteFrame>, fn(ToSite) -> Frames<pb::ToSiteFrame>>;

fn frames_of(messages: Messages) -> MessagesFrames {
    messages.flat_map(Frames::of)
}

/// The streams by which sites attend.
#[derive(Debug, Default)]
struct Attending {
    sites: Mutex<BTreeMap<SiteName, Streams>>,
}

#[derive(Debug)]
struct Streams {
    /// The ends of those that are open, the oldest first.
    open: VecDeque<mpsc::Sender<Failure>>,
    next_at: Instant,
}

impl Attending {
    /// Notes a site's new stream, ends the oldest where there are too many, and says when this one may begin.
    fn enter(&self, name: &SiteName, close: mpsc::Sender<Failure>) -> Instant {
        let mut sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let site = sites.entry(name.clone()).or_insert_with(|| Streams {
            open: VecDeque::new(),
            next_at: now,
        });
        site.open.retain(|stream| !stream.is_closed());
        site.open.push_back(close);
        while site.open.len() > ATTENDANCES_MAX
            && let Some(oldest) = site.open.pop_front()
        {
            let _ = oldest.try_send(status::replaced());
        }
        let begins_at = site.next_at.max(now);
        site.next_at = begins_at + ATTENDANCE_INTERVAL;
        begins_at
    }
}

/// Ends a site's stream when the coordinator stops.
async fn end_at_stop(close: mpsc::Sender<Failure>, mut stopped: watch::Receiver<bool>) {
    tokio::select! {
        () = close.closed() => {}
        _ = stopped.wait_for(|is_stopping| *is_stopping) => {
            let _ = close.try_send(status::stopping());
        }
    }
}

/// Waits for a site's hello and hands it to the program.
async fn introduce(
    name: SiteName,
    sender: SiteSender,
    mut receiver: SiteReceiver,
    incoming: mpsc::Sender<Incoming>,
) {
    let refusal = match tokio::time::timeout(HELLO_TIMEOUT, receiver.next()).await {
        Ok(Ok(Some(ToCoordinator::Hello { version }))) => {
            let outbox = sender.outbox.clone();
            let site = Incoming::Site {
                name,
                version,
                sender,
                receiver,
            };
            if incoming.send(site).await.is_err() {
                outbox.close(status::stopping());
            }
            return;
        }
        Ok(Ok(Some(ToCoordinator::Reply(_)))) => "a reply".to_owned(),
        Ok(Ok(Some(ToCoordinator::Approved(_)))) => "an approval".to_owned(),
        Ok(Ok(None)) => "the end of the stream".to_owned(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("nothing for {} s", HELLO_TIMEOUT.as_secs()),
    };
    tracing::warn!(site = %name, found = refusal, "a site did not begin with a hello");
    let text = format!("found {refusal} first on the stream, wanted a hello");
    sender.close(Failure::new(Code::Protocol, text));
}
