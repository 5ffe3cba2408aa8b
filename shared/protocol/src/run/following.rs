//! What the sites of a run of sums hear of each other, and how a site's own copy of the run follows it.

use super::{Action, Record, ReplayError, Run, SiteState, Standing, Step};
use crate::message::{self, Answer, Request, ToSite};
use privacy::Contributions;

impl Run {
    /// Takes a record of another's run of the same job.
    ///
    /// # Errors
    /// [`ReplayError`] where no run of this job goes on so.
    pub(crate) fn follow(&mut self, record: Record) -> Result<(), ReplayError> {
        self.check(&record)?;
        self.close(record);
        // Kept for those who come back: here nobody does.
        self.closed.clear();
        self.reminders.clear();
        Ok(())
    }

    /// The open exchange, what it asks of a site, and what it sums; none where no exchange is open.
    pub(crate) fn open(&self, site: usize) -> Option<(u32, Option<Request>, Option<Answer>)> {
        let Step::Asking(exchange) = &self.step else {
            return None;
        };
        let asking = self.work.asking();
        let request = asking.ask(site).filter(|_| self.roster()[site]);
        Some((exchange.number, request, asking.blank()))
    }

    /// What every site of a run of sums hears of an exchange that closed.
    pub(super) fn tell_closed(&self, index: usize, record: &Record) -> Action {
        let message = ToSite::Closed(Box::new(message::Closed {
            run: self.id.clone(),
            record: record.clone(),
        }));
        Action::Send {
            site: self.sites[index].name.clone(),
            message,
        }
    }

    /// Whether the sites tell sums alone, and check what they are asked.
    pub(super) fn tells_sums(&self) -> bool {
        self.job.contributions == Contributions::Sums
    }

    /// Whether each site is asked at present.
    pub(crate) fn roster(&self) -> Vec<bool> {
        let is_member = |site: &SiteState| site.standing == Standing::Member;
        self.sites.iter().map(is_member).collect()
    }
}
