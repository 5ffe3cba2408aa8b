//! Where a run stands, for people.

use super::{Run, SiteState, Step};
use crate::exchange::count;
use crate::progress::{Progress, Times};
use crate::time::Timestamp;

impl Run {
    /// Where the run stands.
    #[must_use]
    pub fn progress(&self, now: Timestamp) -> Progress {
        let (waiting_for, since): (Vec<&SiteState>, _) = match &self.step {
            Step::Joining { since } => {
                let away = self.sites.iter().filter(|site| !site.is_up());
                (away.collect(), *since)
            }
            Step::Asking(exchange) => (self.awaited(exchange).collect(), exchange.since),
            Step::Ended(_) => (Vec::new(), now),
        };
        let names = |sites: &mut dyn Iterator<Item = &SiteState>| -> Vec<String> {
            sites.map(|site| site.name.to_string()).collect()
        };
        Progress {
            run: self.id.clone(),
            job: self.job.name.clone(),
            method: self.job.method.name().to_owned(),
            operator: None,
            times: self.times(),
            ahead: None,
            phase: self.phase(),
            course: self.work.asking().course(),
            sites_connected: count(self.sites.iter().filter(|site| site.is_up()).count()),
            sites: count(self.sites.len()),
            waiting_for: names(&mut waiting_for.iter().copied()),
            away: names(&mut waiting_for.iter().copied().filter(|site| !site.is_up())),
            waiting_since: Some(since),
            notes: count(self.notes.len()),
            ending: self.ending().cloned(),
        }
    }

    pub(super) fn times(&self) -> Times {
        Times {
            submitted: None,
            began: Some(self.began),
            ended: self.ending().map(|_| self.last),
        }
    }

    fn phase(&self) -> String {
        let phase = match &self.step {
            Step::Joining { .. } => "waiting for sites",
            Step::Ended(_) => "ended",
            Step::Asking(_) => self.work.asking().phase(),
        };
        phase.to_owned()
    }
}
