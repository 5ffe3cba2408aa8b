//! What the sites of a run hear of each other, and how a site's own copy of the run follows it.

use super::{Record, ReplayError, Run, Step, Work};
use crate::message::{Answer, Encapsulations, Introduction, Request};
use crate::name::SiteName;
use crate::opening::Opening;
use privacy::sums::Total;

/// What proves that an answer is a site's own.
#[derive(Debug, Clone)]
pub enum Proof<'r> {
    /// The certificate that vouches for the keys that are introduced.
    Certificate,
    /// The site's word, by the keys that it has introduced.
    Keys(&'r Introduction),
}

impl Run {
    /// Takes a record of another's run of the same job.
    ///
    /// # Errors
    /// [`ReplayError`] where no run of this job goes on so.
    pub(crate) fn follow(
        &mut self,
        record: Record,
        total: Option<&Total>,
    ) -> Result<(), ReplayError> {
        self.check(&record, total)?;
        self.close(record, total);
        Ok(())
    }

    /// The open exchange, what it sums, and whether the sites hear that alone; none where no exchange is open.
    pub(crate) fn open(&self) -> Option<(u32, Option<Answer>, bool)> {
        match &self.step {
            Step::Asking(exchange) => {
                let tagged = exchange.summed.is_some_and(|summed| summed.tagged);
                Some((exchange.number, self.work.asking().blank(), tagged))
            }
            Step::Joining { .. } | Step::Ended(_) => None,
        }
    }

    /// What the open exchange asks of a site; none where it asks nothing of it.
    pub(crate) fn asked(&self, site: usize) -> Option<Request> {
        let is_open = matches!(self.step, Step::Asking(_));
        is_open.then(|| self.work.asking().ask(site)).flatten()
    }

    /// What proves that an answer to this exchange is the site's own; none where nothing is open.
    #[must_use]
    pub fn proof(&self, site: &SiteName, exchange: u32) -> Option<Proof<'_>> {
        let is_open = matches!(&self.step, Step::Asking(open) if open.number == exchange);
        if !is_open {
            return None;
        }
        if matches!(&self.work, Work::Introducing(introducing) if introducing.asks_for_keys()) {
            return Some(Proof::Certificate);
        }
        let introduction = self.introductions.get(self.index(site)?)?.as_ref()?;
        Some(Proof::Keys(introduction))
    }

    /// The keys of each site that has introduced itself.
    pub(crate) fn introductions(&self) -> &[Option<Introduction>] {
        &self.introductions
    }

    /// What each site has sent to the later ones alone.
    pub(crate) fn encapsulations(&self) -> &[Option<Encapsulations>] {
        &self.encapsulations
    }

    /// What later runs of the study begin with, once all sites have exchanged their keys and know who has which outcome. `digest` is
    /// this run's.
    #[must_use]
    pub fn opening(&self, digest: &str) -> Option<Opening> {
        let introductions = self.introductions.iter().cloned();
        let encapsulations = self.encapsulations.iter().cloned();
        Some(Opening {
            run: self.id.clone(),
            digest: digest.to_owned(),
            introductions: introductions.collect::<Option<_>>()?,
            encapsulations: encapsulations.collect::<Option<_>>()?,
            left_out: self.work.asking().left_out().to_vec(),
            counts: self.work.asking().counts().to_vec(),
        })
    }
}
