//! Pages for operators, in a browser: their studies and runs, as they go. They ask the driver what operators ask by their commands, so that
//! an operator sees and does here what is theirs there.
//!
//! Two things are not here. Nobody is known by a certificate: the configuration names the operator, or a proxy does. And no job is
//! submitted: an operator's key signs it, which never comes to the coordinator.

mod cancel;
mod home;
mod job;
mod live;
mod run;
mod study;

use crate::config::PagesConfig;
use crate::driver::{Look, Sight};
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Extension, Router};
use protocol::failure::{Code, Failure};
use protocol::name::{OperatorName, RunId};
use protocol::progress::Progress;
use service::pages::{self, Door, Fault, Frame, PagesError, Visitor};
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use wire::{Incoming, OperatorCall, Reply};

/// The pages that every page leads to.
const WAYS: [(&str, &str); 2] = [("/", "Studies and runs"), ("/job", "Check a job")];
/// Pages that are drawn as a run goes, at once.
const LIVE_MAX: usize = 64;
/// The file of the coordinator's folder that says where the pages are.
pub const ADDRESS: &str = "pages.address";

/// What all pages share.
struct Desk {
    door: Arc<Door>,
    /// Whose they are where no proxy says who asks.
    operator: Option<OperatorName>,
    calls: mpsc::Sender<Incoming>,
    looks: mpsc::Sender<Look>,
    live: Arc<Semaphore>,
}

/// Pages that are about to be served.
pub struct Pages {
    pages: pages::Pages,
    desk: Arc<Desk>,
}

/// What handlers get.
type AtDesk = State<Arc<Desk>>;
type By = Extension<Visitor>;

impl Pages {
    /// Listens. What operators ask goes to `calls`, and what they look at to `looks`.
    ///
    /// # Errors
    /// [`PagesError`].
    pub async fn open(
        config: &PagesConfig,
        calls: mpsc::Sender<Incoming>,
        looks: mpsc::Sender<Look>,
    ) -> Result<Self, PagesError> {
        let frame = Frame {
            of: "Kindred's coordinator".to_owned(),
            ways: &WAYS,
            style: include_str!("pages.css"),
            script: Some(include_str!("pages.js")),
            closed: "Open the address in the file pages.address of the coordinator's folder.",
        };
        let pages = pages::Pages::open(&config.served, frame).await?;
        let desk = Desk {
            door: pages.door(),
            operator: config.operator.clone(),
            calls,
            looks,
            live: Arc::new(Semaphore::new(LIVE_MAX)),
        };
        Ok(Self {
            pages,
            desk: Arc::new(desk),
        })
    }

    /// The address to open.
    #[must_use]
    pub fn address(&self) -> String {
        self.pages.address()
    }

    /// Answers until `stop` is ready.
    ///
    /// # Errors
    /// [`PagesError`].
    pub async fn serve(self, stop: impl Future<Output = ()>) -> Result<(), PagesError> {
        self.pages.serve(routes(self.desk), stop).await
    }
}

fn routes(desk: Arc<Desk>) -> Router {
    Router::new()
        .route("/", get(home::show))
        .route("/study/{name}", get(study::show))
        .route("/study/{name}/card", get(study::card))
        .route("/study/{name}/job", get(job::of_study))
        .route("/run/{run}", get(run::show))
        .route("/run/{run}/live", get(live::follow))
        .route("/run/{run}/report", get(run::report))
        .route("/run/{run}/report.html", get(run::file))
        .route("/run/{run}/cancel", post(cancel::cancel))
        .route("/job", get(job::empty).post(job::check))
        .route("/job/check", post(job::found))
        .route("/job/file", post(job::file))
        .with_state(desk)
}

impl Desk {
    /// Who asks.
    fn operator(&self, visitor: &Visitor) -> Result<OperatorName, Fault> {
        let refused = |text: String| Fault {
            status: StatusCode::FORBIDDEN,
            text,
        };
        match (&self.operator, &visitor.user) {
            (Some(operator), _) => Ok(operator.clone()),
            (None, Some(user)) => OperatorName::new(user)
                .map_err(|error| refused(format!("The proxy names no operator: {error}"))),
            (None, None) => Err(refused("Nobody says who asks.".to_owned())),
        }
    }

    /// Asks the driver what an operator asks by a command.
    async fn ask<T>(
        &self,
        operator: &OperatorName,
        call: impl FnOnce(Reply<T>) -> OperatorCall,
    ) -> Result<T, Fault> {
        let (reply, answer) = oneshot::channel();
        let asked = Incoming::Operator {
            operator: operator.clone(),
            call: call(reply),
        };
        self.calls.send(asked).await.map_err(|_| stopping())?;
        let answered = answer.await.map_err(|_| stopping())?;
        answered.map_err(|failure| refused(&failure))
    }

    /// Looks at what the driver has besides.
    async fn look<T>(
        &self,
        operator: &OperatorName,
        at: impl FnOnce(Reply<T>) -> Sight,
    ) -> Result<T, Fault> {
        let (reply, answer) = oneshot::channel();
        let look = Look {
            operator: operator.clone(),
            at: at(reply),
        };
        self.looks.send(look).await.map_err(|_| stopping())?;
        let answered = answer.await.map_err(|_| stopping())?;
        answered.map_err(|failure| refused(&failure))
    }

    /// Where a run of the operator stands, and all changes.
    async fn watch(
        &self,
        operator: &OperatorName,
        run: &RunId,
    ) -> Result<watch::Receiver<Progress>, Fault> {
        let run = run.clone();
        self.ask(operator, |reply| OperatorCall::Watch { run, reply })
            .await
    }
}

/// The run that an address names.
fn run_of(text: &str) -> Result<RunId, Fault> {
    RunId::new(text).map_err(|_| Fault::absent("No run has such a name."))
}

/// What the driver refused, as its commands say it.
fn refused(failure: &Failure) -> Fault {
    let status = match failure.code {
        Code::Run | Code::Study => StatusCode::NOT_FOUND,
        Code::Busy => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let Failure { code, text } = failure;
    Fault {
        status,
        text: format!("{code}: {text}"),
    }
}

fn stopping() -> Fault {
    Fault {
        status: StatusCode::SERVICE_UNAVAILABLE,
        text: "The coordinator is stopping. Load this page again once it is back.".to_owned(),
    }
}
