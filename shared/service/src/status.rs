//! A local port that says whether the program does its work (`/health`) and what it counts (`/metrics`, for Prometheus).

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use prometheus_client::encoding::text::encode;
pub use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};
pub use prometheus_client::metrics::counter::Counter;
pub use prometheus_client::metrics::family::Family;
pub use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use protocol::document::Section;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::TcpListener;

/// What Prometheus receives.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The status port cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("could not listen on {address}, the port of [status]")]
pub struct StatusError {
    address: SocketAddr,
    #[source]
    source: io::Error,
}

/// Why a program does not do its work at present; nothing where it does.
#[derive(Debug, Clone, Default)]
pub struct Health(Arc<Mutex<Option<String>>>);

/// What the port shows.
#[derive(Debug)]
pub struct Status {
    registry: Registry,
    health: Health,
}

impl Health {
    /// The program does its work.
    pub fn is_well(&self) {
        self.set(None);
    }

    /// It does not, for a reason that names no patient.
    pub fn is_hindered(&self, reason: impl Into<String>) {
        self.set(Some(reason.into()));
    }

    fn set(&self, reason: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    fn reason(&self) -> Option<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Status {
    /// That of a program of such a version, which begins well.
    #[must_use]
    pub fn new(version: &str) -> Self {
        let mut registry = Registry::with_prefix("kindred");
        let version = Info::new([("version", version.to_owned())]);
        registry.register("build", "The program's version", version);
        Self {
            registry,
            health: Health::default(),
        }
    }

    /// Where the program says how it does.
    #[must_use]
    pub fn health(&self) -> Health {
        self.health.clone()
    }

    /// Takes what is counted: names and help are Prometheus's.
    pub fn registry(&mut self) -> &mut Registry {
        &mut self.registry
    }

    /// Answers at this address for as long as it is polled.
    ///
    /// # Errors
    /// [`StatusError`] names the address.
    pub async fn serve(self, address: SocketAddr) -> Result<(), StatusError> {
        let failed = |source| StatusError { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        tracing::info!(%address, "/health and /metrics answer");
        axum::serve(listener, self.routes()).await.map_err(failed)
    }

    fn routes(self) -> Router {
        let Self { registry, health } = self;
        let registry = Arc::new(registry);
        let metrics = move || async move {
            let mut text = String::new();
            match encode(&mut text, &registry) {
                Ok(()) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
                Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            }
        };
        let health = move || async move {
            match health.reason() {
                None => (StatusCode::OK, "well\n".to_owned()),
                Some(reason) => (
                    StatusCode::SERVICE_UNAVAILABLE,
                    format!("hindered: {reason}\n"),
                ),
            }
        };
        Router::new()
            .route("/metrics", get(metrics))
            .route("/health", get(health))
    }
}

/// The address of `[status]`, where a file has the table: on loopback, because whoever reads it proves nothing.
pub fn address(root: &mut Section<'_, '_>) -> Option<SocketAddr> {
    root.table("status", |section| {
        let listen = section.required::<String>("listen")?;
        let address = listen.parse::<SocketAddr>().ok();
        let address = address.filter(|address| address.ip().is_loopback());
        if address.is_none() {
            let wanted = "IP:PORT on loopback, as in 127.0.0.1:9443";
            section.problem("listen", &format!("{listen:?}"), wanted);
        }
        address
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    async fn asked(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn the_port_says_what_is_counted_and_what_hinders() {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let mut status = Status::new("1.2.3");
        let (health, answers) = (status.health(), <Counter>::default());
        let registry = status.registry();
        registry.register("answers", "Answers that have left", answers.clone());
        answers.inc_by(3);
        let serving = tokio::spawn(status.serve(address));
        while TcpStream::connect(address).await.is_err() {
            assert!(!serving.is_finished());
            tokio::task::yield_now().await;
        }
        let metrics = asked(address, "/metrics").await;
        assert!(metrics.contains("kindred_answers_total 3"), "{metrics}");
        assert!(metrics.contains("version=\"1.2.3\""), "{metrics}");
        assert!(asked(address, "/health").await.starts_with("HTTP/1.1 200"));
        health.is_hindered("KDR-NETWORK");
        let hindered = asked(address, "/health").await;
        assert!(hindered.starts_with("HTTP/1.1 503") && hindered.contains("KDR-NETWORK"));
        health.is_well();
        assert!(asked(address, "/health").await.starts_with("HTTP/1.1 200"));
        assert!(asked(address, "/").await.starts_with("HTTP/1.1 404"));
        serving.abort();
    }

    #[test]
    fn the_port_is_on_loopback_alone() {
        let read = |text: &str| protocol::document::read(text, |root| Some(address(root)));
        let found = read("[status]\nlisten = \"127.0.0.1:9443\"").unwrap();
        assert_eq!(found, Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 9443))));
        assert_eq!(read("").unwrap(), None);
        for text in ["listen = \"0.0.0.0:9443\"", "listen = \"9443\"", ""] {
            let problems = read(&format!("[status]\n{text}")).unwrap_err().to_string();
            assert!(problems.contains("listen"), "{problems}");
        }
    }
}
