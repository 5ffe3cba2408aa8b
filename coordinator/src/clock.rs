//! The one clock of the coordinator: it goes on steadily, whatever happens to the clock on the wall.

use protocol::time::Timestamp;
use std::time::{Instant, SystemTime};

/// Reads the clock on the wall once, and from then on counts the time that passes.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    base: Timestamp,
    started: Instant,
}

impl Clock {
    /// A clock that shows the wall's time, or `earliest` where the wall is behind what was stored.
    #[must_use]
    pub fn start(earliest: Timestamp) -> Self {
        let since = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let wall = Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
        Self {
            base: wall.max(earliest),
            started: Instant::now(),
        }
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.base.after(self.started.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_never_shows_a_time_before_what_was_stored() {
        let future = Timestamp(u64::MAX / 2);
        assert!(Clock::start(future).now() >= future);
    }
}
