//! Pages for people, in a browser: patients similar to one at the bedside, and what the hospital has agreed to and released. They show what
//! the commands print, by the same functions.
//!
//! They listen on loopback, or behind the hospital's own proxy, and have no accounts. No value and no identifier of a patient is in an
//! address or in the log: what is asked comes in the body of a form, and is kept in memory under a random name, for a while.

mod answer;
mod ask;
mod checkup;
mod elsewhere;
mod fields;
mod frame;
mod guard;
mod left;
mod runs;
mod sessions;
mod shelf;
mod studies;
mod study;

use crate::config::{ConfigError, PagesProxy, SiteConfig};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Extension, middleware};
use guard::Visitor;
use service::secret::{Secret, SecretError};
use service::signals::{Heard, Signals};
use sessions::{Session, Shelf, random};
use shelf::Bedsides;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Before the key that lets a browser in.
const ENTER: &str = "/enter/";
/// Pages that are computed at once.
const BUSY_MAX: usize = 2;
/// How long a page waits for its turn.
const TURN: Duration = Duration::from_secs(60);
/// How long open answers may take after a signal says stop.
const FAREWELL: Duration = Duration::from_secs(5);

/// Pages that cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum PagesError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The proxy's secret cannot be had.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The proxy's secret is too short.
    #[error("the password of [pages.proxy] has {found} characters, wanted at least {SECRET_MIN}")]
    Short {
        /// Its length.
        found: usize,
    },
    /// The port cannot be listened on.
    #[error("could not listen on {address}, the port of [pages]")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The system gives nothing random, or takes no handler of signals.
    #[error("the pages cannot begin")]
    System(#[source] io::Error),
}

/// Letters of the proxy's secret, at least.
const SECRET_MIN: usize = 16;

/// Who is let in.
enum Access {
    /// Whoever has the address that the program printed.
    Key(String),
    /// Whoever the hospital's proxy names.
    Proxy {
        secret: Secret,
        secret_header: HeaderName,
        user_header: HeaderName,
    },
}

/// What all pages share.
struct Desk {
    /// The site's configuration; it is read again for each page, as a command does.
    config: PathBuf,
    site: String,
    /// By which a browser may ask.
    hosts: Vec<String>,
    access: Access,
    /// The name of its cookie: browsers send cookies to every port of a host.
    cookie: String,
    sessions: Mutex<Shelf<Session>>,
    questions: Mutex<Shelf<shelf::Question>>,
    bedsides: Bedsides,
    turns: Semaphore,
}

/// Pages that are about to be served.
pub struct Pages {
    desk: Arc<Desk>,
    listener: TcpListener,
    address: SocketAddr,
}

impl Pages {
    /// Reads the configuration and listens.
    ///
    /// # Errors
    /// [`PagesError`].
    pub async fn open(path: &Path) -> Result<Self, PagesError> {
        let config = SiteConfig::open(path)?;
        let asked = config.pages.listen;
        let failed = |source| PagesError::Listen {
            address: asked,
            source,
        };
        let access = match &config.pages.proxy {
            None => Access::Key(random().map_err(PagesError::System)?),
            Some(PagesProxy {
                user_header,
                secret_header,
                secret,
            }) => {
                let secret = secret.fetch()?;
                let found = secret.reveal().chars().count();
                if found < SECRET_MIN {
                    return Err(PagesError::Short { found });
                }
                Access::Proxy {
                    secret,
                    secret_header: secret_header.clone(),
                    user_header: user_header.clone(),
                }
            }
        };
        let listener = TcpListener::bind(asked).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let desk = Desk {
            config: path.to_owned(),
            site: config.site.to_string(),
            hosts: hosts(address, &config.pages.hosts),
            access,
            cookie: format!("kindred-{}", address.port()),
            sessions: Mutex::new(sessions::sessions()),
            questions: Mutex::new(sessions::questions()),
            bedsides: Bedsides::default(),
            turns: Semaphore::new(BUSY_MAX),
        };
        Ok(Self {
            desk: Arc::new(desk),
            listener,
            address,
        })
    }

    /// The address to open.
    #[must_use]
    pub fn address(&self) -> String {
        match &self.desk.access {
            Access::Key(key) => format!("http://{}{ENTER}{key}", self.address),
            Access::Proxy { .. } => {
                let host = self.desk.hosts.first().map_or("", String::as_str);
                format!("https://{host}/")
            }
        }
    }

    /// Answers until a signal says stop.
    ///
    /// # Errors
    /// [`PagesError`].
    pub async fn serve(self, mut signals: Signals) -> Result<(), PagesError> {
        let Self {
            desk,
            listener,
            address,
        } = self;
        tracing::info!(%address, "the pages answer");
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serving = axum::serve(listener, routes(desk)).with_graceful_shutdown(async {
            let _ = stopped.await;
        });
        let serving = async move { serving.await };
        let mut serving = std::pin::pin!(serving);
        let failed = |source| PagesError::Listen { address, source };
        loop {
            tokio::select! {
                served = &mut serving => return served.map_err(failed),
                heard = signals.next() => match heard {
                    // Each page reads the configuration anew.
                    Heard::Reload => tracing::info!("every page reads the configuration again; listen, hosts and proxy count at a new start"),
                    Heard::Stop => break,
                },
            }
        }
        tracing::info!("stopping, as asked");
        let _ = stop.send(());
        // A browser that keeps its line open is not waited for.
        let _ = tokio::time::timeout(FAREWELL, &mut serving).await;
        Ok(())
    }
}

/// Names by which a browser may ask: those that are configured first, then those of loopback, which only this machine can mean.
fn hosts(address: SocketAddr, named: &[String]) -> Vec<String> {
    let port = address.port();
    let mut hosts = named.to_vec();
    hosts.extend(named.iter().map(|host| format!("{host}:{port}")));
    let loopback = ["127.0.0.1", "localhost", "[::1]"];
    hosts.extend(loopback.map(|host| format!("{host}:{port}")));
    hosts
}

fn routes(desk: Arc<Desk>) -> Router {
    Router::new()
        .route("/", get(runs::all))
        .route("/enter/{key}", get(enter))
        .route("/run/{run}", get(runs::one))
        .route("/run/{run}/find", post(ask::find))
        .route("/run/{run}/new", post(ask::new))
        .route("/answer/{id}", get(answer::show))
        .route("/answer/{id}/similar.csv", get(answer::csv))
        .route("/answer/{id}/what-if", post(ask::what_if))
        .route("/answer/{id}/elsewhere", post(elsewhere::ask))
        .route("/studies", get(studies::all))
        .route("/study/{name}", get(study::review))
        .route("/study/{name}/data", get(study::data))
        .route("/study/{name}/table-1", get(study::table_1))
        .route("/study/{name}/approve", post(study::approve))
        .route("/left", get(left::all))
        .route("/left/{run}", get(left::run))
        .route("/left/{run}/verify", post(left::verify))
        .route("/checkup", get(checkup::offer).post(checkup::show))
        .route(frame::STYLE_PATH, get(frame::style))
        .route(frame::ICON_PATH, get(frame::icon))
        .fallback(no_page)
        .method_not_allowed_fallback(no_method)
        .layer(middleware::from_fn_with_state(
            Arc::clone(&desk),
            guard::guard,
        ))
        .with_state(desk)
}

/// What handlers get, and give.
type AtDesk = State<Arc<Desk>>;
type By = Extension<Visitor>;

/// The guard has let the browser in, and gives it its cookie.
async fn enter() -> Redirect {
    Redirect::to("/")
}

async fn no_page(State(desk): AtDesk, Extension(visitor): By) -> Response {
    desk.problem(StatusCode::NOT_FOUND, &visitor, "There is no such page.")
}

async fn no_method(State(desk): AtDesk, Extension(visitor): By) -> Response {
    let text = "This page cannot be asked so.";
    desk.problem(StatusCode::METHOD_NOT_ALLOWED, &visitor, text)
}

/// A page that could not be made.
struct Fault {
    status: StatusCode,
    text: String,
}

impl Fault {
    /// What was sent cannot be meant.
    fn input(text: impl Into<String>) -> Self {
        Self {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            text: text.into(),
        }
    }

    /// There is no such thing.
    fn absent(text: impl Into<String>) -> Self {
        Self {
            status: StatusCode::NOT_FOUND,
            text: text.into(),
        }
    }
}

impl<E: std::error::Error> From<E> for Fault {
    fn from(error: E) -> Self {
        Self::input(report::with_causes(&error))
    }
}

impl Desk {
    fn sessions(&self) -> MutexGuard<'_, Shelf<Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn questions(&self) -> MutexGuard<'_, Shelf<shelf::Question>> {
        self.questions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The site's configuration as it is now.
    fn open(&self) -> Result<SiteConfig, ConfigError> {
        SiteConfig::open(&self.config)
    }

    /// Makes a page where it may block, in turn with others.
    async fn work(
        self: Arc<Self>,
        visitor: Visitor,
        make: impl FnOnce(&Arc<Self>, &Visitor) -> Result<Response, Fault> + Send + 'static,
    ) -> Response {
        let busy = "Other pages are being made. Please load this page again.";
        let turn = tokio::time::timeout(TURN, self.turns.acquire()).await;
        let Ok(Ok(_turn)) = turn else {
            return self.problem(StatusCode::SERVICE_UNAVAILABLE, &visitor, busy);
        };
        let (desk, by) = (Arc::clone(&self), visitor.clone());
        let made = tokio::task::spawn_blocking(move || make(&desk, &by)).await;
        match made {
            Ok(Ok(page)) => page,
            Ok(Err(Fault { status, text })) => self.problem(status, &visitor, &text),
            Err(_) => {
                let text = "This page cannot be made: a fault of Kindred. The log names the place.";
                self.problem(StatusCode::INTERNAL_SERVER_ERROR, &visitor, text)
            }
        }
    }
}

/// Where a form leads, so that a page that is loaded again sends nothing again.
fn see(path: &str) -> Response {
    Redirect::to(path).into_response()
}
