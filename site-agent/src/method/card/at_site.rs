//! What the list of methods knows of it.

use super::{Tabulator, explain, without_study};
use crate::books::ledger::Asks;
use crate::explain::kinds::Explained;
use crate::method::SiteRun;
use crate::method::preparation::Prepared;
use crate::method::room::{AtSite, Preparing, Ready, Wants};
use crate::run::stop::Stop;
use privacy::Rules;
use protocol::job::Job;
use protocol::message::{Answer, card};
use protocol::method::card::settings::CardSettings;
use std::path::Path;

impl AtSite for Tabulator {
    type Settings = CardSettings;
    type Asked<'r> = &'r card::Request;

    fn begin(settings: &CardSettings, ready: Ready<'_>) -> Result<Self, Stop> {
        let enrolled = ready.cohort.take_enrolled().ok_or_else(without_study)?;
        Ok(Self::new(settings.clone(), enrolled))
    }

    fn answer(
        &mut self,
        _: &SiteRun,
        _: Result<&Prepared, Stop>,
        request: &card::Request,
    ) -> Result<Answer, Stop> {
        Self::answer(self, request)
    }

    fn preparing(&mut self) -> Option<&mut dyn Preparing> {
        None
    }

    fn explained(settings: &CardSettings, _: &Job, rules: &Rules) -> Explained {
        explain::explained(settings, rules)
    }

    fn asks(_: &CardSettings, _: &Job, _: &Path) -> Result<Option<Asks>, Stop> {
        Ok(None)
    }

    fn wants(_: &CardSettings) -> Wants {
        Wants::Enrolled
    }
}
