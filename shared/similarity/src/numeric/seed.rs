//! Named streams of randomness derived from one seed.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// The seed of a run. Equal seeds give equal results, on any number of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Seed {
    /// The stream called `name` with number `index`, independent of every other (name, index).
    ///
    /// The name is folded into the key by FNV-1a; the index selects ChaCha's own stream number.
    #[must_use]
    pub fn stream(self, name: &str, index: u64) -> ChaCha8Rng {
        let mut key = [0_u8; 32];
        key[..8].copy_from_slice(&self.0.to_le_bytes());
        key[8..16].copy_from_slice(&folded(name).to_le_bytes());
        let mut stream = ChaCha8Rng::from_seed(key);
        stream.set_stream(index);
        stream
    }
}

/// The prime of FNV-1a of 64 bits.
pub(super) const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// A name by FNV-1a.
pub(super) fn folded(name: &str) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    name.bytes().fold(OFFSET, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn streams_differ_by_seed_name_and_index_and_repeat() {
        let draw = |seed: u64, name: &str, index: u64| Seed(seed).stream(name, index).next_u64();
        assert_eq!(draw(1, "tree", 0), draw(1, "tree", 0));
        assert_ne!(draw(1, "tree", 0), draw(2, "tree", 0));
        assert_ne!(draw(1, "tree", 0), draw(1, "start", 0));
        assert_ne!(draw(1, "tree", 0), draw(1, "tree", 1));
    }
}
