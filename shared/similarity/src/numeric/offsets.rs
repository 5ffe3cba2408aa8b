//! Where the multiples lie that a site rounds its numbers to.
//!
//! Steps along a site's own axes, and those of its own size, are a site's own. So one sum of multiples of the steps of three sites has one
//! solution: how many each has said, and with that how many patients of each have a level. Multiples that begin at an offset that nobody
//! else knows have none, or hundreds: all that fit but for the offsets (subtractive dither: Schuchman, IEEE Trans. Commun. Technol. 12,
//! 1964). A number is off by half a step at most, as without.
//!
//! Offsets follow from the site's secret, its patients and the question: whoever asks the same again gets the same, and learns nothing by
//! the mean of many.

use std::fmt;

use ndarray::Array2;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::precision::nearest;
use super::seed::{FNV_PRIME, Seed, folded};

/// From the lowest offset to the highest, in steps. Of numbers of fifty steps hundreds fit any sum of three sites. Larger ones would make
/// small numbers large, and searches longer.
const SHARE: f64 = 0.125;

/// The offsets of what is said of one site's patients.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Offsets {
    /// Multiples of the step: nobody else adds to the sum.
    None,
    /// Of a secret, and a digest of the patients and of what is asked about them.
    Secret(Seed, u64),
}

impl Offsets {
    /// Of the site's `secret`, the numbers of its patients, and all else of a question but its numbers.
    #[must_use]
    pub fn of<'n>(secret: Seed, patients: impl Iterator<Item = &'n f64>, about: &str) -> Self {
        Self::Secret(secret, digest(folded(about), patients))
    }

    /// Those of a question of this name at these numbers.
    #[must_use]
    pub fn at<'n>(self, name: &str, numbers: impl Iterator<Item = &'n f64>) -> Shifted {
        match self {
            Self::None => Shifted(None),
            Self::Secret(secret, of) => {
                let stream = secret.stream(name, digest(of, numbers));
                Shifted(Some(stream))
            }
        }
    }
}

fn digest<'n>(from: u64, numbers: impl Iterator<Item = &'n f64>) -> u64 {
    // 0 and -0 are one number.
    numbers.fold(from, |hash, number| {
        (hash ^ (number + 0.0).to_bits())
            .wrapping_mul(FNV_PRIME)
            .rotate_left(29)
    })
}

/// Without the secret.
impl fmt::Debug for Offsets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Secret(..) => "Secret",
        })
    }
}

/// The offsets of one answer, one number after the other.
pub struct Shifted(Option<ChaCha8Rng>);

impl Shifted {
    /// The nearest multiple of `step` from the next offset on, or the number where that is 0.
    pub fn nearest(&mut self, number: f64, step: f64) -> f64 {
        let offset = match &mut self.0 {
            Some(stream) => (stream.random::<f64>() - 0.5) * SHARE * step,
            None => 0.0,
        };
        nearest(number - offset, step) + offset
    }

    /// The same of each number of a symmetric matrix.
    pub fn symmetric(&mut self, mut matrix: Array2<f64>, step: f64) -> Array2<f64> {
        for row in 0..matrix.nrows() {
            for column in 0..=row {
                let rounded = self.nearest(matrix[[row, column]], step);
                matrix[[row, column]] = rounded;
                matrix[[column, row]] = rounded;
            }
        }
        matrix
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn the_same_question_has_the_same_offsets_and_any_other_has_others() {
        let patients = array![[1.0, 2.0], [3.0, 4.0]];
        let other = array![[1.0, 2.0], [3.0, 4.5]];
        let own = Offsets::of(Seed(1), patients.iter(), "x");
        let said = |offsets: Offsets, name: &str, at: &[f64]| {
            offsets.at(name, at.iter()).nearest(0.3, 1.0)
        };
        assert_eq!(said(own, "a", &[0.0, 1.0]), said(own, "a", &[-0.0, 1.0]));
        for found in [
            said(own, "a", &[1.0, 0.0]),
            said(own, "b", &[0.0, 1.0]),
            said(Offsets::of(Seed(2), patients.iter(), "x"), "a", &[0.0, 1.0]),
            said(Offsets::of(Seed(1), other.iter(), "x"), "a", &[0.0, 1.0]),
            said(Offsets::of(Seed(1), patients.iter(), "y"), "a", &[0.0, 1.0]),
        ] {
            assert_ne!(found, said(own, "a", &[0.0, 1.0]));
        }
        assert_eq!(said(Offsets::None, "a", &[]), 0.0);
    }

    #[test]
    fn a_number_is_off_by_half_a_step_at_most_and_no_two_are_alike() {
        let none = Array2::zeros((0, 0));
        let mut shifted = Offsets::of(Seed(3), none.iter(), "").at("a", [].iter());
        let mut last = f64::NAN;
        for place in 0..20_000 {
            let number = f64::from(place % 7) * 0.37;
            let found = shifted.nearest(number, 0.5);
            assert!((found - number).abs() <= 0.25 + 1e-12, "{found}");
            assert_ne!(found - number, last);
            last = found - number;
            let zero = shifted.nearest(0.0, 0.5);
            assert!(zero != 0.0 && zero.abs() <= 0.5 * SHARE / 2.0, "{zero}");
        }
        assert_eq!(shifted.nearest(0.3, 0.0), 0.3);
        let three = shifted.symmetric(Array2::ones((3, 3)), 0.7);
        assert_eq!(three, three.t());
    }
}
