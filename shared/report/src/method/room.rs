//! What each method says of itself in a report. No default bodies: a method that has nothing to say says so.

use super::{Chapters, File};
use crate::alike::{AlikeElsewhere, AskedAbout};
use crate::figures::FigureError;
use crate::files::Learnt;
use protocol::job::Job;
use protocol::result::RunResult;

/// What a run of a method has left.
pub(super) trait Reported {
    /// Its table of the job.
    type Settings;

    /// The title of the page.
    fn title(job: &Job) -> String;

    /// The chapters of the page.
    ///
    /// # Errors
    /// [`FigureError`].
    fn chapters(
        &self,
        result: &RunResult,
        job: &Job,
        settings: &Self::Settings,
    ) -> Result<Chapters, FigureError>;

    /// The files beside `result.json` and the page.
    fn files(&self, result: &RunResult, job: &Job) -> Vec<File>;

    /// What it adds to `result.json`.
    fn learnt(&self) -> Learnt<'_>;

    /// What it says of synthetic patients compared with the truth, where it can.
    fn truth(&self) -> Option<String>;

    /// Who is alike to these patients, where that was asked.
    fn alike(&self, result: &RunResult, job: &Job, of: AskedAbout<'_>) -> Option<AlikeElsewhere>;

    /// Which groups patients fall into, in words, where some were looked for.
    fn groups(&self, result: &RunResult, job: &Job) -> Option<String>;
}

/// The title of a page about similar patients.
pub(super) fn usual_title(job: &Job) -> String {
    format!("{}: patient similarity", job.name)
}
