//! The coordinator's side of one run: a pure state machine.
//!
//! A run is joined, then goes through numbered exchanges until its method has nothing more to ask.
//! `Store` precedes `Send` in every list of actions, and what is stored is one [`Record`] per
//! closed exchange: replaying the records gives the same run, bit for bit.

mod closing;
mod exchange;
mod following;
mod judging;
mod result;
mod showing;

use crate::exchange::Asking;
use crate::failure::Failure;
use crate::job::Job;
use crate::limits::NOTES_MAX;
use crate::message::{
    Answer, Ask, Begin, Closed, Encapsulations, Introduction, Request, ToSite, Warrant,
};
use crate::method::{Method, Stages};
use crate::name::{RunId, SiteName};
use crate::progress::{Ending, Progress};
use crate::result::RunResult;
use crate::stage::agreeing::Agreeing;
use crate::stage::introducing::Introducing;
use crate::time::Timestamp;
use exchange::Exchange;
pub use following::Proof;
use privacy::Contributions;
use std::sync::Arc;

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
        /// Its word for the answer, where the sites of the run check each other's; else empty.
        signature: Vec<u8>,
    },
    /// What came as a site's answer is not proved to be its own.
    Unproven {
        /// The site, from its certificate.
        site: SiteName,
        /// The exchange that it answers.
        exchange: u32,
        /// Why.
        fault: Failure,
    },
    /// Time has passed.
    Tick,
    /// An operator cancelled the run.
    Cancelled,
    /// Something outside that the result must say.
    Noted(String),
}

/// What is to be done outside, in this order.
#[derive(Debug, Clone)]
pub enum Action {
    /// Keep the record before anything after it in the list is done. Where sums are told, it is what all hear of.
    Store(Arc<Closed>),
    /// Send to a site; dropped where the site is not connected.
    Send {
        /// The site.
        site: SiteName,
        /// What to send.
        message: ToSite,
    },
    /// Send to a site every exchange that closed up to this one, one after the other and from where they are stored, before
    /// anything after it in the list.
    Retell {
        /// The site.
        site: SiteName,
        /// The last exchange that it hears of.
        until: u32,
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
    /// Answers, one place a site of the job. None of anybody where sums are told and one of those who were asked is missing:
    /// then the same is asked again, of fewer.
    pub answers: Vec<Option<Answer>>,
    /// The word of each site for its answer; empty where there is none.
    pub signatures: Vec<Vec<u8>>,
    /// Why each site of the job is suspended by this exchange; none where it is not.
    pub faults: Vec<Option<Failure>>,
    /// Whether each site of the job is asked in the next exchange.
    pub members: Vec<bool>,
}

/// Records that no run of this job leaves.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the record of exchange {exchange} does not fit the run: {reason}")]
pub struct ReplayError {
    /// The record's exchange.
    pub exchange: u32,
    /// What does not fit.
    pub reason: String,
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
    /// Patients of all sites, where sums are told.
    patients: u64,
    /// Sites that they are at.
    counted: u32,
    sites: Vec<SiteState>,
    step: Step,
    work: Work,
    /// Exchanges that closed and that a site must hear again when it comes back, each with what every site was asked. None
    /// where it hears all that closed.
    reminders: Vec<(u32, Vec<Option<Request>>)>,
    /// Exchanges that closed with nobody since the last that closed with answers.
    void: u32,
    /// Exchanges of which the sites heard the sum alone.
    totals: u32,
    /// The keys of each site that has introduced itself.
    introductions: Vec<Option<Introduction>>,
    /// What each of them has told the later ones alone.
    encapsulations: Vec<Option<Encapsulations>>,
    notes: Vec<String>,
}

/// What the run is at.
#[derive(Debug, Clone)]
enum Work {
    /// All sites say by which keys they are known.
    Introducing(Introducing),
    /// All sites prove that they mean the same cohort.
    Agreeing(Agreeing),
    /// The job's method.
    Method(Stages),
}

#[derive(Debug, Clone)]
struct SiteState {
    name: SiteName,
    connection: Connection,
    standing: Standing,
    patients: u64,
    rounds_missed: u32,
    /// Rounds in a row that closed without the site while it was a member.
    silent: u32,
    /// No longer waited for: it was silent for too long and has given no sign since.
    is_quiet: bool,
    /// Why it is suspended.
    fault: Option<Failure>,
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
    /// Answered what the question does not allow; is not asked again.
    Suspended,
}

#[derive(Debug, Clone)]
enum Step {
    Joining { deadline: Timestamp },
    Asking(Exchange),
    Ended(Ending),
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
            silent: 0,
            is_quiet: false,
            fault: None,
        };
        let introductions = vec![None; job.sites.len()];
        let encapsulations = vec![None; job.sites.len()];
        let work = match job.contributions {
            Contributions::Sums => Work::Introducing(Introducing::default()),
            Contributions::Own => Work::Agreeing(Agreeing::new(Arc::clone(&job.cohort))),
        };
        Self {
            sites: job.sites.iter().map(site).collect(),
            step: Step::Joining {
                deadline: now.after(job.deadlines.join),
            },
            id,
            job,
            seed,
            warrant,
            began: now,
            last: now,
            patients: 0,
            counted: 0,
            work,
            reminders: Vec::new(),
            void: 0,
            totals: 0,
            introductions,
            encapsulations,
            notes: Vec::new(),
        }
    }

    /// Replays stored records after a restart. All sites are disconnected until they come back, and
    /// the open exchange gets a new deadline.
    ///
    /// # Errors
    /// [`ReplayError`] where the records are not of such a run.
    pub fn resume(mut self, records: Vec<Record>, now: Timestamp) -> Result<Self, ReplayError> {
        for record in records {
            self.check(&record, None)?;
            self.close(record, None);
        }
        for site in &mut self.sites {
            site.connection = Connection::DownSince(now);
        }
        match &mut self.step {
            Step::Joining { deadline } => *deadline = now.after(self.job.deadlines.join),
            Step::Asking(exchange) => exchange.deadline = now.after(self.job.deadlines.exchange),
            Step::Ended(_) => {}
        }
        Ok(self)
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
        match &self.step {
            Step::Ended(ending) => Some(ending),
            _ => None,
        }
    }

    /// The next moment at which a [`Event::Tick`] can change the run.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        match &self.step {
            Step::Joining { deadline } => Some(*deadline),
            Step::Asking(exchange) => {
                let unheard = self.sites.iter().enumerate();
                let rejoin = unheard.filter_map(|(index, site)| {
                    match (site.standing, site.connection, exchange.has_heard(index)) {
                        (Standing::Member, Connection::DownSince(since), false) => {
                            Some(since.after(self.job.deadlines.rejoin))
                        }
                        _ => None,
                    }
                });
                rejoin.chain([exchange.deadline]).min()
            }
            Step::Ended(_) => None,
        }
    }

    /// One step: what happened in, what to do out. Late, repeated and foreign events change nothing.
    #[must_use]
    pub fn step(mut self, now: Timestamp, event: Event) -> (Self, Vec<Action>) {
        let mut actions = Vec::new();
        if matches!(self.step, Step::Ended(_)) {
            return (self, actions);
        }
        match event {
            Event::Connected(site) => self.connected(&site, &mut actions),
            Event::Disconnected(site) => self.disconnected(&site, now),
            Event::Answered {
                site,
                exchange,
                answer,
                signature,
            } => self.heard(&site, exchange, |run, index| {
                run.judge(index, &answer).map(|()| (answer, signature))
            }),
            Event::Unproven {
                site,
                exchange,
                fault,
            } => self.heard(&site, exchange, |_, _| Err(fault)),
            Event::Tick => {}
            Event::Cancelled => self.end(Ending::Cancelled, now, &mut actions),
            Event::Noted(note) => self.noted(note),
        }
        self.settle(now, &mut actions);
        (self, actions)
    }

    /// The method with what it has chosen, once all sites have described their cohorts.
    #[must_use]
    pub fn method(&self) -> Option<Method> {
        match &self.work {
            Work::Introducing(_) | Work::Agreeing(_) => None,
            Work::Method(stages) => Some(stages.method()),
        }
    }

    /// All that the run leaves; whole once it has ended.
    #[must_use]
    pub fn result(&self, version: &str) -> RunResult {
        result::of(self, version)
    }

    fn connected(&mut self, site: &SiteName, actions: &mut Vec<Action>) {
        let Some(index) = self.index(site) else {
            return;
        };
        self.sites[index].connection = Connection::Up;
        self.sites[index].is_quiet = false;
        let Step::Asking(exchange) = &self.step else {
            return;
        };
        let asked_now = match self.sites[index].standing {
            Standing::Member => !exchange.has_heard(index),
            Standing::Away => false,
            Standing::Awaited | Standing::Absent | Standing::Suspended => return,
        };
        let number = exchange.number;
        actions.push(self.begin(index));
        if self.tells_sums() {
            actions.push(Action::Retell {
                site: site.clone(),
                until: number - 1,
            });
        }
        for (closed, asked) in &self.reminders {
            actions.extend(self.ask(index, *closed, asked[index].clone()));
        }
        if asked_now {
            actions.extend(self.ask(index, number, self.work.asking().ask(index)));
        }
    }

    fn noted(&mut self, note: String) {
        if self.notes.len() < NOTES_MAX && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn disconnected(&mut self, site: &SiteName, now: Timestamp) {
        if let Some(index) = self.index(site)
            && self.sites[index].connection == Connection::Up
        {
            self.sites[index].connection = Connection::DownSince(now);
        }
    }

    /// A site has answered the open exchange: well, with its word for it, or not.
    fn heard(
        &mut self,
        site: &SiteName,
        number: u32,
        judged: impl FnOnce(&Self, usize) -> Result<(Answer, Vec<u8>), Failure>,
    ) {
        let Some(index) = self.index(site) else {
            return;
        };
        // A late answer is a sign as well: the site is asked again.
        self.sites[index].is_quiet = false;
        let Step::Asking(exchange) = &self.step else {
            return;
        };
        let is_member = self.sites[index].standing == Standing::Member;
        if exchange.number != number || !is_member || exchange.has_heard(index) {
            return;
        }
        let judged = judged(self, index);
        if let Step::Asking(exchange) = &mut self.step {
            match judged {
                Ok((answer, signature)) => {
                    exchange.answers[index] = Some(answer);
                    exchange.signatures[index] = signature;
                }
                Err(fault) => exchange.faults[index] = Some(fault),
            }
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

    fn ask(&self, index: usize, exchange: u32, request: Option<Request>) -> Option<Action> {
        let ask = Ask {
            run: self.id.clone(),
            exchange,
            request: request?,
        };
        Some(Action::Send {
            site: self.sites[index].name.clone(),
            message: ToSite::Ask(ask),
        })
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

impl Work {
    /// What is asked at present.
    fn asking(&self) -> &dyn Asking {
        match self {
            Self::Introducing(introducing) => introducing,
            Self::Agreeing(agreeing) => agreeing,
            Self::Method(stages) => stages.asking(),
        }
    }
}
