//! How a study opened: the keys that its hospitals cover their answers by, agreed once for all of its runs.

use crate::message::{Encapsulations, Introduction};
use crate::name::RunId;

/// What the hospitals of a study have told each other of their keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// The run that opened the study.
    pub run: RunId,
    /// The digest of that run, 64 digits: the keys follow from it.
    pub digest: String,
    /// The keys of each hospital, in the study's order.
    pub introductions: Vec<Introduction>,
    /// What each has told the later ones alone.
    pub encapsulations: Vec<Encapsulations>,
    /// Who is in no sum of the study, as patterns of who has which outcome: see [`crate::message::card::LeftOut`].
    pub left_out: Vec<u32>,
}

impl Opening {
    /// Whether it is of so many hospitals.
    #[must_use]
    pub fn is_of(&self, hospitals: usize) -> bool {
        self.introductions.len() == hospitals && self.encapsulations.len() == hospitals
    }
}
