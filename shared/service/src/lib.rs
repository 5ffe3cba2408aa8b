//! What a running program of Kindred says to its log, its supervisor, a local port and a browser, and the signals that it obeys.
//!
//! Nothing of it leaves the machine but pages behind a proxy: the port is on loopback, and no number on it is of patients.

pub mod audit;
pub mod backup;
pub mod certificate;
pub mod chain;
pub mod cli;
pub mod doctor;
pub mod expiry;
pub mod log;
pub mod pages;
pub mod pauses;
pub mod postgres;
pub mod proxy;
pub mod secret;
pub mod signals;
pub mod status;
pub mod supervisor;

use protocol::document::Section;
use serde::Serialize;
use status::{Status, StatusError};
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::watch::Receiver;

/// The longest that results are kept by a number of days, a hundred years.
const DAYS_MAX: u64 = 36_500;

/// What a command shows: a table for people, or JSON for machines.
#[must_use]
pub fn shown(found: &(impl Serialize + Display), as_json: bool) -> String {
    match as_json {
        // Texts, numbers and lists cannot fail to be written.
        true => serde_json::to_string_pretty(found).unwrap_or_default(),
        false => found.to_string(),
    }
}

/// The key `retain_days` of a configuration: for how long what ended runs left is kept; for ever without it.
pub fn retain(root: &mut Section<'_, '_>) -> Option<Duration> {
    let is_set = root.has("retain_days");
    let days = is_set.then(|| root.count("retain_days", 1, 1..=DAYS_MAX));
    Some(Duration::from_secs(days? * 86_400))
}

/// What every running program does besides its work: it answers at the status port, feeds the watchdog, and looks at its certificate, by the
/// name that it has at that time.
///
/// # Errors
/// [`StatusError`] where the port fails. It does not end otherwise.
pub async fn stand(
    mut status: Status,
    port: Option<SocketAddr>,
    certificate: Receiver<PathBuf>,
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
