//! Which patients of a site lie in which fold, and which of them judge.

use super::{SiteRun, described};
use crate::run::stop::Stop;
use ndarray::Array1;
use privacy::HeldOut;
use protocol::failure::Code;
use protocol::limits::PUBLISHED_PATIENTS;
use protocol::message::Description;
use similarity::cohort::Outcome;
use similarity::learn::unpsl::Totals;
use similarity::learn::unpsl::selection::{Folds, in_steps, one_in};
use std::borrow::Cow;

impl SiteRun {
    /// What it says of the cohort.
    pub(crate) fn description(&self, held_out: HeldOut) -> Description {
        described(&self.cohort, self.classes.clone()).holding_out(held_out)
    }

    /// Classes, or events and censored, that folds have evenly.
    fn strata(&self) -> Cow<'_, Array1<u32>> {
        match self.cohort.cohort.outcome() {
            Outcome::Classes { codes, .. } => Cow::Borrowed(codes),
            Outcome::Numeric(values) => Cow::Owned(Array1::zeros(values.len())),
            Outcome::Survival { event, .. } => Cow::Owned(event.mapv(u32::from)),
        }
    }

    /// The patients in so many folds, classes, or events and censored, spread evenly. Each fold has some of every class, or of the events
    /// and of all patients, where they judge.
    pub(crate) fn parted(&self, folds: u32) -> Result<Folds, Stop> {
        let (strata, count) = (self.strata(), folds as usize);
        let events = strata.iter().filter(|one| **one > 0).count();
        let found = match self.cohort.cohort.outcome() {
            _ if self.held_out == HeldOut::Learns => Folds::spread(&strata, count, self.folds),
            // The censored are no class.
            Outcome::Survival { .. } if events >= count => {
                Folds::spread(&strata, count, self.folds)
            }
            Outcome::Classes { .. } | Outcome::Numeric(_) | Outcome::Survival { .. } => {
                Folds::stratified(&strata, count, self.folds)
            }
        };
        found.map_err(|error| Stop::failed(Code::Folds, error.to_string()))
    }

    /// Which patients neighbours judge: one in as many as at every site, drawn by this site alone.
    pub(crate) fn drawn(&self, totals: &Totals) -> Vec<bool> {
        let count = usize::try_from(totals.judged_one_in()).unwrap_or(usize::MAX);
        one_in(self.cohort.cohort.patients(), count, self.folds)
    }

    /// Which of those who are drawn are counted among the held-out of so many sites; none where this site does not judge. Where not all
    /// sites do, it is a multiple of ten of each class: else what all sites have and these have not would be the others' classes.
    pub(crate) fn judged(&self, judges: u32, totals: &Totals) -> Option<Vec<bool>> {
        let is_of_all = judges as usize >= self.job.sites.len();
        match self.held_out {
            _ if is_of_all => Some(self.drawn(totals)),
            HeldOut::Judges => {
                let (step, drawn) = (PUBLISHED_PATIENTS as usize, self.drawn(totals));
                Some(in_steps(&self.strata(), step, self.folds, drawn))
            }
            HeldOut::Nothing | HeldOut::Learns | HeldOut::JudgesWithAll => None,
        }
    }
}
