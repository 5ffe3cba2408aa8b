//! Where a run stands, for people.

use super::{Run, SiteState, Standing, Step};
use crate::exchange::count;
use crate::progress::{Progress, Times};
use crate::time::Timestamp;

impl Run {
    /// Where the run stands.
    #[must_use]
    pub fn progress(&self, now: Timestamp) -> Progress {
        let (waiting_for, deadline): (Vec<&SiteState>, _) = match &self.step {
            Step::Joining { deadline } => (
                self.sites.iter().filter(|site| !site.is_up()).collect(),
                *deadline,
            ),
            Step::Asking(exchange) => {
                let sites = self.sites.iter().enumerate();
                let waited = sites.filter(|(index, site)| {
                    site.standing == Standing::Member && !exchange.has_heard(*index)
                });
                (waited.map(|(_, site)| site).collect(), exchange.deadline)
            }
            Step::Ended(_) => (Vec::new(), now),
        };
        Progress {
            run: self.id.clone(),
            job: self.job.name.clone(),
            method: self.job.method.name().to_owned(),
            times: self.times(),
            ahead: None,
            phase: self.phase(),
            course: self.work.asking().course(),
            sites_connected: count(self.sites.iter().filter(|site| site.is_up()).count()),
            sites: count(self.sites.len()),
            waiting_for: waiting_for
                .iter()
                .map(|site| site.name.to_string())
                .collect(),
            deadline_seconds: deadline.since(now).as_secs_f64(),
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
