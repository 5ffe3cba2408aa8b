//! How a study opened: the keys that its hospitals cover their answers by, agreed once for all of its runs, and what they counted then.

use crate::job::Job;
use crate::message::{ColumnHistogram, Encapsulations, Introduction};
use crate::name::RunId;

/// What the hospitals of a study have sent each other about their keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// The run that opened the study.
    pub run: RunId,
    /// The digest of that run, 64 digits: the keys follow from it.
    pub digest: String,
    /// The keys of each hospital, in the study's order.
    pub introductions: Vec<Introduction>,
    /// What each has sent to the later ones alone.
    pub encapsulations: Vec<Encapsulations>,
    /// Who is in no sum of the study, as patterns of who has which outcome: see [`crate::message::card::LeftOut`].
    pub left_out: Vec<u32>,
    /// What those who have each outcome came to on the grids of [`Study::grids`](crate::study::Study::grids), over all hospitals.
    pub counts: Vec<Vec<ColumnHistogram>>,
}

impl Opening {
    /// Whether it is of so many hospitals.
    #[must_use]
    pub fn is_of(&self, hospitals: usize) -> bool {
        self.introductions.len() == hospitals && self.encapsulations.len() == hospitals
    }

    /// What the patients of a job came to on its own grids: no values where too few have a number, and nothing at all where the study has
    /// not counted one of them.
    pub(crate) fn counts_of(&self, job: &Job) -> Vec<ColumnHistogram> {
        let wanted = job.grids();
        let Some(study) = &job.study else {
            return self.counts.first().cloned().unwrap_or_default();
        };
        let mut outcomes = study.outcomes.iter().zip(&self.counts);
        let own = outcomes.find(|(one, _)| one.specification == job.cohort.outcome);
        let Some((outcome, counts)) = own else {
            return Vec::new();
        };
        let grids = study.grids(outcome);
        let place_of = |feature: usize| {
            let name = &job.cohort.features[feature].name;
            let mut columns = grids.columns.iter();
            columns.position(|one| study.features[one.column].name == *name)
        };
        let places = wanted.columns.iter().map(|one| place_of(one.column));
        let events = wanted.events.map(|_| Some(grids.columns.len()));
        let counted = |place: Option<usize>| counts.get(place?).cloned();
        let all: Option<Vec<_>> = places.chain(events).map(counted).collect();
        all.unwrap_or_default()
    }
}
