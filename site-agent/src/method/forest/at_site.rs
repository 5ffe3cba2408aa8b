//! What the list of methods knows of it.

use super::{Grower, explain};
use crate::books::ledger::Asks;
use crate::explain::kinds::Explained;
use crate::method::SiteRun;
use crate::method::preparation::Prepared;
use crate::method::room::{AtSite, Preparing, Ready, Wants};
use crate::run::stop::Stop;
use privacy::Rules;
use protocol::job::Job;
use protocol::message::{Answer, forest};
use protocol::method::forest::settings::ForestSettings;
use std::path::Path;

impl AtSite for Grower {
    type Settings = ForestSettings;
    type Asked<'r> = &'r forest::Request;

    fn begin(settings: &ForestSettings, ready: Ready<'_>) -> Result<Self, Stop> {
        Ok(Self::new(settings.clone(), ready.rules, ready.secret))
    }

    fn answer(
        &mut self,
        site: &SiteRun,
        _: Result<&Prepared, Stop>,
        request: &forest::Request,
    ) -> Result<Answer, Stop> {
        Self::answer(self, site, request)
    }

    fn preparing(&mut self) -> Option<&mut dyn Preparing> {
        None
    }

    fn explained(settings: &ForestSettings, job: &Job, rules: &Rules) -> Explained {
        explain::explained(rules, job, settings)
    }

    fn asks(_: &ForestSettings, _: &Job, _: &Path) -> Result<Option<Asks>, Stop> {
        Ok(None)
    }

    fn wants(_: &ForestSettings) -> Wants {
        Wants::Cohort
    }
}
