//! What a run for the card of a study asks, stage by stage: who has which outcome, who is in earlier studies that it renews, counts,
//! histograms of each outcome's patients, from which every run of the study takes its own, and sums of what enough patients have.

use super::message::{Answer, Counts, LeftOut, Request};
use super::model::Model;
use super::settings::CardSettings;
use super::{judging, publishing, separating};
use crate::assessment::Assessment;
use crate::checks::{histograms, unexpected};
use crate::cohort::{Grids, MissingShare};
use crate::exchange::{Asking, Closed, Course, Turn, count};
use crate::failure::Failure;
use crate::message::{self, ColumnHistogram};
use crate::method::room::MethodStages;
use crate::progress::Ending;
use similarity::cohort::quantile::Grid;
use std::sync::Arc;

/// The card of a study under way.
#[derive(Debug, Clone)]
pub(crate) struct Card {
    settings: CardSettings,
    /// None before patients are counted by who has which outcome.
    parts: Option<Parts>,
    /// Whether the study is known to differ from those that it renews by enough patients.
    compared: bool,
    /// None before they are known.
    counted: Option<Counted>,
    /// What those who have each outcome come to on its grids, as far as that is known.
    histograms: Vec<Vec<ColumnHistogram>>,
    model: Model,
}

/// Patients over all sites by pattern, and of which of them nothing more is asked.
#[derive(Debug, Clone, Default)]
pub(super) struct Parts {
    /// From the pattern 1 on; none where there is one outcome.
    pub(super) patients: Vec<u64>,
    pub(super) left_out: LeftOut,
}

/// The counts over all sites, and of which places sums are asked for.
#[derive(Debug, Clone)]
struct Counted {
    counts: Counts,
    places: Arc<Vec<u32>>,
    /// For each outcome the numbers that are counted on grids.
    columns: Vec<Arc<Vec<u32>>>,
}

/// What is counted of the patients who have one outcome.
struct Spread<'c> {
    outcome: usize,
    columns: &'c Arc<Vec<u32>>,
    all: &'c Grids,
    /// Of each feature those who have a value.
    present: Vec<u64>,
    /// Those in the first group: of survival those with an event.
    first: u64,
}

impl Card {
    /// A run that begins.
    pub(crate) fn new(settings: &CardSettings) -> Self {
        Self {
            settings: settings.clone(),
            parts: (settings.patterns() == 0).then(Parts::default),
            compared: settings.renews.is_empty(),
            counted: None,
            histograms: Vec::new(),
            model: Model::default(),
        }
    }

    /// The grids that the patients of the next outcome are counted on; none once all are.
    fn spreads(&self) -> Option<Spread<'_>> {
        let outcome = self.histograms.len();
        let counted = self.counted.as_ref()?;
        let columns = counted.columns.get(outcome)?;
        let all = self.settings.grids.get(outcome)?;
        let groups = &counted.counts.groups[self.settings.groups_of(outcome)];
        let present = |feature: usize| {
            groups
                .iter()
                .map(|group| group.features[feature].present())
                .sum()
        };
        Some(Spread {
            outcome,
            columns,
            all,
            present: (0..self.settings.features.len()).map(present).collect(),
            first: groups.first().map_or(0, |group| group.patients),
        })
    }

    /// Nothing is asked where nothing is counted.
    fn pass_over(&mut self) {
        while self.spreads().is_some_and(|next| next.grids().is_empty()) {
            self.histograms.push(Vec::new());
        }
    }

    /// Takes the histograms of the next outcome; a number of which there is none has no values in its own.
    fn take(&mut self, found: Vec<ColumnHistogram>) {
        let Some(next) = self.spreads() else { return };
        let mut all = vec![ColumnHistogram::default(); next.all.all().count()];
        let numbers = next.columns.iter().map(|place| *place as usize);
        let events = next.all.columns.len()..all.len();
        for (place, histogram) in numbers.chain(events).zip(found) {
            all[place] = histogram;
        }
        self.histograms.push(all);
    }
}

impl Parts {
    /// Patients who are excluded.
    fn left_out(&self) -> u64 {
        let patients = |pattern: &u32| self.patients.get(*pattern as usize - 1);
        self.left_out.iter().filter_map(patients).sum()
    }
}

impl Spread<'_> {
    fn grids(&self) -> Grids {
        self.all.chosen(self.columns)
    }

    /// Every grid, with those who have a value on it.
    fn wanted(&self) -> Vec<(Grid, u64)> {
        let grids = self.grids();
        let columns = grids.columns.iter();
        let columns = columns.map(|one| (one.grid, self.present[one.column]));
        columns
            .chain(grids.events.map(|grid| (grid, self.first)))
            .collect()
    }
}

impl MethodStages for Card {
    type Settings = CardSettings;
    type Model = Model;

    fn settings(&self) -> &CardSettings {
        &self.settings
    }

    fn asking(&self) -> &dyn Asking {
        self
    }

    fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure> {
        match (closed.take_sum()?, &self.counted) {
            (message::Answer::Card(Answer::Parts(patients)), None) => {
                let left_out = Arc::new(separating::left_out(&patients));
                self.parts = Some(Parts { patients, left_out });
                Ok(Turn::Ask)
            }
            (message::Answer::Card(Answer::Lots(lots)), None) => {
                separating::check_lots(&self.settings, &lots)?;
                self.compared = true;
                Ok(Turn::Ask)
            }
            (message::Answer::Card(Answer::Counts(counts)), None) => {
                separating::check(&self.settings, &counts)?;
                let places = separating::places(&self.settings, &counts);
                let columns = separating::columns(&self.settings, &counts);
                self.counted = Some(Counted {
                    counts,
                    places: Arc::new(places),
                    columns,
                });
                self.pass_over();
                Ok(Turn::Ask)
            }
            (message::Answer::Quantiles(found), Some(_)) if self.spreads().is_some() => {
                self.take(found);
                self.pass_over();
                Ok(Turn::Ask)
            }
            (message::Answer::Card(Answer::Sums(sums)), Some(counted)) => {
                let Counted { counts, places, .. } = counted;
                let parts = self.parts.as_ref();
                let left_out = parts.map_or(0, Parts::left_out);
                let table = publishing::table(&self.settings, counts, (places, &sums), left_out);
                self.model.table = Some(table);
                Ok(Turn::Done(Ending::Completed))
            }
            (other, _) => Err(unexpected(&other, "what was asked")),
        }
    }

    fn model(&self) -> Model {
        self.model.clone()
    }

    /// No moments are pooled.
    fn missing(&self) -> &[MissingShare] {
        &[]
    }

    /// There is no last word of each site.
    fn assessment(&self) -> Option<&Assessment> {
        None
    }
}

impl Asking for Card {
    fn phase(&self) -> &'static str {
        match (&self.parts, &self.counted) {
            (None, _) => "counting patients by outcome",
            (Some(_), None) if !self.compared => "comparing studies",
            (Some(_), None) => "counting patients by group",
            (Some(_), Some(_)) if self.spreads().is_some() => "counting values",
            (Some(_), Some(_)) => "summing what enough patients have",
        }
    }

    fn ask(&self, _: usize) -> Option<message::Request> {
        let left_out = |parts: &Parts| Arc::clone(&parts.left_out);
        if let (Some(parts), Some(next)) = (&self.parts, self.spreads()) {
            return Some(message::Request::Card(Request::Histograms {
                outcome: count(next.outcome),
                columns: Arc::clone(next.columns),
                left_out: left_out(parts),
            }));
        }
        Some(message::Request::Card(match (&self.parts, &self.counted) {
            (None, _) => Request::Part,
            (Some(parts), None) if !self.compared => Request::Compare(left_out(parts)),
            (Some(parts), None) => Request::Count(left_out(parts)),
            (Some(parts), Some(counted)) => Request::Sum {
                places: Arc::clone(&counted.places),
                left_out: left_out(parts),
            },
        }))
    }

    fn judge(&self, _: usize, _: u64, answer: &message::Answer) -> Result<(), Failure> {
        if let Some(next) = self.spreads() {
            return match answer {
                message::Answer::Quantiles(found) => histograms(found, &next.wanted()),
                other => Err(unexpected(other, "histograms")),
            };
        }
        match (&self.parts, &self.counted) {
            (None, _) => judging::parts(&self.settings, answer),
            (Some(_), None) if !self.compared => judging::lots(&self.settings, answer),
            (Some(parts), None) => judging::counts(&self.settings, parts, answer),
            (Some(_), Some(Counted { counts, places, .. })) => {
                judging::sums(&self.settings, (counts, places), answer)
            }
        }
    }

    fn blank(&self) -> Option<message::Answer> {
        if let Some(next) = self.spreads() {
            return Some(judging::no_counts(&next.grids()));
        }
        Some(message::Answer::Card(match (&self.parts, &self.counted) {
            (None, _) => judging::no_parts(&self.settings),
            (Some(_), None) if !self.compared => judging::no_lots(&self.settings),
            (Some(_), None) => judging::nobody(&self.settings),
            (Some(_), Some(counted)) => judging::nothing(&self.settings, &counted.places),
        }))
    }

    fn course(&self) -> Course {
        Course::default()
    }

    fn left_out(&self) -> &[u32] {
        let parts = self.parts.as_ref();
        parts.map_or(&[], |parts| &parts.left_out)
    }

    fn counts(&self) -> &[Vec<ColumnHistogram>] {
        &self.histograms
    }
}
