//! What the world promises of every method.

use super::{CALM, Faults, Liar, Planted, Played, World, drawn_from};
use protocol::failure::{Code, Refusal};
use protocol::message::Answer;
use protocol::method::Model;
use protocol::progress::{Ending, Times};
use protocol::result::RunResult;
use rand_chacha::ChaCha8Rng;
use std::ops::Range;
use std::time::Duration;

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
        // With the coordinator all answers to an open exchange are lost: were it restarted more often, hardly any would close.
        let faults = Faults::drawn(&mut random, [20, 6, 2]);
        let mut world = World::<P>::new(seed, faults, &job(&mut random));
        assert_eq!(world.drive(), None, "seed {seed}");
        world.ending.expect("an ending")
    };
    seeds.map(play).collect()
}

/// A storm leaves the bits of a calm.
pub(crate) fn storms_leave_the_bits_of_calms<P: Played>(
    seeds: Range<u64>,
    job: fn(&mut ChaCha8Rng) -> String,
) {
    for seed in seeds {
        let text = job(&mut drawn_from(seed));
        let [calm, stormy] = [CALM, STORM].map(|faults| {
            let mut world = World::<P>::new(seed, faults, &text);
            assert_eq!(world.drive(), None, "seed {seed}");
            world
        });
        let left = |world: &World<P>| wire::encode_result(&timeless(world.result()));
        assert_eq!(left(&calm), left(&stormy), "seed {seed}");
    }
}

/// A site is silent in mid-run for longer than others are kept back, and its process starts again: the run goes on to the bits of one
/// that nothing disturbed. `text` names two sites or more.
#[track_caller]
pub(crate) fn an_hour_away_leaves_the_bits<P: Played>(seed: u64, text: &str) {
    let hour = Duration::from_secs(3_600);
    let mut calm = World::<P>::new(seed, CALM, text);
    assert_eq!(calm.drive(), None, "seed {seed}");
    let mut world = World::<P>::new(seed, CALM, text);
    world.mute = Some(1);
    let (now, progress, is_stalled) = world.waits();
    assert_eq!(world.ending, None, "seed {seed}");
    assert_eq!(progress.waiting_for, ["site-1"], "seed {seed}");
    assert!(!is_stalled(now) && is_stalled(now.after(hour)));
    let closed = world.records().len();
    world.pass(hour);
    drop(world.waits());
    assert_eq!(
        world.records().len(),
        closed,
        "a sum without the site that is away"
    );
    world.mute = None;
    world.start_again(1);
    assert_eq!(world.drive(), None, "seed {seed}");
    let left = |world: &World<P>| wire::encode_result(&timeless(world.result()));
    assert_eq!(left(&calm), left(&world), "seed {seed}");
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

/// A site says no to the first question, or to a later one, in random weather: the run ends, and names it. `text` names two sites
/// or more.
#[track_caller]
pub(crate) fn a_refusal_ends_the_run_by_name<P: Played>(text: &str) {
    const SITE: usize = 1;
    let no = |_: &Answer| {
        Answer::Refused(Refusal {
            rule: "patients_min".to_owned(),
            text: "the cohort has fewer than the 10 patients required".to_owned(),
        })
    };
    for seed in 0..30 {
        let faults = [CALM, STORM][usize::from(seed % 3 == 2)];
        for from in [1, 2] {
            let mut world = World::<P>::new(seed, faults, text);
            world.liar = Some(Liar {
                site: SITE,
                from,
                lie: no,
            });
            assert_eq!(world.drive(), None, "seed {seed}");
            let Some(Ending::Failed(failure)) = &world.ending else {
                panic!("seed {seed}: {:?}", world.ending);
            };
            assert_eq!(failure.code, Code::Policy);
            assert_eq!(
                failure.text,
                "site-1: refused by patients_min: the cohort has fewer than the 10 patients required"
            );
            // Nobody is asked again, and nothing closes without the site.
            assert_eq!(world.records().len(), from as usize, "seed {seed}");
        }
    }
}

/// A result without its times.
fn timeless(mut result: RunResult) -> RunResult {
    result.seconds = 0.0;
    result.times = Times::default();
    if let Some(Model::Unpsl(model)) = &mut result.model {
        for row in &mut model.rounds {
            row.seconds = 0.0;
        }
    }
    result
}
