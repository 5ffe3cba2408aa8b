//! The rows of any run's result, on their way.

use crate::encoding::list::Listed;
use crate::encoding::values::{at_most, each, label, paragraph, shortened, summed};
use crate::error::WireError;
use crate::generated as pb;
use crate::generated::part::Part;
use protocol::limits::{MESSAGE_KINDS_MAX, NOTES_MAX, SITES_MAX};
use protocol::result::{MessageTotal, SiteResult};

/// Sites.
pub(crate) enum Sites {}

impl Listed for Sites {
    type Item = SiteResult;
    type Row = pb::SiteResult;
    const DECLARED: &'static str = "sites";
    const PART: &'static str = "a list of sites";
    const ITEMS_MAX: usize = SITES_MAX;

    fn part(sites: Vec<pb::SiteResult>) -> Part {
        Part::Sites(pb::SitesChunk { sites })
    }

    fn write(site: &SiteResult) -> pb::SiteResult {
        pb::SiteResult {
            name: site.name.clone(),
            bytes_sent: site.bytes_sent,
            bytes_received: site.bytes_received,
            messages: site.messages.iter().map(total_to_proto).collect(),
        }
    }

    fn read(site: pb::SiteResult, _numbers: &mut usize) -> Result<SiteResult, WireError> {
        Ok(SiteResult {
            name: label("a site's name", site.name)?,
            bytes_sent: summed("bytes that a site sent", site.bytes_sent)?,
            bytes_received: summed("bytes that a site received", site.bytes_received)?,
            messages: totals(site.messages)?,
        })
    }
}

fn total_to_proto(total: &MessageTotal) -> pb::MessageTotal {
    pb::MessageTotal {
        kind: total.kind.clone(),
        count: total.count,
        bytes: total.bytes,
    }
}

fn totals(totals: Vec<pb::MessageTotal>) -> Result<Vec<MessageTotal>, WireError> {
    at_most("kinds of message", totals.len(), MESSAGE_KINDS_MAX)?;
    each(totals, |total| {
        Ok(MessageTotal {
            kind: label("a kind of message", total.kind)?,
            count: summed("messages of a site", total.count)?,
            bytes: summed("bytes of a site's messages", total.bytes)?,
        })
    })
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
