//! How long a party waits before it dials a coordinator again.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;
use wire::Remedy;

/// The first and the longest pause after a fault of the network.
const SOON: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(5)];
/// The first and the longest pause after a refusal that most likely only a person ends.
const LATER: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(60)];
/// The pause after another holder of the certificate took this agent's place.
const REPLACED_PAUSE: Duration = Duration::from_secs(30);

/// How long to wait, by what may help; longer from time to time.
#[derive(Debug)]
pub struct Pauses {
    soon: Duration,
    later: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self {
            soon: SOON[0],
            later: LATER[0],
        }
    }
}

/// A quarter shorter to a quarter longer, so that agents who lost one coordinator do not all come back at once.
fn spread(pause: Duration) -> Duration {
    // Each state of the library's hash is drawn anew.
    let drawn = RandomState::new().build_hasher().finish() % 1_024;
    #[allow(clippy::cast_precision_loss)] // below 1,024
    let part = drawn as f64 / 2_048.0;
    pause.mul_f64(0.75 + part)
}

impl Pauses {
    /// The next of them.
    pub fn next(&mut self, remedy: Remedy) -> Duration {
        let (pause, longest) = match remedy {
            Remedy::Replaced => return spread(REPLACED_PAUSE),
            Remedy::Soon => (&mut self.soon, SOON[1]),
            Remedy::Later | Remedy::Person => (&mut self.later, LATER[1]),
        };
        let next = *pause;
        *pause = (next * 2).min(longest);
        spread(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn pauses_grow_to_their_limits_and_a_replaced_agent_waits_long() {
        let mut pauses = Pauses::default();
        let mut are = |remedy, wanted: [u64; 7]| {
            for wanted in wanted.map(Duration::from_millis) {
                let found = pauses.next(remedy);
                let near = wanted.mul_f64(0.75)..=wanted.mul_f64(1.25);
                assert!(near.contains(&found), "{found:?}, {wanted:?}");
            }
        };
        are(Remedy::Soon, [200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        let later = [5_000, 10_000, 20_000, 40_000, 60_000, 60_000, 60_000];
        are(Remedy::Person, later);
        are(Remedy::Replaced, [30_000; 7]);
    }

    #[test]
    fn agents_who_lost_one_coordinator_come_back_apart() {
        let all: BTreeSet<Duration> = (0..50).map(|_| spread(SOON[1])).collect();
        assert!(all.len() > 20, "{all:?}");
    }
}
