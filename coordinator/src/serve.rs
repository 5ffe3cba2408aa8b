//! The deployed coordinator: waits for sites and operators.

use crate::cli;
use crate::config::{ConfigError, CoordinatorConfig};
use crate::driver;
use crate::folder::{Folder, FolderError};
use crate::signals::{StopSignals, stdin_closed};
use crate::store::{Store, StoreError};
use std::io;
use tokio::sync::{mpsc, watch};
use wire::ServerTls;

/// Calls that wait for the driver.
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
    /// The port failed.
    #[error(transparent)]
    Port(#[from] wire::ServeError),
    /// The system refused a signal handler.
    #[error("signals cannot be listened to")]
    Signals(#[source] io::Error),
}

/// Serves until a signal says stop.
///
/// # Errors
/// [`ServeError`].
pub async fn serve(arguments: &cli::Serve) -> Result<(), ServeError> {
    let mut signals = StopSignals::listen().map_err(ServeError::Signals)?;
    let config = CoordinatorConfig::open(&arguments.config)?;
    let tls = match &config.revoked {
        Some(revoked) => ServerTls::load_revoking(&config.tls, revoked)?,
        None => ServerTls::load(&config.tls)?,
    };
    let folder = Folder::open(&config.folder)?;
    let store = Store::open(&folder.store())?;
    let listener = wire::listen(config.listen)?;
    tracing::info!(listen = %config.listen, "the coordinator waits for sites and operators");
    let (calls, incoming) = mpsc::channel(CALLS_MAX);
    let (stop, stopped) = watch::channel(());
    let until = |mut stopped: watch::Receiver<()>| async move {
        let _ = stopped.changed().await;
    };
    let warrants = tls.warrants();
    let mut serving = tokio::spawn(wire::serve(listener, tls, calls, until(stopped.clone())));
    let driving = driver::drive(store, warrants, incoming, until(stopped));
    let mut driving = std::pin::pin!(driving);
    let closed = async {
        if arguments.until_stdin_closes {
            stdin_closed().await;
        } else {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = signals.next() => {},
        () = closed => {},
        driven = &mut driving => return Ok(driven?),
        served = &mut serving => {
            if let Ok(served) = served {
                served?;
            }
            return Ok(());
        }
    }
    drop(stop);
    let (driven, _) = tokio::join!(driving, serving);
    Ok(driven?)
}
