//! What the list of methods knows of it.

use super::{Comparer, explain};
use crate::books::ledger::Asks;
use crate::explain::kinds::Told;
use crate::method::SiteRun;
use crate::method::preparation::Prepared;
use crate::method::room::{AtSite, Preparing, Ready, Wants};
use crate::run::stop::Stop;
use privacy::Rules;
use protocol::job::Job;
use protocol::message::{Answer, Request, Summary};
use protocol::method::compare::settings::CompareSettings;
use std::path::Path;
impl AtSite for Comparer {
    type Settings = CompareSettings;

    fn begin(settings: &CompareSettings, ready: Ready<'_>) -> Result<Self, Stop> {
        Ok(Self::new(settings.clone(), ready.rules, ready.secret))
    }

    fn answer(
        &mut self,
        site: &SiteRun,
        prepared: Result<&Prepared, Stop>,
        request: &Request,
    ) -> Result<Answer, Stop> {
        match request {
            Request::Unpsl(request) => self.metrics.answer(site, prepared?, request),
            Request::Forest(request) => self.forests.answer(site, request),
            Request::Regression(request) => self.regressions.answer(site, prepared?, request),
            Request::Compare(request) => Self::answer(self, site, prepared?, request),
            _ => Err(Stop::other_method()),
        }
    }

    fn preparing(&mut self) -> Option<&mut dyn Preparing> {
        Some(self)
    }

    fn explained(settings: &CompareSettings, job: &Job, rules: &Rules) -> Told {
        explain::explained(rules, job, settings)
    }

    fn asks(_: &CompareSettings, _: &Job, _: &Path) -> Result<Option<Asks>, Stop> {
        Ok(None)
    }

    fn wants(_: &CompareSettings) -> Wants {
        Wants::Cohort
    }
}

impl Preparing for Comparer {
    fn summary(&self, site: &SiteRun) -> Result<Summary, Stop> {
        Self::summary(self, site)
    }

    /// It has nothing else to say: where it cannot, the folds themselves say why.
    fn can_validate(&self, _: &SiteRun) -> bool {
        true
    }

    fn multiplies(&self) -> bool {
        Self::multiplies(self)
    }

    fn forget(&mut self) {
        Self::forget(self);
    }
}
