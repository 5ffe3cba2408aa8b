//! A sum that is believed by who has not heard what was added.
//!
//! Each site adds a *tag* to its covered words: a polynomial in them at a secret point, modulo 2^127 - 1, covered as the words
//! are. The tags of all sites add up to the tag of the sum. The point is known to the sites alone and is another one for each
//! message, so that whoever says another sum finds its tag with a chance below 2^-100.
//!
//! Source: Wegman and Carter, "New hash functions and their use in authentication and set equality", 1981; the tags are
//! linear as those of Agrawal and Boneh, "Homomorphic MACs: MAC-based integrity for network coding", 2009.

use super::words::{NumberError, Words};
use crate::covered::Covered;
use rayon::prelude::*;
use std::fmt;

/// The field of tags: numbers modulo this.
const PRIME: u128 = (1 << 127) - 1;

/// Words whose part of the polynomial is worked out side by side with others.
const PART_WORDS: usize = 1 << 15;

/// What proves, in sum, that nothing but the sum was summed: a number below 2^127 - 1.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Tag(u128);

/// The secrets by which tags of one message are made: known to the sites alone.
#[derive(Clone, Copy)]
pub(super) struct TagKey {
    point: Tag,
    pad: Tag,
}

/// Words of several sites added up, with what was carried out of each half of 64 bits, so that the sum is known as a whole
/// number.
#[derive(Clone, PartialEq, Eq)]
pub struct Total {
    words: Vec<TotalWord>,
    tag: Tag,
}

/// One word of a [`Total`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TotalWord {
    /// The sums of the lower and of the higher halves, modulo 2^64.
    pub halves: [u64; 2],
    /// What they lack.
    pub carries: [u8; 2],
}

impl Tag {
    /// A tag as it came.
    #[must_use]
    pub fn received(number: u128) -> Self {
        Self(reduced(number))
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> u128 {
        self.0
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self(reduced(self.0 + other.0))
    }

    pub(super) fn minus(self, other: Self) -> Self {
        Self(reduced(self.0 + (PRIME - other.0)))
    }

    fn times(self, other: Self) -> Self {
        const LOW: u128 = (1 << 64) - 1;
        let [(a, b), (c, d)] = [self.0, other.0].map(|one| (one >> 64, one & LOW));
        // 2^128 is 2 in the field, and so 2^64 times a middle is its higher part and 2^64 times its lower 63 bits.
        let middle = a * d + b * c;
        let middle = (middle >> 63) + ((middle & (LOW >> 1)) << 64);
        Self(reduced(2 * a * c + middle)).plus(Self(reduced(b * d)))
    }

    /// It times itself, so many times.
    fn power(self, mut times: usize) -> Self {
        let (mut power, mut square) = (Self(1), self);
        while times > 0 {
            if times % 2 == 1 {
                power = power.times(square);
            }
            square = square.times(square);
            times /= 2;
        }
        power
    }
}

/// Below 2^127 - 1, which is 0.
fn reduced(number: u128) -> u128 {
    match (number & PRIME) + (number >> 127) {
        sum if sum >= PRIME => sum - PRIME,
        sum => sum,
    }
}

impl TagKey {
    pub(super) fn new(point: Tag, pad: Tag) -> Self {
        Self { point, pad }
    }

    /// The tag of a site's words.
    pub(super) fn of_words(&self, words: &Words) -> Tag {
        #[allow(clippy::cast_possible_truncation)] // two halves
        let halves = |word: &u128| [*word as u64, (*word >> 64) as u64].map(u128::from);
        self.at_point(words.as_slice(), halves).plus(self.pad)
    }

    /// The tag that the sum over so many sites must have.
    fn of_total(&self, total: &Total, sites: usize) -> Tag {
        let half = |one: &TotalWord| {
            let [low, high] = one.halves.map(u128::from);
            let [carried, lost] = one.carries.map(|carry| u128::from(carry) << 64);
            [low + carried, high + lost]
        };
        self.at_point(&total.words, half)
            .plus(self.pad.times(Tag(sites as u128)))
    }

    /// The polynomial whose coefficients are the halves of the words, the first that of the highest power; it has no constant.
    fn at_point<W: Sync>(&self, words: &[W], halves: impl Fn(&W) -> [u128; 2] + Sync) -> Tag {
        let of_part = |part: &[W]| self.of_part(part, &halves);
        if words.len() <= PART_WORDS {
            return of_part(words);
        }
        let parts = words.par_chunks(PART_WORDS);
        let parts: Vec<_> = parts.map(|part| (of_part(part), part.len())).collect();
        let join = |so_far: Tag, (own, words): (Tag, usize)| {
            so_far.times(self.point.power(2 * words)).plus(own)
        };
        parts.into_iter().fold(Tag(0), join)
    }

    /// Two words at a time: three of the four products wait for nothing.
    fn of_part<W>(&self, words: &[W], halves: &impl Fn(&W) -> [u128; 2]) -> Tag {
        let [first, second, third, fourth] = [1, 2, 3, 4].map(|times| self.point.power(times));
        let (pairs, rest) = words.as_chunks();
        let pair = |so_far: Tag, [one, other]: &[W; 2]| {
            let ([a, b], [c, d]) = (halves(one), halves(other));
            let known = Tag(b).times(third).plus(Tag(c).times(second));
            let known = known.plus(Tag(d).times(first));
            so_far.plus(Tag(a)).times(fourth).plus(known)
        };
        let of_pairs = pairs.iter().fold(Tag(0), pair);
        let step = |so_far: Tag, half: u128| so_far.plus(Tag(half)).times(first);
        rest.iter().flat_map(halves).fold(of_pairs, step)
    }

    pub(super) fn proves(&self, total: &Total, sites: usize) -> bool {
        self.of_total(total, sites) == total.tag
    }
}

impl Total {
    /// The sum of what sites have covered; none where one of them has no tag, or there are none.
    ///
    /// # Errors
    /// [`NumberError::Length`] where they are of different lengths.
    pub fn of<'c>(covered: impl Iterator<Item = &'c Covered>) -> Result<Option<Self>, NumberError> {
        let mut total: Option<Self> = None;
        for one in covered {
            let Some(tag) = one.tag else { return Ok(None) };
            let words = one.words.as_slice();
            let total = total.get_or_insert_with(|| Self {
                words: vec![TotalWord::default(); words.len()],
                tag: Tag(0),
            });
            let (found, wanted) = (words.len(), total.words.len());
            if found != wanted {
                return Err(NumberError::Length { found, wanted });
            }
            total.tag = total.tag.plus(tag);
            for (sum, word) in total.words.iter_mut().zip(words) {
                #[allow(clippy::cast_possible_truncation)] // two halves
                let halves = [*word as u64, (*word >> 64) as u64];
                let sums = sum.halves.iter_mut().zip(&mut sum.carries);
                for ((sum, carry), half) in sums.zip(halves) {
                    let (added, overflows) = sum.overflowing_add(half);
                    *sum = added;
                    // Of 256 sites at most.
                    *carry = carry.wrapping_add(u8::from(overflows));
                }
            }
        }
        Ok(total)
    }

    /// A total as it came.
    #[must_use]
    pub fn received(words: Vec<TotalWord>, tag: Tag) -> Self {
        Self { words, tag }
    }

    /// Its words with what they carry.
    #[must_use]
    pub fn as_slice(&self) -> &[TotalWord] {
        &self.words
    }

    /// The sum of the tags.
    #[must_use]
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// The sum modulo 2^128, as adding the words gives it.
    #[must_use]
    pub fn words(&self) -> Words {
        let word = |one: &TotalWord| {
            let [low, high] = one.halves;
            let high = high.wrapping_add(u64::from(one.carries[0]));
            u128::from(low) | u128::from(high) << 64
        };
        Words::received(self.words.iter().map(word).collect())
    }
}

impl fmt::Debug for Tag {
    /// Nothing of it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a tag")
    }
}

impl fmt::Debug for Total {
    /// How many: not what they are.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a total of {} words", self.words.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whole numbers by another way: schoolbook multiplication bit by bit.
    fn product(a: u128, b: u128) -> u128 {
        let mut sum = 0;
        for bit in (0..127).rev() {
            sum = reduced(2 * sum);
            if b >> bit & 1 == 1 {
                sum = reduced(sum + a);
            }
        }
        sum
    }

    #[test]
    fn the_field_multiplies_as_bit_by_bit() {
        let mut number = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835_u128;
        let mut next = || {
            number = number
                .wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645)
                .wrapping_add(1);
            reduced(number)
        };
        for _ in 0..2_000 {
            let (a, b) = (next(), next());
            assert_eq!(Tag(a).times(Tag(b)).0, product(a, b));
            assert_eq!(Tag(a).plus(Tag(b)).minus(Tag(b)).0, a);
        }
        let ends = [0, 1, 2, PRIME - 1, PRIME - 2, 1 << 64, (1 << 64) - 1];
        for a in ends {
            for b in ends {
                assert_eq!(Tag(a).times(Tag(b)).0, product(a, b));
            }
        }
        // Fermat: the power by the group's order is 1.
        let (mut power, mut square) = (Tag(1), Tag(3));
        for bit in 0..127 {
            if (PRIME - 1) >> bit & 1 == 1 {
                power = power.times(square);
            }
            square = square.times(square);
        }
        assert_eq!(power.0, 1);
    }

    const HALF: u128 = (1 << 64) - 1;

    /// Parts and pairs of words change nothing: it is the polynomial, step by step.
    #[test]
    fn words_of_any_number_have_the_tag_of_one_polynomial() {
        let key = TagKey::new(Tag(PRIME / 3), Tag(5));
        for count in [0, 1, 2, 3, PART_WORDS, 2 * PART_WORDS + 3] {
            let word = |place: usize| (place as u128).wrapping_mul(PRIME / 7).rotate_left(31);
            let words: Vec<u128> = (0..count).map(word).collect();
            let halves = words.iter().flat_map(|word| [word & HALF, word >> 64]);
            let step = |so_far: Tag, half| so_far.plus(Tag(half)).times(key.point);
            let wanted = halves.fold(Tag(0), step).plus(key.pad);
            assert!(
                key.of_words(&Words::received(words)) == wanted,
                "{count} words"
            );
        }
    }
}
