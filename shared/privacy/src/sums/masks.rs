//! Streams that two sites share, one of which adds what the other subtracts.

use super::total::{Tag, TagKey, Total};
use super::words::{WORD_BYTES, Words};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::fmt;

/// Bytes of what two sites share.
pub const PAIR_BYTES: usize = 32;
/// Words that are covered at once: 16 kB of keystream.
const BLOCK_WORDS: usize = 1 << 10;
/// Words that are covered by all streams one after another, side by side with others: they fit a core's cache.
const PART_WORDS: usize = 1 << 14;
/// A stream is placed by words of 32 bits.
const PLACES_A_WORD: usize = WORD_BYTES / 4;

/// What one site shares with every other, by its place among the sites of the job. Nobody else can know it.
#[derive(Clone)]
pub struct Masks {
    own: usize,
    pairs: Vec<Option<[u8; PAIR_BYTES]>>,
    /// What all of them share.
    common: Option<[u8; PAIR_BYTES]>,
}

/// What streams are of: a stream of one kind says nothing of one of the other.
const MASK: &[u8] = b"kindred: a mask, version 1";
const TAG: &[u8] = b"kindred: a tag, version 1";

impl Masks {
    /// Of the site at place `own`; `pairs` has a place for each site, none for itself and for sites with which it shares nothing.
    /// `common` is what all of them share, and the coordinator does not know; none where tags are not to be made.
    #[must_use]
    pub fn new(
        own: usize,
        pairs: Vec<Option<[u8; PAIR_BYTES]>>,
        common: Option<[u8; PAIR_BYTES]>,
    ) -> Self {
        Self { own, pairs, common }
    }

    /// Covers words, so that they can be read in the sum over all sites and in no other. `label` is said of no two covers of a
    /// run: it names the run, the exchange and what is summed.
    ///
    /// False where the site shares nothing with one of the others, or there is none: nothing is covered then.
    #[must_use]
    pub fn cover(&self, label: &[u8], words: &mut Words) -> bool {
        let Some(others) = self.others() else {
            return false;
        };
        let streams = others
            .into_iter()
            .map(|(other, pair)| (stream(MASK, pair, label), other > self.own));
        let streams: Vec<_> = streams.collect();
        let add_streams = |(part, words): (usize, &mut [u128])| {
            for (stream, adds) in &streams {
                let mut stream = stream.clone();
                stream.set_word_pos((part * PART_WORDS * PLACES_A_WORD) as u128);
                add_stream(stream, words, *adds);
            }
        };
        match words.as_mut_slice() {
            few if few.len() <= PART_WORDS => add_streams((0, few)),
            many => {
                let parts = many.par_chunks_mut(PART_WORDS).enumerate();
                parts.for_each(add_streams);
            }
        }
        true
    }

    /// The tag of words that were covered so, by which whoever shares what all share knows their sum again; none where nothing
    /// is shared by all, or [`Masks::cover`] covers nothing.
    #[must_use]
    pub fn tag(&self, label: &[u8], covered: &Words) -> Option<Tag> {
        let own = self.tag_key(label)?.of_words(covered);
        let add = |sum: Tag, (other, pair): (usize, &[u8; PAIR_BYTES])| {
            let pad = element(&mut stream(TAG, pair, label));
            match other > self.own {
                true => sum.plus(pad),
                false => sum.minus(pad),
            }
        };
        Some(self.others()?.into_iter().fold(own, add))
    }

    /// Whether a total is the sum of what all sites have covered so, each with its tag.
    #[must_use]
    pub fn proves(&self, label: &[u8], total: &Total) -> bool {
        let key = self.tag_key(label);
        key.is_some_and(|key| key.proves(total, self.sites()))
    }

    fn tag_key(&self, label: &[u8]) -> Option<TagKey> {
        let mut stream = stream(TAG, self.common.as_ref()?, label);
        Some(TagKey::new(element(&mut stream), element(&mut stream)))
    }

    /// All sites, this one among them.
    #[must_use]
    pub fn sites(&self) -> usize {
        self.pairs.len()
    }

    /// The other sites, with what is shared with each; none where one of them shares nothing, or nobody is there.
    fn others(&self) -> Option<Vec<(usize, &[u8; PAIR_BYTES])>> {
        let pairs = self.pairs.iter().enumerate();
        let others = pairs.filter(|(site, _)| *site != self.own);
        let shared = others.map(|(site, pair)| Some((site, pair.as_ref()?)));
        let others: Vec<_> = shared.collect::<Option<_>>()?;
        (!others.is_empty()).then_some(others)
    }
}

/// A keystream of what is shared, of one kind and for this label alone.
fn stream(kind: &[u8], shared: &[u8; PAIR_BYTES], label: &[u8]) -> ChaCha20Rng {
    let mut key = Sha256::new();
    key.update(kind);
    key.update(shared);
    key.update(Sha256::digest(label));
    ChaCha20Rng::from_seed(key.finalize().into())
}

/// The next number of the field of tags.
fn element(stream: &mut ChaCha20Rng) -> Tag {
    let mut bytes = [0; WORD_BYTES];
    stream.fill_bytes(&mut bytes);
    Tag::received(u128::from_le_bytes(bytes))
}

fn add_stream(mut stream: ChaCha20Rng, words: &mut [u128], adds: bool) {
    let mut bytes = [0; BLOCK_WORDS * WORD_BYTES];
    for block in words.chunks_mut(BLOCK_WORDS) {
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
    use crate::covered::Covered;

    fn federation(sites: usize) -> Vec<Masks> {
        let pair = |one: usize, other: usize| {
            let (low, high) = (one.min(other) as u8, one.max(other) as u8);
            (one != other).then_some([low * 16 + high; PAIR_BYTES])
        };
        let masks = |own| {
            let pairs = (0..sites).map(|other| pair(own, other)).collect();
            Masks::new(own, pairs, Some([255; PAIR_BYTES]))
        };
        (0..sites).map(masks).collect()
    }

    fn covered(masks: &[Masks], label: &[u8], own: &[Words]) -> Vec<Option<Words>> {
        let cover = |(masks, words): (&Masks, &Words)| {
            let mut words = words.clone();
            masks.cover(label, &mut words).then_some(words)
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
    fn masks_cancel_in_the_sum_over_all_sites_and_in_no_other() {
        let (masks, own) = (federation(4), contributions(4, 2_500));
        let plain: Vec<_> = own.iter().cloned().map(Some).collect();
        let all = covered(&masks, b"exchange 3", &own);
        assert_eq!(sum(&all), sum(&plain));
        for out in 0..4 {
            // Without one of them nothing is left but masks.
            let (mut fewer, mut wanted) = (all.clone(), plain.clone());
            (fewer[out], wanted[out]) = (None, None);
            assert_ne!(sum(&fewer), sum(&wanted));
        }
        let other = covered(&masks, b"exchange 4", &own);
        assert_ne!(all, other);
    }

    /// More sites than a run may have: the sum over all of them is the plain one, whatever each pair shares.
    #[test]
    fn masks_of_a_thousand_sites_cancel_in_their_sum() {
        const SITES: usize = 1_000;
        let pair = |one: usize, other: usize| {
            let mut shared = [0; PAIR_BYTES];
            shared[..8].copy_from_slice(&(one.min(other) as u64).to_le_bytes());
            shared[8..16].copy_from_slice(&(one.max(other) as u64).to_le_bytes());
            (one != other).then_some(shared)
        };
        let masks = |own| Masks::new(own, (0..SITES).map(|one| pair(own, one)).collect(), None);
        let masks: Vec<Masks> = (0..SITES).map(masks).collect();
        let own = contributions(SITES, 3);
        let plain: Vec<_> = own.iter().cloned().map(Some).collect();
        let all = covered(&masks, b"exchange 3", &own);
        assert_eq!(sum(&all), sum(&plain));
        assert_ne!(sum(&all[1..]), sum(&plain[1..]));
    }

    /// Parts that are covered side by side are covered by one stream: no piece of it is used twice.
    #[test]
    fn many_words_are_covered_by_one_stream_from_its_beginning() {
        let (masks, words) = (federation(3), 2 * PART_WORDS + 5_000);
        let own = vec![Words::received(vec![0; words]); 3];
        let all = covered(&masks, b"exchange 3", &own);
        let mut wanted = vec![0_u128; words];
        for (pair, adds) in [(&masks[1].pairs[0], false), (&masks[1].pairs[2], true)] {
            let mut bytes = vec![0; words * WORD_BYTES];
            stream(MASK, pair.as_ref().unwrap(), b"exchange 3").fill_bytes(&mut bytes);
            for (word, mask) in wanted.iter_mut().zip(bytes.as_chunks().0) {
                let mask = u128::from_le_bytes(*mask);
                *word = match adds {
                    true => word.wrapping_add(mask),
                    false => word.wrapping_sub(mask),
                };
            }
        }
        assert!(all[1] == Some(Words::received(wanted)), "other masks");
        assert_eq!(sum(&all), own[0]);
    }

    #[test]
    fn without_a_pair_nothing_is_covered() {
        let (mut masks, own) = (federation(3), contributions(3, 2));
        masks[0].pairs[1] = None;
        let found = covered(&masks, b"a", &own);
        assert!(found[0].is_none() && found[1].is_some());
        let alone = covered(&federation(1), b"a", &own);
        assert!(alone.iter().all(Option::is_none));
    }

    fn tagged(masks: &[Masks], label: &[u8], own: &[Words]) -> Vec<Covered> {
        let all = covered(masks, label, own).into_iter().zip(masks);
        let tagged = |(words, masks): (Option<Words>, &Masks)| {
            let words = words?;
            let tag = Some(masks.tag(label, &words)?);
            let kind = "moments";
            Some(Covered { kind, words, tag })
        };
        all.filter_map(tagged).collect()
    }

    #[test]
    fn a_total_is_proved_by_its_tag_and_no_other_is() {
        let (masks, own) = (federation(4), contributions(4, 300));
        let label = b"exchange 3";
        let all = tagged(&masks, label, &own);
        assert_eq!(all.len(), 4);
        let total = Total::of(all.iter()).unwrap().unwrap();
        let plain: Vec<_> = own.iter().cloned().map(Some).collect();
        assert_eq!(total.words(), sum(&plain));
        for masks in &masks {
            assert!(masks.proves(label, &total));
            assert!(!masks.proves(b"exchange 4", &total));
        }
        let mut words = total.as_slice().to_vec();
        for place in [0, 7, 299] {
            for half in 0..2 {
                let kept = words[place];
                words[place].halves[half] ^= 1;
                let other = Total::received(words.clone(), total.tag());
                assert!(!masks[0].proves(label, &other));
                words[place] = kept;
                words[place].carries[half] ^= 1;
                let other = Total::received(words.clone(), total.tag());
                assert!(!masks[0].proves(label, &other));
                words[place] = kept;
            }
        }
        // Whoever knows all that was sent: sums of other sites' words and tags, shifted, or nothing at all.
        let twice = Total::of(all.iter().chain(&all)).unwrap().unwrap();
        let fewer = Total::of(all[..2].iter()).unwrap().unwrap();
        let mut one = all.clone();
        one[1] = all[0].clone();
        let one = Total::of(one.iter()).unwrap().unwrap();
        let moved = Total::received(words[1..].to_vec(), total.tag());
        let zero = Total::received(vec![Default::default(); 300], Tag::received(0));
        let tag = Total::received(words, Tag::received(total.tag().number() + 1));
        for other in [twice, fewer, one, moved, zero, tag] {
            assert!(!masks[3].proves(label, &other));
        }
    }

    /// A tag that travels with the words looks random: no two of the same words are equal, in any exchange or at any site.
    #[test]
    fn tags_of_the_same_words_are_never_alike() {
        let (masks, own) = (federation(3), vec![Words::received(vec![7; 5]); 3]);
        let mut seen = std::collections::BTreeSet::new();
        for exchange in 0..200_u32 {
            for one in &masks {
                let tag = one.tag(&exchange.to_be_bytes(), &own[0]);
                assert!(seen.insert(tag.unwrap().number()));
            }
        }
        let alone = Masks::new(0, masks[0].pairs.clone(), None);
        assert!(alone.tag(b"a", &own[0]).is_none());
    }

    /// The sum of 256 answers of the largest words there are: what is carried is known.
    #[test]
    fn totals_of_the_largest_words_are_whole_numbers() {
        let own = Covered {
            kind: "moments",
            words: Words::received(vec![u128::MAX, 1 << 64]),
            tag: Some(Tag::received(0)),
        };
        let total = Total::of(std::iter::repeat_n(&own, 256)).unwrap().unwrap();
        let [first, second] = [total.as_slice()[0], total.as_slice()[1]];
        assert_eq!(
            (first.halves, first.carries),
            ([u64::MAX - 255; 2], [255; 2])
        );
        assert_eq!((second.halves, second.carries), ([0, 256], [0; 2]));
        let sum = u128::MAX.wrapping_mul(256);
        assert_eq!(total.words(), Words::received(vec![sum, 256 << 64]));
        let untagged = Covered { tag: None, ..own };
        assert_eq!(Total::of([&untagged].into_iter()), Ok(None));
    }

    /// 2,000 words of zeros at each of three sites: their bytes are as evenly spread as chance has it. 330.5 is exceeded once
    /// in a thousand (chi-square, 255 degrees of freedom).
    #[test]
    fn every_covered_word_looks_like_chance() {
        let own = vec![Words::received(vec![0; 2_000]); 3];
        for words in covered(&federation(3), b"exchange 9", &own) {
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
