//! Real workers of sites in this process, asked by hand or by the coordinator's own state machine: no network, no clock, and
//! no program but the one that made the files.

use crate::programs::{Home, PATIENCE, until};
use crate::studies::Opened;
use bytes::Bytes;
use privacy::Rules;
use protocol::job::Job;
use protocol::message::{
    Answer, Ask, Begin, Closed, Reply, Request, ToCoordinator, ToSite, Warrant,
};
use protocol::name::{OperatorName, RunId, SiteName};
use protocol::progress::Ending;
use protocol::result::RunResult;
use protocol::run::{Action, Event, Record, Run};
use protocol::time::Timestamp;
use similarity::numeric::seed::Seed;
use site_agent::books::chain::ChainError;
use site_agent::config::{SiteConfig, SourceConfig};
use site_agent::method::Computation;
use site_agent::run::worker::Worker;
use site_agent::source::{SiteCohort, read_cohort};
use std::collections::BTreeMap;
use std::path::Path;

/// The run of every conversation here.
pub const RUN: &str = "0123456789ab";
/// Every run here is short.
pub const NOW: Timestamp = Timestamp(1_000);
/// The seed of the runs that `converse` plays.
const SEED: u64 = 5;
/// Who asks for every run.
pub(crate) const RESEARCHER: &str = "researcher";

/// The worker of a site with the configuration `config`, whose relative paths are in `home`.
///
/// A program that another test starts holds every lock of this process for the blink between its fork and its own
/// beginning, so that a folder in use is tried again.
pub fn worker(config: &str, home: &Home, now: Timestamp) -> Worker {
    let text = config;
    let config = SiteConfig::parse(text, home.path()).expect("a configuration");
    home.write(&config_file(config.site.as_str()), text);
    std::fs::create_dir_all(&config.folder).expect("the site's folder");
    let opened = until("the folder to be free", PATIENCE, || {
        match Worker::open(config.clone(), now) {
            Err(ChainError::InUse { .. }) => None,
            opened => Some(opened),
        }
    });
    opened.expect("the site's books")
}

/// The name of the file that has the configuration of a site, in the home of its worker.
pub fn config_file(site: &str) -> String {
    format!("{site}.config.toml")
}

/// Says that a run of so many sites begins, which the researcher has asked for, and asks the first question.
pub fn begin_and_ask(worker: &mut Worker, begin: Begin, sites: usize, request: Request) -> Answer {
    let run = begin.run.clone();
    worker.begin(begin, Ok(operator()));
    let joined = Record {
        at: NOW,
        exchange: 0,
        answers: vec![None; sites],
        signatures: vec![Vec::new(); sites],
    };
    let followed = worker.follow(&Closed::new(run.clone(), joined), NOW);
    followed.expect("books that can be written");
    ask(worker, run.as_str(), 1, request, NOW)
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
        run: name_of_run(run),
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

/// Plays a run of a job of a study to its end, as [`play`] does.
pub fn converse(
    study: &Opened,
    job: Job,
    workers: &mut BTreeMap<SiteName, Worker>,
    hear: impl FnMut(&Exchange<'_>),
) -> Ending {
    let run = play(study.run(RUN, job, SEED), workers, hear);
    run.ending().expect("it is over").clone()
}

/// Plays a run to its end: the coordinator's state machine asks, the workers answer, and every answer travels as
/// the frames that the wire makes of it. `hear` gets each exchange, in the order in which the sites answer.
pub fn play(
    mut run: Run,
    workers: &mut BTreeMap<SiteName, Worker>,
    mut hear: impl FnMut(&Exchange<'_>),
) -> Run {
    let mut events: Vec<Event> = workers.keys().cloned().map(Event::Connected).collect();
    while run.ending().is_none() {
        assert!(!events.is_empty(), "the run stands still");
        let (next, actions) = run.step(NOW, events.remove(0));
        run = next;
        for action in actions {
            let Action::Send { site, message } = action else {
                continue;
            };
            let worker = workers.get_mut(&site).expect("a site of the job");
            match message {
                ToSite::Begin(begin) => worker.begin(begin, Ok(operator())),
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
                ToSite::End { .. }
                | ToSite::Proposed(_)
                | ToSite::ClosedStudies(_)
                | ToSite::Waiting(_) => {}
            }
        }
    }
    run
}

/// A run of one site, whose answers nobody covers.
pub struct Alone {
    /// What the site told, in order.
    pub told: Vec<Answer>,
    /// What the run left.
    pub result: RunResult,
}

/// Plays a run of `job` on the one table `data`: the coordinator's state machine asks, and the site's computation answers, also in
/// rounds. What the site has for itself goes into `folder`.
pub fn alone(job: &str, data: &Path, folder: &Path) -> Alone {
    let job = Job::parse_for_one(job).unwrap_or_else(|errors| panic!("{errors}"));
    let source = SourceConfig::of_file(data, Some("patient".to_owned()));
    let cohort = read_cohort(&source, &job);
    let cohort = cohort.unwrap_or_else(|problems| panic!("{problems}"));
    played_alone(job, cohort, folder)
}

/// The same on a cohort that was read before.
pub fn played_alone(job: Job, cohort: SiteCohort, folder: &Path) -> Alone {
    let name = SiteName::new("alone").expect("a site's name");
    let job = job.alone(name.clone());
    let (rules, secret) = (Rules::default(), Box::new(|_: &[u8]| SEED));
    let folder = folder.to_owned();
    let made = Computation::new(job.clone(), Seed(SEED), cohort, folder, &rules, secret);
    let mut site = made.unwrap_or_else(|stop| panic!("{stop:?}"));
    let counts = site.counts().unwrap_or_else(|stop| panic!("{stop:?}"));
    let run = Run::new(name_of_run(RUN), job, SEED, Warrant::default(), NOW);
    let mut run = run.counted(counts);
    let (mut next, mut told) = (Some(Event::Connected(name.clone())), Vec::new());
    while let Some(event) = next.take() {
        let (after, actions) = run.step(NOW, event);
        run = after;
        for action in actions {
            let Action::Send {
                message: ToSite::Ask(ask),
                ..
            } = action
            else {
                continue;
            };
            let answer = site.answer(&ask.request);
            let answer = answer.unwrap_or_else(|stop| panic!("{stop:?}"));
            told.push(answer.clone());
            next = Some(Event::Answered {
                site: name.clone(),
                exchange: ask.exchange,
                answer,
                signature: Vec::new(),
            });
        }
    }
    Alone {
        told,
        result: run.result(""),
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

/// The name of a run.
pub(crate) fn name_of_run(run: &str) -> RunId {
    RunId::new(run).expect("a run's name")
}

fn operator() -> OperatorName {
    OperatorName::new(RESEARCHER).expect("an operator's name")
}
