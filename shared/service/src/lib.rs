//! What a running program of Kindred says to its log, its supervisor and a local port, and the signals that it obeys.
//!
//! Nothing of it leaves the machine: the port is on loopback, and no number on it is of patients.

pub mod doctor;
pub mod expiry;
pub mod log;
pub mod pauses;
pub mod signals;
pub mod status;
pub mod supervisor;

use status::{Status, StatusError};
use std::net::SocketAddr;
use std::path::Path;

/// What every running program does besides its work: it answers at the status port, feeds the watchdog, and looks at its certificate.
///
/// # Errors
/// [`StatusError`] where the port fails. It does not end otherwise.
pub async fn stand(
    mut status: Status,
    port: Option<SocketAddr>,
    certificate: &Path,
) -> Result<(), StatusError> {
    let end = status::Gauge::default();
    status.registry().register(
        "certificate_ends_seconds",
        "End of the own certificate, in seconds since 1970",
        end.clone(),
    );
    let answering = async {
        match port {
            Some(port) => status.serve(port).await,
            None => Ok(()),
        }
    };
    let watching = async {
        tokio::join!(
            supervisor::feed_watchdog(),
            expiry::watch(certificate, &end)
        );
        Ok(())
    };
    tokio::try_join!(answering, watching)?;
    Ok(())
}
