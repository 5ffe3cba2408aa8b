//! What the list of methods knows of it.

use super::{Comparer, explain};
use crate::books::ledger::Asks;
use crate::explain::kinds::Explained;
use crate::method::SiteRun;
use crate::method::preparation::Prepared;
use crate::method::room::{AtSite, Preparing, Ready, Wants};
use crate::run::stop::Stop;
use privacy::Rules;
use protocol::job::Job;
use protocol::message::{
    Answer, OtherRequest, Request, Summary, compare, forest, regression, unpsl,
};
use protocol::method::compare::settings::CompareSettings;
use similarity::numeric::precision::Precision;
use std::path::Path;

/// What a comparison is asked: its own requests, and those of the methods that it is made of.
pub(in crate::method) enum Asked<'r> {
    Metrics(&'r unpsl::Request),
    Forests(&'r forest::Request),
    Regressions(&'r regression::Request),
    Own(&'r compare::Request),
}

impl<'r> TryFrom<&'r Request> for Asked<'r> {
    type Error = OtherRequest;

    fn try_from(request: &'r Request) -> Result<Self, OtherRequest> {
        let own = request.try_into().map(Self::Own);
        own.or_else(|_| request.try_into().map(Self::Metrics))
            .or_else(|_| request.try_into().map(Self::Forests))
            .or_else(|_| request.try_into().map(Self::Regressions))
    }
}

impl AtSite for Comparer {
    type Settings = CompareSettings;
    type Asked<'r> = Asked<'r>;

    fn begin(settings: &CompareSettings, ready: Ready<'_>) -> Result<Self, Stop> {
        Ok(Self::new(settings.clone(), ready.rules, ready.secret))
    }

    fn answer(
        &mut self,
        site: &SiteRun,
        prepared: Result<&Prepared, Stop>,
        request: Asked<'_>,
    ) -> Result<Answer, Stop> {
        match request {
            Asked::Metrics(request) => self.metrics.answer(site, prepared?, request),
            Asked::Forests(request) => self.forests.answer(site, request),
            Asked::Regressions(request) => self.regressions.answer(site, prepared?, request),
            Asked::Own(request) => Self::answer(self, site, prepared?, request),
        }
    }

    fn preparing(&mut self) -> Option<&mut dyn Preparing> {
        Some(self)
    }

    fn explained(settings: &CompareSettings, job: &Job, rules: &Rules) -> Explained {
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

    fn precision(&self) -> Precision {
        self.metrics.precision()
    }

    fn forget(&mut self) {
        Self::forget(self);
    }

    fn reads_values(&self) -> bool {
        true
    }
}
