//! What the list of methods knows of it.

use super::{Learner, explain};
use crate::books::ledger::Asks;
use crate::explain::kinds::Explained;
use crate::method::SiteRun;
use crate::method::preparation::Prepared;
use crate::method::room::{AtSite, Preparing, Ready, Wants};
use crate::run::stop::Stop;
use privacy::Rules;
use protocol::job::Job;
use protocol::message::{Answer, Summary, unpsl};
use protocol::method::unpsl::settings::UnpslSettings;
use similarity::numeric::precision::Precision;
use std::path::Path;

impl AtSite for Learner {
    type Settings = UnpslSettings;
    type Asked<'r> = &'r unpsl::Request;

    fn begin(settings: &UnpslSettings, ready: Ready<'_>) -> Result<Self, Stop> {
        Ok(Self::new(settings.clone(), ready.rules))
    }

    fn answer(
        &mut self,
        site: &SiteRun,
        prepared: Result<&Prepared, Stop>,
        request: &unpsl::Request,
    ) -> Result<Answer, Stop> {
        Self::answer(self, site, prepared?, request)
    }

    fn preparing(&mut self) -> Option<&mut dyn Preparing> {
        Some(self)
    }

    fn explained(settings: &UnpslSettings, job: &Job, _: &Rules) -> Explained {
        explain::explained(job, settings)
    }

    fn asks(_: &UnpslSettings, _: &Job, _: &Path) -> Result<Option<Asks>, Stop> {
        Ok(None)
    }

    fn wants(settings: &UnpslSettings) -> Wants {
        match settings.supervision.wants_judgements() {
            true => Wants::Judged,
            false => Wants::Cohort,
        }
    }
}

impl Preparing for Learner {
    fn summary(&self, site: &SiteRun) -> Result<Summary, Stop> {
        Self::summary(self, site)
    }

    fn can_validate(&self, site: &SiteRun) -> bool {
        self.folds(site).is_ok()
    }

    fn multiplies(&self) -> bool {
        self.correlates()
    }

    fn precision(&self) -> Precision {
        Self::precision(self)
    }

    fn forget(&mut self) {
        Self::forget(self);
    }

    fn reads_values(&self) -> bool {
        false
    }
}
