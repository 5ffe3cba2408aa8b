//! The end of the own certificate, said in time.

use crate::status::Gauge;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::watch::Receiver;
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

/// Looks at a certificate now, whenever it is another file, and every hour: its end is in the gauge, in seconds since 1970, and once a day
/// in the log where it is near.
pub async fn watch(mut certificate: Receiver<PathBuf>, gauge: &Gauge) {
    const LOOKS_A_DAY: u32 = 24;
    let mut look = tokio::time::interval(Duration::from_secs(DAY) / LOOKS_A_DAY);
    for place in (0..LOOKS_A_DAY).cycle() {
        tokio::select! {
            _ = look.tick() => {},
            () = changed(&mut certificate) => {},
        }
        let path = certificate.borrow_and_update().clone();
        let until = match certificates::valid_until(&path) {
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

/// Ready once it is another file, and never where nobody is left to name one.
async fn changed(certificate: &mut Receiver<PathBuf>) {
    if certificate.changed().await.is_err() {
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::watch::channel;
    use wire::certificates::{Validity, init};

    #[tokio::test]
    async fn another_certificate_is_looked_at_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
        init(&first, Validity::days(10)).unwrap();
        init(&second, Validity::days(400)).unwrap();
        let path = |folder: &PathBuf| folder.join("authority/certificate.pem");
        let (name, named) = channel(path(&first));
        let gauge = Gauge::default();
        let looked = async {
            let ends = async |later: i64| {
                while gauge.get() <= later {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                gauge.get()
            };
            let before = ends(0).await;
            name.send(path(&second)).unwrap();
            ends(before).await - before
        };
        let later = tokio::select! {
            later = looked => later,
            () = watch(named, &gauge) => 0,
        };
        assert!(later > 300 * 86_400, "{later}");
    }

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
