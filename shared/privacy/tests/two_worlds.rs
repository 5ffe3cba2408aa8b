//! Promise: whoever adds up what sites tell learns the sum and nothing else. Two federations whose patients differ, and whose sums
//! are equal, are told apart by nothing that is decoded; and every word looks like chance. Faults that can be planted to see
//! the judge object:
//!
//! | planted fault | caught by |
//! | --- | --- |
//! | a mask is used again in the next exchange | the words of two exchanges differ by no chance |
//! | both of a pair add their stream | the sum is not the sum |
//! | the mask is a constant | the words are no chance |
//! | a word is left out of the mask | the words are no chance |

#![allow(clippy::unwrap_used)] // a test panics, and says what it found

#[path = "support/numbers.rs"]
mod numbers;

use numbers::Numbers;
use privacy::sums::{Masks, PAIR_BYTES, Words};

const SITES: usize = 4;
const NUMBERS: usize = 300;
/// Exceeded once in a million by chi-square of 255 degrees of freedom.
const CHANCE: f64 = 370.0;

/// How a site covers its words in an exchange.
type Cover = fn(site: usize, exchange: u8, words: Words) -> Words;

fn masks(site: usize, pair: impl Fn(usize, usize) -> u8) -> Masks {
    let pair = |other: usize| (other != site).then(|| [pair(site, other); PAIR_BYTES]);
    Masks::new(site, (0..SITES).map(pair).collect(), None)
}

fn unordered(one: usize, other: usize) -> u8 {
    (one.min(other) * 16 + one.max(other)) as u8
}

fn honest(site: usize, exchange: u8, mut words: Words) -> Words {
    assert!(masks(site, unordered).cover(&[exchange], &mut words));
    words
}

fn used_again(site: usize, _: u8, words: Words) -> Words {
    honest(site, 0, words)
}

fn both_add(site: usize, exchange: u8, mut words: Words) -> Words {
    // As if every other site came later in the job.
    let shifted = |other: usize| (other != site).then(|| [unordered(site, other); PAIR_BYTES]);
    let mut pairs: Vec<_> = (0..SITES)
        .filter(|other| *other != site)
        .map(shifted)
        .collect();
    pairs.insert(0, None);
    assert!(Masks::new(0, pairs, None).cover(&[exchange], &mut words));
    words
}

fn constant(site: usize, _: u8, words: Words) -> Words {
    let sign = |other: usize| if other > site { 1_u128 } else { u128::MAX };
    let others = (0..SITES).filter(|other| *other != site);
    let mask = others.fold(0_u128, |sum, other| {
        sum.wrapping_add(sign(other).wrapping_mul(0x1234_5678_9abc_def0 << 40))
    });
    let covered = words.as_slice().iter().map(|word| word.wrapping_add(mask));
    Words::received(covered.collect())
}

fn left_out(site: usize, exchange: u8, words: Words) -> Words {
    let plain = words.as_slice().to_vec();
    let mut covered = honest(site, exchange, words).as_slice().to_vec();
    // Every third.
    covered
        .iter_mut()
        .zip(plain)
        .step_by(3)
        .for_each(|(covered, plain)| *covered = plain);
    Words::received(covered)
}

/// Patients of two worlds: what the first site has more in one, the second has less.
fn world(second: bool) -> Vec<Numbers> {
    let own = |site: usize| {
        let moved = match (second, site) {
            (true, 0) => 1.0,
            (true, 1) => -1.0,
            _ => 0.0,
        };
        let number = |place: usize| ((site * 37 + place * 11) % 97) as f64 / 8.0;
        Numbers {
            counts: (0..NUMBERS)
                .map(|place| 50 + (site * 5 + place) as u64 % 13)
                .map(|count| count.checked_add_signed(moved as i64 * 3).unwrap())
                .collect(),
            reals: (0..NUMBERS)
                .map(|place| number(place) + moved * 0.125)
                .collect(),
            measures: (0..NUMBERS)
                .map(|place| 1e3 * number(place) - moved * 4.5)
                .collect(),
        }
    };
    (0..SITES).map(own).collect()
}

fn is_chance(words: impl Iterator<Item = u128>) -> bool {
    let mut seen = [0_u64; 256];
    let mut bytes = 0_u64;
    for byte in words.flat_map(u128::to_le_bytes) {
        seen[usize::from(byte)] += 1;
        bytes += 1;
    }
    let expected = bytes as f64 / 256.0;
    let square = |count: &u64| (*count as f64 - expected).powi(2) / expected;
    seen.iter().map(square).sum::<f64>() < CHANCE
}

fn difference(one: &Words, other: &Words) -> impl Iterator<Item = u128> {
    let pairs = one.as_slice().iter().zip(other.as_slice());
    pairs
        .map(|(one, other)| one.wrapping_sub(*other))
        .collect::<Vec<_>>()
        .into_iter()
}

fn sum(all: &[Words]) -> Words {
    let mut sum = all[0].clone();
    all[1..].iter().for_each(|own| sum.add(own).unwrap());
    sum
}

/// What is wrong with a way to cover; none where nothing is.
fn complaint(cover: Cover) -> Option<&'static str> {
    let covered = |second: bool, exchange: u8| -> Vec<Words> {
        let sites = world(second).into_iter().enumerate();
        sites
            .map(|(site, mut own)| cover(site, exchange, Words::of(&mut own).unwrap()))
            .collect()
    };
    let decoded = |words: &[Words]| {
        let mut numbers = world(false).remove(0);
        sum(words).read_into(&mut numbers).unwrap();
        numbers
    };
    let plain: Vec<Words> = world(false)
        .iter()
        .map(|own| Words::of(&mut own.clone()).unwrap())
        .collect();
    for exchange in 0..3 {
        let (first, second) = (covered(false, exchange), covered(true, exchange));
        if sum(&first) != sum(&plain) {
            return Some("the sum is not the sum");
        }
        if decoded(&first) != decoded(&second) {
            return Some("two worlds of equal sums are told apart");
        }
        let next = covered(false, exchange + 1);
        for (site, own) in first.iter().enumerate() {
            if !is_chance(own.as_slice().iter().copied()) {
                return Some("the words are no chance");
            }
            if !is_chance(difference(own, &next[site])) {
                return Some("the words of two exchanges differ by no chance");
            }
        }
    }
    None
}

#[test]
fn two_worlds_of_equal_sums_are_told_apart_by_nothing() {
    assert_eq!(complaint(honest), None);
}

#[test]
fn every_planted_fault_is_caught() {
    let faults: [(Cover, &str); 4] = [
        (used_again, "the words of two exchanges differ by no chance"),
        (both_add, "the sum is not the sum"),
        (constant, "the words are no chance"),
        (left_out, "the words are no chance"),
    ];
    for (fault, wanted) in faults {
        assert_eq!(complaint(fault), Some(wanted));
    }
}
