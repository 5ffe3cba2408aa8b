//! What a run of each method leaves: its own files, and its chapters of the page. The one place of this crate that
//! names all methods.

mod forest;
mod unpsl;

use crate::figures::FigureError;
use maud::Markup;
use protocol::job::{Job, Method};
use protocol::progress::RunResult;
use std::io;

/// A method's part of the page, in the page's order.
pub(crate) struct Chapters {
    /// How it ended and what was learned, in a sentence or two.
    pub(crate) summary: Markup,
    /// What each feature is worth.
    pub(crate) features: Markup,
    /// The table of sites.
    pub(crate) sites: Markup,
    /// How well what was learned does, and how it was chosen.
    pub(crate) quality: Markup,
    /// How the computation went.
    pub(crate) course: Markup,
}

/// A file's name, and its bytes or why there are none.
pub(crate) type File = (&'static str, io::Result<Vec<u8>>);

/// The chapters of a run's page.
///
/// # Errors
/// [`FigureError`].
pub(crate) fn chapters(result: &RunResult, job: &Job) -> Result<Chapters, FigureError> {
    match &job.method {
        Method::Unpsl(_) => unpsl::chapters(result),
        Method::Forest(settings) => forest::chapters(result, job, settings),
    }
}

/// The files of a run beside `result.json` and the page.
pub(crate) fn files(result: &RunResult, job: &Job) -> Vec<File> {
    match &job.method {
        Method::Unpsl(_) => unpsl::files(result),
        Method::Forest(_) => forest::files(result, job),
    }
}
