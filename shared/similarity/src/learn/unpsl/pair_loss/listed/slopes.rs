//! The loss of listed pairs as a function of the threshold alone: what is compared does not depend on it.

use rayon::prelude::*;

use super::ListedPairs;
use crate::learn::unpsl::sweep::{Kinds, Tallies, curvature_sum, sweep_labelled};

/// Pairs that one thread handles at a time.
const CHUNK: usize = 4096;

/// Sums over the pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::learn::unpsl::pair_loss) struct Slopes {
    /// Of G_ij.
    pub(in crate::learn::unpsl::pair_loss) first: f64,
    /// Of the second derivatives.
    pub(in crate::learn::unpsl::pair_loss) second: f64,
}

impl ListedPairs {
    /// Of what was compared, at the threshold of `kinds`.
    pub(in crate::learn::unpsl::pair_loss) fn slopes(
        &self,
        compared: &[f64],
        kinds: Kinds,
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
        let chunks = compared.par_chunks(CHUNK).enumerate();
        let parts: Vec<Slopes> = chunks.map(of_chunk).collect();
        let sum = |of: fn(&Slopes) -> f64| parts.iter().map(of).sum();
        Slopes {
            first: sum(|part| part.first),
            second: sum(|part| part.second),
        }
    }
}
