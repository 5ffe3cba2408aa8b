//! What the list of methods knows of it.

use super::{Counter, asks, explain};
use crate::books::ledger::Asks;
use crate::explain::kinds::Explained;
use crate::method::SiteRun;
use crate::method::preparation::Prepared;
use crate::method::room::{AtSite, Preparing, Ready, Wants};
use crate::run::stop::Stop;
use privacy::Rules;
use protocol::job::Job;
use protocol::message::{Answer, neighbours};
use protocol::method::neighbours::settings::NeighboursSettings;
use std::path::Path;

impl AtSite for Counter {
    type Settings = NeighboursSettings;
    type Asked<'r> = &'r neighbours::Request;

    fn begin(settings: &NeighboursSettings, ready: Ready<'_>) -> Result<Self, Stop> {
        let own = (ready.rules, &ready.secret);
        Self::new(settings, ready.job, ready.cohort, ready.runs, own)
    }

    fn answer(
        &mut self,
        _: &SiteRun,
        _: Result<&Prepared, Stop>,
        request: &neighbours::Request,
    ) -> Result<Answer, Stop> {
        Ok(Self::answer(self, request))
    }

    fn preparing(&mut self) -> Option<&mut dyn Preparing> {
        None
    }

    fn explained(_: &NeighboursSettings, job: &Job, rules: &Rules) -> Explained {
        explain::explained(job, rules)
    }

    fn asks(settings: &NeighboursSettings, job: &Job, runs: &Path) -> Result<Option<Asks>, Stop> {
        asks(settings, job, runs).map(Some)
    }

    fn wants(_: &NeighboursSettings) -> Wants {
        Wants::Cohort
    }
}
