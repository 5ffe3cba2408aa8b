//! Runs that are open, with their patients, and the questions about them.

use super::elsewhere::Elsewhere;
use crate::cases::CasesError;
use crate::cases::bedside::{Bedside, Who};
use crate::cli::By;
use crate::run::driver::now;
use protocol::time::Timestamp;
use service::pages::Shelf;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Questions that are kept at once, of all visitors.
const KEPT_MAX: usize = 500;
/// A question that nobody has looked at for so long is forgotten.
const KEPT_ENDS: Duration = Duration::from_secs(30 * 60);
/// Runs whose patients are held in memory.
const OPEN_MAX: usize = 3;
/// Patients are read again after so many milliseconds, because a source changes.
const READ_AGAIN: u64 = 10 * 60 * 1_000;

/// What was asked, and of which session.
#[derive(Clone)]
pub(super) struct Question {
    pub(super) session: String,
    pub(super) run: String,
    pub(super) by: By,
    pub(super) k: usize,
    pub(super) who: Who,
    /// The question that this one changes a value of.
    pub(super) before: Option<Who>,
    /// What the other hospitals were asked.
    pub(super) elsewhere: Option<Elsewhere>,
}

/// All questions that are kept.
pub(super) fn questions() -> Shelf<Question> {
    Shelf::new(KEPT_MAX, KEPT_ENDS)
}

/// Runs that are open.
#[derive(Default)]
pub(super) struct Bedsides(Mutex<Vec<Opened>>);

struct Opened {
    run: String,
    by: By,
    bedside: Arc<Bedside>,
}

impl Bedsides {
    /// A run with its patients, as they were read a while ago or are now.
    ///
    /// # Errors
    /// [`CasesError`].
    pub(super) fn get(&self, config: &Path, run: &str, by: By) -> Result<Arc<Bedside>, CasesError> {
        let now = now();
        let is_fresh = |read: Timestamp| now.0.saturating_sub(read.0) < READ_AGAIN;
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known()
            .iter()
            .find(|one| one.run == run && one.by == by)
            .map(|one| Arc::clone(&one.bedside));
        if let Some(found) = found.as_ref().filter(|found| is_fresh(found.read())) {
            return Ok(Arc::clone(found));
        }
        let opened = Bedside::open(config, run, by, now)?;
        let bedside = match found {
            Some(found) => found.or(opened),
            None => Arc::new(opened),
        };
        let mut known = known();
        known.retain(|one| one.run != run || one.by != by);
        let more = (known.len() + 1).saturating_sub(OPEN_MAX);
        known.drain(..more);
        known.push(Opened {
            run: run.to_owned(),
            by,
            bedside: Arc::clone(&bedside),
        });
        Ok(bedside)
    }
}
