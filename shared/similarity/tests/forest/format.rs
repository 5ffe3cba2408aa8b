//! Forests as bytes.

use proptest::prelude::*;
use similarity::learn::forest::trees::format::FormatError;
use similarity::learn::forest::{Forest, Settings};

use crate::sample::*;

fn forest(outcome: usize) -> Forest {
    let mixed = mixed(60, 14);
    let cohort = cohort(mixed.columns, mixed.outcomes[outcome].clone());
    grown(
        &cohort,
        &Settings {
            trees: 3,
            ..Settings::for_outcome(cohort.outcome())
        },
    )
    .forest
}

#[test]
fn a_forest_read_is_the_forest_written() {
    for outcome in 0..4 {
        let forest = forest(outcome);
        assert_eq!(Forest::from_bytes(&forest.to_bytes()).unwrap(), forest);
    }
}

/// The bytes of version 1, by hand: they must not change.
#[test]
fn the_bytes_of_version_one_stay_as_documented() {
    let cohort = cohort(vec![numeric("x", &[1.0, 2.0])], numbers(&[0.0, 4.0]));
    let bytes = grown(&cohort, &one_full_tree(cohort.outcome()))
        .forest
        .to_bytes();
    let mut wanted = b"KDFOREST\x01\x00\x00".to_vec();
    wanted.extend([1, 0, 0, 0, 1, 0, 0, 0, b'x', 0]);
    wanted.extend(8.0_f64.to_le_bytes());
    wanted.extend([1, 0, 0, 0, 3, 0, 0, 0]);
    wanted.extend([0, 0, 0, 0x80, 1, 0, 0, 0]);
    wanted.extend(1.5_f64.to_le_bytes());
    for ordinal in [0, 1] {
        wanted.extend([
            0xff, 0xff, 0xff, 0xff, ordinal, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ]);
    }
    wanted.extend([2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    wanted.extend(0.0_f64.to_le_bytes());
    wanted.extend(4.0_f64.to_le_bytes());
    assert_eq!(bytes, wanted);
}

#[test]
fn bytes_cut_short_or_drawn_out_are_refused() {
    for outcome in 0..4 {
        let bytes = forest(outcome).to_bytes();
        for length in 0..bytes.len() {
            assert!(Forest::from_bytes(&bytes[..length]).is_err());
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(
            Forest::from_bytes(&longer),
            Err(FormatError::Trailing { bytes: 1 })
        );
    }
    let mut bytes = forest(0).to_bytes();
    bytes[8] = 2;
    assert_eq!(
        Forest::from_bytes(&bytes),
        Err(FormatError::Version { found: 2 })
    );
    bytes[0] = b'k';
    assert_eq!(Forest::from_bytes(&bytes), Err(FormatError::Magic));
}

#[test]
fn an_announced_count_allocates_nothing_beyond_the_bytes() {
    let mut bytes = b"KDFOREST\x01\x00\x01".to_vec();
    bytes.extend(u32::MAX.to_le_bytes());
    assert_eq!(
        Forest::from_bytes(&bytes),
        Err(FormatError::Truncated { part: "a class" })
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn a_forest_with_bytes_changed_is_refused_or_can_be_applied(
        outcome in 0_usize..4, changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = forest(outcome).to_bytes();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(forest) = Forest::from_bytes(&bytes) {
            // The columns may no longer fit; otherwise every patient reaches a terminal node.
            if let Ok(nodes) = forest.apply(&mixed(60, 14).columns) {
                prop_assert_eq!(nodes.patients(), 60);
                prop_assert!(forest.predict(&mixed(60, 14).columns).is_ok());
            }
        }
    }
}
