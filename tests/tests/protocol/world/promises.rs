//! What the world promises of every method.

use super::{CALM, Faults, Planted, Played, World, drawn_from};
use protocol::method::Model;
use protocol::progress::{Ending, Times};
use protocol::result::RunResult;
use protocol::run::Record;
use rand_chacha::ChaCha8Rng;
use std::ops::Range;

/// The answers to an open exchange are lost with the coordinator: were it restarted more often, hardly any would close.
const STORM: Faults = Faults {
    repeat: 15,
    lose_site: 3,
    restart_coordinator: 1,
};

/// Plays one run a seed in random weather, and gives how they ended.
pub(crate) fn survives<P: Played>(
    seeds: Range<u64>,
    job: fn(&mut ChaCha8Rng) -> String,
) -> Vec<Ending> {
    let play = |seed| {
        let mut random = drawn_from(seed);
        let faults = Faults::drawn(&mut random, [20, 6, 4]);
        let mut world = World::<P>::new(seed, faults, &job(&mut random));
        assert_eq!(world.drive(), None, "seed {seed}");
        world.ending.expect("an ending")
    };
    seeds.map(play).collect()
}

/// A storm in which every site answers leaves the bits of a calm; gives how many pairs could be compared.
pub(crate) fn storms_leave_the_bits_of_calms<P: Played>(
    seeds: Range<u64>,
    job: fn(&mut ChaCha8Rng) -> String,
) -> usize {
    let is_comparable = |seed: &u64| {
        let text = job(&mut drawn_from(*seed));
        let [calm, stormy] = [CALM, STORM].map(|faults| {
            let mut world = World::<P>::new(*seed, faults, &text);
            assert_eq!(world.drive(), None, "seed {seed}");
            world
        });
        let is_complete =
            |record: &Record| record.exchange == 0 || record.answers.iter().all(Option::is_some);
        let same = stormy.records().iter().all(is_complete)
            && stormy.records().len() == calm.records().len();
        if same {
            let left = |world: &World<P>| wire::encode_result(&timeless(world.result()));
            assert_eq!(left(&calm), left(&stormy), "seed {seed}");
        }
        same
    };
    seeds.filter(is_comparable).count()
}

/// Every fault is planted, until something objects to it.
#[track_caller]
pub(crate) fn every_planted_fault_is_caught<P: Played>(text: &str) {
    const SEEDS: u64 = 400;
    for fault in [
        Planted::AnswerOfAnotherSite,
        Planted::AnswerToAnOlderExchange,
        Planted::Recomputed,
        Planted::ReplayWithoutLastRecord,
        Planted::ReplayWithExchangedAnswers,
    ] {
        let caught = (0..SEEDS).find_map(|seed| {
            let faults = Faults {
                repeat: 10,
                lose_site: 8,
                restart_coordinator: 6,
            };
            let mut world = World::<P>::new(seed, faults, text);
            world.planted = fault;
            world.drive().map(|complaint| (seed, complaint))
        });
        let (seed, complaint) = caught.unwrap_or_else(|| panic!("{fault:?} was never caught"));
        println!("{fault:?}, seed {seed}: {complaint}");
    }
}

/// A result without its times.
fn timeless(mut result: RunResult) -> RunResult {
    result.seconds = 0.0;
    result.times = Times::default();
    match &mut result.model {
        Some(Model::Unpsl(model)) => {
            for row in &mut model.rounds {
                row.seconds = 0.0;
            }
        }
        Some(Model::Forest(_)) | None => {}
    }
    result
}
