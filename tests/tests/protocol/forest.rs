//! Promise: a run of forests holds under loss, delay, repetition, reordering and restart.
//!
//! The oracle judges every exchange from the stored records alone: how many trees each site is asked for, that the cut points
//! are quantiles of the sites' counts, that the common forest is the sites' trees in the order of the roster, and that a site
//! that was killed is asked for the same trees again.

use crate::world::{self, CALM, CELLS, Liar, Played, World, ends};
use privacy::ErrorSums;
use protocol::assessment::{Assessment, ErrorMeasure, RuleErrors};
use protocol::failure::Code;
use protocol::job::Job;
use protocol::message::forest::{
    self, Growing, Judging, NodeKind, NodeRule, NodeTable, Side, TerminalTable, TreeTable, Trees,
};
use protocol::message::{Answer, Request};
use protocol::method::Method;
use protocol::progress::Ending;
use protocol::run::Record;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

const FEATURES: usize = 3;
/// Those that are numbers.
const NUMBERS: usize = 2;
/// The exchange that asks for trees: after descriptions.
const GROWING: u32 = 2;

/// Sites whose trees tell which site and which tree they are; and what each exchange must have held.
struct Forests {
    trees: u32,
    records: Vec<Record>,
    /// What each site was asked to grow.
    growing: BTreeMap<usize, Arc<Growing>>,
}

#[test]
fn a_run_of_forests_survives_loss_delay_repetition_and_restart() {
    let endings = world::survives::<Forests>(0..150, |random| {
        let sites = random.random_range(2..=5);
        job(&Asked {
            scope: ["local", "federated", "federated"][random.random_range(0..3)],
            sites,
            trees: random.random_range(5..40),
        })
    });
    let completed = endings.iter().filter(|one| **one == Ending::Completed);
    let completed = completed.count();
    assert!(completed > 75, "only {completed} of 150 runs completed");
}

#[test]
fn a_disturbed_run_leaves_the_bits_of_the_undisturbed_one() {
    world::storms_leave_the_bits_of_calms::<Forests>(1000..1040, |random| {
        job(&Asked {
            scope: ["local", "federated"][random.random_range(0..2)],
            sites: 3,
            trees: 20,
        })
    });
}

#[test]
fn the_oracle_catches_every_planted_fault() {
    world::every_planted_fault_is_caught::<Forests>(&job(&Asked {
        scope: "federated",
        sites: 3,
        trees: 12,
    }));
}

#[test]
fn a_refusal_ends_the_run_and_names_the_site() {
    for scope in ["local", "federated"] {
        let text = job(&Asked {
            scope,
            sites: 3,
            trees: 12,
        });
        world::a_refusal_ends_the_run_by_name::<Forests>(&text);
    }
}

#[test]
fn trees_that_are_not_of_the_job_end_the_run_and_name_the_site() {
    let text = job(&Asked {
        scope: "federated",
        sites: 2,
        trees: 10,
    });
    let bad: [fn(&Answer) -> Answer; 3] = [
        |answer| spoilt(answer, |trees| drop(trees.trees.pop())),
        |answer| {
            spoilt(answer, |trees| {
                trees.trees[0] = {
                    let mean = TerminalTable::Mean(1.0);
                    tree(40, (2, FEATURES), NodeRule::AtMost(1.0), mean)
                };
            })
        },
        // The last feature is a category of three levels.
        |answer| {
            spoilt(answer, |trees| {
                let classes = TerminalTable::Classes(vec![10, 10]);
                trees.trees[0] = tree(40, (2, FEATURES), NodeRule::AtMost(1.0), classes);
            })
        },
    ];
    for lie in bad {
        let mut world = World::<Forests>::new(1, CALM, &text);
        world.liar = Some(Liar {
            site: 1,
            from: 1,
            lie,
        });
        assert_eq!(world.drive(), None);
        match world.ending {
            Some(Ending::Failed(failure)) => {
                assert_eq!(failure.code, Code::Forest);
                assert!(failure.text.contains("site-1"), "{}", failure.text);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// The answer, with other trees where it has any.
fn spoilt(answer: &Answer, change: fn(&mut Trees)) -> Answer {
    let mut answer = answer.clone();
    if let Answer::Forest(forest::Answer::Grown(trees)) = &mut answer {
        change(trees);
    }
    answer
}

impl Played for Forests {
    fn new(job: &Job) -> Self {
        let Method::Forest(settings) = &job.method else {
            panic!("a job of forests");
        };
        Self {
            trees: settings.trees,
            records: Vec::new(),
            growing: BTreeMap::new(),
        }
    }

    fn patients(site: usize) -> u64 {
        40 + 60 * site as u64
    }

    fn pretend(site: usize, request: &Request) -> Answer {
        let Request::Forest(request) = request else {
            panic!("a run of forests asks {request:?}");
        };
        let patients = Self::patients(site);
        match request {
            forest::Request::Grow(growing) => grown(patients, growing),
            forest::Request::GrowOwn => assessed(patients, 20),
            forest::Request::Judge(judging) => assessed(patients, judging.first_tree + 10),
        }
    }

    fn is_contribution(answer: &Answer) -> bool {
        matches!(answer, Answer::Forest(_) | Answer::Assessed(_))
    }

    fn recomputed(answer: &mut Answer, _: &mut ChaCha8Rng) {
        match answer {
            Answer::Forest(forest::Answer::Grown(trees)) => trees.trees.reverse(),
            _ => *answer = assessed(40, 1),
        }
    }

    fn sent(&mut self, site: usize, exchange: u32, request: &Request) -> Option<String> {
        match request {
            Request::Forest(forest::Request::Grow(growing)) => {
                if exchange != GROWING {
                    return Some(format!("trees are asked for in exchange {exchange}"));
                }
                let known = self.growing.entry(site).or_insert_with(|| growing.clone());
                if known != growing {
                    return Some(format!("site {site} is asked for other trees"));
                }
                self.judge_growing(site, growing)
            }
            Request::Forest(forest::Request::Judge(judging)) => self.judge_forest(site, judging),
            _ => None,
        }
    }

    fn stored(&mut self, record: &Record) -> Option<String> {
        self.records.push(record.clone());
        None
    }
}

impl Forests {
    /// As many trees of each site, to the next whole number; cut points at the quantiles of the pooled counts.
    fn judge_growing(&self, site: usize, growing: &Growing) -> Option<String> {
        let counted = self.records.get(GROWING as usize - 1)?;
        let sites: Vec<usize> = (0..counted.answers.len()).collect();
        let all: u64 = sites.iter().map(|site| Self::patients(*site)).sum();
        let exact = f64::from(self.trees) / sites.len() as f64;
        let found = growing.trees;
        if (f64::from(found) - exact).abs() >= 1.0 {
            return Some(format!(
                "site {site} grows {found} trees, wanted about {exact}"
            ));
        }
        for column in 0..NUMBERS {
            let mut last = 0.0;
            for (rank, cut) in (1..).zip(&growing.edges[column]) {
                let below: f64 = sites.iter().map(|site| at_most(*site, column, *cut)).sum();
                let share = below / all as f64;
                // A group of a site holds a quarter of its patients at most.
                let known = (f64::from(rank) - 8.0) / 32.0..=(f64::from(rank) + 8.0) / 32.0 + 0.3;
                if !known.contains(&share) || share < last {
                    return Some(format!("cut {rank} of column {column} lies at {share}"));
                }
                last = share;
            }
        }
        let fits = growing.edges[NUMBERS].is_empty() && growing.class_weights == [1.0, 1.0];
        (!fits).then(|| "a category has cut points, or equal classes weigh unequally".to_owned())
    }

    /// The common forest is the sites' trees, one site after the other.
    fn judge_forest(&self, site: usize, judging: &Judging) -> Option<String> {
        let Some(grown) = self.records.get(GROWING as usize) else {
            return Some("a forest is judged before it has grown".to_owned());
        };
        let mut all = Vec::new();
        let mut first = 0;
        for (place, answer) in grown.answers.iter().enumerate() {
            if place == site {
                first = all.len();
            }
            if let Some(Answer::Forest(forest::Answer::Grown(own))) = answer {
                all.extend(own.trees.clone());
            }
        }
        let fits = judging.trees.trees == all && judging.first_tree as usize == first;
        (!fits).then(|| format!("site {site} judges another forest"))
    }
}

/// Patients of a site with a value of at most `value`, on a grid over [0, 4096].
fn at_most(site: usize, column: usize, value: f64) -> f64 {
    let groups = ends(site, column);
    let whole = groups.iter().filter(|end| f64::from(**end) <= value);
    whole.count() as f64 * Forests::patients(site) as f64 / 4.0
}

/// As many trees as a site is asked for, each with a cut of its own.
pub(crate) fn grown(patients: u64, growing: &Growing) -> Answer {
    let counts = vec![10, patients / 2 - 10];
    let one = |number: u32| {
        let threshold = growing.edges[0][number as usize % growing.edges[0].len()];
        let table = TerminalTable::Classes(counts.clone());
        let rule = NodeRule::AtMost(threshold + f64::from(number));
        let features = growing.edges.len();
        tree(u32::try_from(patients).unwrap(), (0, features), rule, table)
    };
    Answer::Forest(forest::Answer::Grown(Trees {
        features: growing.edges.len() as u32,
        trees: (0..growing.trees).map(one).collect(),
    }))
}

/// A tree of three nodes, which splits by one of so many features.
fn tree(
    patients: u32,
    (feature, features): (u32, usize),
    rule: NodeRule,
    table: TerminalTable,
) -> TreeTable {
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
    TreeTable::new(nodes, features).unwrap()
}

fn assessed(patients: u64, wrong: u32) -> Answer {
    Answer::Assessed(Assessment {
        errors: vec![RuleErrors {
            rule: "forest".to_owned(),
            neighbours: 0,
            measure: ErrorMeasure::Misclassified,
            sums: Some(ErrorSums {
                total: patients,
                error: f64::from(wrong),
            }),
        }],
        ..Assessment::default()
    })
}

struct Asked {
    scope: &'static str,
    sites: usize,
    trees: u32,
}

fn job(asked: &Asked) -> String {
    let Asked {
        scope,
        sites,
        trees,
    } = asked;
    let names: Vec<String> = (0..*sites).map(|site| format!("\"site-{site}\"")).collect();
    let numbers: String = (0..NUMBERS)
        .map(|number| {
            format!(
                "[[features]]\nname = \"x{number}\"\nkind = \"numeric\"\nrange = [0, {CELLS}]\n"
            )
        })
        .collect();
    format!(
        "name = \"world\"\nmethod = \"forest\"\nsites = [{}]\n\
         [outcome]\ncolumn = \"y\"\nkind = \"binary\"\npositive = [\"1\"]\n{numbers}\
         [[features]]\nname = \"grade\"\nkind = \"categorical\"\nlevels = [\"a\", \"b\", \"c\"]\n\
         [forest]\ntrees = {trees}\nscope = \"{scope}\"\n",
        names.join(", "),
    )
}
