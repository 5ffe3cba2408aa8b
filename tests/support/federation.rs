//! Real workers of sites in this process, asked by hand or by the coordinator's own state machine: no network, no clock, and
//! no program but the one that made the files.

use crate::programs::{Home, PATIENCE, until};
use protocol::coordinator::{Action, Event, Run};
use protocol::job::Job;
use protocol::message::{Answer, Begin, Request, ToCoordinator, ToSite, Warrant};
use protocol::name::{OperatorName, RunId, SiteName};
use protocol::progress::Ending;
use protocol::time::Timestamp;
use site_agent::chain::ChainError;
use site_agent::config::SiteConfig;
use site_agent::worker::Worker;
use std::collections::BTreeMap;

/// The run of every conversation here.
pub const RUN: &str = "0123456789ab";
/// Every run here is short.
pub const NOW: Timestamp = Timestamp(1_000);
/// The seed of the runs that `converse` plays.
const SEED: u64 = 5;

/// The worker of a site with the configuration `config`, whose relative paths are in `home`.
///
/// A program that another test starts holds every lock of this process for the blink between its fork and its own
/// beginning, so that a folder in use is tried again.
pub fn worker(config: &str, home: &Home, now: Timestamp) -> Worker {
    let config = SiteConfig::parse(config, home.path()).expect("a configuration");
    std::fs::create_dir_all(&config.folder).expect("the site's folder");
    let opened = until("the folder to be free", PATIENCE, || {
        match Worker::open(config.clone(), now) {
            Err(ChainError::InUse { .. }) => None,
            opened => Some(opened),
        }
    });
    opened.expect("the site's books")
}

/// Says that the run `run` begins, which the researcher has asked for.
pub fn begin(worker: &mut Worker, run: &str, job: &str, seed: u64) {
    let begin = Begin {
        run: run_id(run),
        job: job.to_owned(),
        seed,
        warrant: Warrant::default(),
    };
    worker.begin(begin, Ok(researcher()));
}

/// Asks a site that knows the run.
pub fn ask(
    worker: &mut Worker,
    run: &str,
    exchange: u32,
    request: Request,
    now: Timestamp,
) -> Answer {
    let answer = worker.answer(&run_id(run), exchange, request, now);
    let answer = answer.expect("books that can be written");
    answer.expect("an answer").into_value()
}

/// A question and what the site answered.
pub struct Exchange<'x> {
    /// Who was asked.
    pub site: &'x SiteName,
    /// What was asked.
    pub request: &'x Request,
    /// What the coordinator reads.
    pub answer: &'x Answer,
    /// The bytes that left the site, of all frames of the answer.
    pub sent: &'x [u8],
}

/// Plays a run of `job` to its end: the coordinator's state machine asks, the workers answer, and every answer travels as
/// the frames that the wire makes of it. `hear` gets each exchange, in the order in which the sites answer.
pub fn converse(
    job: Job,
    workers: &mut BTreeMap<SiteName, Worker>,
    mut hear: impl FnMut(&Exchange<'_>),
) -> Ending {
    let mut run = Run::new(run_id(RUN), job, SEED, Warrant::default(), NOW);
    let mut events: Vec<Event> = workers.keys().cloned().map(Event::Connected).collect();
    loop {
        if let Some(ending) = run.ending() {
            return ending.clone();
        }
        assert!(!events.is_empty(), "the run stands still");
        let (next, actions) = run.step(NOW, events.remove(0));
        run = next;
        for action in actions {
            let Action::Send { site, message } = action else {
                continue;
            };
            let worker = workers.get_mut(&site).expect("a site of the job");
            match message {
                ToSite::Begin(begin) => worker.begin(begin, Ok(researcher())),
                ToSite::Ask {
                    run,
                    exchange,
                    request,
                } => {
                    let (answer, sent) = reply(worker, run, exchange, request.clone());
                    hear(&Exchange {
                        site: &site,
                        request: &request,
                        answer: &answer,
                        sent: &sent,
                    });
                    events.push(Event::Answered {
                        site,
                        exchange,
                        answer,
                    });
                }
                ToSite::End { .. } => {}
            }
        }
    }
}

/// An answer as the coordinator reads it, and the bytes that it reads.
fn reply(worker: &mut Worker, run: RunId, exchange: u32, request: Request) -> (Answer, Vec<u8>) {
    let answer = worker.answer(&run, exchange, request, NOW);
    let answer = answer.expect("books that can be written");
    let frames = wire::encode_to_coordinator(ToCoordinator::Reply {
        run,
        exchange,
        journal: Some(worker.journal_head()),
        answer: answer.expect("an answer"),
    });
    match wire::decode_to_coordinator(&frames) {
        Ok(ToCoordinator::Reply { answer, .. }) => (answer, frames.concat()),
        _ => panic!("a reply is a reply"),
    }
}

fn run_id(run: &str) -> RunId {
    RunId::new(run).expect("a run's name")
}

fn researcher() -> OperatorName {
    OperatorName::new("researcher").expect("an operator's name")
}
