//! The end of the own certificate, said in time.

use crate::status::Gauge;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wire::certificates;

/// So long before its end a certificate is said to end soon.
pub const WARNED_AHEAD: Duration = Duration::from_secs(30 * DAY);
const DAY: u64 = 24 * 60 * 60;

/// What is left of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// Whole days, more than [`WARNED_AHEAD`] has.
    Enough(u64),
    /// Whole days, no more than that.
    Few(u64),
    /// Its end has passed.
    Nothing,
}

impl Left {
    /// Of one that is valid until then.
    #[must_use]
    pub fn of(until: SystemTime, now: SystemTime) -> Self {
        match until.duration_since(now) {
            Err(_) => Self::Nothing,
            Ok(left) if left <= WARNED_AHEAD => Self::Few(left.as_secs() / DAY),
            Ok(left) => Self::Enough(left.as_secs() / DAY),
        }
    }
}

/// Looks at a certificate now and every hour: its end is in the gauge, in seconds since 1970, and once a day in the log where it is near.
pub async fn watch(certificate: &Path, gauge: &Gauge) {
    const LOOKS_A_DAY: u32 = 24;
    let mut look = tokio::time::interval(Duration::from_secs(DAY) / LOOKS_A_DAY);
    for place in (0..LOOKS_A_DAY).cycle() {
        look.tick().await;
        let until = match certificates::valid_until(certificate) {
            Ok(until) => until,
            Err(error) => {
                tracing::error!(%error, "the own certificate cannot be read");
                continue;
            }
        };
        let since = until.duration_since(UNIX_EPOCH).unwrap_or_default();
        gauge.set(i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
        match Left::of(until, SystemTime::now()) {
            Left::Few(days) if place == 0 => tracing::warn!(
                days,
                "the own certificate ends soon; ask for a new one, and put it in the place of the old one"
            ),
            Left::Nothing => tracing::error!("the own certificate has ended; ask for a new one"),
            Left::Few(_) | Left::Enough(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_near_its_end_thirty_days_ahead() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000 * DAY);
        let left = |days: u64| Left::of(UNIX_EPOCH + Duration::from_secs(days * DAY), now);
        assert_eq!(left(1_031), Left::Enough(31));
        assert_eq!(left(1_030), Left::Few(30));
        assert_eq!(left(1_000), Left::Few(0));
        assert_eq!(left(999), Left::Nothing);
    }
}
