//! A site's own copy of the coordinator's machine: it is fed with the exchanges that closed, and says what is asked next.
//!
//! The coordinator of a run of sums has two powers: to pass on, and to stop. All else follows from
//! the job and from what the sites answered, and every site works it out by itself.

use crate::failure::Code;
use crate::job::Job;
use crate::message::{Answer, Begin, Closed, Encapsulations, Introduction, Request};
use crate::opening::Opening;
use crate::progress::Ending;
use crate::run::{ReplayError, Run};
use crate::time::Timestamp;

/// A run, as one of its sites follows it.
#[derive(Debug, Clone)]
pub struct Replica {
    run: Run,
    site: usize,
    /// Exchanges that have closed, the joining among them.
    closed: u32,
}

/// What is asked next.
#[derive(Debug, Clone)]
pub struct Next {
    /// The exchange.
    pub exchange: u32,
    /// What this site is asked; none where it is not.
    pub request: Option<Request>,
    /// What the sum over the roster is read into; none where nothing is summed.
    pub blank: Option<Answer>,
    /// Whether the answers are too many for every site to hear: each has a tag then, and the sites hear their sum.
    pub tagged: bool,
}

impl Replica {
    /// A run that begins, as the site at place `site` of the job follows it. `opening` is that of its study, where it has one.
    #[must_use]
    pub fn new(begin: &Begin, job: Job, site: usize, opening: Option<&Opening>) -> Self {
        let Begin {
            run, seed, warrant, ..
        } = begin.clone();
        let run = Run::new(run, job, seed, warrant, Timestamp(0));
        Self {
            run: match opening {
                Some(opening) => run.opened(opening),
                None => run,
            },
            site,
            closed: 0,
        }
    }

    /// Takes the next exchange that closed; true where it is news. One that was heard before changes nothing. A total is taken
    /// for what it says: whether it is the sum is judged by whoever knows the masks, before.
    ///
    /// # Errors
    /// [`ReplayError`] where no run of this job goes on so.
    pub fn follow(&mut self, closed: &Closed) -> Result<bool, ReplayError> {
        let Closed { record, total, .. } = closed;
        if record.exchange < self.closed {
            return Ok(false);
        }
        self.run.follow(record.clone(), total.as_ref())?;
        self.closed += 1;
        Ok(true)
    }

    /// The exchange that a record must be of to be news.
    #[must_use]
    pub fn awaited(&self) -> u32 {
        self.closed
    }

    /// Whether the run ended because a sum was not one of patients: nothing came of it.
    #[must_use]
    pub fn is_void(&self) -> bool {
        let ending = self.run.ending();
        matches!(ending, Some(Ending::Failed(failure)) if failure.code == Code::Sum)
    }

    /// What this site is asked next; none where it is not.
    #[must_use]
    pub fn asked(&self) -> Option<Request> {
        self.run.asked(self.site)
    }

    /// What is asked next, and what becomes of the answers; none before the run has begun and once it is over.
    #[must_use]
    pub fn next(&self) -> Option<Next> {
        let (exchange, blank, tagged) = self.run.open()?;
        Some(Next {
            exchange,
            request: self.run.asked(self.site),
            blank,
            tagged,
        })
    }

    /// What later runs of the study begin with, once all sites have exchanged their keys. `digest` is the run's.
    #[must_use]
    pub fn opening(&self, digest: &str) -> Option<Opening> {
        self.run.opening(digest)
    }

    /// The keys of each site that has introduced itself.
    #[must_use]
    pub fn introductions(&self) -> &[Option<Introduction>] {
        self.run.introductions()
    }

    /// What each of them has sent to the later ones alone.
    #[must_use]
    pub fn encapsulations(&self) -> &[Option<Encapsulations>] {
        self.run.encapsulations()
    }
}
