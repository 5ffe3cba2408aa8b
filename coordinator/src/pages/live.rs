//! A run as it goes: drawn with the page, and again whenever something has changed, by events that the server sends.

use super::{AtDesk, By, Desk, run_of};
use crate::driver::{ClosedRound, Rounds, Sight};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use protocol::name::{OperatorName, RunId};
use protocol::progress::{Course, Progress};
use protocol::time::Timestamp;
use report::{FigureError, as_sentence, rounds_so_far};
use service::pages::{Fault, Visitor};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;

/// Rounds of the table; the curve has those before.
const ROWS_MAX: usize = 12;
/// Between two events.
const PAUSE: Duration = Duration::from_millis(250);
/// A hospital that is connected is named once it has been waited for so long.
const LATE: Duration = Duration::from_secs(5);
/// After so long a browser asks anew, and shows again who it is.
const ENDS: Duration = Duration::from_secs(30 * 60);

/// A follower of one run.
struct Follower {
    desk: Arc<Desk>,
    operator: OperatorName,
    run: RunId,
    progress: watch::Receiver<Progress>,
    _place: OwnedSemaphorePermit,
}

/// `/run/RUN/live`.
pub(super) async fn follow(
    State(desk): AtDesk,
    Extension(visitor): By,
    Path(run): Path<String>,
) -> Response {
    let follower = match begin(&desk, &visitor, &run).await {
        Ok(follower) => follower,
        Err(fault) => return desk.door.made(&visitor, Err(fault)),
    };
    let (events, stream) = mpsc::channel(1);
    tokio::spawn(follower.send(events));
    Sse::new(ReceiverStream::new(stream))
        .keep_alive(KeepAlive::default())
        .into_response()
}

async fn begin(desk: &Arc<Desk>, visitor: &Visitor, run: &str) -> Result<Follower, Fault> {
    let operator = desk.operator(visitor)?;
    let run = run_of(run)?;
    let progress = desk.watch(&operator, &run).await?;
    let place = Arc::clone(&desk.live).try_acquire_owned();
    let full = |_| Fault {
        status: StatusCode::SERVICE_UNAVAILABLE,
        text: "Too many pages are drawn as their runs go. Load this page again to see more.".into(),
    };
    Ok(Follower {
        desk: Arc::clone(desk),
        operator,
        run,
        progress,
        _place: place.map_err(full)?,
    })
}

impl Follower {
    /// Sends what is to be seen until the run has ended, or the browser has gone.
    async fn send(mut self, events: mpsc::Sender<Result<Event, Infallible>>) {
        let end = Instant::now() + ENDS;
        loop {
            let progress = self.progress.borrow_and_update().clone();
            let has_ended = progress.ending.is_some();
            let event = match has_ended {
                true => Event::default().event("ended").data("ended"),
                false => {
                    let rounds = |reply| Sight::Rounds(self.run.clone(), reply);
                    let Ok(rounds) = self.desk.look(&self.operator, rounds).await else {
                        return;
                    };
                    let Ok(drawn) = state(&progress, &rounds) else {
                        return;
                    };
                    // A line of an event ends where the text has one of these.
                    let text = drawn.into_string().replace('\r', " ");
                    Event::default().event("state").data(text)
                }
            };
            if events.send(Ok(event)).await.is_err() || has_ended {
                return;
            }
            tokio::time::sleep(PAUSE).await;
            tokio::select! {
                changed = self.progress.changed() => if changed.is_err() { return },
                () = events.closed() => return,
                // Somebody may be late by now.
                () = tokio::time::sleep(LATE) => {}
                () = tokio::time::sleep_until(end) => return,
            }
        }
    }
}

/// Where a run stands, and its rounds.
///
/// # Errors
/// [`FigureError`].
pub(super) fn state(progress: &Progress, rounds: &Rounds) -> Result<Markup, FigureError> {
    let closed: Vec<&ClosedRound> = rounds.closed.iter().collect();
    let phase = closed.last().map(|last| last.phase.clone());
    // A curve is of the present phase: each counts its rounds from 1.
    let of_phase = closed
        .iter()
        .filter(|one| Some(&one.phase) == phase.as_ref());
    let of_phase: Vec<Course> = of_phase.map(|one| one.course).collect();
    let curve = rounds_so_far(&of_phase)?;
    Ok(html! {
        section.answer aria-label="The answer" {
            p.lead role="status" { (as_sentence(&lead(progress))) }
            @if let Some(waiting) = waiting(progress) { p { (as_sentence(&waiting)) } }
        }
        @if !closed.is_empty() {
            h2 { "Rounds" }
            @if let Some(curve) = curve { (curve) }
            (table(&closed))
        }
    })
}

/// Who is waited for: who is not connected, and others where they are late.
fn waiting(progress: &Progress) -> Option<String> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.ok().and_then(|now| u64::try_from(now.as_millis()).ok());
    let waits = progress.waiting_since.zip(now.map(Timestamp));
    let is_late = waits.is_some_and(|(since, now)| now >= since.after(LATE));
    report::run_waiting(progress).filter(|_| is_late || !progress.away.is_empty())
}

/// The phase, the round and the hospitals.
fn lead(progress: &Progress) -> String {
    let mut text = report::run_status(progress);
    if progress.ahead.is_none() {
        let (here, all) = (progress.sites_connected, progress.sites);
        text.push_str(&format!(": {here} of {all} hospitals connected"));
    }
    let Course {
        round, round_limit, ..
    } = progress.course;
    match (round, round_limit) {
        (0, _) => {}
        (round, 0) => text.push_str(&format!(", round {round}")),
        (round, limit) => text.push_str(&format!(", round {round} of at most {limit}")),
    }
    text
}

/// The newest rounds, and what is known of each.
fn table(closed: &[&ClosedRound]) -> Markup {
    type Figure = (&'static str, fn(&Course) -> Option<f64>);
    let all: [Figure; 4] = [
        ("objective", |course| course.objective),
        ("left", |course| course.left),
        ("primal", |course| course.primal_residual),
        ("dual", |course| course.dual_residual),
    ];
    let shown = &closed[closed.len().saturating_sub(ROWS_MAX)..];
    let is_known = |(_, of): &Figure| shown.iter().any(|one| of(&one.course).is_some());
    let figures: Vec<Figure> = all.into_iter().filter(is_known).collect();
    let earlier = shown
        .first()
        .map_or(0, |one| one.course.round.saturating_sub(1));
    let is_one = shown.windows(2).all(|two| two[0].phase == two[1].phase);
    html! {
        table {
            caption {
                "The share of the objective that is left, or the residuals, where the method has them."
                @if earlier > 0 { " " (earlier) " earlier rounds are not listed." }
            }
            thead {
                tr {
                    th scope="col" { "round" }
                    @for (name, _) in &figures { th scope="col" { (name) } }
                }
            }
            tbody {
                @for one in shown.iter().rev() {
                    tr {
                        th scope="row" { (one.course.round) @if !is_one { ", " (one.phase) } }
                        @for (_, of) in &figures {
                            td { @if let Some(value) = of(&one.course) { (format!("{value:.3e}")) } }
                        }
                    }
                }
            }
        }
    }
}
