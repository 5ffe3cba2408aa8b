//! Real workers of sites in this process, asked by hand or by the coordinator's own state machine: no network, no clock, and
//! no program but the one that made the files.

use crate::programs::{Home, PATIENCE, until};
use bytes::Bytes;
use protocol::job::Job;
use protocol::message::{Answer, Ask, Begin, Reply, Request, ToCoordinator, ToSite, Warrant};
use protocol::name::{OperatorName, RunId, SiteName};
use protocol::progress::Ending;
use protocol::run::{Action, Event, Run};
use protocol::time::Timestamp;
use site_agent::books::chain::ChainError;
use site_agent::config::SiteConfig;
use site_agent::run::worker::Worker;
use std::collections::BTreeMap;

/// The run of every conversation here.
pub const RUN: &str = "0123456789ab";
/// Every run here is short.
pub const NOW: Timestamp = Timestamp(1_000);
/// The seed of the runs that `converse` plays.
const SEED: u64 = 5;
/// Who asks for a run, where a test names nobody else.
const RESEARCHER: &str = "researcher";

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
    begin_by(worker, RESEARCHER, run, job, seed);
}

/// Says that the run `run` begins, whose job `operator` signed.
pub fn begin_by(worker: &mut Worker, operator: &str, run: &str, job: &str, seed: u64) {
    let begin = Begin {
        run: run_id(run),
        job: job.to_owned(),
        seed,
        warrant: Warrant::default(),
        opening: None,
    };
    worker.begin(begin, Ok(operator_name(operator)));
}

/// Asks a site that knows the run.
pub fn ask(
    worker: &mut Worker,
    run: &str,
    exchange: u32,
    request: Request,
    now: Timestamp,
) -> Answer {
    let ask = Ask {
        run: run_id(run),
        exchange,
        request,
    };
    reply(worker, &ask, now).answer
}

/// A question and what the site answered.
pub struct Exchange<'x> {
    /// Who was asked.
    pub site: &'x SiteName,
    /// What was asked.
    pub request: &'x Request,
    /// What the coordinator reads.
    pub answer: &'x Answer,
    /// The frames that left the site.
    pub sent: &'x [Bytes],
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
                ToSite::Begin(begin) => worker.begin(begin, Ok(operator_name(RESEARCHER))),
                ToSite::Ask(ask) => {
                    let Heard {
                        answer,
                        signature,
                        sent,
                    } = reply(worker, &ask, NOW);
                    hear(&Exchange {
                        site: &site,
                        request: &ask.request,
                        answer: &answer,
                        sent: &sent,
                    });
                    events.push(Event::Answered {
                        site,
                        exchange: ask.exchange,
                        answer,
                        signature,
                    });
                }
                ToSite::Closed(closed) => {
                    worker
                        .follow(&closed, NOW)
                        .expect("books that can be written");
                }
                ToSite::End { .. } | ToSite::Proposed(_) => {}
            }
        }
    }
}

/// What the coordinator hears of a site.
struct Heard {
    answer: Answer,
    signature: Vec<u8>,
    sent: Vec<Bytes>,
}

/// An answer as the coordinator reads it, and the frames that it reads.
fn reply(worker: &mut Worker, ask: &Ask, now: Timestamp) -> Heard {
    let reply = worker.answer(ask, now).expect("books that can be written");
    let reply = reply.expect("an answer");
    let sent = wire::encode_to_coordinator(ToCoordinator::Reply(reply));
    match wire::decode_to_coordinator(&sent) {
        Ok(ToCoordinator::Reply(Reply {
            answer, signature, ..
        })) => Heard {
            answer,
            signature,
            sent,
        },
        _ => panic!("a reply is a reply"),
    }
}

fn run_id(run: &str) -> RunId {
    RunId::new(run).expect("a run's name")
}

fn operator_name(operator: &str) -> OperatorName {
    OperatorName::new(operator).expect("an operator's name")
}
