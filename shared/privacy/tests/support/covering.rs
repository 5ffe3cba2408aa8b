//! A gate of one of three sites, by which messages leave covered.

use privacy::sums::{Masks, PAIR_BYTES, Summand};
use privacy::{Covered, Covering, Disclosure, Gate, Refusal, Released};

/// Covers a message of one of three sites; the masks are no secret here.
pub(crate) fn cover<T>(gate: &mut Gate, message: T) -> Result<Released<T>, Refusal>
where
    T: Disclosure + Summand + From<Covered>,
{
    with_covering(|covering| gate.release_covered(message, covering))
}

/// Covers a message again that left before; `is_same` says whether it is the same.
pub(crate) fn cover_again<T>(gate: &Gate, message: T, is_same: bool) -> Result<Released<T>, Refusal>
where
    T: Disclosure + Summand + From<Covered>,
{
    with_covering(|covering| gate.repeat_covered(message, covering, |_| is_same))
}

fn with_covering<R>(covers: impl FnOnce(&Covering<'_>) -> R) -> R {
    let pairs = vec![None, Some([1; PAIR_BYTES]), Some([2; PAIR_BYTES])];
    let masks = Masks::new(0, pairs, Some([3; PAIR_BYTES]));
    covers(&Covering {
        masks: &masks,
        run: "run",
        heard: "heard",
        exchange: 4,
        tagged: false,
    })
}
