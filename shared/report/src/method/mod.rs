//! What a run of each method leaves: its own files, and its chapters of the page. A method is a file here, which says what [`room`] wants.

mod card;
mod cluster;
mod compare;
mod forest;
mod neighbours;
mod regression;
mod room;
mod unpsl;

use crate::alike::AskedAbout;
use crate::csvw::{CsvTable, File};
use crate::figures::FigureError;
use crate::files::{self, Learnt};
use crate::tables;
pub use cluster::answer::group_name;
pub(crate) use cluster::answer::{Row, rows};
pub use cluster::curves::shared_curves;
use maud::{Markup, html};
pub(crate) use neighbours::of_patients;
use protocol::job::Job;
use protocol::method::{self, Method, Model};
use protocol::result::RunResult;
use room::Reported;
use std::io;

/// A method's part of the page behind its answer, in the page's order.
pub(crate) struct Chapters {
    /// How often it is right, at a glance.
    pub(crate) glance: Markup,
    /// What each feature is worth.
    pub(crate) features: Markup,
    /// The table of sites.
    pub(crate) sites: Markup,
    /// How well what was learned does, and how it was chosen.
    pub(crate) quality: Markup,
    /// How the computation went.
    pub(crate) course: Markup,
}

/// What a run says to whoever waits for it.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // one of a run
pub enum Said {
    /// Of synthetic patients what was found, compared with the truth.
    Truth(String),
    /// The answer to what was asked by an ended run.
    Answer(Answer),
}

/// An answer in three forms.
#[derive(Debug)]
pub struct Answer {
    /// For people.
    pub text: String,
    /// For machines.
    pub json: io::Result<String>,
    /// For spreadsheets.
    pub csv: io::Result<CsvTable>,
}

impl Said {
    /// What was found of synthetic patients.
    #[must_use]
    pub fn truth(self) -> Option<String> {
        match self {
            Self::Truth(text) => Some(text),
            Self::Answer(_) => None,
        }
    }

    /// The answer to what was asked.
    #[must_use]
    pub fn answer(self) -> Option<Answer> {
        match self {
            Self::Answer(answer) => Some(answer),
            Self::Truth(_) => None,
        }
    }
}

macro_rules! registry {
    ($($Name:ident $room:ident,)*) => {
        /// The answer of a run, with which its page begins.
        pub(crate) fn answer(result: &RunResult, job: &Job) -> Markup {
            match (&result.model, &job.method) {
                $((Some(Model::$Name(model)), Method::$Name(settings)) => model.answer(result, job, settings),)*
                (Some(_) | None, _) => nothing_learned(),
            }
        }

        /// The chapters of a run's page.
        ///
        /// # Errors
        /// [`FigureError`].
        pub(crate) fn chapters(result: &RunResult, job: &Job) -> Result<Chapters, FigureError> {
            match (&result.model, &job.method) {
                $((Some(Model::$Name(model)), Method::$Name(settings)) => model.chapters(result, job, settings),)*
                // A model is of its job's method.
                (Some(_) | None, _) => Ok(nothing(result)),
            }
        }

        /// The title of a run's page.
        pub(crate) fn title(job: &Job) -> String {
            match &job.method { $(Method::$Name(_) => <method::$room::model::Model as Reported>::title(job),)* }
        }

        /// The files of a run beside `result.json` and the page.
        pub(crate) fn files(result: &RunResult, job: &Job) -> Vec<File> {
            match &result.model {
                $(Some(Model::$Name(model)) => model.files(result, job),)*
                None => Vec::new(),
            }
        }

        /// `result.json`; beside it lie `files` of the method.
        pub(crate) fn result_json(result: &RunResult, job: &Job, files: &[&str]) -> io::Result<Vec<u8>> {
            match (&result.model, &job.method) {
                $((Some(Model::$Name(model)), Method::$Name(settings)) => {
                    let entry = model.model(result, job, settings);
                    files::result_json((result, job), model.learnt(), entry, files)
                })*
                (Some(_) | None, _) => files::result_json((result, job), Learnt::default(), None::<()>, files),
            }
        }

        /// What a run says to whoever waits for it, of these patients if it is about patients.
        pub(crate) fn said(result: &RunResult, job: &Job, of: AskedAbout<'_>) -> Option<Said> {
            match (&result.model, &job.method) {
                $((Some(Model::$Name(model)), Method::$Name(settings)) => model.said(result, job, settings, of),)*
                (Some(_) | None, _) => None,
            }
        }
    };
}

protocol::methods!(registry);

/// The answer of a run that ended before its method began.
fn nothing_learned() -> Markup {
    html! { p.lead { "Nothing was learned: the run ended before its method began." } }
}

/// A run that ended before its method began.
fn nothing(result: &RunResult) -> Chapters {
    Chapters {
        glance: Markup::default(),
        features: Markup::default(),
        sites: tables::sites(result),
        quality: Markup::default(),
        course: Markup::default(),
    }
}
