//! How long an agent waits before it dials again.

use std::time::Duration;
use wire::Remedy;

/// The first and the longest pause after a fault of the network.
const SOON: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(5)];
/// The first and the longest pause after a refusal that most likely only a person ends.
const LATER: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(60)];
/// The pause after another holder of the certificate took this agent's place.
const REPLACED_PAUSE: Duration = Duration::from_secs(30);

/// How long to wait, by what may help.
pub(super) struct Pauses {
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

impl Pauses {
    pub(super) fn next(&mut self, remedy: Remedy) -> Duration {
        let (pause, longest) = match remedy {
            Remedy::Replaced => return REPLACED_PAUSE,
            Remedy::Soon => (&mut self.soon, SOON[1]),
            Remedy::Later | Remedy::Person => (&mut self.later, LATER[1]),
        };
        let next = *pause;
        *pause = (next * 2).min(longest);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_their_limits_and_a_replaced_agent_waits_long() {
        let mut pauses = Pauses::default();
        let all = |pauses: &mut Pauses, remedy| -> Vec<u128> {
            let next = |_| pauses.next(remedy).as_millis();
            (0..7).map(next).collect()
        };
        assert_eq!(
            all(&mut pauses, Remedy::Soon),
            [200, 400, 800, 1_600, 3_200, 5_000, 5_000]
        );
        let later = [5_000, 10_000, 20_000, 40_000, 60_000, 60_000, 60_000];
        assert_eq!(all(&mut pauses, Remedy::Person), later);
        assert_eq!(all(&mut pauses, Remedy::Replaced), [30_000; 7]);
    }
}
