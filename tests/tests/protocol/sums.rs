//! Promise: a run holds under loss, delay, repetition, reordering and restart; every site works out each question by
//! itself; and its bits are those of an undisturbed run.

use crate::unpsl::Quadratics;
use crate::world::{self, CALM, Faults, Played, World, drawn_from};
use ndarray::Array2;
use protocol::method::Model;
use protocol::progress::Ending;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

fn job(sites: usize, extra: &str) -> String {
    let names: Vec<String> = (0..sites).map(|site| format!("\"site-{site}\"")).collect();
    let features: String = (0..4)
        .map(|feature| format!("[[features]]\nname = \"f{feature}\"\nkind = \"numeric\"\n"))
        .collect();
    format!(
        "name = \"sums\"\nmethod = \"unpsl\"\nsites = [{}]\n{extra}\
         [outcome]\ncolumn = \"y\"\nkind = \"binary\"\npositive = [\"1\"]\n{features}\
         [unpsl]\nrank = 2\nthreshold = 100\nround_limit = 30\nlambda_sparsity = 0.05\n",
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
        let mut world = World::<Quadratics>::new(seed, faults, &text);
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
    world::storms_leave_the_bits_of_calms::<Quadratics>(1000..1024, |random| {
        let sites = random.random_range(3..6);
        of_either(random, job(sites, ""))
    });
}

/// Of answers that are together more than the job lets every site hear, the sites hear the sum, and ask the same.
#[test]
fn sites_that_hear_sums_alone_have_the_bits_of_sites_that_hear_every_answer() {
    const NOTHING: &str = "[aggregation]\nanswers_megabytes_max = 0\n";
    world::storms_leave_the_bits_of_calms::<Quadratics>(2000..2024, |random| {
        let sites = random.random_range(3..6);
        of_either(random, job(sites, NOTHING))
    });
    for seed in 0..6 {
        let every = metric::<Quadratics>(seed, &job(4, ""));
        let sums = metric::<Quadratics>(seed, &job(4, NOTHING));
        assert_eq!(every, sums, "seed {seed}");
    }
}

/// Fifty sites under masks, of which each is lost some times and comes back, in the bits of a calm run.
#[test]
fn fifty_sites_of_which_some_are_lost_and_come_back_have_the_bits_of_a_calm_run() {
    let mut world = World::<Quadratics>::new(3, Faults::lossy(1), &job(50, ""));
    assert_eq!(world.drive(), None);
    assert_eq!(world.ending, Some(Ending::Converged));
    assert!(world.lost > 50, "only {} were lost", world.lost);
    let Some(Model::Unpsl(stormy)) = world.result().model else {
        panic!("no metric");
    };
    let calm = metric::<Quadratics>(3, &job(50, ""));
    assert_eq!(stormy.metric, Some(calm));
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
