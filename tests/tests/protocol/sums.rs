//! Promise: a run of sums holds under loss, delay, repetition, reordering and restart; every site works out each question by
//! itself; and its bits are those of the same run in the clear.

use crate::unpsl::Quadratics;
use crate::world::{self, CALM, Faults, Played, World, drawn_from};
use ndarray::Array2;
use protocol::job::Job;
use protocol::message::{Answer, Request};
use protocol::method::Model;
use protocol::progress::Ending;
use protocol::run::Record;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// The sites of [`Quadratics`], whose answers the coordinator never sees.
struct Summed;

impl Played for Summed {
    fn new(_: &Job) -> Self {
        Self
    }

    fn patients(site: usize) -> u64 {
        Quadratics::patients(site)
    }

    fn pretend(site: usize, request: &Request) -> Answer {
        Quadratics::pretend(site, request)
    }

    fn is_contribution(answer: &Answer) -> bool {
        matches!(answer, Answer::Covered(covered) if ["derivatives", "contribution"].contains(&covered.kind))
    }

    fn recomputed(answer: &mut Answer, draw: &mut ChaCha8Rng) {
        Quadratics::recomputed(answer, draw);
    }

    fn sent(&mut self, _: usize, _: u32, _: &Request) -> Option<String> {
        None
    }

    fn stored(&mut self, record: &Record) -> Option<String> {
        let in_the_clear = record.answers.iter().flatten().any(|answer| {
            !matches!(
                answer,
                Answer::Covered(_)
                    | Answer::Introduced(_)
                    | Answer::Encapsulated(_)
                    | Answer::Digest(_)
                    | Answer::Prepared(None)
            )
        });
        in_the_clear.then(|| format!("exchange {} closed in the clear", record.exchange))
    }
}

fn job(sites: usize, extra: &str) -> String {
    let names: Vec<String> = (0..sites).map(|site| format!("\"site-{site}\"")).collect();
    let features: String = (0..4)
        .map(|feature| format!("[[features]]\nname = \"f{feature}\"\nkind = \"numeric\"\n"))
        .collect();
    format!(
        "name = \"sums\"\nmethod = \"unpsl\"\nsites = [{}]\n{extra}\
         [outcome]\ncolumn = \"y\"\nkind = \"binary\"\npositive = [\"1\"]\n{features}\
         [unpsl]\nrank = 2\nround_limit = 30\nlambda_sparsity = 0.05\n",
        names.join(", ")
    )
}

/// Plain ADMM, in which the sites hold their duals.
fn by_admm(text: &str) -> String {
    text.replace(
        "rank = 2\n",
        "rank = 2\nconsensus = \"admm\"\npenalty = 0.1\n",
    )
}

/// By one consensus or the other, and now and then with a choice or two starts.
fn of_either(random: &mut ChaCha8Rng, text: String) -> String {
    if random.random_range(0..2) == 0 {
        return text;
    }
    let text = by_admm(&text);
    match random.random_range(0..4) {
        0 => text.replace("rank = 2\n", "rank = 2\nstarts = 2\n"),
        1 => text
            .replace("lambda_sparsity = 0.05", "lambda_sparsity = [0.02, 0.05]")
            .replace("rank = 2\n", "rank = 2\nfolds = 2\nneighbours = [1, 3]\n"),
        _ => text,
    }
}

#[test]
fn a_run_of_sums_survives_loss_delay_repetition_reordering_and_restart() {
    let play = |seed: u64| {
        let mut random = drawn_from(seed);
        // Of the answers to an open exchange all are lost with the coordinator.
        let faults = Faults::drawn(&mut random, [20, 5, 2]);
        let sites = random.random_range(4..7);
        let text = of_either(&mut random, job(sites, ""));
        let mut world = World::<Summed>::new(seed, faults, &text);
        assert_eq!(world.drive(), None, "seed {seed}");
        world.ending.expect("an ending")
    };
    let endings: Vec<Ending> = (0..120).map(play).collect();
    let learnt = |ending: &&Ending| matches!(ending, Ending::Converged | Ending::RoundLimit);
    let learnt = endings.iter().filter(learnt).count();
    assert!(learnt > 30, "only {learnt} of 120 runs learnt a metric");
}

#[test]
fn a_disturbed_run_of_sums_has_the_bits_of_the_undisturbed_one() {
    world::storms_leave_the_bits_of_calms::<Summed>(1000..1024, |random| {
        let sites = random.random_range(3..6);
        of_either(random, job(sites, ""))
    });
}

/// Of answers that are together more than the job lets every site hear, the sites hear the sum, and ask the same.
#[test]
fn sites_that_hear_sums_alone_have_the_bits_of_sites_that_hear_every_answer() {
    const NOTHING: &str = "[aggregation]\nanswers_megabytes_max = 0\n";
    world::storms_leave_the_bits_of_calms::<Summed>(2000..2024, |random| {
        let sites = random.random_range(3..6);
        of_either(random, job(sites, NOTHING))
    });
    for seed in 0..6 {
        let every = metric::<Summed>(seed, &job(4, ""));
        let sums = metric::<Summed>(seed, &job(4, NOTHING));
        assert_eq!(every, sums, "seed {seed}");
    }
}

/// Fifty sites under masks, of which each is lost some times and comes back, in the bits of the same run in the clear.
#[test]
fn fifty_sites_of_which_some_are_lost_and_come_back_have_the_bits_of_a_calm_run_in_the_clear() {
    let mut world = World::<Summed>::new(3, Faults::lossy(1), &job(50, ""));
    assert_eq!(world.drive(), None);
    assert_eq!(world.ending, Some(Ending::Converged));
    assert!(world.lost > 50, "only {} were lost", world.lost);
    let Some(Model::Unpsl(covered)) = world.result().model else {
        panic!("no metric");
    };
    let own = "[aggregation]\ncontributions = \"own\"\n";
    let clear = metric::<Quadratics>(3, &job(50, own));
    assert_eq!(covered.metric, Some(clear));
}

#[test]
fn what_is_covered_comes_to_the_bits_of_the_same_run_in_the_clear() {
    let own = "[aggregation]\ncontributions = \"own\"\n";
    for seed in 0..10 {
        let sites = 3 + (seed as usize % 3);
        let covered = metric::<Summed>(seed, &job(sites, ""));
        let clear = metric::<Quadratics>(seed, &job(sites, own));
        assert_eq!(covered, clear, "seed {seed}");
    }
}

/// A coordinator that holds every site's dual, and one that knows their sum alone.
#[test]
fn plain_admm_from_sums_goes_the_way_of_a_coordinator_that_holds_every_dual() {
    let own = "[aggregation]\ncontributions = \"own\"\n";
    for seed in 0..10 {
        let sites = 3 + (seed as usize % 3);
        let patient = |extra: &str| by_admm(&job(sites, extra));
        let covered = learnt::<Summed>(seed, &patient(""));
        let clear = learnt::<Quadratics>(seed, &patient(own));
        let (rounds, wanted) = (covered.rounds, clear.rounds);
        assert_eq!(rounds.len(), wanted.len(), "seed {seed}");
        assert!(rounds.len() > 5, "seed {seed}");
        for (found, wanted) in rounds.iter().zip(&wanted) {
            let pairs = [
                (found.objective, wanted.objective),
                (found.primal_residual, wanted.primal_residual),
                (found.dual_residual, wanted.dual_residual),
                (found.penalty, wanted.penalty),
            ];
            for (found, wanted) in pairs {
                let (found, wanted) = (found.unwrap(), wanted.unwrap());
                let near = (found - wanted).abs() <= 1e-7 * wanted.abs().max(1e-6);
                assert!(near, "seed {seed}: {found}, wanted {wanted}");
            }
        }
        let apart = covered.metric.unwrap() - clear.metric.unwrap();
        assert!(
            apart.iter().all(|x| x.abs() < 1e-10),
            "seed {seed}: {apart}"
        );
    }
}

/// What an undisturbed run learns.
fn metric<P: Played>(seed: u64, text: &str) -> Array2<f64> {
    learnt::<P>(seed, text).metric.expect("a metric")
}

fn learnt<P: Played>(seed: u64, text: &str) -> protocol::method::unpsl::model::Model {
    let mut world = World::<P>::new(seed, CALM, text);
    assert_eq!(world.drive(), None, "seed {seed}");
    match world.result().model {
        Some(Model::Unpsl(model)) => model,
        _ => panic!("a run of UnPSL"),
    }
}
