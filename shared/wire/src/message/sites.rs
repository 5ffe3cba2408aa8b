//! The rows of any run's result, on their way.

use crate::encoding::list::Listed;
use crate::encoding::values::{paragraph, shortened};
use crate::error::WireError;
use crate::generated as pb;
use crate::generated::part::Part;
use protocol::limits::{NOTES_MAX, SITES_MAX};

/// Sites. A row is checked with the matrices that belong to it, once all are there.
pub(crate) enum Sites {}

impl Listed for Sites {
    type Item = pb::SiteResult;
    type Row = pb::SiteResult;
    const DECLARED: &'static str = "sites";
    const PART: &'static str = "a list of sites";
    const ITEMS_MAX: usize = SITES_MAX;

    fn part(sites: Vec<pb::SiteResult>) -> Part {
        Part::Sites(pb::SitesChunk { sites })
    }

    fn write(site: &pb::SiteResult) -> pb::SiteResult {
        site.clone()
    }

    fn read(site: pb::SiteResult, _numbers: &mut usize) -> Result<pb::SiteResult, WireError> {
        Ok(site)
    }
}

/// Sentences for the operator.
pub(crate) enum Notes {}

impl Listed for Notes {
    type Item = String;
    type Row = String;
    const DECLARED: &'static str = "notes";
    const PART: &'static str = "a list of notes";
    const ITEMS_MAX: usize = NOTES_MAX;

    fn part(notes: Vec<String>) -> Part {
        Part::Notes(pb::NotesChunk { notes })
    }

    fn write(note: &String) -> String {
        shortened(note.clone())
    }

    fn read(note: String, _numbers: &mut usize) -> Result<String, WireError> {
        paragraph("a note", note)
    }
}
