//! The loss of listed pairs as a function of the threshold alone: what is compared does not depend on it.

use rayon::prelude::*;

use super::{ListedPairs, WORD};
use crate::learn::unpsl::sweep::{Kinds, Tallies, curvature_sum, sweep_labelled};

/// Pairs that one thread handles at a time.
const CHUNK: usize = 4096;
/// Chunks of a sample at least, and a quarter more at most: its threshold is some thousandths off.
const SAMPLE_CHUNKS: usize = 64;
/// How many times fewer it must be.
const FEWER: usize = 4;

/// Sums over the pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::learn::unpsl::pair_loss) struct Slopes {
    /// Of G_ij.
    pub(in crate::learn::unpsl::pair_loss) first: f64,
    /// Of the second derivatives.
    pub(in crate::learn::unpsl::pair_loss) second: f64,
}

impl ListedPairs {
    /// Which chunks of the pairs, every so many-th, are a sample with pairs of both kinds; none where it would not be far fewer.
    pub(in crate::learn::unpsl::pair_loss) fn sample(&self) -> Option<usize> {
        let chunks = self.alike.0.chunks_exact(CHUNK / WORD);
        let every = chunks.len() / SAMPLE_CHUNKS;
        if every < FEWER {
            return None;
        }
        let kinds = chunks.step_by(every).flatten();
        let differs = |kind: u64| kinds.clone().any(|word| *word != kind);
        (differs(0) && differs(u64::MAX)).then_some(every)
    }

    /// Of what was compared, at the threshold of `kinds`, in every so many-th chunk.
    pub(in crate::learn::unpsl::pair_loss) fn slopes(
        &self,
        compared: &[f64],
        kinds: Kinds,
        every: usize,
    ) -> Slopes {
        let of_chunk = |(chunk, compared): (usize, &[f64])| {
            let begin = chunk * CHUNK;
            let labels = self.alike.labels(begin..begin + compared.len());
            let mut scratch = [0.0; CHUNK];
            let values = &mut scratch[..compared.len()];
            values.copy_from_slice(compared);
            let mut tallies = Tallies::new();
            sweep_labelled(values, &labels, kinds, &mut tallies);
            Slopes {
                first: tallies.similar.derivative() + tallies.dissimilar.derivative(),
                second: curvature_sum(values, kinds),
            }
        };
        let chunks = compared.par_chunks(CHUNK).enumerate().step_by(every);
        let parts: Vec<Slopes> = chunks.map(of_chunk).collect();
        let sum = |of: fn(&Slopes) -> f64| parts.iter().map(of).sum();
        Slopes {
            first: sum(|part| part.first),
            second: sum(|part| part.second),
        }
    }
}
