//! A message of which nothing can be read but its sum over sites.

use crate::sums::{Masks, Tag, Total, Words};

/// What a message is covered with: the masks of a site, and its place in the run.
#[derive(Debug, Clone, Copy)]
pub struct Covering<'c> {
    /// What the site shares with each other.
    pub masks: &'c Masks,
    /// The digest of the run.
    pub run: &'c str,
    /// The digest of all that the site has received in it: the words of sites that received different things add up to nothing.
    pub heard: &'c str,
    /// The exchange.
    pub exchange: u32,
    /// Whether the words have a tag, because the sites will hear their sum alone.
    pub tagged: bool,
}

/// The words of a message, covered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Covered {
    /// The kind of message that they are of.
    pub kind: &'static str,
    /// The words.
    pub words: Words,
    /// Their tag, where the sites hear the sum alone.
    pub tag: Option<Tag>,
}

impl Covering<'_> {
    /// None where the site shares nothing with one of the others.
    pub(crate) fn cover(&self, kind: &'static str, mut words: Words) -> Option<Covered> {
        let label = self.label(kind, words.as_slice().len());
        if !self.masks.cover(&label, &mut words) {
            return None;
        }
        let tag = match self.tagged {
            true => Some(self.masks.tag(&label, &words)?),
            false => None,
        };
        Some(Covered { kind, words, tag })
    }

    /// Whether a total is the sum of what all sites have covered so.
    #[must_use]
    pub fn proves(&self, kind: &str, total: &Total) -> bool {
        let label = self.label(kind, total.as_slice().len());
        self.masks.proves(&label, total)
    }

    /// Said of no two messages of a run: no keystream is used twice.
    fn label(&self, kind: &str, words: usize) -> Vec<u8> {
        let mut label = Vec::new();
        for text in [self.run, self.heard, kind] {
            label.extend((text.len() as u64).to_be_bytes());
            label.extend(text.as_bytes());
        }
        label.extend(self.exchange.to_be_bytes());
        label.extend((words as u64).to_be_bytes());
        label
    }
}
