//! Whatever a coordinator says, in whatever order: nothing beyond the policy and the jobs is released.

use super::site::{Site, Told, finish, look, preparation, refused_by, table, unpsl};
use super::{rows, trees};
use ndarray::Array2;
use proptest::prelude::*;
use protocol::message::forest::{self, Trees};
use protocol::message::{Answer, Request, unpsl as metrics};
use std::collections::{BTreeMap, BTreeSet};

const RUNS_MAX: usize = 2;
const ROUNDS_MAX: usize = 3;
const DESCRIPTIONS_MAX: usize = 3;
const RUN_ROUNDS_MAX: usize = 3;
/// As a coordinator might name runs: the names say nothing.
const NAMES: [&str; 2] = ["one", "two"];

/// One thing that a coordinator, or the power supply, does.
#[derive(Debug, Clone)]
enum Move {
    /// A run begins: a name, a job, a seed.
    Begin(usize, usize, u64),
    /// The same, with the questions that come before rounds, and so many rounds.
    Honest(usize, usize, u64, u32),
    /// A question under an exchange's number.
    Ask(u32, usize),
    Restart,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let begin = (0..NAMES.len(), 0_usize..3, 0_u64..3);
    let one = prop_oneof![
        1 => begin.clone().prop_map(|(name, job, seed)| Move::Begin(name, job, seed)),
        2 => (begin, 0_u32..4).prop_map(|((name, job, seed), rounds)| Move::Honest(name, job, seed, rounds)),
        8 => (1_u32..8, 0_usize..QUESTIONS).prop_map(|(exchange, question)| Move::Ask(exchange, question)),
        1 => Just(Move::Restart),
    ];
    prop::collection::vec(one, 1..60)
}

fn job(number: usize) -> String {
    match number {
        0 => unpsl("round_limit = 3"),
        1 => unpsl("round_limit = 3\nrank = 7"),
        _ => trees::forest(),
    }
}

/// Who signed it.
fn operator(number: usize) -> &'static str {
    match number {
        1 => "colleague",
        _ => "researcher",
    }
}

const QUESTIONS: usize = 16;

fn question(number: usize, told: &Told, grown: &Trees) -> Request {
    let mut fewer = grown.clone();
    fewer.trees.truncate(19);
    match number {
        0 => Request::Describe,
        1 => Request::Moments,
        2 => preparation(told),
        3 => {
            let mut summary = told.summary;
            summary.pairs.similar += 1;
            let moments = told.moments.clone();
            preparation(&Told { moments, summary })
        }
        4..=8 => look(&rows::view(number as f64, 1.0)),
        9 => look(&Array2::ones((super::FEATURES, 7))),
        10 => look(&rows::view(0.0, 1e7)),
        11 => finish(rows::view(0.5, 1.0), 5),
        12 => finish(rows::view(0.7, 1.0), 5),
        13 => Request::Quantiles,
        14 => trees::grow(&[0.0]),
        _ => trees::judge(fewer),
    }
}

/// What a run is: its job and its seed.
type Run = (usize, u64);
/// What a question is.
type Asked = (u32, usize);

/// All that has left, by an account of the test's own.
#[derive(Default)]
struct Account {
    released: BTreeMap<(Run, Asked), Vec<u8>>,
    kinds: BTreeMap<(Run, &'static str), BTreeSet<Asked>>,
    described: BTreeSet<Run>,
    shut: BTreeSet<Run>,
}

impl Account {
    fn note(&mut self, run: Run, asked: Asked, answer: &Answer) {
        let kind = match answer {
            Answer::Unfit(_)
            | Answer::Failed(_)
            | Answer::Introduced(_)
            | Answer::Encapsulated(_)
            | Answer::Digest(_) => return,
            Answer::Covered(covered) => covered.kind,
            Answer::Refused(_) => {
                if refused_by(answer) == Some("similarity_max") {
                    self.shut.insert(run);
                }
                return;
            }
            Answer::Described(_) => {
                assert!(
                    !self.shut.contains(&run),
                    "a run that was shut describes itself"
                );
                self.described.insert(run);
                return;
            }
            Answer::Unpsl(
                metrics::Answer::Derivatives(_)
                | metrics::Answer::Contribution(_)
                | metrics::Answer::Validated(_),
            ) => "round",
            Answer::Forest(forest::Answer::Grown(_)) => "trees",
            Answer::Regression(_) => "likelihood",
            Answer::Neighbours(_) => "alike",
            Answer::Cluster(_) => "clusters",
            Answer::Compare(_) => "comparison",
            Answer::Card(_) => "card",
            Answer::Moments(_) => "moments",
            Answer::Quantiles(_) => "quantiles",
            Answer::Prepared(_) => "prepared",
            Answer::Correlated => "correlated",
            Answer::Assessed(_) => "assessment",
        };
        assert!(!self.shut.contains(&run), "{kind} of a run that was shut");
        let bytes = wire::encode_answer(answer);
        let first = self
            .released
            .entry((run, asked))
            .or_insert_with(|| bytes.clone());
        assert!(*first == bytes, "two answers to one question: {kind}");
        self.kinds.entry((run, kind)).or_default().insert(asked);
    }

    fn check(&self) {
        let rounds = |kind: &str| matches!(kind, "round" | "trees");
        let mut all_rounds = 0;
        let mut runs: BTreeSet<Run> = self.shut.clone();
        for ((run, kind), asked) in &self.kinds {
            if *kind == "round" {
                assert!(
                    asked.len() <= RUN_ROUNDS_MAX,
                    "{} rounds of a run",
                    asked.len()
                );
            } else {
                assert!(asked.len() <= 1, "{kind} of {} questions", asked.len());
            }
            if rounds(kind) {
                all_rounds += asked.len();
            }
            if *kind != "prepared" {
                runs.insert(*run);
            }
            // Neither a metric of another rank than the job's nor a steep one.
            let (rank_8, rank_7) = (4..=8, 9..=9);
            for (_, question) in asked.iter().filter(|_| *kind == "round") {
                let fits = match run.0 {
                    0 => rank_8.contains(question),
                    1 => rank_7.contains(question),
                    _ => false,
                };
                assert!(fits, "question {question} of job {}", run.0);
            }
        }
        assert!(all_rounds <= ROUNDS_MAX, "{all_rounds} rounds of a cohort");
        assert!(runs.len() <= RUNS_MAX, "{} runs of a cohort", runs.len());
        for one in ["researcher", "colleague"] {
            let own = |run: &&Run| operator(run.0) == one;
            let described = self.described.iter().filter(own).count();
            assert!(
                described <= DESCRIPTIONS_MAX,
                "{described} descriptions of the {one} in a day"
            );
        }
    }
}

/// What the coordinator knows from elsewhere: moments and trees of these very patients.
fn known(text: &str) -> (Told, Trees) {
    let mut site = Site::open(text, super::OPEN);
    site.begin(NAMES[0], &job(0), 0);
    let told = site.tell();
    (told, trees::trees(trees::grown(&mut site, 0, 0.0)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Runs, rounds, once-a-run messages and descriptions, over all names, orders, repetitions and restarts.
    #[test]
    fn no_sequence_of_messages_releases_more_than_the_policy_allows(moves in moves()) {
        let text = table(50, 11);
        let (told, grown) = known(&text);
        let rules = format!(
            "runs_per_cohort_max = {RUNS_MAX}\nrounds_per_cohort_max = {ROUNDS_MAX}\n\
             descriptions_per_day_max = {DESCRIPTIONS_MAX}\n"
        );
        let mut site = Site::open(&text, &rules);
        let mut account = Account::default();
        let mut run: Option<Run> = None;
        for one in moves {
            let mut asked: Vec<Asked> = Vec::new();
            match one {
                Move::Restart => {
                    site.restart();
                    run = None;
                }
                Move::Begin(name, number, seed) => {
                    site.begin_by(operator(number), NAMES[name], &job(number), seed);
                    run = Some((number, seed));
                }
                Move::Honest(name, number, seed, rounds) => {
                    site.begin_by(operator(number), NAMES[name], &job(number), seed);
                    run = Some((number, seed));
                    asked = match number {
                        2 => vec![(1, 0), (2, 13), (3, 14)],
                        _ => vec![(1, 0), (2, 1), (3, 2)],
                    };
                    asked.extend((0..rounds).map(|round| match number {
                        0 => (4 + round, 4 + round as usize),
                        1 => (4 + round, 9),
                        _ => (4, 15),
                    }));
                }
                Move::Ask(exchange, question) => asked.push((exchange, question)),
            }
            let Some(run) = run else { continue };
            for asked in asked {
                let answer = site.ask_in(asked.0, question(asked.1, &told, &grown));
                account.note(run, asked, &answer);
            }
            account.check();
        }
    }
}
