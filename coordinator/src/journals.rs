//! What the coordinator remembers of the sites' journals: where each ended when it last heard of it.

use protocol::message::JournalHead;
use protocol::name::SiteName;
use std::collections::BTreeMap;

/// The last head of each site's journal.
#[derive(Debug, Default)]
pub struct Journals {
    heads: BTreeMap<SiteName, JournalHead>,
}

impl Journals {
    /// As they were kept.
    #[must_use]
    pub fn new(heads: BTreeMap<SiteName, JournalHead>) -> Self {
        Self { heads }
    }

    /// All heads.
    #[must_use]
    pub fn heads(&self) -> &BTreeMap<SiteName, JournalHead> {
        &self.heads
    }

    /// Remembers what a site said with an answer; gives what a result must say where its journal does not go on from
    /// what was known. A journal only grows: it never has fewer entries, nor as many with another last one. That the
    /// entries between are the same cannot be seen from here.
    pub fn heard(&mut self, site: &SiteName, head: Option<JournalHead>) -> Option<String> {
        let known = self.heads.get(site);
        let Some(head) = head else {
            let known = known?;
            return Some(format!(
                "{site} no longer says where its journal ends; it had {} entries.",
                known.entries
            ));
        };
        let note = known.and_then(|known| {
            if head.entries < known.entries {
                Some(format!(
                    "The journal of {site} has {} entries and had {}: it was cut or begun anew.",
                    head.entries, known.entries
                ))
            } else if head.entries == known.entries && head.hash != known.hash {
                Some(format!(
                    "The journal of {site} has {} entries, as before, and another last one: it was written anew.",
                    head.entries
                ))
            } else {
                None
            }
        });
        self.heads.insert(site.clone(), head);
        note
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(entries: u64, digit: &str) -> Option<JournalHead> {
        let hash = digit.repeat(64);
        Some(JournalHead { entries, hash })
    }

    #[test]
    fn a_journal_that_grows_or_repeats_itself_is_no_news() {
        let mut journals = Journals::default();
        let north = SiteName::new("north").unwrap();
        for (entries, digit) in [(5, "a"), (5, "a"), (6, "b"), (90, "c")] {
            assert_eq!(journals.heard(&north, head(entries, digit)), None);
        }
        let kept = Journals::new(journals.heads().clone());
        assert_eq!(kept.heads()[&north].entries, 90);
    }

    #[test]
    fn a_journal_that_was_cut_or_written_anew_is_noted_once() {
        let (north, south) = (
            SiteName::new("north").unwrap(),
            SiteName::new("south").unwrap(),
        );
        let mut journals = Journals::default();
        assert_eq!(journals.heard(&north, head(9, "a")), None);
        let note = journals.heard(&north, head(3, "b")).unwrap();
        assert!(note.contains("north has 3 entries and had 9"), "{note}");
        assert_eq!(journals.heard(&north, head(4, "c")), None);
        let note = journals.heard(&north, head(4, "d")).unwrap();
        assert!(note.contains("another last one"), "{note}");
        assert_eq!(journals.heard(&south, None), None);
        let note = journals.heard(&north, None).unwrap();
        assert!(note.contains("no longer"), "{note}");
    }
}
