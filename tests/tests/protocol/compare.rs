//! Promise: a run that compares similarities holds under loss, delay, repetition, reordering and restart.
//!
//! The oracle judges the last exchange from the stored records alone: metrics of all folds or of none are asked about, the same of
//! every site, and what the run leaves is the sum of what the sites told.

use crate::forest::grown;
use crate::world::{self, CELLS, Played};
use ndarray::Array2;
use protocol::assessment::{ErrorMeasure, EvaluationCounts, Gains};
use protocol::job::Job;
use protocol::message::compare::{self, FamilyCounts, Judging};
use protocol::message::forest::{self, TreeTable};
use protocol::message::{Answer, Request, unpsl};
use protocol::method::compare::settings::Family;
use protocol::progress::Ending;
use protocol::run::Record;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

const FEATURES: usize = 2;
const FOLDS: usize = 3;
const FAMILIES: [Family; 4] = [
    Family::Euclidean,
    Family::Cosine,
    Family::Unpsl,
    Family::CommonForest,
];
const TREES: u32 = 12;

/// Sites whose metrics are fitted at once: each one's objective is a paraboloid.
struct Comparisons {
    judged: Option<Judging>,
    /// The trees of the sites, one after the other, and where those of each begin.
    grown: Option<(Vec<TreeTable>, Vec<usize>)>,
}

#[test]
fn a_comparison_survives_loss_delay_repetition_and_restart() {
    let endings = world::survives::<Comparisons>(0..80, |random| {
        let sites = random.random_range(2..=4);
        job(sites)
    });
    let completed = endings.iter().filter(|one| **one == Ending::Completed);
    let completed = completed.count();
    assert!(completed > 30, "only {completed} of 80 runs completed");
}

#[test]
fn a_disturbed_comparison_leaves_the_bits_of_the_undisturbed_one() {
    world::storms_leave_the_bits_of_calms::<Comparisons>(1000..1060, |_| job(3));
}

#[test]
fn the_oracle_catches_every_planted_fault() {
    world::every_planted_fault_is_caught::<Comparisons>(&job(3));
}

#[test]
fn a_refusal_ends_the_run_and_names_the_site() {
    world::a_refusal_ends_the_run_by_name::<Comparisons>(&job(3));
}

impl Played for Comparisons {
    fn new(_: &Job) -> Self {
        Self {
            judged: None,
            grown: None,
        }
    }

    fn patients(site: usize) -> u64 {
        60 + 20 * site as u64
    }

    fn pretend(site: usize, request: &Request) -> Answer {
        match request {
            Request::Unpsl(unpsl::Request::Differentiate(asked)) => {
                let told = asked.metrics.iter().map(|metric| derivatives(site, metric));
                Answer::Unpsl(unpsl::Answer::Derivatives(told.collect()))
            }
            Request::Forest(forest::Request::Grow(growing)) => grown(Self::patients(site), growing),
            Request::Compare(compare::Request::Judge(judging)) => {
                let families = FAMILIES.iter().copied();
                let families =
                    families.filter(|one| *one != Family::Unpsl || !judging.metrics.is_empty());
                let judged = families.map(|family| judged(site, family));
                Answer::Compare(compare::Answer::Judged(judged.collect()))
            }
            other => panic!("a comparison asks {other:?}"),
        }
    }

    fn is_contribution(answer: &Answer) -> bool {
        matches!(
            answer,
            Answer::Compare(_) | Answer::Unpsl(_) | Answer::Forest(_)
        )
    }

    fn recomputed(answer: &mut Answer, draw: &mut ChaCha8Rng) {
        match answer {
            Answer::Compare(compare::Answer::Judged(families)) => {
                if let Some(table) = &mut families[0].counts.confusion {
                    table[0][0] += 1;
                }
            }
            Answer::Unpsl(unpsl::Answer::Derivatives(told)) => {
                told[0].objective += draw.random::<f64>();
            }
            Answer::Forest(forest::Answer::Grown(trees)) => trees.trees.reverse(),
            _ => {}
        }
    }

    fn sent(&mut self, site: usize, _: u32, request: &Request) -> Option<String> {
        let Request::Compare(compare::Request::Judge(judging)) = request else {
            return None;
        };
        if ![0, FOLDS].contains(&judging.metrics.len()) || !judging.regressions.is_empty() {
            return Some(format!("{} metrics of folds", judging.metrics.len()));
        }
        let (Some((all, first)), Some(forest)) = (&self.grown, &judging.forest) else {
            return Some("no common forest, or one before it has grown".to_owned());
        };
        if forest.trees.trees != *all || forest.first_tree as usize != first[site] {
            return Some(format!("site {site} judges another forest"));
        }
        let of_all = Judging {
            forest: None,
            ..judging.clone()
        };
        let known = self.judged.get_or_insert_with(|| of_all.clone());
        (*known != of_all).then(|| format!("site {site} is asked about other folds"))
    }

    fn stored(&mut self, record: &Record) -> Option<String> {
        let (mut all, mut first) = (Vec::new(), Vec::new());
        for answer in &record.answers {
            first.push(all.len());
            if let Some(Answer::Forest(forest::Answer::Grown(own))) = answer {
                all.extend(own.trees.clone());
            }
        }
        if all.is_empty() {
            return None;
        }
        let again = self.grown.replace((all, first)).is_some();
        again.then(|| "trees are asked for twice".to_owned())
    }
}

/// f(M) = ||M||^2 / 2 - trace(M C): its gradient in M is M - C.
fn derivatives(site: usize, metric: &Array2<f64>) -> unpsl::Derivatives {
    let m = metric.dot(&metric.t());
    let target = Array2::from_diag(&ndarray::array![1.0 + site as f64, 0.5]);
    let gradient = &m - &target;
    let objective = 0.5 * m.mapv(|x| x * x).sum() - (&m * &target).sum() + 10.0;
    let own = similarity::learn::unpsl::SiteDerivatives {
        objective,
        gradient,
        curvature: Array2::eye(m.nrows()),
        slope: None,
        threshold: similarity::learn::unpsl::ThresholdDerivatives {
            first: 0.0,
            second: 0.0,
        },
    };
    unpsl::Derivatives::fold(&own)
}

fn judged(site: usize, family: Family) -> FamilyCounts {
    let more = 5 * site as u64 + u64::from(family == Family::Cosine);
    FamilyCounts {
        family,
        measure: ErrorMeasure::Misclassified,
        counts: EvaluationCounts {
            loss: Some(11.25),
            gains: match family {
                Family::Euclidean => Gains::default(),
                _ => Gains {
                    areas: Some([900.0, 20.0 + more as f64, 900.0, 600.0, 54_000.0]),
                    errors: Some([60.0, 1.5, 2.0, 1.5, 60.0]),
                },
            },
            ..EvaluationCounts::new(
                family.name(),
                5,
                Some(vec![vec![10 + more, 10], vec![10, 20]]),
                Some(vec![vec![5; 6]; 2]),
            )
        },
        errors: None,
    }
}

fn job(sites: usize) -> String {
    let names: Vec<String> = (0..sites).map(|site| format!("\"site-{site}\"")).collect();
    let features: String = (0..FEATURES)
        .map(|feature| {
            format!(
                "[[features]]\nname = \"f{feature}\"\nkind = \"numeric\"\nrange = [0, {CELLS}]\n"
            )
        })
        .collect();
    format!(
        "name = \"comparison\"\nmethod = \"compare\"\nsites = [{}]\n\
         [outcome]\ncolumn = \"y\"\nkind = \"binary\"\npositive = [\"1\"]\n{features}\
         [compare]\nfamilies = [\"cosine\", \"unpsl\", \"common_forest\"]\nfolds = {FOLDS}\n[unpsl]\nrank = 1\nthreshold = 100\n\
         [forest]\ntrees = {TREES}\n",
        names.join(", "),
    )
}
