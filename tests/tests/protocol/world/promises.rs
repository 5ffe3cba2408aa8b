//! What the world promises of every method.

use super::{CALM, Faults, Liar, Planted, Played, World, drawn_from};
use protocol::failure::{Code, Refusal};
use protocol::message::Answer;
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

/// A site says no to the first question, or to a later one, in random weather. `text` names three sites or more, and needs one
/// fewer.
#[track_caller]
pub(crate) fn a_refusal_is_left_out_or_ends_the_run_as_the_job_says<P: Played>(text: &str) {
    const SITE: usize = 1;
    let no = |_: &Answer| {
        Answer::Refused(Refusal {
            rule: "patients_min".to_owned(),
            text: "the cohort has fewer than the 10 patients required".to_owned(),
        })
    };
    let all = text.replace("sites_min = 2", "sites_min = 3");
    let strict = text.replace("sites_min", "when_refused = \"fail\"\nsites_min");
    assert!(all != text && strict != text);
    let play = |seed: u64, faults: Faults, text: &str, from: u32| {
        let mut world = World::<P>::new(seed, faults, text);
        world.liar = Some(Liar {
            site: SITE,
            from,
            lie: no,
        });
        assert_eq!(world.drive(), None, "seed {seed}");
        world
    };
    let mut went_on = 0;
    for seed in 0..30 {
        let faults = [CALM, STORM][usize::from(seed % 3 == 2)];
        let failed = |world: &World<P>| match &world.ending {
            Some(Ending::Failed(failure)) => Some(failure.clone()),
            _ => None,
        };
        for from in [1, 2] {
            let world = play(seed, faults, text, from);
            let said = |record: &Record| record.faults[SITE].is_some();
            let Some(place) = world.records().iter().position(said) else {
                // In a storm it may be lost before it can say no.
                assert!(faults != CALM, "seed {seed}: nobody said no");
                continue;
            };
            for record in &world.records()[place + 1..] {
                let asked = record.members[SITE] || record.answers[SITE].is_some();
                assert!(!asked, "seed {seed}: asked after its no");
            }
            let notes = world.result().notes;
            let named = "site-1 was left out: refused by patients_min: the cohort has fewer than the 10 patients required.";
            assert!(
                notes.iter().any(|note| note == named),
                "seed {seed}: {notes:?}"
            );
            if faults == CALM {
                assert_eq!(failed(&world), None, "seed {seed}");
                went_on += 1;
            }
            // Fewer than sites_min: the run fails by the reason, and names the site.
            let world = play(seed, CALM, &all, from);
            let failure = failed(&world).expect("too few sites");
            assert_eq!(failure.code, Code::Policy);
            assert!(
                failure.text.contains("site-1: refused by patients_min"),
                "{}",
                failure.text
            );
        }
        // The job wants all or nothing: the run ends with the first exchange.
        let world = play(seed, CALM, &strict, 1);
        let failure = failed(&world).expect("a refusal");
        assert_eq!(failure.code, Code::Policy);
        assert_eq!(
            failure.text,
            "site-1: refused by patients_min: the cohort has fewer than the 10 patients required"
        );
        assert_eq!(world.records().len(), 2);
    }
    assert_eq!(went_on, 40);
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
        Some(
            Model::Forest(_)
            | Model::Regression(_)
            | Model::Neighbours(_)
            | Model::Cluster(_)
            | Model::Compare(_),
        )
        | None => {}
    }
    result
}
