//! The coordinator's side of one run: a pure state machine.
//!
//! A run is joined, then goes through numbered exchanges until its method has nothing more to ask.
//! `Store` precedes `Send` in every list of actions, and what is stored is one [`Record`] per
//! closed exchange: replaying the records gives the same run, bit for bit.

mod closing;
mod fit;
mod forest;
mod result;
mod selection;
mod solver;
mod standardising;
mod unpsl;
mod work;

use crate::job::{Job, UnpslSettings};
use crate::message::{Answer, Begin, Failure, Request, ToSite, Warrant};
use crate::name::{RunId, SiteName};
use crate::progress::{Ending, Progress, RunResult};
use crate::time::Timestamp;
use work::Work;

/// The first exchange: every site reads its cohort.
const DESCRIBE: u32 = 1;

/// What happened outside.
#[derive(Debug, Clone)]
pub enum Event {
    /// A site opened a stream; the newest replaces any before.
    Connected(SiteName),
    /// A site's stream ended or fell silent.
    Disconnected(SiteName),
    /// A site answered an exchange.
    Answered {
        /// The site, from its certificate.
        site: SiteName,
        /// The exchange that it answers.
        exchange: u32,
        /// Its answer.
        answer: Answer,
    },
    /// Time has passed.
    Tick,
    /// An operator cancelled the run.
    Cancelled,
}

/// What is to be done outside, in this order.
#[derive(Debug, Clone)]
pub enum Action {
    /// Keep the record before anything after it in the list is done.
    Store(Record),
    /// Send to a site; dropped where the site is not connected.
    Send {
        /// The site.
        site: SiteName,
        /// What to send.
        message: ToSite,
    },
    /// Show where the run stands.
    Report(Progress),
    /// The run is over.
    End(Ending),
}

/// One closed step of a run: what a replay needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// When it closed.
    pub at: Timestamp,
    /// The exchange that closed; 0 is the joining.
    pub exchange: u32,
    /// Answers, one place a site of the job.
    pub answers: Vec<Option<Answer>>,
    /// Whether each site of the job is asked in the next exchange.
    pub members: Vec<bool>,
}

/// One federation from join to end.
#[derive(Debug, Clone)]
pub struct Run {
    id: RunId,
    job: Job,
    seed: u64,
    warrant: Warrant,
    began: Timestamp,
    last: Timestamp,
    sites: Vec<SiteState>,
    stage: Stage,
    work: Work,
    notes: Vec<String>,
}

#[derive(Debug, Clone)]
struct SiteState {
    name: SiteName,
    connection: Connection,
    standing: Standing,
    patients: u64,
    rounds_missed: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connection {
    Up,
    DownSince(Timestamp),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// May still join.
    Awaited,
    /// Is asked in every exchange.
    Member,
    /// Was lost during the rounds; is asked again once it is back.
    Away,
    /// Never joined, or was lost before the rounds.
    Absent,
}

#[derive(Debug, Clone)]
enum Stage {
    Joining { deadline: Timestamp },
    Asking(Exchange),
    Ended(Ending),
}

#[derive(Debug, Clone)]
struct Exchange {
    number: u32,
    deadline: Timestamp,
    answers: Vec<Option<Answer>>,
}

/// What comes after a closed exchange.
enum Turn {
    Ask,
    End(Ending),
}

impl Run {
    /// A run that waits for its sites.
    #[must_use]
    pub fn new(id: RunId, job: Job, seed: u64, warrant: Warrant, now: Timestamp) -> Self {
        let site = |name: &SiteName| SiteState {
            name: name.clone(),
            connection: Connection::DownSince(now),
            standing: Standing::Awaited,
            patients: 0,
            rounds_missed: 0,
        };
        Self {
            sites: job.sites.iter().map(site).collect(),
            stage: Stage::Joining {
                deadline: now.after(job.deadlines.join),
            },
            id,
            job,
            seed,
            warrant,
            began: now,
            last: now,
            work: Work::Agreeing,
            notes: Vec::new(),
        }
    }

    /// Replays stored records after a restart. All sites are disconnected until they come back, and
    /// the open exchange gets a new deadline.
    #[must_use]
    pub fn resume(mut self, records: Vec<Record>, now: Timestamp) -> Self {
        for record in records {
            self.close(record);
        }
        for site in &mut self.sites {
            site.connection = Connection::DownSince(now);
        }
        match &mut self.stage {
            Stage::Joining { deadline } => *deadline = now.after(self.job.deadlines.join),
            Stage::Asking(exchange) => exchange.deadline = now.after(self.job.deadlines.exchange),
            Stage::Ended(_) => {}
        }
        self
    }

    /// The run's identity.
    #[must_use]
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The job.
    #[must_use]
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// How it ended, once it has.
    #[must_use]
    pub fn ending(&self) -> Option<&Ending> {
        match &self.stage {
            Stage::Ended(ending) => Some(ending),
            _ => None,
        }
    }

    /// The next moment at which a [`Event::Tick`] can change the run.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        match &self.stage {
            Stage::Joining { deadline } => Some(*deadline),
            Stage::Asking(exchange) => {
                let rejoin =
                    self.sites
                        .iter()
                        .zip(&exchange.answers)
                        .filter_map(|(site, answer)| {
                            match (site.standing, site.connection, answer) {
                                (Standing::Member, Connection::DownSince(since), None) => {
                                    Some(since.after(self.job.deadlines.rejoin))
                                }
                                _ => None,
                            }
                        });
                rejoin.chain([exchange.deadline]).min()
            }
            Stage::Ended(_) => None,
        }
    }

    /// One step: what happened in, what to do out. Late, repeated and foreign events change nothing.
    #[must_use]
    pub fn step(mut self, now: Timestamp, event: Event) -> (Self, Vec<Action>) {
        let mut actions = Vec::new();
        if matches!(self.stage, Stage::Ended(_)) {
            return (self, actions);
        }
        match event {
            Event::Connected(site) => self.connected(&site, &mut actions),
            Event::Disconnected(site) => self.disconnected(&site, now),
            Event::Answered {
                site,
                exchange,
                answer,
            } => self.answered(&site, exchange, answer),
            Event::Tick => {}
            Event::Cancelled => self.end(Ending::Cancelled, now, &mut actions),
        }
        self.settle(now, &mut actions);
        (self, actions)
    }

    /// Where the run stands.
    #[must_use]
    pub fn progress(&self, now: Timestamp) -> Progress {
        let (waiting_for, deadline): (Vec<&SiteState>, _) = match &self.stage {
            Stage::Joining { deadline } => (
                self.sites.iter().filter(|site| !site.is_up()).collect(),
                *deadline,
            ),
            Stage::Asking(exchange) => {
                let unanswered = self.sites.iter().zip(&exchange.answers);
                let waited = unanswered
                    .filter(|(site, answer)| site.standing == Standing::Member && answer.is_none());
                (waited.map(|(site, _)| site).collect(), exchange.deadline)
            }
            Stage::Ended(_) => (Vec::new(), now),
        };
        let mut progress = Progress {
            run: self.id.clone(),
            phase: self.phase(),
            round: 0,
            round_limit: 0,
            objective: None,
            primal_residual: None,
            dual_residual: None,
            sites_connected: count(self.sites.iter().filter(|site| site.is_up()).count()),
            sites: count(self.sites.len()),
            waiting_for: waiting_for
                .iter()
                .map(|site| site.name.to_string())
                .collect(),
            deadline_seconds: deadline.since(now).as_secs_f64(),
            ending: self.ending().cloned(),
        };
        self.work.describe(&mut progress);
        progress
    }

    /// The settings of UnPSL with what cross-validation has chosen, once the sites are prepared.
    #[must_use]
    pub fn unpsl_settings(&self) -> Option<&UnpslSettings> {
        match &self.work {
            Work::Unpsl(work) => Some(work.settings()),
            Work::Agreeing | Work::Forest(_) => None,
        }
    }

    /// All that the run leaves; whole once it has ended.
    #[must_use]
    pub fn result(&self, version: &str) -> RunResult {
        result::of(self, version)
    }

    fn phase(&self) -> String {
        let phase = match &self.stage {
            Stage::Joining { .. } => "waiting for sites",
            Stage::Ended(_) => "ended",
            Stage::Asking(_) => self.work.phase(),
        };
        phase.to_owned()
    }

    fn connected(&mut self, site: &SiteName, actions: &mut Vec<Action>) {
        let Some(index) = self.index(site) else {
            return;
        };
        self.sites[index].connection = Connection::Up;
        let Stage::Asking(exchange) = &self.stage else {
            return;
        };
        let asked_now = match self.sites[index].standing {
            Standing::Member => exchange.answers[index].is_none(),
            Standing::Away => false,
            Standing::Awaited | Standing::Absent => return,
        };
        let number = exchange.number;
        actions.push(self.begin(index));
        for (context, request) in self.work.context(index) {
            actions.push(self.send(index, context, request));
        }
        if asked_now {
            actions.push(self.send(index, number, self.work.request(index)));
        }
    }

    fn disconnected(&mut self, site: &SiteName, now: Timestamp) {
        if let Some(index) = self.index(site)
            && self.sites[index].connection == Connection::Up
        {
            self.sites[index].connection = Connection::DownSince(now);
        }
    }

    fn answered(&mut self, site: &SiteName, number: u32, answer: Answer) {
        let Some(index) = self.index(site) else {
            return;
        };
        let Stage::Asking(exchange) = &mut self.stage else {
            return;
        };
        let expected = exchange.number == number && self.sites[index].standing == Standing::Member;
        if expected && exchange.answers[index].is_none() {
            exchange.answers[index] = Some(answer);
        }
    }

    fn begin(&self, index: usize) -> Action {
        let message = ToSite::Begin(Begin {
            run: self.id.clone(),
            job: self.job.text.clone(),
            seed: self.seed,
            warrant: self.warrant.clone(),
        });
        Action::Send {
            site: self.sites[index].name.clone(),
            message,
        }
    }

    fn send(&self, index: usize, exchange: u32, request: Request) -> Action {
        let message = ToSite::Ask {
            run: self.id.clone(),
            exchange,
            request,
        };
        Action::Send {
            site: self.sites[index].name.clone(),
            message,
        }
    }

    fn index(&self, site: &SiteName) -> Option<usize> {
        self.sites.iter().position(|known| known.name == *site)
    }

    fn member_indices(&self) -> Vec<usize> {
        let members = self.sites.iter().enumerate();
        members
            .filter(|(_, site)| site.standing == Standing::Member)
            .map(|(i, _)| i)
            .collect()
    }

    fn names(&self, which: impl Fn(&SiteState) -> bool) -> Vec<String> {
        self.sites
            .iter()
            .filter(|site| which(site))
            .map(|site| site.name.to_string())
            .collect()
    }
}

impl SiteState {
    fn is_up(&self) -> bool {
        self.connection == Connection::Up
    }
}

fn failure(code: &str, text: String) -> Failure {
    Failure {
        code: code.to_owned(),
        text,
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
