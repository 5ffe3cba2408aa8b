//! The deployed coordinator: waits for sites and operators.

use crate::audit::Audit;
use crate::cli;
use crate::config::{ConfigError, CoordinatorConfig};
use crate::driver;
use crate::driver::{Arrivals, Keeping, Look, Seen};
use crate::enrolment;
use crate::folder::{Folder, FolderError};
use crate::lease;
use crate::pages::{ADDRESS, Pages};
use crate::store::StoreError;
use service::chain::ChainError;
use service::pages::PagesError;
use service::signals::{Heard, Signals};
use service::status::{Status, StatusError};
use service::supervisor;
use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use tokio::sync::{mpsc, oneshot, watch};
use wire::{Incoming, ServerTls};

/// Calls, and looks of pages, that wait for the driver.
const CALLS_MAX: usize = 64;

/// A coordinator that could not be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] wire::TlsError),
    /// The port cannot be listened on.
    #[error(transparent)]
    Listen(#[from] wire::ListenError),
    /// The folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The audit log is not what was written, or cannot be used.
    #[error(transparent)]
    Audit(#[from] ChainError),
    /// The port failed.
    #[error(transparent)]
    Port(#[from] wire::ServeError),
    /// The status port cannot be used.
    #[error(transparent)]
    Status(#[from] StatusError),
    /// The pages cannot be served.
    #[error(transparent)]
    Pages(#[from] PagesError),
    /// The address of the pages cannot be written.
    #[error("{} could not be written", path.display())]
    Address {
        /// Its file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The authority cannot sign.
    #[error(transparent)]
    Certificate(#[from] wire::certificates::CertificateError),
    /// There is nothing that says by which authority certificates are signed.
    #[error("{}: found no [enrolment], wanted it", path.display())]
    NoEnrolment {
        /// The configuration.
        path: PathBuf,
    },
    /// The system refused a signal handler.
    #[error("signals cannot be listened to")]
    Signals(#[source] io::Error),
}

/// Serves until a signal says stop.
///
/// # Errors
/// [`ServeError`].
pub async fn serve(arguments: &cli::Serve) -> Result<(), ServeError> {
    let mut signals = Signals::listen(arguments.until_stdin_closes).map_err(ServeError::Signals)?;
    let config = CoordinatorConfig::open(&arguments.config)?;
    let tls = match &config.revoked {
        Some(revoked) => ServerTls::load_revoking(&config.tls, revoked)?,
        None => ServerTls::load(&config.tls)?,
    };
    let folder = Folder::open(&config.folder)?;
    let audit = Audit::open(&config.folder)?;
    let (seen, mut status) = (Seen::default(), Status::new(driver::VERSION));
    seen.register(&mut status);
    let health = status.health();
    let (_certificate, named) = watch::channel(config.tls.certificate.clone());
    let mut standing = std::pin::pin!(service::stand(status, config.status, named));
    let held = tokio::select! {
        () = obey(&mut signals, arguments, &config) => {
            supervisor::stopping();
            tracing::info!("stopping, as asked; this coordinator stood by");
            return Ok(());
        }
        stood = &mut standing => return Ok(stood?),
        held = lease::hold(&config.store, &folder, &health) => held?,
    };
    let (store, lost) = held.parted();
    let keeping = Keeping {
        store,
        audit,
        retain: config.retain,
        administrators: config.administrators.iter().cloned().collect(),
    };
    let leading = lead(
        (&config, keeping, tls, seen),
        obey(&mut signals, arguments, &config),
    );
    tokio::select! {
        led = leading => led,
        stood = standing => Ok(stood?),
        lost = lost => Err(StoreError::from(lost).into()),
    }
}

/// Serves sites and operators until `stop` is ready.
async fn lead(
    (config, keeping, tls, seen): (&CoordinatorConfig, Keeping, ServerTls, Seen),
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let listener = wire::listen(config.listen)?;
    tracing::info!(listen = %config.listen, "the coordinator waits for sites and operators");
    let (calls, incoming) = mpsc::channel(CALLS_MAX);
    let (looks, looking) = mpsc::channel(CALLS_MAX);
    let arrivals = Arrivals {
        incoming,
        looks: looking,
    };
    let (stop_driving, stopped) = oneshot::channel::<Infallible>();
    let (stop_serving, closed) = oneshot::channel::<Infallible>();
    let (stop_signing, unsigned) = oneshot::channel::<Infallible>();
    let (stop_showing, hidden) = oneshot::channel::<Infallible>();
    let until = |dropped: oneshot::Receiver<Infallible>| async move { drop(dropped.await) };
    let signing = config.enrolment.as_ref();
    let signing = signing.map(|signing| enrolment::open(&config.tls, signing, until(unsigned)));
    let signing = signing.transpose()?.map(tokio::spawn);
    let pages = pages(config, calls.clone(), looks).await?;
    let mut showing = std::pin::pin!(show(pages, until(hidden)));
    let warrants = tls.warrants();
    let mut serving = tokio::spawn(wire::serve(listener, tls, calls, until(closed)));
    let driving = driver::drive(keeping, warrants, arrivals, seen, until(stopped));
    let mut driving = std::pin::pin!(driving);
    supervisor::ready();
    tokio::select! {
        () = stop => {},
        shown = &mut showing => return Ok(shown?),
        driven = &mut driving => return Ok(driven?),
        served = &mut serving => {
            if let Ok(served) = served {
                served?;
            }
            return Ok(());
        }
    }
    supervisor::stopping();
    tracing::info!(
        "stopping, as asked; runs go on from their last stored exchange after the next start"
    );
    // First the runs, so that nobody takes the end of the port for the loss of a site.
    drop((stop_driving, stop_signing, stop_showing));
    let (driven, shown) = tokio::join!(driving, showing);
    driven?;
    shown?;
    if let Some(signing) = signing {
        let _ = signing.await;
    }
    drop(stop_serving);
    let _ = serving.await;
    Ok(())
}

/// Opens the pages, where there are some, and writes where they are for whoever may read the coordinator's folder.
async fn pages(
    config: &CoordinatorConfig,
    calls: mpsc::Sender<Incoming>,
    looks: mpsc::Sender<Look>,
) -> Result<Option<Pages>, ServeError> {
    let Some(own) = &config.pages else {
        return Ok(None);
    };
    let pages = Pages::open(own, calls, looks).await?;
    let path = config.folder.join(ADDRESS);
    let line = format!("{}\n", pages.address());
    wire::private::replace(&path, line.as_bytes())
        .map_err(|source| ServeError::Address { path, source })?;
    Ok(Some(pages))
}

/// Serves the pages until `stop` is ready.
async fn show(pages: Option<Pages>, stop: impl Future<Output = ()>) -> Result<(), PagesError> {
    match pages {
        Some(pages) => pages.serve(stop).await,
        None => {
            stop.await;
            Ok(())
        }
    }
}

/// Obeys signals until one says stop. Certificates are read again whenever they change; the rest of the file is not.
async fn obey(signals: &mut Signals, arguments: &cli::Serve, config: &CoordinatorConfig) {
    while signals.next().await == Heard::Reload {
        supervisor::reloading();
        match CoordinatorConfig::open(&arguments.config) {
            Ok(read) if read == *config => {
                tracing::info!(
                    "certificates and the list of revoked ones are read again when they change"
                );
            }
            Ok(_) => tracing::warn!("the configuration has changed: start the coordinator again"),
            Err(error) => tracing::error!(%error, "the configuration cannot be used any more"),
        }
        supervisor::ready();
    }
}
