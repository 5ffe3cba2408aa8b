//! Numbers as words: exact, and back.

#![allow(clippy::unwrap_used)] // a test panics, and says what it found

#[path = "support/numbers.rs"]
mod numbers;

use numbers::Numbers;
use privacy::sums::{NumberError, Words};
use proptest::prelude::*;

fn blank(counts: usize, reals: usize, measures: usize) -> Numbers {
    Numbers {
        counts: vec![0; counts],
        reals: vec![0.0; reals],
        measures: vec![0.0; measures],
    }
}

fn back(words: &Words, mut into: Numbers) -> Numbers {
    words.read_into(&mut into).unwrap();
    into
}

#[test]
fn what_fits_comes_back_as_it_was() {
    let mut numbers = Numbers {
        counts: vec![0, 1, 303, 1 << 40, u64::MAX],
        reals: vec![
            0.0,
            1.0,
            -0.5,
            0.636_231_575_055_074_5,
            -1e15,
            2_f64.powi(-64),
        ],
        measures: vec![1e-20, -1.5, 2_f64.powi(180), 1e40, -3.25e-30, 1_950.0, 0.1],
    };
    let words = Words::of(&mut numbers).unwrap();
    assert_eq!(words.as_slice().len(), 3 + 6 + 4 * 7);
    assert_eq!(Words::wanted(&mut numbers), words.as_slice().len());
    assert_eq!(back(&words, blank(5, 6, 7)), numbers);
}

#[test]
fn what_does_not_fit_is_an_error_before_anything_leaves() {
    for real in [2_f64.powi(54), f64::NAN, f64::NEG_INFINITY] {
        let mut numbers = Numbers {
            reals: vec![real],
            ..Numbers::default()
        };
        assert_eq!(Words::of(&mut numbers), Err(NumberError::OutOfRange));
    }
    for measure in [2_f64.powi(190), f64::NAN, f64::INFINITY] {
        let mut numbers = Numbers {
            measures: vec![measure],
            ..Numbers::default()
        };
        assert_eq!(Words::of(&mut numbers), Err(NumberError::OutOfRange));
    }
    let words = Words::of(&mut blank(1, 1, 1)).unwrap();
    let misfit = words.read_into(&mut blank(1, 1, 0));
    let (found, wanted) = (6, 2);
    assert_eq!(misfit, Err(NumberError::Length { found, wanted }));
}

proptest! {
    /// As conversion to 128 bits has it, which is slower.
    #[test]
    fn a_number_is_rounded_once_to_the_nearest(bits: u64, exponent in 0_i32..140) {
        let any = f64::from_bits(bits);
        let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | 1_f64.to_bits());
        let sized = mantissa * 2_f64.powi(exponent - 86) * any.signum();
        let halves = (bits >> 12) as f64 * 2_f64.powi(-65);
        for real in [any, sized, halves, -halves] {
            if real.abs() < 2_f64.powi(54) {
                let mut numbers = Numbers { reals: vec![real], ..Numbers::default() };
                let wanted = (real * 2_f64.powi(64)).round_ties_even() as i128;
                let found = Words::of(&mut numbers).unwrap();
                prop_assert_eq!(found.as_slice(), [wanted.cast_unsigned()]);
            }
        }
    }

    #[test]
    fn sums_are_exact_in_any_order(
        mut terms in prop::collection::vec((0_u64..1 << 40, -1_000_000_i64..1_000_000, -40_i32..40), 1..40),
    ) {
        let of = |(count, whole, exponent): &(u64, i64, i32)| Numbers {
            counts: vec![*count],
            reals: vec![*whole as f64 / 1_024.0],
            measures: vec![*whole as f64 * 2_f64.powi(*exponent)],
        };
        let sum = |terms: &[(u64, i64, i32)]| {
            let mut sum = Words::of(&mut blank(1, 1, 1)).unwrap();
            for term in terms {
                sum.add(&Words::of(&mut of(term)).unwrap()).unwrap();
            }
            sum
        };
        let forwards = sum(&terms);
        let told = back(&forwards, blank(1, 1, 1));
        prop_assert_eq!(told.counts[0], terms.iter().map(|term| term.0).sum::<u64>());
        let whole: i64 = terms.iter().map(|term| term.1).sum();
        prop_assert_eq!(told.reals[0], whole as f64 / 1_024.0);
        // Exact in whole multiples of 2^-40, then rounded once.
        let exact: i128 = terms.iter().map(|term| i128::from(term.1) << (term.2 + 40)).sum();
        let wanted = exact as f64 * 2_f64.powi(-40);
        prop_assert!((told.measures[0] - wanted).abs() <= wanted.abs() * f64::EPSILON);
        terms.reverse();
        prop_assert_eq!(sum(&terms), forwards);
    }
}
