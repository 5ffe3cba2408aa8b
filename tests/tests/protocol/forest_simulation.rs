//! Promise: a run of forests holds under loss, delay, repetition and restart.
//!
//! As in `simulation`, a deterministic world drives both state machines by a random schedule, and an
//! oracle judges every exchange from the stored records alone: how many trees each site is asked for,
//! that the cut points are quantiles of the sites' counts, that the common forest is the sites' trees in
//! the order of the roster, and that a site that was killed is asked for the same trees again. Faults
//! that it has caught, planted again by a test below:
//!
//! | planted fault | caught by |
//! | --- | --- |
//! | the trees of one site are booked to another | the record's answer is not what the site computed |
//! | a replay exchanges two sites' answers | the same |
//! | a replay drops its last record | the exchange numbers step back |
//! | a site that came back grows other trees | two computations of one exchange |

use privacy::{Allowed, CohortFacts, Gate, Policy, Released, Rules, SoFar};
use protocol::coordinator::{self, Record, Run};
use protocol::job::Job;
use protocol::message::{
    Answer, ColumnHistogram, Description, ErrorMeasure, ErrorSums, Growing, Judged, Judging,
    NodeKind, NodeRule, NodeTable, Request, RuleErrors, Side, TerminalTable, ToCoordinator, ToSite,
    TreeTable, Trees, Warrant,
};
use protocol::name::{RunId, SiteName};
use protocol::progress::Ending;
use protocol::site::{self, Site};
use protocol::time::Timestamp;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, VecDeque};

const FEATURES: usize = 3;
const CELLS: u32 = 4096;

#[derive(Debug, Clone, Copy)]
struct Faults {
    repeat: u32,
    lose_site: u32,
    restart_coordinator: u32,
}

const CALM: Faults = Faults {
    repeat: 0,
    lose_site: 0,
    restart_coordinator: 0,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Planted {
    Nothing,
    AnswerOfAnotherSite,
    ReplayWithExchangedAnswers,
    ReplayWithoutLastRecord,
    OtherTreesAfterRestart,
}

struct World {
    random: ChaCha8Rng,
    faults: Faults,
    planted: Planted,
    now: Timestamp,
    job: Job,
    run: Option<Run>,
    records: Vec<Record>,
    sites: Vec<Agent>,
    ending: Option<Ending>,
    oracle: Oracle,
}

struct Agent {
    name: SiteName,
    machine: Site,
    gate: Gate,
    up: bool,
    killed: u32,
    computing: VecDeque<(u32, Request)>,
    to_site: Vec<ToSite>,
    to_coordinator: Vec<ToCoordinator<Released<Answer>>>,
}

#[test]
fn a_run_of_forests_survives_loss_delay_repetition_and_restart() {
    let mut completed = 0;
    for seed in 0..150 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let faults = Faults {
            repeat: random.random_range(0..20),
            lose_site: random.random_range(0..6),
            restart_coordinator: random.random_range(0..4),
        };
        let sites = random.random_range(1..=5);
        let job = job(&Asked {
            scope: ["local", "federated", "federated"][random.random_range(0..3)],
            sites,
            sites_min: random.random_range(1..=sites),
            trees: random.random_range(5..40),
            exchange_seconds: [8, 20, 600][random.random_range(0..3)],
        });
        let mut world = World::new(seed, faults, Planted::Nothing, &job);
        assert_eq!(world.drive(), None, "seed {seed}");
        completed += usize::from(world.ending == Some(Ending::Completed));
    }
    assert!(completed > 75, "only {completed} of 150 runs completed");
}

#[test]
fn a_disturbed_run_in_which_every_site_answers_leaves_the_bits_of_the_undisturbed_one() {
    let mut compared = 0;
    for seed in 1000..1040 {
        let text = job(&Asked {
            scope: ["local", "federated"][seed as usize % 2],
            sites: 3,
            sites_min: 1,
            trees: 20,
            exchange_seconds: 600,
        });
        let storm = Faults {
            repeat: 15,
            lose_site: 3,
            restart_coordinator: 4,
        };
        let mut calm = World::new(seed, CALM, Planted::Nothing, &text);
        let mut stormy = World::new(seed, storm, Planted::Nothing, &text);
        assert_eq!(calm.drive(), None, "seed {seed}");
        assert_eq!(stormy.drive(), None, "seed {seed}");
        let complete =
            |record: &Record| record.exchange == 0 || record.answers.iter().all(Option::is_some);
        if stormy.records.iter().all(complete) && stormy.records.len() == calm.records.len() {
            let left = |world: &World| {
                let mut result = world.run.as_ref().unwrap().result("");
                result.seconds = 0.0;
                wire::encode_result(&result)
            };
            assert_eq!(left(&calm), left(&stormy), "seed {seed}");
            compared += 1;
        }
    }
    assert!(
        compared > 20,
        "only {compared} of 40 pairs could be compared"
    );
}

#[test]
fn the_oracle_catches_every_planted_fault() {
    for fault in [
        Planted::AnswerOfAnotherSite,
        Planted::ReplayWithExchangedAnswers,
        Planted::ReplayWithoutLastRecord,
        Planted::OtherTreesAfterRestart,
    ] {
        let caught = (0..400).any(|seed| {
            let faults = Faults {
                repeat: 10,
                lose_site: 8,
                restart_coordinator: 6,
            };
            let text = job(&Asked {
                scope: "federated",
                sites: 3,
                sites_min: 2,
                trees: 12,
                exchange_seconds: 600,
            });
            World::new(seed, faults, fault, &text).drive().is_some()
        });
        assert!(caught, "{fault:?} was never caught");
    }
}

#[test]
fn trees_that_are_not_of_the_job_end_the_run_and_name_the_site() {
    let text = job(&Asked {
        scope: "federated",
        sites: 2,
        sites_min: 2,
        trees: 10,
        exchange_seconds: 600,
    });
    let bad: [fn(&mut Trees); 3] = [
        |trees| drop(trees.trees.pop()),
        |trees| trees.trees[0] = tree(40, 2, NodeRule::AtMost(1.0), TerminalTable::Mean(1.0)),
        // The last feature is a category of three levels.
        |trees| {
            let classes = TerminalTable::Classes(vec![10, 10]);
            trees.trees[0] = tree(40, 2, NodeRule::AtMost(1.0), classes);
        },
    ];
    for change in bad {
        let mut world = World::new(1, CALM, Planted::Nothing, &text);
        world.oracle.off = true;
        let changed = |site: usize, answer: &mut Answer| {
            if let (1, Answer::Grown(trees)) = (site, answer) {
                change(trees);
            }
        };
        assert_eq!(world.drive_with(&changed), None);
        match world.ending {
            Some(Ending::Failed { code, text }) => {
                assert_eq!(code, "KDR-FOREST");
                assert!(text.contains("site-1"), "{text}");
            }
            other => panic!("{other:?}"),
        }
    }
}

impl World {
    fn new(seed: u64, faults: Faults, planted: Planted, text: &str) -> Self {
        let job = Job::parse(text).unwrap_or_else(|errors| panic!("{errors}"));
        let agent = |(site, name): (usize, &SiteName)| Agent {
            name: name.clone(),
            machine: Site::default(),
            gate: gate(&job, site),
            up: false,
            killed: 0,
            computing: VecDeque::new(),
            to_site: Vec::new(),
            to_coordinator: Vec::new(),
        };
        Self {
            random: ChaCha8Rng::seed_from_u64(seed ^ 0x5eed),
            faults,
            planted,
            now: Timestamp(1_000),
            sites: job.sites.iter().enumerate().map(agent).collect(),
            run: Some(fresh(&job)),
            oracle: Oracle::new(&job),
            job,
            records: Vec::new(),
            ending: None,
        }
    }

    fn drive(&mut self) -> Option<String> {
        self.drive_with(&|_, _| {})
    }

    /// Plays to the end; gives the oracle's complaint. `change` may spoil an answer.
    fn drive_with(&mut self, change: &dyn Fn(usize, &mut Answer)) -> Option<String> {
        const STEPS_MAX: usize = 100_000;
        for _ in 0..STEPS_MAX {
            if let Some(complaint) = self.oracle.complaint.take() {
                return Some(complaint);
            }
            if let Some(ending) = &self.ending {
                return match ending {
                    Ending::Failed { code, .. } if code != "KDR-SITES" && !self.oracle.off => {
                        Some(format!("failed: {code}"))
                    }
                    _ => None,
                };
            }
            self.step(change);
        }
        Some("the run did not end".to_owned())
    }

    fn step(&mut self, change: &dyn Fn(usize, &mut Answer)) {
        self.now = Timestamp(self.now.0 + self.random.random_range(1..400));
        let roll = self.random.random_range(0..100);
        let site = self.random.random_range(0..self.sites.len());
        if !self.sites[site].up {
            if self.random.random_range(0..100) < 30 {
                self.sites[site].up = true;
                self.tell(coordinator::Event::Connected(self.sites[site].name.clone()));
            }
        } else if roll < self.faults.lose_site {
            self.lose(site);
        } else if roll < self.faults.lose_site + self.faults.restart_coordinator {
            self.restart_coordinator();
        } else {
            self.converse(site, change);
        }
        if self.random.random_range(0..10) == 0 {
            self.tell(coordinator::Event::Tick);
        }
    }

    fn lose(&mut self, site: usize) {
        let killed = self.random.random_range(0..2) == 0;
        let gate = gate(&self.job, site);
        let agent = &mut self.sites[site];
        agent.up = false;
        agent.to_site.clear();
        agent.to_coordinator.clear();
        if killed {
            agent.machine = Site::default();
            agent.computing.clear();
            agent.gate = gate;
            agent.killed += 1;
        }
        let name = agent.name.clone();
        self.tell(coordinator::Event::Disconnected(name));
    }

    fn restart_coordinator(&mut self) {
        let mut records = self.records.clone();
        match self.planted {
            Planted::ReplayWithoutLastRecord => drop(records.pop()),
            Planted::ReplayWithExchangedAnswers => {
                if let Some(record) = records.last_mut() {
                    record.answers.swap(0, 1);
                }
            }
            _ => {}
        }
        match fresh(&self.job).resume(records, self.now) {
            Ok(run) => self.run = Some(run),
            Err(error) => self.oracle.complain(error.to_string()),
        }
        for agent in &mut self.sites {
            agent.up = false;
            agent.to_site.clear();
            agent.to_coordinator.clear();
        }
    }

    fn converse(&mut self, site: usize, change: &dyn Fn(usize, &mut Answer)) {
        let repeats = self.random.random_range(0..100) < self.faults.repeat;
        let agent = &mut self.sites[site];
        match self.random.random_range(0..3) {
            0 if !agent.to_site.is_empty() => {
                let message = agent.to_site.remove(0);
                for _ in 0..=u32::from(repeats) {
                    let event = site::Event::Received(message.clone());
                    self.site_steps(site, event);
                }
            }
            1 => self.compute(site, change),
            2 if !agent.to_coordinator.is_empty() => {
                let place = self.random.random_range(0..agent.to_coordinator.len());
                let message = agent.to_coordinator.remove(place);
                for _ in 0..=u32::from(repeats) {
                    self.coordinator_hears(site, message.clone());
                }
            }
            _ => {}
        }
    }

    fn site_steps(&mut self, site: usize, event: site::Event) {
        let agent = &mut self.sites[site];
        let (machine, actions) = std::mem::take(&mut agent.machine).step(event);
        agent.machine = machine;
        for action in actions {
            match action {
                site::Action::Send(message) if agent.up => agent.to_coordinator.push(message),
                site::Action::Compute {
                    exchange, request, ..
                } => agent.computing.push_back((exchange, request)),
                site::Action::Begin(_) => agent.computing.clear(),
                site::Action::Send(_) | site::Action::LetGo { .. } => {}
            }
        }
    }

    fn compute(&mut self, site: usize, change: &dyn Fn(usize, &mut Answer)) {
        let Some((exchange, request)) = self.sites[site].computing.pop_front() else {
            return;
        };
        let mut computed = pretend(site, &request);
        if let (Planted::OtherTreesAfterRestart, 1.., Answer::Grown(trees)) =
            (self.planted, self.sites[site].killed, &mut computed)
        {
            trees.trees.reverse();
        }
        change(site, &mut computed);
        let answer = self.sites[site]
            .gate
            .release(computed)
            .unwrap_or_else(|refusal| panic!("{refusal}"));
        self.oracle.computed(site, exchange, answer.value());
        let event = site::Event::Computed {
            run: RunId::new("run").unwrap(),
            exchange,
            answer,
            journal: None,
        };
        self.site_steps(site, event);
    }

    fn coordinator_hears(&mut self, site: usize, message: ToCoordinator<Released<Answer>>) {
        let ToCoordinator::Reply {
            exchange, answer, ..
        } = message
        else {
            return;
        };
        let answer = answer.into_value();
        let other = (site + 1) % self.sites.len();
        let place = match (self.planted, &answer) {
            (Planted::AnswerOfAnotherSite, Answer::Grown(_)) => other,
            _ => site,
        };
        self.tell(coordinator::Event::Answered {
            site: self.sites[place].name.clone(),
            exchange,
            answer,
        });
    }

    fn tell(&mut self, event: coordinator::Event) {
        let Some(run) = self.run.take() else { return };
        let (run, actions) = run.step(self.now, event);
        self.run = Some(run);
        for action in actions {
            match action {
                coordinator::Action::Store(record) => {
                    self.oracle.stored(&record);
                    if record.exchange as usize != self.records.len() {
                        let exchange = record.exchange;
                        self.oracle
                            .complain(format!("exchange {exchange} was stored out of order"));
                    }
                    self.records.push(record);
                }
                coordinator::Action::Send { site, message } => {
                    let place = self.job.sites.iter().position(|known| *known == site);
                    let place = place.unwrap();
                    self.oracle.sent(place, &message);
                    if self.sites[place].up {
                        self.sites[place].to_site.push(message);
                    }
                }
                coordinator::Action::Report(_) => {}
                coordinator::Action::End(ending) => self.ending = Some(ending),
            }
        }
    }
}

/// What each exchange must have held, from the records alone.
struct Oracle {
    /// For a test that spoils an answer on purpose.
    off: bool,
    trees: u32,
    answers: BTreeMap<(usize, u32), Vec<Answer>>,
    records: Vec<Record>,
    growing: BTreeMap<usize, Growing>,
    complaint: Option<String>,
}

impl Oracle {
    fn new(job: &Job) -> Self {
        Self {
            off: false,
            trees: job.federated_forest().map_or(0, |settings| settings.trees),
            answers: BTreeMap::new(),
            records: Vec::new(),
            growing: BTreeMap::new(),
            complaint: None,
        }
    }

    fn complain(&mut self, text: String) {
        if !self.off {
            self.complaint.get_or_insert(text);
        }
    }

    fn computed(&mut self, site: usize, exchange: u32, answer: &Answer) {
        let known = self.answers.entry((site, exchange)).or_default();
        let other = known.iter().any(|known| known != answer);
        known.push(answer.clone());
        if other {
            self.complain(format!(
                "site {site} computed exchange {exchange} twice, differently"
            ));
        }
    }

    fn stored(&mut self, record: &Record) {
        for (site, answer) in record.answers.iter().enumerate() {
            let Some(answer) = answer else { continue };
            let known = self.answers.get(&(site, record.exchange));
            if !known.is_some_and(|all| all.contains(answer)) {
                let exchange = record.exchange;
                self.complain(format!("exchange {exchange}: site {site} never said this"));
            }
        }
        self.records.push(record.clone());
    }

    fn sent(&mut self, site: usize, message: &ToSite) {
        let ToSite::Ask {
            exchange, request, ..
        } = message
        else {
            return;
        };
        match request {
            Request::Grow(growing) => {
                if *exchange != 3 {
                    self.complain(format!("trees are asked for in exchange {exchange}"));
                }
                let known = self.growing.entry(site).or_insert_with(|| growing.clone());
                if known != growing {
                    self.complain(format!("site {site} is asked for other trees"));
                }
                self.judge_growing(site, growing);
            }
            Request::Judge(judging) => self.judge_forest(site, judging),
            _ => {}
        }
    }

    /// Trees by patients, to the next whole number; cut points at the quantiles of the pooled counts.
    fn judge_growing(&mut self, site: usize, growing: &Growing) {
        let there = |record: &Record| -> Vec<usize> {
            (0..record.members.len())
                .filter(|site| record.members[*site] && record.answers[*site].is_some())
                .collect()
        };
        let Some(count) = self.records.get(2).cloned() else {
            return;
        };
        let sites = there(&count);
        let all: u64 = sites.iter().map(|site| patients(*site)).sum();
        let spare = f64::from(self.trees) - sites.len() as f64;
        let exact = 1.0 + spare * patients(site) as f64 / all as f64;
        if (f64::from(growing.trees) - exact).abs() >= 1.0 {
            let found = growing.trees;
            self.complain(format!(
                "site {site} grows {found} trees, wanted about {exact}"
            ));
        }
        for column in 0..2 {
            let cuts = &growing.edges[column];
            let mut last = 0.0;
            for (rank, cut) in (1..).zip(cuts) {
                let below: f64 = sites.iter().map(|site| at_most(*site, column, *cut)).sum();
                let share = below / all as f64;
                // A group of a site holds a quarter of its patients at most.
                let known = (f64::from(rank) - 8.0) / 32.0..=(f64::from(rank) + 8.0) / 32.0 + 0.3;
                if !known.contains(&share) || share < last {
                    self.complain(format!("cut {rank} of column {column} lies at {share}"));
                }
                last = share;
            }
        }
        if !growing.edges[2].is_empty() || growing.class_weights != [1.0, 1.0] {
            self.complain("a category has cut points, or equal classes weigh unequally".to_owned());
        }
    }

    /// The common forest is the sites' trees, one site after the other.
    fn judge_forest(&mut self, site: usize, judging: &Judging) {
        let Some(grown) = self.records.get(3).cloned() else {
            return self.complain("a forest is judged before it has grown".to_owned());
        };
        let mut all = Vec::new();
        let mut first = 0;
        for (place, answer) in grown.answers.iter().enumerate() {
            if place == site {
                first = all.len();
            }
            if let Some(Answer::Grown(own)) = answer {
                all.extend(own.trees.clone());
            }
        }
        if judging.trees.trees != all || judging.first_tree as usize != first {
            self.complain(format!("site {site} judges another forest"));
        }
    }
}

fn fresh(job: &Job) -> Run {
    let id = RunId::new("run").unwrap();
    Run::new(id, job.clone(), 1, Warrant::default(), Timestamp(1_000))
}

fn patients(site: usize) -> u64 {
    40 + 60 * site as u64
}

/// Four equal groups of a site's patients, each site's a little to the right of the last one's.
fn ends(site: usize, column: usize) -> [u32; 4] {
    let shift = 100 * (site as u32 + 1) + 50 * column as u32;
    [500 + shift, 1_200 + shift, 2_000 + shift, CELLS]
}

/// Patients of a site with a value of at most `value`, on a grid over [0, 4096].
fn at_most(site: usize, column: usize, value: f64) -> f64 {
    let whole = ends(site, column)
        .iter()
        .filter(|end| f64::from(**end) <= value)
        .count();
    whole as f64 * patients(site) as f64 / 4.0
}

/// A tree of three nodes.
fn tree(patients: u32, feature: u32, rule: NodeRule, table: TerminalTable) -> TreeTable {
    let terminal = |table| NodeTable {
        patients: patients / 2,
        kind: NodeKind::Terminal(table),
    };
    let root = NodeTable {
        patients,
        kind: NodeKind::Split {
            feature,
            rule,
            missing: Side::Right,
            left: 1,
        },
    };
    let nodes = vec![root, terminal(table.clone()), terminal(table)];
    TreeTable::new(nodes, FEATURES).unwrap()
}

/// A site whose trees tell which site and which tree they are.
fn pretend(site: usize, request: &Request) -> Answer {
    let own = patients(site);
    match request {
        Request::Describe => Answer::Described(Description {
            patients: own,
            classes: vec![own / 2, own / 2],
        }),
        Request::Quantiles => Answer::Quantiles(
            (0..2)
                .map(|column| ColumnHistogram {
                    ends: ends(site, column).to_vec(),
                    counts: vec![own / 4; 4],
                })
                .collect(),
        ),
        Request::Grow(growing) => {
            let counts = vec![10, own / 2 - 10];
            let one = |number| {
                let threshold = growing.edges[0][number as usize % growing.edges[0].len()];
                let table = TerminalTable::Classes(counts.clone());
                let rule = NodeRule::AtMost(threshold + f64::from(number));
                tree(u32::try_from(own).unwrap(), 0, rule, table)
            };
            Answer::Grown(Trees {
                features: FEATURES as u32,
                trees: (0..growing.trees).map(one).collect(),
            })
        }
        Request::GrowOwn => judged(own, 20),
        Request::Judge(judging) => judged(own, judging.first_tree + 10),
        other => panic!("a run of forests asks {other:?}"),
    }
}

fn judged(patients: u64, wrong: u32) -> Answer {
    Answer::Judged(Judged {
        errors: vec![RuleErrors {
            rule: "forest".to_owned(),
            neighbours: 0,
            measure: ErrorMeasure::Misclassified,
            sums: Some(ErrorSums {
                total: patients,
                error: f64::from(wrong),
            }),
        }],
        evaluation: Vec::new(),
        importance: Vec::new(),
    })
}

fn gate(job: &Job, site: usize) -> Gate {
    let every = || Allowed::listed(["*"]);
    let rules = Rules {
        operators: every(),
        methods: every(),
        outcomes: every(),
        features: every(),
        forests: true,
        sites_min: 1,
        ..Rules::default()
    };
    let own = patients(site);
    let facts = CohortFacts {
        patients: own,
        classes: vec![own / 2, own / 2],
        runs_before: 0,
        rounds_before: 0,
        so_far: SoFar::default(),
        difference: None,
    };
    let policy = Policy::new(rules).unwrap_or_else(|_| panic!("rules"));
    let admission = policy
        .admit(&job.facts("operator"))
        .unwrap_or_else(|no| panic!("{no}"));
    admission.cohort(&facts).unwrap_or_else(|no| panic!("{no}"))
}

struct Asked {
    scope: &'static str,
    sites: usize,
    sites_min: usize,
    trees: u32,
    exchange_seconds: u32,
}

fn job(asked: &Asked) -> String {
    let Asked {
        scope,
        sites,
        sites_min,
        trees,
        exchange_seconds,
    } = asked;
    let names: Vec<String> = (0..*sites).map(|site| format!("\"site-{site}\"")).collect();
    let number =
        |name| format!("[[features]]\nname = \"{name}\"\nkind = \"numeric\"\nrange = [0, 4096]\n");
    format!(
        "name = \"world\"\nmethod = \"forest\"\nsites = [{}]\nsites_min = {sites_min}\n\
         [outcome]\ncolumn = \"y\"\nkind = \"binary\"\npositive = [\"1\"]\n{}{}\
         [[features]]\nname = \"grade\"\nkind = \"categorical\"\nlevels = [\"a\", \"b\", \"c\"]\n\
         [deadlines]\njoin_seconds = 30\nexchange_seconds = {exchange_seconds}\nrejoin_seconds = 5\n\
         [forest]\ntrees = {trees}\nscope = \"{scope}\"\n",
        names.join(", "),
        number("x0"),
        number("x1"),
    )
}
