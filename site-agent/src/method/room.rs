//! What each method says of itself at a site. No default bodies: a method that has nothing to say says so.

use super::preparation::Prepared;
use super::{Secret, SiteRun};
use crate::books::ledger::Asks;
use crate::explain::kinds::Explained;
use crate::run::stop::Stop;
use crate::source::SiteCohort;
use privacy::Rules;
use protocol::job::Job;
use protocol::message::{Answer, OtherRequest, Request, Summary};
use similarity::numeric::precision::Precision;
use std::path::Path;

/// What a method makes itself ready from.
pub(super) struct Ready<'r> {
    pub(super) job: &'r Job,
    pub(super) cohort: &'r mut SiteCohort,
    /// What earlier runs have left.
    pub(super) runs: &'r Path,
    pub(super) rules: &'r Rules,
    pub(super) secret: Secret,
}

/// Which patients a job wants, and what of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wants {
    /// Those of its outcome.
    Cohort,
    /// Those, and the pairs of them that physicians have judged.
    Judged,
    /// All patients of its study with all outcomes.
    Enrolled,
}

/// A method at a site.
pub(super) trait AtSite: Sized {
    /// Its table of the job.
    type Settings;
    /// Its own requests, and those of methods that it is made of.
    type Asked<'r>: TryFrom<&'r Request, Error = OtherRequest>;

    /// Makes ready to answer.
    ///
    /// # Errors
    /// [`Stop`]: why it cannot.
    fn begin(settings: &Self::Settings, ready: Ready<'_>) -> Result<Self, Stop>;

    /// Answers a request; `prepared` says why there is no preparation yet.
    ///
    /// # Errors
    /// [`Stop`]: why there is no answer.
    fn answer(
        &mut self,
        site: &SiteRun,
        prepared: Result<&Prepared, Stop>,
        request: Self::Asked<'_>,
    ) -> Result<Answer, Stop>;

    /// What it does with a preparation; none of a method that is never prepared.
    fn preparing(&mut self) -> Option<&mut dyn Preparing>;

    /// The kinds of message that a job would make a site send, and what is said of the method as a whole.
    fn explained(settings: &Self::Settings, job: &Job, rules: &Rules) -> Explained;

    /// What a job asks about patients of others; none where it asks no such thing. `runs` has what earlier runs have left.
    ///
    /// # Errors
    /// [`Stop::Refused`] where the run that it asks by has left nothing here for it.
    fn asks(settings: &Self::Settings, job: &Job, runs: &Path) -> Result<Option<Asks>, Stop>;

    /// Which patients it is of.
    fn wants(settings: &Self::Settings) -> Wants;
}

/// A method that learns from standardised patients.
pub(super) trait Preparing {
    /// Patients and pairs, as it counts them.
    ///
    /// # Errors
    /// [`Stop`] where it counts none.
    fn summary(&self, site: &SiteRun) -> Result<Summary, Stop>;

    /// Whether its patients can be parted into the folds of a validation that the job does not insist on.
    fn can_validate(&self, site: &SiteRun) -> bool;

    /// Whether the site says its second moments when it is prepared.
    fn multiplies(&self) -> bool;

    /// How finely the site says how far its means are from those of all.
    fn precision(&self) -> Precision;

    /// Lets go of what was made of another preparation.
    fn forget(&mut self);

    /// Whether it reads a patient's own values once they are standardised. Where it does not, they are let go: a site is prepared once.
    fn reads_values(&self) -> bool;
}
