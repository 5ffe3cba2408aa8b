//! The end of a run before its time, for sure.

use super::{AtDesk, By, Desk, run_of};
use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use protocol::name::RunId;
use service::pages::{Fault, Form, Visitor, see, token};
use wire::OperatorCall;

/// The box that is ticked.
const SURE: &str = "sure";

/// Cancels a run, once the box is ticked.
pub(super) fn form(visitor: &Visitor, run: &RunId) -> Markup {
    html! {
        details.screen {
            summary { "Cancel this run" }
            form.cancel method="post" action=(format!("/run/{run}/cancel")) {
                (token(visitor))
                p.field {
                    input type="checkbox" name=(SURE) id=(SURE) required;
                    label for=(SURE) { "Yes, for all hospitals. It does not go on again." }
                }
                button { "Cancel the run" }
            }
        }
    }
}

/// `/run/RUN/cancel`.
pub(super) async fn cancel(
    State(desk): AtDesk,
    Extension(visitor): By,
    Path(run): Path<String>,
    Extension(form): Extension<Form>,
) -> Response {
    let made = make(&desk, &visitor, &run, &form).await;
    desk.door.made(&visitor, made)
}

async fn make(desk: &Desk, visitor: &Visitor, run: &str, form: &Form) -> Result<Response, Fault> {
    let operator = desk.operator(visitor)?;
    let run = run_of(run)?;
    if !form.has(SURE) {
        return Err(Fault::input("Tick the box to cancel the run."));
    }
    let here = format!("/run/{run}");
    let cancel = |reply| OperatorCall::Cancel { run, reply };
    desk.ask(&operator, cancel).await?;
    tracing::info!(%operator, by = visitor.name(), "a run was cancelled in a browser");
    Ok(see(&here))
}
