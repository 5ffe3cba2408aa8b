//! Streams that two sites share, one of which adds what the other subtracts.

use super::words::{WORD_BYTES, Words};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};
use std::fmt;

/// Bytes of what two sites share.
pub const PAIR_BYTES: usize = 32;
/// Words that are covered at once: 16 kB of keystream.
const BLOCK_WORDS: usize = 1 << 10;

/// What one site shares with every other, by its place among the sites of the job. Nobody else can know it.
#[derive(Clone)]
pub struct Masks {
    own: usize,
    pairs: Vec<Option<[u8; PAIR_BYTES]>>,
}

impl Masks {
    /// Of the site at place `own`; `pairs` has a place for each site, none for itself and for whom it shares nothing with.
    #[must_use]
    pub fn new(own: usize, pairs: Vec<Option<[u8; PAIR_BYTES]>>) -> Self {
        Self { own, pairs }
    }

    /// Covers words, so that they can be read in the sum over exactly the sites of `roster`. `label` is said of no two
    /// covers of a run: it tells the run, the exchange, the roster and what is summed.
    ///
    /// False where the site shares nothing with one of the roster, or is none of it: nothing is covered then.
    #[must_use]
    pub fn cover(&self, roster: &[bool], label: &[u8], words: &mut Words) -> bool {
        let known = |site: usize| self.pairs.get(site).is_some_and(Option::is_some);
        let others: Vec<usize> = (0..roster.len())
            .filter(|site| roster[*site] && *site != self.own)
            .collect();
        let takes_part = roster.get(self.own).copied().unwrap_or(false);
        if !takes_part || others.is_empty() || !others.iter().all(|site| known(*site)) {
            return false;
        }
        for other in others {
            if let Some(Some(pair)) = self.pairs.get(other) {
                add_stream(stream(pair, label), words, other > self.own);
            }
        }
        true
    }
}

/// A keystream of the pair's, for this label alone.
fn stream(pair: &[u8; PAIR_BYTES], label: &[u8]) -> ChaCha20Rng {
    let mut key = Sha256::new();
    key.update(b"kindred: a mask, version 1");
    key.update(pair);
    key.update(Sha256::digest(label));
    ChaCha20Rng::from_seed(key.finalize().into())
}

fn add_stream(mut stream: ChaCha20Rng, words: &mut Words, adds: bool) {
    let mut bytes = [0; BLOCK_WORDS * WORD_BYTES];
    for block in words.as_mut_slice().chunks_mut(BLOCK_WORDS) {
        let bytes = &mut bytes[..block.len() * WORD_BYTES];
        stream.fill_bytes(bytes);
        for (word, mask) in block.iter_mut().zip(bytes.as_chunks().0) {
            let mask = u128::from_le_bytes(*mask);
            *word = match adds {
                true => word.wrapping_add(mask),
                false => word.wrapping_sub(mask),
            };
        }
    }
}

impl fmt::Debug for Masks {
    /// Nothing of them.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Masks").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn federation(sites: usize) -> Vec<Masks> {
        let pair = |one: usize, other: usize| {
            let (low, high) = (one.min(other) as u8, one.max(other) as u8);
            (one != other).then_some([low * 16 + high; PAIR_BYTES])
        };
        let masks = |own| Masks::new(own, (0..sites).map(|other| pair(own, other)).collect());
        (0..sites).map(masks).collect()
    }

    fn covered(
        masks: &[Masks],
        roster: &[bool],
        label: &[u8],
        own: &[Words],
    ) -> Vec<Option<Words>> {
        let cover = |(masks, words): (&Masks, &Words)| {
            let mut words = words.clone();
            masks.cover(roster, label, &mut words).then_some(words)
        };
        masks.iter().zip(own).map(cover).collect()
    }

    fn sum(all: &[Option<Words>]) -> Words {
        let mut all = all.iter().flatten();
        let mut sum = all.next().unwrap().clone();
        all.for_each(|own| sum.add(own).unwrap());
        sum
    }

    fn contributions(sites: usize, words: usize) -> Vec<Words> {
        let own = |site: usize| {
            (0..words)
                .map(|place| (site * 1_000 + place) as u128)
                .collect()
        };
        (0..sites).map(|site| Words::received(own(site))).collect()
    }

    #[test]
    fn masks_cancel_in_the_sum_over_their_roster_and_in_no_other() {
        let (masks, own) = (federation(4), contributions(4, 2_500));
        let plain: Vec<_> = own.iter().cloned().map(Some).collect();
        let all = covered(&masks, &[true; 4], b"exchange 3", &own);
        assert_eq!(sum(&all), sum(&plain));
        for out in 0..4 {
            let mut roster = [true; 4];
            roster[out] = false;
            // Without one of the roster nothing is left but masks.
            let (mut fewer, mut wanted) = (all.clone(), plain.clone());
            (fewer[out], wanted[out]) = (None, None);
            assert_ne!(sum(&fewer), sum(&wanted));
            let smaller = covered(&masks, &roster, b"exchange 4", &own);
            assert!(smaller[out].is_none());
            assert_eq!(sum(&smaller), sum(&wanted));
        }
        let other = covered(&masks, &[true; 4], b"exchange 4", &own);
        assert_ne!(all, other);
    }

    #[test]
    fn without_a_pair_nothing_is_covered() {
        let (mut masks, own) = (federation(3), contributions(3, 2));
        masks[0].pairs[1] = None;
        let found = covered(&masks, &[true; 3], b"a", &own);
        assert!(found[0].is_none() && found[1].is_some());
        let alone = covered(&masks, &[true, false, false], b"a", &own);
        assert!(alone.iter().all(Option::is_none));
    }

    /// 2,000 words of zeros at each of three sites: their bytes are as evenly spread as chance has it. 330.5 is exceeded once
    /// in a thousand (chi-square, 255 degrees of freedom).
    #[test]
    fn every_covered_word_looks_like_chance() {
        let own = vec![Words::received(vec![0; 2_000]); 3];
        for words in covered(&federation(3), &[true; 3], b"exchange 9", &own) {
            let mut seen = [0_u32; 256];
            let words = words.unwrap();
            let bytes = words.as_slice().iter().flat_map(|word| word.to_le_bytes());
            bytes.for_each(|byte| seen[usize::from(byte)] += 1);
            let expected = 2_000.0 * 16.0 / 256.0;
            let square = |count: &u32| (f64::from(*count) - expected).powi(2) / expected;
            let statistic: f64 = seen.iter().map(square).sum();
            assert!(statistic < 330.5, "{statistic}");
        }
    }

    /// The keystream of RFC 8439 (appendix A.1, test vector 1: a key of zeros) is what masks are made of.
    #[test]
    fn the_stream_is_chacha20() {
        let mut bytes = [0; 16];
        ChaCha20Rng::from_seed([0; 32]).fill_bytes(&mut bytes);
        let wanted = [
            0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90, 0x40, 0x5d, 0x6a, 0xe5, 0x53, 0x86,
            0xbd, 0x28,
        ];
        assert_eq!(bytes, wanted);
    }
}
