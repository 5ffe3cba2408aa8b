//! What the list of methods knows of it.

use super::{Divider, asks, explain};
use crate::books::ledger::Asks;
use crate::explain::kinds::Explained;
use crate::method::SiteRun;
use crate::method::preparation::Prepared;
use crate::method::room::{AtSite, Preparing, Ready, Wants};
use crate::run::stop::Stop;
use privacy::Rules;
use protocol::job::Job;
use protocol::message::{Answer, cluster};
use protocol::method::cluster::settings::ClusterSettings;
use std::path::Path;

impl AtSite for Divider {
    type Settings = ClusterSettings;
    type Asked<'r> = &'r cluster::Request;

    fn begin(settings: &ClusterSettings, ready: Ready<'_>) -> Result<Self, Stop> {
        let own = (ready.rules, &ready.secret);
        Self::new(settings, ready.job, ready.cohort, ready.runs, own)
    }

    fn answer(
        &mut self,
        site: &SiteRun,
        _: Result<&Prepared, Stop>,
        request: &cluster::Request,
    ) -> Result<Answer, Stop> {
        Self::answer(self, site, request)
    }

    fn preparing(&mut self) -> Option<&mut dyn Preparing> {
        None
    }

    fn explained(_: &ClusterSettings, job: &Job, rules: &Rules) -> Explained {
        explain::explained(job, rules)
    }

    fn asks(settings: &ClusterSettings, job: &Job, runs: &Path) -> Result<Option<Asks>, Stop> {
        asks(settings, job, runs).map(Some)
    }

    fn wants(_: &ClusterSettings) -> Wants {
        Wants::Cohort
    }
}
