//! A deterministic world of one run: the coordinator's state machine and those of the sites, driven by a random schedule of
//! loss, delay, repetition, reordering and restart.
//!
//! Every exchange is judged, not the final answer: by an account of what the sites have computed, and by the oracle of the
//! method. Faults that can be planted to see them object:
//!
//! | planted fault | caught by |
//! | --- | --- |
//! | an answer of one site is booked to another | the record's answer is not what the site computed, or it is suspended for it |
//! | an answer to an older exchange counts for the open one | the same |
//! | a killed site computes another answer than before | two computations of one exchange |
//! | a replay drops its last record | the exchange numbers step back |
//! | a replay has answers of a site in each other's exchange | the records do not fit, or what is asked next does not follow |

mod account;
mod agent;
mod promises;

use account::Account;
use agent::{Agent, gate};
use privacy::{Covering, Released};
pub(crate) use promises::{
    a_refusal_ends_the_run_by_name, an_hour_away_leaves_the_bits, every_planted_fault_is_caught,
    storms_leave_the_bits_of_calms, survives,
};
use protocol::cohort::OutcomeKind;
use protocol::failure::Failure;
use protocol::job::{Job, Largest};
use protocol::message::{
    Answer, Ask, Closed, ColumnHistogram, ColumnMoments, Description, Encapsulations, Introduction,
    PairCounts, Reply, Request, SecondMoments, SiteMoments, Summary, ToCoordinator, ToSite,
    Warrant,
};
use protocol::name::RunId;
use protocol::opening::Opening;
use protocol::progress::{Ending, Progress};
use protocol::result::RunResult;
use protocol::run::{Action, Event, Record, Run};
use protocol::site;
use protocol::time::Timestamp;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use similarity::cohort::quantile::Grid;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A method as the sites of the world pretend to carry it out. A value of it is the oracle of one run; whatever it gives
/// is a complaint.
pub(crate) trait Played: Sized {
    /// The oracle before anything was said.
    fn new(job: &Job) -> Self;
    /// Patients of a site, half of them in each class.
    fn patients(site: usize) -> u64;
    /// Pairs of a site with so many patients in each class.
    fn pairs(half: u64) -> PairCounts {
        PairCounts {
            similar: half * (half - 1),
            dissimilar: half * half,
        }
    }
    /// The second moments of a site, where the method wants them.
    fn second_moments(_: usize) -> Option<SecondMoments> {
        None
    }
    /// What a site answers to a question that only this method has.
    fn pretend(site: usize, request: &Request) -> Answer;
    /// Whether it is an answer that planted faults aim at.
    fn is_contribution(answer: &Answer) -> bool;
    /// Makes another answer of it, as a site that computes again what it has forgotten.
    fn recomputed(answer: &mut Answer, draw: &mut ChaCha8Rng);
    /// The coordinator asks a site.
    fn sent(&mut self, site: usize, exchange: u32, request: &Request) -> Option<String>;
    /// The coordinator stores a record; here it holds what the sites computed, before it was covered.
    fn stored(&mut self, record: &Record) -> Option<String>;
    /// The run ends.
    fn ended(&self, _: &Ending) -> Option<String> {
        None
    }
}

/// What the world does to the conversation, in percent of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Faults {
    repeat: u32,
    lose_site: u32,
    restart_coordinator: u32,
}

/// Nothing is lost, repeated or restarted.
pub(crate) const CALM: Faults = Faults {
    repeat: 0,
    lose_site: 0,
    restart_coordinator: 0,
};

/// A fault planted to see the account or the oracle object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Planted {
    Nothing,
    AnswerOfAnotherSite,
    AnswerToAnOlderExchange,
    Recomputed,
    ReplayWithoutLastRecord,
    ReplayWithExchangedAnswers,
}

/// A site that says something else than it has computed or covered, from some exchange on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Liar {
    pub(crate) site: usize,
    pub(crate) from: u32,
    pub(crate) lie: fn(&Answer) -> Answer,
}

pub(crate) struct World<P> {
    random: ChaCha8Rng,
    faults: Faults,
    planted: Planted,
    now: Timestamp,
    job: Job,
    /// The longest that an answer of each kind may be.
    largest: BTreeMap<&'static str, Largest>,
    /// None while it takes a step.
    run: Option<Run>,
    sites: Vec<Agent>,
    account: Account,
    pub(crate) oracle: P,
    pub(crate) ending: Option<Ending>,
    pub(crate) liar: Option<Liar>,
    /// A site that covers something else than it has computed.
    pub(crate) miscounts: Option<Liar>,
    /// A site that stays connected and never answers a round.
    pub(crate) mute: Option<usize>,
    /// How often a stream was lost.
    pub(crate) lost: u32,
}

/// A random source of a test's own.
pub(crate) fn drawn_from(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

impl Faults {
    /// So many percent of losses, and nothing else.
    pub(crate) fn lossy(percent: u32) -> Self {
        Self {
            lose_site: percent,
            ..CALM
        }
    }

    /// At most so many percent of each.
    pub(crate) fn drawn(random: &mut ChaCha8Rng, [repeat, lose, restart]: [u32; 3]) -> Self {
        Self {
            repeat: random.random_range(0..repeat),
            lose_site: random.random_range(0..lose),
            restart_coordinator: random.random_range(0..restart),
        }
    }
}

fn run_id() -> RunId {
    RunId::new("run").unwrap()
}

/// How the job's study opened, by these keys.
fn opening<P: Played>(job: &Job, introductions: Vec<Introduction>) -> Opening {
    let nothing = Encapsulations {
        ciphertexts: Vec::new(),
        common: Vec::new(),
    };
    Opening {
        run: run_id(),
        digest: "0".repeat(64),
        encapsulations: vec![nothing; introductions.len()],
        introductions,
        left_out: Vec::new(),
        counts: vec![counts::<P>(job)],
    }
}

fn fresh<P: Played>(job: &Job) -> Run {
    let began = Timestamp(1_000);
    let run = Run::new(run_id(), job.clone(), 1, Warrant::default(), began);
    run.counted(counts::<P>(job))
}

impl<P: Played> World<P> {
    pub(crate) fn new(seed: u64, faults: Faults, text: &str) -> Self {
        let job = Job::parse(text).unwrap_or_else(|errors| panic!("{errors}"));
        let agents = (0..job.sites.len()).map(|site| {
            let opening = (!job.opens_study()).then(|| opening::<P>(&job, Vec::new()));
            Agent::new(
                &job,
                site,
                (gate(&job, P::patients(site)), opening),
                pretend::<P>,
            )
        });
        Self {
            random: drawn_from(seed ^ 0x5eed),
            faults,
            planted: Planted::Nothing,
            largest: job.largest_summed(),
            now: Timestamp(1_000),
            sites: agents.collect(),
            run: Some(fresh::<P>(&job)),
            account: Account::default(),
            oracle: P::new(&job),
            job,
            ending: None,
            liar: None,
            miscounts: None,
            mute: None,
            lost: 0,
        }
    }

    /// The same of a study that its hospitals opened, each with so many patients at most.
    pub(crate) fn opened(mut self, patients_at_most: &[u64]) -> Self {
        let introduction = |most: &u64| Introduction {
            agreement: vec![0; 32],
            encapsulation: vec![0; 1_184],
            signing: vec![0; 32],
            patients_at_most: *most,
            chain: Vec::new(),
            scheme: 0,
            signature: Vec::new(),
        };
        let introductions = patients_at_most.iter().map(introduction).collect();
        let opening = opening::<P>(&self.job, introductions);
        self.run = self.run.map(|run| run.opened(&opening));
        self
    }

    /// What the coordinator has stored.
    pub(crate) fn records(&self) -> &[Record] {
        &self.account.records
    }

    /// The same as if nothing had been covered.
    pub(crate) fn uncovered(&self) -> &[Record] {
        &self.account.uncovered
    }

    pub(crate) fn result(&self) -> RunResult {
        self.run.as_ref().expect("a run").result("")
    }

    /// Plays to the end; gives the first complaint.
    pub(crate) fn drive(&mut self) -> Option<String> {
        const STEPS_MAX: usize = 200_000;
        for _ in 0..STEPS_MAX {
            if let Some(complaint) = self.account.complaint() {
                return Some(complaint);
            }
            match &self.ending {
                None => self.step(),
                // Every failure must follow from a lie.
                Some(Ending::Failed(Failure { code, text }))
                    if self.liar.is_none() && self.miscounts.is_none() =>
                {
                    return Some(format!("failed: {code}: {text}"));
                }
                Some(ending) => {
                    let shown = self.oracle.ended(ending);
                    return shown.or_else(|| self.wrong_patients());
                }
            }
        }
        let records = self.records().len();
        Some(format!(
            "the run did not end: {records} records in {STEPS_MAX} steps; {:?}; {}",
            self.run.as_ref().map(|run| run.progress(self.now)),
            self.sites
                .iter()
                .map(|site| site.state())
                .collect::<Vec<_>>()
                .join("; ")
        ))
    }

    /// A result that counts other patients than there are.
    fn wrong_patients(&self) -> Option<String> {
        let all: u64 = (0..self.sites.len()).map(P::patients).sum();
        let found = self.result().patients();
        (![0, all].contains(&found)).then(|| format!("{found} patients, wanted {all}"))
    }

    /// Plays for long enough that nothing is left to do but to wait; gives the time, where the run stands, and whether it lets
    /// others go first at a time.
    pub(crate) fn waits(&mut self) -> (Timestamp, Progress, impl Fn(Timestamp) -> bool + use<P>) {
        (0..1_500).for_each(|_| self.step());
        let run = self.run.clone().expect("a run");
        let progress = run.progress(self.now);
        (self.now, progress, move |at| run.is_stalled(at))
    }

    /// So long nothing happens.
    pub(crate) fn pass(&mut self, time: std::time::Duration) {
        self.now = self.now.after(time);
        self.tell(Event::Tick);
    }

    /// A site's process is killed, and started again.
    pub(crate) fn start_again(&mut self, site: usize) {
        let agent = &mut self.sites[site];
        agent.cut_off();
        agent.kill(gate(&self.job, P::patients(site)));
        agent.up = true;
        let name = agent.name.clone();
        self.tell(Event::Disconnected(name.clone()));
        self.tell(Event::Connected(name));
    }

    fn step(&mut self) {
        self.now = Timestamp(self.now.0 + self.random.random_range(1..400));
        let roll = self.random.random_range(0..100);
        let site = self.random.random_range(0..self.sites.len());
        if !self.sites[site].up {
            if self.random.random_range(0..100) < 30 {
                self.sites[site].up = true;
                self.tell(Event::Connected(self.sites[site].name.clone()));
            }
        } else if roll < self.faults.lose_site {
            self.lose(site);
        } else if roll < self.faults.lose_site + self.faults.restart_coordinator {
            self.restart_coordinator();
        } else {
            self.converse(site);
        }
        if self.random.random_range(0..10) == 0 {
            self.tell(Event::Tick);
        }
    }

    /// A stream is lost; sometimes the agent's process is killed too.
    fn lose(&mut self, site: usize) {
        self.lost += 1;
        let agent = &mut self.sites[site];
        agent.cut_off();
        if self.random.random_range(0..2) == 0 {
            agent.kill(gate(&self.job, P::patients(site)));
        }
        let name = agent.name.clone();
        self.tell(Event::Disconnected(name));
    }

    fn restart_coordinator(&mut self) {
        let mut records = self.records().to_vec();
        if records.is_empty() {
            return;
        }
        match self.planted {
            Planted::ReplayWithExchangedAnswers => {
                let mut latest = records.iter_mut().rev();
                if let (Some(last), Some(before)) = (latest.next(), latest.next()) {
                    std::mem::swap(&mut last.answers[0], &mut before.answers[0]);
                }
            }
            Planted::ReplayWithoutLastRecord => drop(records.pop()),
            _ => {}
        }
        match fresh::<P>(&self.job).resume(records, self.now) {
            Ok(run) => self.run = Some(run),
            Err(error) => self.account.complain(error.to_string()),
        }
        self.sites.iter_mut().for_each(Agent::cut_off);
    }

    /// One random piece of conversation with a site that is up. What goes to a site keeps its order, as on a stream.
    fn converse(&mut self, site: usize) {
        match self.random.random_range(0..3) {
            0 if !self.sites[site].to_site.is_empty() => {
                // All that closed comes in a row.
                loop {
                    let message = self.sites[site].to_site.remove(0);
                    for _ in 0..self.times() {
                        self.sites[site].step(site::Event::Received(message.clone()));
                    }
                    let rest = self.sites[site].to_site.first();
                    if !matches!((&message, rest), (ToSite::Closed(_), Some(_))) {
                        break;
                    }
                }
            }
            1 => self.compute(site),
            2 if !self.sites[site].to_coordinator.is_empty() => {
                let waiting = self.sites[site].to_coordinator.len();
                let place = self.random.random_range(0..waiting);
                let message = self.sites[site].to_coordinator.remove(place);
                for _ in 0..self.times() {
                    self.coordinator_hears(site, message.clone());
                }
            }
            _ => {}
        }
    }

    /// How often a message arrives.
    fn times(&mut self) -> u32 {
        1 + u32::from(self.random.random_range(0..100) < self.faults.repeat)
    }

    fn compute(&mut self, site: usize) {
        let Some(ask) = self.sites[site].computing.pop_front() else {
            return;
        };
        if self.mute == Some(site) && ask.request.rounds() > 0 {
            return;
        }
        let agent = &mut self.sites[site];
        let next = agent.replica.as_ref().map(|replica| replica.next());
        // A question that was overtaken gets no answer.
        if next.is_some_and(|next| next.is_none_or(|next| next.exchange != ask.exchange)) {
            return;
        }
        let mut computed = agent.answer(ask.exchange, &ask.request);
        let forgets = self.planted == Planted::Recomputed && self.sites[site].killed > 0;
        if forgets && P::is_contribution(&computed) {
            P::recomputed(&mut computed, &mut self.random);
        }
        if let Some(Liar {
            site: liar,
            from,
            lie,
        }) = self.miscounts
            && (site, true) == (liar, ask.exchange >= from)
        {
            computed = lie(&computed);
        }
        self.account.said(site, ask.exchange, &computed);
        let Some(answer) = self.release(site, &ask, computed) else {
            return;
        };
        self.account.computed(site, ask.exchange, answer.value());
        self.sites[site].step(site::Event::Computed(Reply {
            signature: Vec::new(),
            run: ask.run,
            exchange: ask.exchange,
            journal: None,
            answer,
        }));
    }

    /// What leaves a site: covered where it adds up, and only in answer to what follows from the run.
    fn release(&mut self, site: usize, ask: &Ask, computed: Answer) -> Option<Released<Answer>> {
        let agent = &mut self.sites[site];
        if let Some(text) = agent.misled.take() {
            self.account
                .complain(format!("site {site} was misled: {text}"));
        }
        let replica = agent.replica.as_ref()?;
        let next = replica.next()?;
        if next.request.as_ref() != Some(&ask.request) {
            let text = format!(
                "site {site} works out another question for exchange {}",
                ask.exchange
            );
            self.account.complain(text);
        }
        let released = match (&next.blank, computed) {
            (_, Answer::Introduced(introduction)) => return Some(Released::notice(introduction)),
            (_, Answer::Encapsulated(mut told)) => {
                let known = replica.introductions().iter();
                let all = told.ciphertexts.iter_mut().zip(&mut told.common).zip(known);
                all.filter(|(_, known)| known.is_none())
                    .for_each(|((ciphertext, common), _)| {
                        ciphertext.clear();
                        common.clear();
                    });
                return Some(Released::notice(told));
            }
            (None, computed) => agent.gate.release(computed),
            (Some(blank), computed) => {
                let heard = agent.heard.digest();
                let covering = Covering {
                    masks: &agent.masks,
                    run: "run",
                    heard: &heard,
                    exchange: ask.exchange,
                    tagged: next.tagged,
                };
                let shaped = computed.in_shape_of(blank, P::patients(site));
                agent.gate.release_covered(shaped, &covering)
            }
        };
        Some(released.unwrap_or_else(|refusal| panic!("{refusal}")))
    }

    fn coordinator_hears(&mut self, site: usize, message: ToCoordinator<Released<Answer>>) {
        let ToCoordinator::Reply(reply) = message else {
            return;
        };
        let exchange = reply.exchange;
        let mut answer = reply.answer.into_value();
        if let Some(Liar {
            site: liar,
            from,
            lie,
        }) = self.liar
            && (site, true) == (liar, exchange >= from)
        {
            answer = lie(&answer);
        }
        let told = self.account.told(site, exchange);
        let aimed_at = told.is_some_and(P::is_contribution);
        let mut place = site;
        match self.planted {
            Planted::AnswerOfAnotherSite if aimed_at => {
                place = (site + 1) % self.sites.len();
            }
            Planted::AnswerToAnOlderExchange if aimed_at => {
                let older = self.sites[site].older.replace(answer.clone());
                answer = older.unwrap_or(answer);
            }
            _ => {}
        }
        self.tell(Event::Answered {
            signature: Vec::new(),
            site: self.sites[place].name.clone(),
            exchange,
            answer,
        });
    }

    /// An answer with more words than the job says: the coordinator would not read it.
    fn too_long(&self, record: &Record) -> Option<String> {
        let covered = |answer: &Answer| match answer {
            Answer::Covered(covered) => Some((covered.kind, covered.words.as_slice().len())),
            _ => None,
        };
        let mut found = record.answers.iter().flatten().filter_map(covered);
        let most = |kind: &str| self.largest.get(kind).map_or(0, |most| most.words);
        let (kind, words) = found.find(|(kind, words)| *words > most(kind))?;
        Some(format!("{words} words of {kind}, at most {}", most(kind)))
    }

    fn tell(&mut self, event: Event) {
        let run = self.run.take().expect("a run");
        let (run, actions) = run.step(self.now, event);
        self.run = Some(run);
        for action in actions {
            match action {
                Action::Store(closed) => {
                    self.account.stored(&closed.record);
                    let said = self.too_long(&closed.record);
                    self.account.complain(said);
                    if let Some(record) = self.account.uncovered.last() {
                        let said = self.oracle.stored(record);
                        self.account.complain(said);
                    }
                }
                Action::Send { site, message } => {
                    let known = self.sites.iter().position(|agent| agent.name == site);
                    let place = known.expect("a site of the job");
                    if let ToSite::Ask(ask) = &message {
                        let said = self.oracle.sent(place, ask.exchange, &ask.request);
                        self.account.complain(said);
                    }
                    if self.sites[place].up {
                        self.sites[place].to_site.push(message);
                    }
                }
                Action::Retell { site, until } => {
                    let known = self.sites.iter().position(|agent| agent.name == site);
                    let place = known.expect("a site of the job");
                    let records = self.account.records.iter();
                    let told = records.take_while(|record| record.exchange <= until);
                    let told = told.map(|record| {
                        ToSite::Closed(Arc::new(Closed::new(run_id(), record.clone())))
                    });
                    if self.sites[place].up {
                        self.sites[place].to_site.extend(told);
                    }
                }
                Action::Report(_) => {}
                Action::End(ending) => self.ending = Some(ending),
            }
        }
    }
}

/// Half of the patients in each class, or half with an event.
pub(super) fn classes(job: &Job, patients: u64) -> Vec<u64> {
    match job.cohort.outcome.kind {
        OutcomeKind::Survival { .. } => vec![patients / 2],
        OutcomeKind::Numeric | OutcomeKind::Binary { .. } | OutcomeKind::Categorical { .. } => {
            vec![patients / 2; 2]
        }
    }
}

/// What a site answers: common questions alike for every method.
fn pretend<P: Played>(job: &Job, site: usize, request: &Request) -> Answer {
    let patients = P::patients(site);
    let half = patients / 2;
    match request {
        Request::Introduce => Answer::Introduced(Introduction {
            agreement: vec![site as u8; 32],
            encapsulation: vec![site as u8; 1_184],
            signing: vec![site as u8; 32],
            patients_at_most: patients.next_multiple_of(10),
            chain: Vec::new(),
            scheme: 0,
            signature: Vec::new(),
        }),
        Request::Encapsulate => {
            let later = |bytes: usize| {
                let one = move |place| vec![site as u8; if place > site { bytes } else { 0 }];
                (0..job.sites.len()).map(one).collect()
            };
            Answer::Encapsulated(Encapsulations {
                ciphertexts: later(1_088),
                common: later(32),
            })
        }
        Request::Describe => Answer::Described(Description {
            patients,
            classes: classes(job, patients),
            learns: 1,
            validates: 1,
            judges: 1,
        }),
        Request::Moments => {
            let column = ColumnMoments::Numeric {
                count: patients,
                sum: 0.0,
                sum_squares: patients as f64,
                missing: 0,
            };
            let pairs = P::pairs(half);
            Answer::Moments(SiteMoments {
                columns: vec![column; job.cohort.features.len()],
                summary: Summary { patients, pairs },
            })
        }
        // Every feature varies, and no site's patients differ from those of others.
        Request::Spread(_) => Answer::Spread(vec![0.0; job.cohort.features.len()]),
        Request::Prepare(_) => Answer::Prepared(P::second_moments(site)),
        Request::Correlate(_) => Answer::Correlated,
        of_method => P::pretend(site, of_method),
    }
}

/// What all patients come to on the job's grids: of each site a quarter in each of four cells.
fn counts<P: Played>(job: &Job) -> Vec<ColumnHistogram> {
    let on_grid = |(column, grid): (usize, Grid)| {
        let mut counts = vec![0; grid.cells() as usize];
        for site in 0..job.sites.len() {
            for end in ends(site, column) {
                counts[end as usize - 1] += P::patients(site) / 4;
            }
        }
        ColumnHistogram {
            ends: (1..=grid.cells()).collect(),
            counts,
        }
    };
    job.grids().all().enumerate().map(on_grid).collect()
}

/// Cells of every grid of the world.
pub(crate) const CELLS: u32 = 4096;

/// Where four equal groups of a site's patients end, each site's a little to the right of the last one's.
pub(crate) fn ends(site: usize, column: usize) -> [u32; 4] {
    let shift = 100 * (site as u32 + 1) + 50 * column as u32;
    [500 + shift, 1_200 + shift, 2_000 + shift, CELLS]
}
