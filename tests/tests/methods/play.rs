//! Whole runs of real agents in this process: the machine of a site and its worker on a table of patients, with books on the
//! disk, beside the coordinator's machine.

use crate::samples::{LEARNED, SITES, Sample, config, samples, table};
use bytes::Bytes;
use kindred_tests::deployment::certify;
use kindred_tests::federation::{self, NOW, RUN};
use kindred_tests::programs::Home;
use kindred_tests::studies::Opened;
use privacy::Permission;
use protocol::message::{Answer, Ask, Begin, Closed, Reply, ToCoordinator, ToSite};
use protocol::method::Method;
use protocol::name::{OperatorName, SiteName};
use protocol::result::RunResult;
use protocol::run::{Action, Event, Record};
use protocol::site::{self, Site};
use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use site_agent::books::chain::{self, Link};
use site_agent::books::journal::{self, Entry};
use site_agent::books::ledger::KEY_NAME;
use site_agent::run::worker::Worker;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use wire::Sealed;

/// Patients of a site, unless a property says otherwise.
pub(crate) const PATIENTS: usize = 120;
/// The seed of every run.
const SEED: u64 = 5;
/// What a run leaves at a site to compare by.
const RECORD: &str = "comparison.json";
/// Who signs every job.
pub(crate) const OPERATOR: &str = "researcher";
/// Old questions that a site hears beside each new one.
const OLD_QUESTIONS: usize = 60;

/// What befalls a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weather {
    Calm,
    /// Each agent is killed once in every exchange, after its books have the answer and before anyone hears it.
    AgentsAreKilled,
    /// The coordinator is killed at the first answer of every exchange, and again once it has stored a record.
    CoordinatorIsKilled,
    /// Every site hears each new message twice, and among old ones in any order.
    SitesArePestered,
}

/// A run that is over.
pub(crate) struct Played {
    pub(crate) home: Home,
    pub(crate) begin: Begin,
    pub(crate) result: RunResult,
    /// What closed, in order.
    pub(crate) records: Vec<Record>,
    /// What the coordinator heard, in order.
    pub(crate) heard: Vec<Heard>,
}

/// An answer on its way.
pub(crate) struct Heard {
    pub(crate) site: &'static str,
    pub(crate) ask: Ask,
    /// As it left.
    pub(crate) sealed: Sealed,
    pub(crate) frames: Vec<Bytes>,
    /// As the coordinator reads it.
    pub(crate) answer: Answer,
}

/// A site's process.
struct Agent {
    machine: Site<Sealed>,
    worker: Worker,
    /// What it has heard, over all its processes.
    heard: Vec<ToSite>,
}

pub(crate) fn worker(home: &Home, site: &str) -> Worker {
    federation::worker(&config(site, &Permission::ALL.into()), home, NOW)
}

pub(crate) fn operator() -> OperatorName {
    OperatorName::new(OPERATOR).unwrap()
}

impl Agent {
    fn start(home: &Home, site: &str) -> Self {
        Self {
            machine: Site::default(),
            worker: worker(home, site),
            heard: Vec::new(),
        }
    }

    /// Hears one message; gives what it says.
    fn hear(&mut self, message: ToSite) -> Vec<Reply<Sealed>> {
        let mut events = vec![site::Event::Received(message)];
        let mut said = Vec::new();
        while let Some(event) = events.pop() {
            let (machine, actions) = std::mem::take(&mut self.machine).step(event);
            self.machine = machine;
            for action in actions {
                match action {
                    site::Action::Begin(begin) => self.worker.begin(begin, Ok(operator())),
                    site::Action::Follow(closed) => self.worker.follow(&closed, NOW).unwrap(),
                    site::Action::Compute(ask) => {
                        let reply = self.worker.answer(&ask, NOW).unwrap();
                        events.push(site::Event::Computed(reply.expect("an answer")));
                    }
                    site::Action::Send(ToCoordinator::Reply(reply)) => said.push(reply),
                    site::Action::Send(
                        ToCoordinator::Hello { .. } | ToCoordinator::Approved(_),
                    )
                    | site::Action::Propose(_)
                    | site::Action::Close(_)
                    | site::Action::Wait(_) => {}
                    site::Action::LetGo { run, .. } => self.worker.let_go(&run),
                }
            }
        }
        said
    }

    /// Hears it twice, and old messages in between and after.
    fn pestered(&mut self, message: ToSite, draw: &mut ChaCha8Rng) -> Vec<Reply<Sealed>> {
        let mut said = self.hear(message.clone());
        self.heard.push(message.clone());
        let old = (0..OLD_QUESTIONS).filter_map(|_| self.heard.choose(draw).cloned());
        for again in old.collect::<Vec<_>>().into_iter().chain([message]) {
            said.extend(self.hear(again));
        }
        said
    }
}

/// A run of a sample in some weather, on tables of so many patients.
struct Play {
    home: Home,
    weather: Weather,
    draw: ChaCha8Rng,
    agents: Vec<Agent>,
    events: VecDeque<Event>,
    records: Vec<Record>,
    heard: Vec<Heard>,
    /// Answers that were lost with the agent that gave them, by site and exchange.
    lost: BTreeSet<(usize, u32)>,
    /// Exchanges in which the coordinator was killed.
    killed: BTreeSet<u32>,
}

/// The study of a sample, which three sites with so many patients have approved and opened, and where they lie.
pub(crate) fn opened(sample: &Sample, patients: usize) -> (Home, Opened) {
    let home = Home::new();
    for site in SITES {
        home.write(&format!("data/{site}.csv"), &table(site, patients));
        // The same key in every run: a site's trees follow from it.
        home.write(&format!("sites/{site}/{KEY_NAME}"), &"k".repeat(32));
    }
    certify(&home);
    let workers = SITES.map(|site| (SiteName::new(site).unwrap(), worker(&home, site)));
    let opened = Opened::of(&sample.text, &home, &mut BTreeMap::from(workers));
    (home, opened)
}

/// Plays a run to its end.
pub(crate) fn play(sample: &Sample, patients: usize, weather: Weather) -> Played {
    let (home, study) = opened(sample, patients);
    if matches!(
        sample.job.method,
        Method::Neighbours(_) | Method::Cluster(_)
    ) {
        let learned = play(&samples()[0], patients, Weather::Calm);
        for site in SITES {
            let record = learned.folder(site).join("runs").join(RUN).join(RECORD);
            let record = std::fs::read_to_string(record).unwrap();
            home.write(&format!("sites/{site}/runs/{LEARNED}/{RECORD}"), &record);
        }
    }
    let agents = SITES.map(|site| Agent::start(&home, site)).into();
    Play {
        home,
        weather,
        draw: ChaCha8Rng::seed_from_u64(1),
        agents,
        events: everyone_connects(),
        records: Vec::new(),
        heard: Vec::new(),
        lost: BTreeSet::new(),
        killed: BTreeSet::new(),
    }
    .played_out(sample, &study)
}

fn name(site: usize) -> SiteName {
    SiteName::new(SITES[site]).unwrap()
}

fn everyone_connects() -> VecDeque<Event> {
    (0..SITES.len()).map(name).map(Event::Connected).collect()
}

impl Play {
    fn played_out(mut self, sample: &Sample, study: &Opened) -> Played {
        let job = study.job(&sample.text);
        let begin = study.begin(RUN, &job, SEED);
        let fresh = || study.run(RUN, job.clone(), SEED);
        let mut run = fresh();
        while run.ending().is_none() {
            let event = self.events.pop_front();
            let event = event.unwrap_or_else(|| panic!("{sample}: the run stands still"));
            let is_killed = self.weather == Weather::CoordinatorIsKilled;
            let mut crashes = match event {
                Event::Answered { exchange, .. } => is_killed && self.killed.insert(exchange),
                _ => false,
            };
            let mut actions = Vec::new();
            if !crashes {
                (run, actions) = run.step(NOW, event);
            }
            for action in &actions {
                if let Action::Store(closed) = action {
                    self.records.push(closed.record.clone());
                    crashes |= is_killed;
                }
            }
            if crashes {
                run = fresh().resume(self.records.clone(), NOW).unwrap();
                self.events = everyone_connects();
                continue;
            }
            for action in actions {
                let place = |site: &SiteName| {
                    let place = SITES.iter().position(|known| *known == site.as_str());
                    place.unwrap()
                };
                match action {
                    Action::Send { site, message } => self.send(place(&site), message),
                    Action::Retell { site, until } => {
                        for record in self.records.clone() {
                            if record.exchange <= until {
                                let run = run.id().clone();
                                let closed = Arc::new(Closed::new(run, record));
                                self.send(place(&site), ToSite::Closed(closed));
                            }
                        }
                    }
                    Action::Store(_) | Action::Report(_) | Action::End(_) => {}
                }
            }
        }
        Played {
            home: self.home,
            result: run.result(""),
            records: self.records,
            begin,
            heard: self.heard,
        }
    }

    fn send(&mut self, site: usize, message: ToSite) {
        let ask = match &message {
            ToSite::Ask(ask) => Some(ask.clone()),
            ToSite::Begin(_)
            | ToSite::Closed(_)
            | ToSite::End { .. }
            | ToSite::Proposed(_)
            | ToSite::ClosedStudies(_)
            | ToSite::Waiting(_) => None,
        };
        let said = match (self.weather, &ask) {
            (Weather::SitesArePestered, Some(_)) => {
                self.agents[site].pestered(message, &mut self.draw)
            }
            _ => self.agents[site].hear(message),
        };
        let Some(ask) = ask else { return };
        let is_killed = self.weather == Weather::AgentsAreKilled;
        if is_killed && self.lost.insert((site, ask.exchange)) {
            // Dropped first: one process holds the books.
            drop(self.agents.remove(site));
            self.agents
                .insert(site, Agent::start(&self.home, SITES[site]));
            self.events.push_back(Event::Disconnected(name(site)));
            self.events.push_back(Event::Connected(name(site)));
            return;
        }
        for reply in said {
            self.hear(site, &ask, reply);
        }
    }

    fn hear(&mut self, site: usize, ask: &Ask, reply: Reply<Sealed>) {
        let sealed = reply.answer.clone();
        let frames = wire::encode_to_coordinator(ToCoordinator::Reply(reply));
        let Ok(ToCoordinator::Reply(reply)) = wire::decode_to_coordinator(&frames) else {
            panic!("a reply is a reply");
        };
        self.events.push_back(Event::Answered {
            signature: reply.signature.clone(),
            site: name(site),
            exchange: reply.exchange,
            answer: reply.answer.clone(),
        });
        self.heard.push(Heard {
            site: SITES[site],
            ask: ask.clone(),
            sealed,
            frames,
            answer: reply.answer,
        });
    }
}

impl Heard {
    /// The bytes of the answer that stand in the frames, one part after the other; none where a part does not.
    pub(crate) fn left(&self) -> Option<Vec<u8>> {
        let mut left = Vec::new();
        let mut frames = self.frames.iter();
        for chunk in self.sealed.chunks().filter(|chunk| !chunk.is_empty()) {
            let holds = |frame: &Bytes| frame.windows(chunk.len()).any(|found| found == chunk);
            frames.find(|frame| holds(frame))?;
            left.extend_from_slice(chunk);
        }
        Some(left)
    }
}

impl Played {
    /// What the coordinator heard of a site, in order.
    pub(crate) fn heard_of(&self, site: &str) -> impl Iterator<Item = &Heard> {
        self.heard.iter().filter(move |heard| heard.site == site)
    }

    /// What a site has for itself.
    pub(crate) fn folder(&self, site: &str) -> PathBuf {
        self.home.join("sites").join(site)
    }

    /// The entries of the run in a site's journal.
    pub(crate) fn journal(&self, site: &str) -> Vec<Entry> {
        let mut entries = Vec::new();
        let path = self.folder(site).join(journal::FILE_NAME);
        let note = |link: Link<Entry>| entries.push(link.entry);
        chain::read(&path, None, note).unwrap();
        entries.retain(|entry: &Entry| entry.run == RUN);
        entries
    }

    /// Rounds that a site's ledger has counted.
    pub(crate) fn rounds(&self, site: &str) -> u64 {
        let path = self.folder(site).join("ledger.jsonl");
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.map(|line: serde_json::Value| counted(&line)).sum()
    }

    /// Entries of a site's ledger.
    pub(crate) fn in_the_ledger(&self, site: &str) -> usize {
        let path = self.folder(site).join("ledger.jsonl");
        std::fs::read_to_string(path).unwrap().lines().count()
    }

    /// What the run left to its operator.
    pub(crate) fn left(&self) -> Vec<u8> {
        wire::encode_result(&self.result)
    }
}

/// What a line of a ledger counts as rounds, wherever it stands.
fn counted(value: &serde_json::Value) -> u64 {
    let serde_json::Value::Object(fields) = value else {
        return 0;
    };
    let of = |(key, value): (&String, &serde_json::Value)| match key.as_str() {
        "rounds" => value.as_u64().unwrap_or(0),
        _ => counted(value),
    };
    fields.iter().map(of).sum()
}
