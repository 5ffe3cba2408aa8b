//! The conversation around questions and answers: what begins, what closed, and where a journal ends.

use super::{Begin, Closed, Request};
use crate::name::{RunId, SiteName};
use crate::study::SignedApproval;
use crate::time::Timestamp;
use std::sync::Arc;

/// From coordinator to site.
#[derive(Debug, Clone, PartialEq)]
pub enum ToSite {
    /// A run begins, or the site came back to it. Saying it twice changes nothing.
    Begin(Begin),
    /// A closed exchange of a run that its sites check.
    Closed(Arc<Closed>),
    /// One exchange.
    Ask(Ask),
    /// The text of a study that names the site and waits for its approval.
    Proposed(String),
    /// The digests of closed studies that name the site.
    ClosedStudies(Vec<String>),
    /// A run of the site's waits for others, who are not connected.
    Waiting(Waiting),
    /// The run is over; the site may let go of it.
    End {
        /// The run.
        run: RunId,
        /// One sentence: how it ended.
        ending: String,
    },
}

/// A run that goes on once hospitals that are not connected are back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The run.
    pub run: RunId,
    /// Who is not connected.
    pub away: Vec<SiteName>,
    /// Since when they are waited for; none where it is not known.
    pub since: Option<Timestamp>,
}

/// One exchange, as one site receives it.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// The run.
    pub run: RunId,
    /// Number of the exchange in the run, from 1.
    pub exchange: u32,
    /// What is asked.
    pub request: Request,
}

/// From site to coordinator. `A` is a released answer as it travels at the site, and [`super::Answer`] at the
/// coordinator.
#[derive(Debug, Clone, PartialEq)]
pub enum ToCoordinator<A> {
    /// First on every stream.
    Hello {
        /// Version of the agent.
        version: String,
    },
    /// The answer to one exchange.
    Reply(Reply<A>),
    /// The site has approved a study. It says so again on every stream.
    Approved(SignedApproval),
}

/// The answer to one exchange.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply<A> {
    /// The run.
    pub run: RunId,
    /// The exchange that is answered.
    pub exchange: u32,
    /// Where the site's journal ends with the answer; none where a site keeps none.
    pub journal: Option<JournalHead>,
    /// The site's word for it, where the sites of the run check each other's; else empty.
    pub signature: Vec<u8>,
    /// The answer.
    pub answer: A,
}

/// Where a site's journal ends. The coordinator remembers it, so that a journal that was cut or written anew shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalHead {
    /// Its entries.
    pub entries: u64,
    /// The hash of the last one, 64 hexadecimal digits.
    pub hash: String,
}
