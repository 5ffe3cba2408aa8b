//! The coordinator's side of one run: a pure state machine.
//!
//! A run is joined, then goes through numbered exchanges until its method has nothing more to ask. Every site of the job is
//! asked in every exchange, and an exchange closes with all of them or not at all: the run waits for who is away.
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
use crate::limits::{NOTES_MAX, PATIENCE};
pub use crate::message::Record;
use crate::message::{
    Answer, Ask, Begin, Closed, ColumnHistogram, Encapsulations, Introduction, Request, ToSite,
    Warrant,
};
use crate::method::{Method, Stages};
use crate::name::{RunId, SiteName};
use crate::opening::Opening;
use crate::progress::{Ending, Progress};
use crate::result::RunResult;
use crate::stage::agreeing::Agreeing;
use crate::stage::introducing::Introducing;
use crate::time::Timestamp;
use closing::shortened;
use exchange::Exchange;
pub use following::Proof;
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
        /// Its word for the answer; empty where it has none.
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
    /// Keep the record before anything after it in the list is done. It is what all hear of.
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
        /// The last exchange of which it learns.
        until: u32,
    },
    /// Show where the run stands.
    Report(Progress),
    /// The run is over.
    End(Ending),
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
    /// Patients of all sites.
    patients: u64,
    /// Of them those of each class, or those with an event.
    classes: Vec<u64>,
    sites: Vec<SiteState>,
    step: Step,
    work: Work,
    /// Exchanges of which the sites heard the sum alone.
    totals: u32,
    /// The keys of each site that has introduced itself.
    introductions: Vec<Option<Introduction>>,
    /// What each of them has sent to the later ones alone.
    encapsulations: Vec<Option<Encapsulations>>,
    /// The run that opened the job's study, whose keys it has.
    opening: Option<RunId>,
    /// What its patients come to on the job's grids.
    counts: Arc<Vec<ColumnHistogram>>,
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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connection {
    Up,
    Down,
}

#[derive(Debug, Clone)]
enum Step {
    /// All sites are awaited, since then.
    Joining {
        since: Timestamp,
    },
    Asking(Exchange),
    Ended(Ending),
}

impl Run {
    /// A run that waits for its sites.
    #[must_use]
    pub fn new(id: RunId, job: Job, seed: u64, warrant: Warrant, now: Timestamp) -> Self {
        let site = |name: &SiteName| SiteState {
            name: name.clone(),
            connection: Connection::Down,
        };
        let introductions = vec![None; job.sites.len()];
        let encapsulations = vec![None; job.sites.len()];
        let work = match job.opens_study() && !job.is_alone() {
            true => Work::Introducing(Introducing::default()),
            false => Work::Agreeing(Agreeing::new(Arc::clone(&job.cohort))),
        };
        Self {
            sites: job.sites.iter().map(site).collect(),
            step: Step::Joining { since: now },
            id,
            job,
            seed,
            warrant,
            began: now,
            last: now,
            patients: 0,
            classes: Vec::new(),
            work,
            totals: 0,
            introductions,
            encapsulations,
            opening: None,
            counts: Arc::default(),
            notes: Vec::new(),
        }
    }

    /// The run with the keys that its study was opened by.
    #[must_use]
    pub fn opened(mut self, opening: &Opening) -> Self {
        self.introductions = opening.introductions.iter().cloned().map(Some).collect();
        self.encapsulations = opening.encapsulations.iter().cloned().map(Some).collect();
        self.opening = Some(opening.run.clone());
        let counts = opening.counts_of(&self.job);
        self.counted(counts)
    }

    /// The run with what its patients come to on the job's grids.
    #[must_use]
    pub fn counted(mut self, counts: Vec<ColumnHistogram>) -> Self {
        let counts = counts.into_iter().map(ColumnHistogram::by_groups);
        self.counts = Arc::new(counts.collect());
        self
    }

    /// Replays stored records after a restart. All sites are disconnected until they come back.
    ///
    /// # Errors
    /// [`ReplayError`] where the records are not of such a run.
    pub fn resume(mut self, records: Vec<Record>, now: Timestamp) -> Result<Self, ReplayError> {
        for record in records {
            self.check(&record, None)?;
            self.close(record, None);
        }
        for site in &mut self.sites {
            site.connection = Connection::Down;
        }
        match &mut self.step {
            Step::Joining { since } => *since = now,
            Step::Asking(exchange) => exchange.since = now,
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
            Step::Joining { .. } | Step::Asking(_) => None,
        }
    }

    /// Whether it waits for somebody who is not connected, or has waited for an answer for so long that another run may go first.
    #[must_use]
    pub fn is_stalled(&self, now: Timestamp) -> bool {
        match &self.step {
            Step::Joining { .. } => self.sites.iter().any(|site| !site.is_up()),
            Step::Asking(exchange) => {
                let mut awaited = self.awaited(exchange).peekable();
                let is_late = awaited.peek().is_some() && now >= exchange.since.after(PATIENCE);
                is_late || awaited.any(|site| !site.is_up())
            }
            Step::Ended(_) => false,
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
            Event::Disconnected(site) => self.disconnected(&site),
            Event::Answered {
                site,
                exchange,
                answer,
                signature,
            } => self.heard(&site, exchange, now, &mut actions, |run, index| {
                run.judge(index, &answer).map(|()| (answer, signature))
            }),
            Event::Unproven {
                site,
                exchange,
                fault,
            } => self.heard(&site, exchange, now, &mut actions, |_, _| Err(fault)),
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
        let Step::Asking(exchange) = &self.step else {
            return;
        };
        let asked_now = !exchange.has_heard(index);
        let number = exchange.number;
        actions.push(self.begin(index));
        actions.push(Action::Retell {
            site: site.clone(),
            until: number - 1,
        });
        if asked_now {
            actions.extend(self.ask(index, number, self.work.asking().ask(index)));
        }
    }

    fn noted(&mut self, note: String) {
        if self.notes.len() < NOTES_MAX && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn disconnected(&mut self, site: &SiteName) {
        if let Some(index) = self.index(site) {
            self.sites[index].connection = Connection::Down;
        }
    }

    /// A site has answered the open exchange: well, with its word for it, or not. What no honest site says ends the run, by name.
    fn heard(
        &mut self,
        site: &SiteName,
        number: u32,
        now: Timestamp,
        actions: &mut Vec<Action>,
        judged: impl FnOnce(&Self, usize) -> Result<(Answer, Vec<u8>), Failure>,
    ) {
        let Some(index) = self.index(site) else {
            return;
        };
        let is_news = |open: &Exchange| open.number == number && !open.has_heard(index);
        if !matches!(&self.step, Step::Asking(open) if is_news(open)) {
            return;
        }
        match (judged(self, index), &mut self.step) {
            (Ok((answer, signature)), Step::Asking(open)) => {
                open.answers[index] = Some(answer);
                open.signatures[index] = signature;
            }
            (Ok(_), Step::Joining { .. } | Step::Ended(_)) => {}
            (Err(fault), _) => {
                let text = shortened(&format!("{site}: {}", fault.text));
                self.end(Ending::Failed(Failure { text, ..fault }), now, actions);
            }
        }
    }

    fn begin(&self, index: usize) -> Action {
        let message = ToSite::Begin(Begin {
            run: self.id.clone(),
            job: self.job.text.clone(),
            seed: self.seed,
            warrant: self.warrant.clone(),
            opening: self.opening.clone(),
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

    /// The sites of which an answer to the open exchange is missing.
    fn awaited<'r>(&'r self, exchange: &'r Exchange) -> impl Iterator<Item = &'r SiteState> {
        let all = self.sites.iter().enumerate();
        all.filter(|(index, _)| !exchange.has_heard(*index))
            .map(|(_, site)| site)
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
