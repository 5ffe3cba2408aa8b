//! Pages that cannot be made, and where a form leads.

use super::{Door, Visitor};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use std::time::Duration;

/// How long a page waits for its turn.
const TURN: Duration = Duration::from_secs(60);

/// A page that could not be made.
#[derive(Debug)]
pub struct Fault {
    /// What HTTP calls it.
    pub status: StatusCode,
    /// Why, in sentences.
    pub text: String,
}

impl Fault {
    /// What was sent cannot be meant.
    #[must_use]
    pub fn input(text: impl Into<String>) -> Self {
        Self {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            text: text.into(),
        }
    }

    /// There is no such thing.
    #[must_use]
    pub fn absent(text: impl Into<String>) -> Self {
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

impl Door {
    /// Makes a page where it may block, in turn with others.
    pub async fn work(
        &self,
        visitor: &Visitor,
        make: impl FnOnce() -> Result<Response, Fault> + Send + 'static,
    ) -> Response {
        let busy = "Other pages are being made. Please load this page again.";
        let turn = tokio::time::timeout(TURN, self.turns.acquire()).await;
        let Ok(Ok(_turn)) = turn else {
            return self.problem(StatusCode::SERVICE_UNAVAILABLE, visitor, busy);
        };
        let text = "This page cannot be made: a fault of Kindred. The log names the place.";
        match tokio::task::spawn_blocking(make).await {
            Ok(made) => self.made(visitor, made),
            Err(_) => self.problem(StatusCode::INTERNAL_SERVER_ERROR, visitor, text),
        }
    }

    /// A page, or why there is none.
    pub fn made(&self, visitor: &Visitor, made: Result<Response, Fault>) -> Response {
        made.unwrap_or_else(|Fault { status, text }| self.problem(status, visitor, &text))
    }
}

/// Where a form leads, so that a page that is loaded again sends nothing again.
#[must_use]
pub fn see(path: &str) -> Response {
    Redirect::to(path).into_response()
}
