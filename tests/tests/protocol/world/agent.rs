//! A site of the world: its state machine, its gate, its stream, and questions that wait for their answers.

use privacy::sums::{Masks, PAIR_BYTES};
use privacy::{Allowed, CohortFacts, Covering, Gate, Limits, Policy, Released, Rules, SoFar};
use protocol::job::Job;
use protocol::message::unpsl::{self, Centre, Round};
use protocol::message::{Answer, Ask, Closed, Request, ToCoordinator, ToSite};
use protocol::method::Method;
use protocol::name::SiteName;
use protocol::opening::Opening;
use protocol::replica::Replica;
use protocol::site::{Action, Event, Site};
use similarity::numeric::admm::SiteDual;
use std::collections::{BTreeSet, VecDeque};

/// What a site makes of a question.
pub(super) type Pretend = fn(&Job, usize, &Request) -> Answer;

pub(super) struct Agent {
    pub(super) name: SiteName,
    machine: Site<Released<Answer>>,
    pub(super) gate: Gate,
    pub(super) up: bool,
    /// How often its process was killed.
    pub(super) killed: u32,
    pub(super) computing: VecDeque<Ask>,
    site: usize,
    /// The run as this site follows it; none before it has begun.
    pub(super) replica: Option<Replica>,
    /// Digest of all that closed.
    pub(super) heard: wire::Heard,
    /// What the site shares with each other.
    pub(super) masks: Masks,
    /// The job, and what the site computes for it.
    job: Job,
    pretend: Pretend,
    /// How the job's study opened; none where the run opens it.
    opening: Option<Opening>,
    /// The site's dual, as far as this process has found it.
    dual: SiteDual,
    /// Exchanges that this process has answered.
    answered: BTreeSet<u32>,
    /// Why what it was told is no run of the job.
    pub(super) misled: Option<String>,
    pub(super) to_site: Vec<ToSite>,
    pub(super) to_coordinator: Vec<ToCoordinator<Released<Answer>>>,
    /// The last contribution that the coordinator got, for a planted fault.
    pub(super) older: Option<Answer>,
}

impl Agent {
    pub(super) fn new(
        job: &Job,
        site: usize,
        (gate, opening): (Gate, Option<Opening>),
        pretend: Pretend,
    ) -> Self {
        let sites = job.sites.len();
        Self {
            name: job.sites[site].clone(),
            dual: dual(job),
            answered: BTreeSet::new(),
            job: job.clone(),
            pretend,
            opening,
            machine: Site::default(),
            gate,
            up: false,
            killed: 0,
            computing: VecDeque::new(),
            site,
            replica: None,
            heard: wire::Heard::default(),
            masks: masks(site, sites),
            misled: None,
            to_site: Vec::new(),
            to_coordinator: Vec::new(),
            older: None,
        }
    }

    /// The stream is lost with all that was on it.
    pub(super) fn cut_off(&mut self) {
        self.up = false;
        self.to_site.clear();
        self.to_coordinator.clear();
    }

    /// The process is killed; `gate` is that of the next one.
    pub(super) fn kill(&mut self, gate: Gate) {
        self.machine = Site::default();
        self.computing.clear();
        self.replica = None;
        self.dual = dual(&self.job);
        self.answered.clear();
        self.gate = gate;
        self.killed += 1;
    }

    /// Where it stands, for a complaint.
    pub(super) fn state(&self) -> String {
        let awaited = self.replica.as_ref().map(|replica| replica.awaited());
        format!(
            "{}: up {}, {} wait to be computed, {} on the way, follows to {awaited:?}",
            self.name,
            self.up,
            self.computing.len(),
            self.to_site.len() + self.to_coordinator.len()
        )
    }

    /// Answers a question. A site that holds its dual draws its update to where that has it.
    pub(super) fn answer(&mut self, exchange: u32, request: &Request) -> Answer {
        self.answered.insert(exchange);
        let Request::Unpsl(unpsl::Request::Round(round)) = request else {
            return (self.pretend)(&self.job, self.site, request);
        };
        let Centre::Dual(step) = &round.centre else {
            return (self.pretend)(&self.job, self.site, request);
        };
        let told = Round {
            centre: Centre::Sent(self.dual.centre(&round.consensus, step)),
            ..round.clone()
        };
        let told = Request::Unpsl(unpsl::Request::Round(told));
        let mut answer = (self.pretend)(&self.job, self.site, &told);
        if let Answer::Unpsl(unpsl::Answer::Contribution(own)) = &mut answer {
            own.products = Some(self.dual.answered(&round.consensus, &own.matrix));
        }
        answer
    }

    fn follow(&mut self, closed: &Closed) {
        let record = &closed.record;
        if let Some(total) = &closed.total {
            let next = self.replica.as_ref().and_then(Replica::next);
            let proves = next.is_some_and(|next| {
                let kind = next.blank.as_ref().map_or("", Answer::kind_name);
                let heard = self.heard.digest();
                let covering = Covering {
                    masks: &self.masks,
                    run: "run",
                    heard: &heard,
                    exchange: next.exchange,
                    tagged: next.tagged,
                };
                // What was heard before is heard again where a site comes back.
                next.exchange > record.exchange || covering.proves(kind, total)
            });
            if !proves {
                self.misled = Some("a total that nothing proves".to_owned());
            }
        }
        // Another process of this site has answered: what it knew by that, this one finds again.
        let asked = self.replica.as_ref().and_then(Replica::asked);
        let told = record.answers.get(self.site).is_some_and(Option::is_some);
        if let Some(asked) = asked.filter(Request::leaves_state)
            && told
            && !self.answered.contains(&record.exchange)
        {
            self.answer(record.exchange, &asked);
        }
        let followed = self.replica.as_mut().map(|replica| replica.follow(closed));
        match followed {
            Some(Ok(true)) => self.heard.add(closed),
            Some(Err(error)) => self.misled = Some(error.to_string()),
            Some(Ok(false)) | None => {}
        }
    }

    pub(super) fn step(&mut self, event: Event<Released<Answer>>) {
        let (machine, actions) = std::mem::take(&mut self.machine).step(event);
        self.machine = machine;
        for action in actions {
            match action {
                Action::Send(message) if self.up => self.to_coordinator.push(message),
                Action::Compute(ask) => self.computing.push_back(ask),
                Action::Begin(begin) => {
                    self.computing.clear();
                    let job = Job::parse(&begin.job).unwrap_or_else(|errors| panic!("{errors}"));
                    self.replica =
                        Some(Replica::new(&begin, job, self.site, self.opening.as_ref()));
                    self.heard = wire::Heard::default();
                }
                Action::Follow(closed) => self.follow(&closed),
                Action::Send(_)
                | Action::LetGo { .. }
                | Action::Propose(_)
                | Action::Close(_)
                | Action::Wait(_) => {}
            }
        }
    }
}

/// A dual of 0, where the job has one.
fn dual(job: &Job) -> SiteDual {
    SiteDual::new(match &job.method {
        Method::Unpsl(settings) => settings.relaxation,
        _ => 1.0,
    })
}

/// What a site shares with each other: nothing that is secret, for the whole world is one test.
fn masks(own: usize, sites: usize) -> Masks {
    let pair = |other: usize| {
        let mut pair = [0; PAIR_BYTES];
        pair[..2].copy_from_slice(&[own.min(other) as u8, own.max(other) as u8]);
        (own != other).then_some(pair)
    };
    Masks::new(
        own,
        (0..sites).map(pair).collect(),
        Some([u8::MAX; PAIR_BYTES]),
    )
}

/// The gate of a site of two classes of equal size, whose policy permits what the job needs.
pub(super) fn gate(job: &Job, patients: u64) -> Gate {
    let every = || Allowed::listed(["*"]);
    let rules = Rules {
        operators: every(),
        methods: every(),
        permissions: job.facts("researcher").permissions,
        sites_min: 1,
        ceilings: Limits {
            rounds: 1_000_000,
            ..Rules::default().ceilings
        },
        ..Rules::default()
    };
    let facts = CohortFacts {
        judged: None,
        patients,
        classes: super::classes(job, patients),
        so_far: SoFar::default(),
    };
    let policy = Policy::new(rules).unwrap_or_else(|_| panic!("rules"));
    let mut asked = job.facts("operator");
    // Of the last round the weather may ask again and again.
    asked.round_limit += 1_000;
    let admission = policy
        .admit(&asked, &Limits::default())
        .unwrap_or_else(|no| panic!("{no}"));
    admission.cohort(&facts).unwrap_or_else(|no| panic!("{no}"))
}
