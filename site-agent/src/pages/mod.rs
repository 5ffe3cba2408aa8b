//! Pages for people, in a browser: patients similar to one at the bedside, and what the hospital has agreed to and released. They show what
//! the commands print, by the same functions.
//!
//! They listen on loopback, or behind the hospital's own proxy, and have no accounts. No value and no identifier of a patient is in an
//! address or in the log: what is asked comes in the body of a form, and is kept in memory under a random name, for a while.

mod acts;
mod answer;
mod ask;
mod checkup;
mod elsewhere;
mod fields;
mod left;
mod runs;
mod shelf;
mod studies;
mod study;

pub use acts::{Act, By as Actor, list, verify};

use crate::config::{ConfigError, SiteConfig};
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use service::chain::ChainError;
use service::pages::{self, Door, Fault, Frame, Shelf, Visitor};
use service::signals::{Heard, Signals};
use shelf::Bedsides;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The pages that every page leads to.
const WAYS: [(&str, &str); 4] = [
    ("/", "Patients"),
    ("/studies", "Studies"),
    ("/left", "What left"),
    ("/checkup", "Checkup"),
];

/// Pages that cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum PagesError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// They cannot be opened.
    #[error(transparent)]
    Pages(#[from] pages::PagesError),
    /// The folder cannot be made.
    #[error("the folder could not be made")]
    Folder(#[from] io::Error),
    /// The audit log is not what was written, or cannot be used.
    #[error(transparent)]
    Audit(#[from] ChainError),
}

/// What all pages share.
struct Desk {
    door: Arc<Door>,
    /// The site's configuration; it is read again for each page, as a command does.
    config: PathBuf,
    questions: Mutex<Shelf<shelf::Question>>,
    bedsides: Bedsides,
    audit: acts::Audit,
}

/// Pages that are about to be served.
pub struct Pages {
    pages: pages::Pages,
    desk: Arc<Desk>,
}

impl Pages {
    /// Reads the configuration and listens.
    ///
    /// # Errors
    /// [`PagesError`].
    pub async fn open(path: &Path) -> Result<Self, PagesError> {
        let config = SiteConfig::open(path)?;
        let frame = Frame {
            of: format!("Kindred at {}", config.site),
            ways: &WAYS,
            style: "",
            script: None,
            closed: "Open the address that the program printed when it started.",
        };
        let pages = pages::Pages::open(&config.pages.served, frame).await?;
        wire::private::folder(&config.folder)?;
        let audit = acts::Audit::open(&config.folder)?;
        let desk = Desk {
            door: pages.door(),
            config: path.to_owned(),
            questions: Mutex::new(shelf::questions()),
            bedsides: Bedsides::default(),
            audit,
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

    /// Answers until a signal says stop.
    ///
    /// # Errors
    /// [`PagesError`].
    pub async fn serve(self, mut signals: Signals) -> Result<(), PagesError> {
        let stop = async {
            // Each page reads the configuration anew.
            while signals.next().await == Heard::Reload {
                tracing::info!(
                    "every page reads the configuration again; listen, hosts and proxy count at a new start"
                );
            }
            tracing::info!("stopping, as asked");
        };
        Ok(self.pages.serve(routes(self.desk), stop).await?)
    }
}

fn routes(desk: Arc<Desk>) -> Router {
    Router::new()
        .route("/", get(runs::all))
        .route("/run/{run}", get(runs::one))
        .route("/run/{run}/find", post(ask::find))
        .route("/run/{run}/new", post(ask::new))
        .route("/answer/{id}", get(answer::show))
        .route("/answer/{id}/similar.csv", get(answer::csv))
        .route("/answer/{id}/what-if", post(ask::what_if))
        .route(
            "/answer/{id}/elsewhere",
            get(elsewhere::look).post(elsewhere::ask),
        )
        .route("/studies", get(studies::all))
        .route("/study/{name}", get(study::review))
        .route("/study/{name}/data", get(study::data))
        .route("/study/{name}/table-1", get(study::table_1))
        .route("/study/{name}/approve", post(study::approve))
        .route("/left", get(left::all))
        .route("/left/{run}", get(left::run))
        .route("/left/{run}/verify", post(left::verify))
        .route("/checkup", get(checkup::offer).post(checkup::show))
        .with_state(desk)
}

/// What handlers get, and give.
type AtDesk = State<Arc<Desk>>;
type By = Extension<Visitor>;

impl Desk {
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
        let (desk, by) = (Arc::clone(&self), visitor.clone());
        self.door.work(&visitor, move || make(&desk, &by)).await
    }
}
