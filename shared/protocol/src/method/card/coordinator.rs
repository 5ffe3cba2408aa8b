//! What a run for the card of a study asks, stage by stage: who has which outcome, who is in earlier studies that it renews, counts,
//! and sums of what enough patients have.

use super::message::{Answer, Counts, LeftOut, Request};
use super::model::Model;
use super::settings::CardSettings;
use super::{judging, publishing, separating};
use crate::assessment::Assessment;
use crate::checks::unexpected;
use crate::cohort::MissingShare;
use crate::exchange::{Asking, Closed, Course, Turn};
use crate::failure::Failure;
use crate::message;
use crate::progress::Ending;
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
}

impl Card {
    /// A run that begins.
    pub(crate) fn new(settings: &CardSettings) -> Self {
        Self {
            settings: settings.clone(),
            parts: (settings.patterns() == 0).then(Parts::default),
            compared: settings.renews.is_empty(),
            counted: None,
            model: Model::default(),
        }
    }

    /// The settings.
    pub(crate) fn settings(&self) -> &CardSettings {
        &self.settings
    }

    /// What is asked at present.
    pub(crate) fn asking(&self) -> &dyn Asking {
        self
    }

    /// No moments are pooled.
    pub(crate) fn missing(&self) -> &[MissingShare] {
        &[]
    }

    /// There is no last word of each site.
    pub(crate) fn assessment(&self) -> Option<&Assessment> {
        None
    }

    /// Takes the answers of a closed exchange.
    pub(crate) fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure> {
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
                self.counted = Some(Counted {
                    counts,
                    places: Arc::new(places),
                });
                Ok(Turn::Ask)
            }
            (message::Answer::Card(Answer::Sums(sums)), Some(Counted { counts, places })) => {
                let parts = self.parts.as_ref();
                let left_out = parts.map_or(0, Parts::left_out);
                let table = publishing::table(&self.settings, counts, (places, &sums), left_out);
                self.model.table = Some(table);
                Ok(Turn::Done(Ending::Completed))
            }
            (other, _) => Err(unexpected(&other, "what was asked")),
        }
    }

    /// What the run leaves, as it stands.
    pub(crate) fn model(&self) -> Model {
        self.model.clone()
    }
}

impl Parts {
    /// Patients who are left out.
    fn left_out(&self) -> u64 {
        let patients = |pattern: &u32| self.patients.get(*pattern as usize - 1);
        self.left_out.iter().filter_map(patients).sum()
    }
}

impl Asking for Card {
    fn phase(&self) -> &'static str {
        match (&self.parts, &self.counted) {
            (None, _) => "counting patients by outcome",
            (Some(_), None) if !self.compared => "comparing studies",
            (Some(_), None) => "counting patients by group",
            (Some(_), Some(_)) => "summing what enough patients have",
        }
    }

    fn ask(&self, _: usize) -> Option<message::Request> {
        let left_out = |parts: &Parts| Arc::clone(&parts.left_out);
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
        match (&self.parts, &self.counted) {
            (None, _) => judging::parts(&self.settings, answer),
            (Some(_), None) if !self.compared => judging::lots(&self.settings, answer),
            (Some(parts), None) => judging::counts(&self.settings, parts, answer),
            (Some(_), Some(Counted { counts, places })) => {
                judging::sums(&self.settings, (counts, places), answer)
            }
        }
    }

    fn blank(&self) -> Option<message::Answer> {
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
}
