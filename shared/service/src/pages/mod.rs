//! Pages for people, in a browser: where they are served, who is let in, and what every page has.
//!
//! They listen on loopback, or behind a proxy that knows its users, and have no accounts. What a program shows on them is its own.

mod config;
mod fault;
mod frame;
mod guard;
mod shelf;

pub use config::{PagesConfig, PagesProxy, given};
pub use fault::{Fault, see};
pub use frame::{Frame, Page, problem, token};
pub use guard::{Form, Visitor};
pub use shelf::{Shelf, random};

use crate::secret::{Secret, SecretError};
use axum::http::{HeaderName, StatusCode};
use axum::response::Redirect;
use axum::routing::get;
use axum::{Extension, Router, middleware};
use shelf::{Session, sessions};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Before the key that lets a browser in.
const ENTER: &str = "/enter/";
/// Pages that are computed at once.
const BUSY_MAX: usize = 2;
/// How long open answers may take once the pages shall stop.
const FAREWELL: Duration = Duration::from_secs(5);
/// Letters of the proxy's secret, at least.
const SECRET_MIN: usize = 16;

/// Pages that cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum PagesError {
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
    /// The system gives nothing random.
    #[error("the pages cannot begin")]
    System(#[source] io::Error),
}

/// Who is let in.
enum Access {
    /// Whoever has the address of this start.
    Key(String),
    /// Whoever the proxy names.
    Proxy {
        secret: Secret,
        secret_header: HeaderName,
        user_header: HeaderName,
    },
}

/// Lets browsers in, and draws what all pages of a program have.
pub struct Door {
    frame: Frame,
    /// By which a browser may ask.
    hosts: Vec<String>,
    access: Access,
    /// The name of its cookie: browsers send cookies to every port of a host.
    cookie: String,
    sessions: Mutex<Shelf<Session>>,
    turns: Semaphore,
}

/// A port of pages that are about to be served.
pub struct Pages {
    door: Arc<Door>,
    listener: TcpListener,
    address: SocketAddr,
}

impl Pages {
    /// Listens.
    ///
    /// # Errors
    /// [`PagesError`].
    pub async fn open(config: &PagesConfig, frame: Frame) -> Result<Self, PagesError> {
        let asked = config.listen;
        let failed = |source| PagesError::Listen {
            address: asked,
            source,
        };
        let access = access(config)?;
        let listener = TcpListener::bind(asked).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let door = Door {
            frame,
            hosts: hosts(address, &config.hosts),
            access,
            cookie: format!("kindred-{}", address.port()),
            sessions: Mutex::new(sessions()),
            turns: Semaphore::new(BUSY_MAX),
        };
        Ok(Self {
            door: Arc::new(door),
            listener,
            address,
        })
    }

    /// Who lets browsers in.
    #[must_use]
    pub fn door(&self) -> Arc<Door> {
        Arc::clone(&self.door)
    }

    /// The address to open.
    #[must_use]
    pub fn address(&self) -> String {
        match &self.door.access {
            Access::Key(key) => format!("http://{}{ENTER}{key}", self.address),
            Access::Proxy { .. } => {
                let host = self.door.hosts.first().map_or("", String::as_str);
                format!("https://{host}/")
            }
        }
    }

    /// Answers by these routes until `stop` is ready.
    ///
    /// # Errors
    /// [`PagesError`].
    pub async fn serve(
        self,
        routes: Router,
        stop: impl Future<Output = ()>,
    ) -> Result<(), PagesError> {
        let Self {
            door,
            listener,
            address,
        } = self;
        tracing::info!(%address, "the pages answer");
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let serving = axum::serve(listener, guarded(door, routes)).with_graceful_shutdown(async {
            let _ = ended.await;
        });
        let serving = async move { serving.await };
        let mut serving = std::pin::pin!(serving);
        tokio::select! {
            served = &mut serving => {
                return served.map_err(|source| PagesError::Listen { address, source });
            }
            () = stop => {}
        }
        let _ = end.send(());
        // A browser that keeps its line open is not waited for.
        let _ = tokio::time::timeout(FAREWELL, &mut serving).await;
        Ok(())
    }
}

impl Door {
    fn sessions(&self) -> MutexGuard<'_, Shelf<Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who is let in by this configuration.
fn access(config: &PagesConfig) -> Result<Access, PagesError> {
    let Some(PagesProxy {
        user_header,
        secret_header,
        secret,
    }) = &config.proxy
    else {
        return random().map(Access::Key).map_err(PagesError::System);
    };
    let secret = secret.fetch()?;
    let found = secret.reveal().chars().count();
    if found < SECRET_MIN {
        return Err(PagesError::Short { found });
    }
    Ok(Access::Proxy {
        secret,
        secret_header: secret_header.clone(),
        user_header: user_header.clone(),
    })
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

/// A program's routes, and those that all pages have, behind the guard.
fn guarded(door: Arc<Door>, routes: Router) -> Router {
    let (absent, other) = (Arc::clone(&door), Arc::clone(&door));
    let style = format!("{}{}{}", report::STYLE, frame::STYLE, door.frame.style);
    let mut routes = routes
        // The guard has let the browser in, and gives it its cookie.
        .route("/enter/{key}", get(async || Redirect::to("/")))
        .route(frame::STYLE_PATH, frame::text("text/css", style))
        .route(frame::ICON_PATH, get(async || StatusCode::NO_CONTENT));
    if let Some(script) = door.frame.script {
        let script = frame::text("text/javascript", script.to_owned());
        routes = routes.route(frame::SCRIPT_PATH, script);
    }
    routes
        .fallback(async move |Extension(visitor): Extension<Visitor>| {
            let text = "There is no such page.";
            absent.problem(StatusCode::NOT_FOUND, &visitor, text)
        })
        .method_not_allowed_fallback(async move |Extension(visitor): Extension<Visitor>| {
            let text = "This page cannot be asked so.";
            other.problem(StatusCode::METHOD_NOT_ALLOWED, &visitor, text)
        })
        .layer(middleware::from_fn_with_state(door, guard::guard))
}
