//! What the list of methods knows of it.

use super::{Regressor, explain, summary};
use crate::books::ledger::Asks;
use crate::explain::kinds::Explained;
use crate::method::SiteRun;
use crate::method::preparation::Prepared;
use crate::method::room::{AtSite, Preparing, Ready, Wants};
use crate::run::stop::Stop;
use privacy::Rules;
use protocol::job::Job;
use protocol::message::{Answer, Summary, regression};
use protocol::method::regression::settings::RegressionSettings;
use similarity::numeric::precision::Precision;
use std::path::Path;

impl AtSite for Regressor {
    type Settings = RegressionSettings;
    type Asked<'r> = &'r regression::Request;

    fn begin(settings: &RegressionSettings, _: Ready<'_>) -> Result<Self, Stop> {
        Ok(Self::new(settings.clone()))
    }

    fn answer(
        &mut self,
        site: &SiteRun,
        prepared: Result<&Prepared, Stop>,
        request: &regression::Request,
    ) -> Result<Answer, Stop> {
        Self::answer(self, site, prepared?, request)
    }

    fn preparing(&mut self) -> Option<&mut dyn Preparing> {
        Some(self)
    }

    fn explained(settings: &RegressionSettings, job: &Job, _: &Rules) -> Explained {
        explain::explained(job, settings)
    }

    fn asks(_: &RegressionSettings, _: &Job, _: &Path) -> Result<Option<Asks>, Stop> {
        Ok(None)
    }

    fn wants(_: &RegressionSettings) -> Wants {
        Wants::Cohort
    }
}

impl Preparing for Regressor {
    fn summary(&self, site: &SiteRun) -> Result<Summary, Stop> {
        Ok(summary(site))
    }

    fn can_validate(&self, _: &SiteRun) -> bool {
        false
    }

    fn multiplies(&self) -> bool {
        true
    }

    fn precision(&self) -> Precision {
        self.settings.precision
    }

    fn forget(&mut self) {
        Self::forget(self);
    }

    fn reads_values(&self) -> bool {
        true
    }
}
