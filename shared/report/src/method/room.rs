//! What each method says of itself in a report. No default bodies: a method that has nothing to say says so.

use super::{Chapters, Said};
use crate::alike::AskedAbout;
use crate::csvw::File;
use crate::figures::FigureError;
use crate::files::Learnt;
use maud::Markup;
use protocol::job::Job;
use protocol::result::RunResult;
use serde::Serialize;

/// What a run of a method has left.
pub(super) trait Reported {
    /// Its table of the job.
    type Settings;

    /// The title of the page.
    fn title(job: &Job) -> String;

    /// What was learned, and how sure that is: the first paragraphs of the page.
    fn answer(&self, result: &RunResult, job: &Job, settings: &Self::Settings) -> Markup;

    /// The chapters of the page behind the answer.
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

    /// What it adds to the keys of `result.json` that methods share.
    fn learnt(&self) -> Learnt<'_>;

    /// The key `model` of `result.json`: numbers that are in the method's own files. None where nothing was learned.
    fn model<'r>(
        &'r self,
        result: &'r RunResult,
        job: &'r Job,
        settings: &'r Self::Settings,
    ) -> Option<impl Serialize>;

    /// What it says to whoever waits for the run, of these patients if it is about patients.
    fn said(
        &self,
        result: &RunResult,
        job: &Job,
        settings: &Self::Settings,
        of: AskedAbout<'_>,
    ) -> Option<Said>;
}

/// The title of a page about similar patients.
pub(super) fn usual_title(job: &Job) -> String {
    format!("{}: patient similarity", job.name)
}
