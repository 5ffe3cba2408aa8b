//! The operator of a simulation: submits its runs, and watches them.

use super::SimulateError;
use super::agents;
use super::plan::Plan;
use crate::driver;
use crate::operator::fresh_token;
use protocol::failure::{Code, Failure};
use protocol::name::OperatorName;
use protocol::result::RunResult;
use protocol::study::Study;
use report::Watching;
use service::signals::Signals;
use tokio::sync::{mpsc, oneshot};
use wire::{Incoming, OperatorCall, Signer};

/// Where runs are submitted and watched.
pub(super) struct Desk<'d> {
    pub(super) operator: &'d (OperatorName, Signer),
    pub(super) calls: &'d mpsc::Sender<Incoming>,
    pub(super) agents: agents::Running,
    pub(super) signals: &'d mut Signals,
}

impl Desk<'_> {
    /// Submits a job, shows the run, and fetches what it leaves.
    async fn run(&mut self, text: &str, seed: u64) -> Result<RunResult, SimulateError> {
        let (operator, signer) = self.operator;
        let calls = self.calls;
        let warrant = signer
            .sign(text, seed, &fresh_token(text))
            .map_err(SimulateError::Signature)?;
        let run = ask(calls, operator, |reply| OperatorCall::Submit {
            job: text.to_owned(),
            seed,
            warrant,
            reply,
        })
        .await?;
        let mut progress = ask(calls, operator, |reply| OperatorCall::Watch {
            run: run.clone(),
            reply,
        })
        .await?;
        let mut watching = Watching::new();
        let cancel = || {
            ask(calls, operator, |reply| OperatorCall::Cancel {
                run: run.clone(),
                reply,
            })
        };
        loop {
            watching.show(&progress.borrow_and_update());
            if progress.borrow().ending.is_some() {
                break;
            }
            tokio::select! {
                changed = progress.changed() => changed.map_err(|_| stopped())?,
                exit = self.agents.exited() => self.agents.judge(&exit)?,
                _ = self.signals.next() => cancel().await?,
            }
        }
        watching.finish();
        ask(calls, operator, |reply| OperatorCall::FetchResult {
            run,
            reply,
        })
        .await
    }
}

async fn ask<T>(
    calls: &mpsc::Sender<Incoming>,
    operator: &OperatorName,
    call: impl FnOnce(oneshot::Sender<Result<T, Failure>>) -> OperatorCall,
) -> Result<T, SimulateError> {
    let (reply, answer) = oneshot::channel();
    let call = Incoming::Operator {
        operator: operator.clone(),
        call: call(reply),
    };
    calls.send(call).await.map_err(|_| stopped())?;
    answer
        .await
        .map_err(|_| stopped())?
        .map_err(SimulateError::Coordinator)
}

fn stopped() -> SimulateError {
    let text = "the coordinator stopped before the run had ended";
    SimulateError::Coordinator(Failure::new(Code::Stopped, text))
}

/// The run that opens the study, and then the job's own; where the study does not open, that run alone.
pub(super) async fn both(
    plan: &Plan,
    study: &Study,
    desk: &mut Desk<'_>,
) -> Result<(Option<RunResult>, RunResult), SimulateError> {
    let card = desk.run(&study.card(), plan.seed).await?;
    if plan.job.opens_study() || !driver::is_result(&card.ending) {
        return Ok((None, card));
    }
    let result = desk.run(&study.join(&plan.own), plan.seed).await?;
    Ok((Some(card), result))
}
