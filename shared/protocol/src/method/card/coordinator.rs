//! What a run for the card of a study asks, stage by stage: who is in earlier studies that it renews, counts, and sums of what enough
//! patients have.

use super::message::{Answer, Counts, Request};
use super::model::Model;
use super::settings::CardSettings;
use super::{judging, publishing, separating};
use crate::checks::unexpected;
use crate::exchange::{Asking, Closed, Course, Turn};
use crate::failure::Failure;
use crate::message;
use crate::progress::Ending;
use std::sync::Arc;

/// The card of a study under way.
#[derive(Debug, Clone)]
pub(crate) struct Card {
    settings: CardSettings,
    /// Whether the study is known to differ from those that it renews by enough patients.
    compared: bool,
    /// None before they are known.
    counted: Option<Counted>,
    model: Model,
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
            compared: settings.renews.is_empty(),
            counted: None,
            model: Model::default(),
        }
    }

    /// The settings.
    pub(crate) fn settings(&self) -> &CardSettings {
        &self.settings
    }

    /// Takes the answers of a closed exchange.
    pub(crate) fn close(&mut self, closed: &mut Closed<'_>) -> Result<Turn<Ending>, Failure> {
        match (closed.take_sum()?, &self.counted) {
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
                let table = publishing::table(&self.settings, counts, (places, &sums));
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

impl Asking for Card {
    fn phase(&self) -> &'static str {
        match self.counted {
            None if !self.compared => "comparing studies",
            None => "counting patients by group",
            Some(_) => "summing what enough patients have",
        }
    }

    fn ask(&self, _: usize) -> Option<message::Request> {
        Some(message::Request::Card(match &self.counted {
            None if !self.compared => Request::Compare,
            None => Request::Count,
            Some(counted) => Request::Sum(Arc::clone(&counted.places)),
        }))
    }

    fn judge(&self, _: usize, _: u64, answer: &message::Answer) -> Result<(), Failure> {
        match &self.counted {
            None if !self.compared => judging::lots(&self.settings, answer),
            None => judging::counts(&self.settings, answer),
            Some(Counted { counts, places }) => {
                judging::sums(&self.settings, (counts, places), answer)
            }
        }
    }

    fn blank(&self) -> Option<message::Answer> {
        Some(message::Answer::Card(match &self.counted {
            None if !self.compared => judging::no_lots(&self.settings),
            None => judging::nobody(&self.settings),
            Some(counted) => judging::nothing(&self.settings, &counted.places),
        }))
    }

    fn course(&self) -> Course {
        Course::default()
    }
}
