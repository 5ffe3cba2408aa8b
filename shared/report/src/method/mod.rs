//! What a run of each method leaves: its own files, and its chapters of the page. The one place of this crate that
//! names all methods.

mod card;
mod cluster;
mod compare;
mod forest;
mod neighbours;
mod regression;
mod unpsl;

use crate::alike::{AlikeElsewhere, AskedAbout};
use crate::figures::FigureError;
use crate::files::Learnt;
use crate::tables;
pub(crate) use cluster::answer::{Row, rows};
use maud::{Markup, html};
use protocol::job::Job;
use protocol::method::{Method, Model};
use protocol::result::RunResult;
use std::io;

/// A method's part of the page, in the page's order.
pub(crate) struct Chapters {
    /// What was learned, and how sure that is, in a sentence or two.
    pub(crate) answer: Markup,
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

/// A file's name, and its bytes or why there are none.
pub(crate) type File = (&'static str, io::Result<Vec<u8>>);

/// The chapters of a run's page.
///
/// # Errors
/// [`FigureError`].
pub(crate) fn chapters(result: &RunResult, job: &Job) -> Result<Chapters, FigureError> {
    match (&result.model, &job.method) {
        (Some(Model::Unpsl(model)), _) => unpsl::chapters(result, job, model),
        (Some(Model::Forest(model)), Method::Forest(settings)) => {
            forest::chapters(result, job, settings, model)
        }
        (Some(Model::Regression(model)), Method::Regression(settings)) => {
            regression::chapters(result, job, settings, model)
        }
        (Some(Model::Neighbours(model)), _) => neighbours::chapters(result, job, model),
        (Some(Model::Cluster(model)), Method::Cluster(settings)) => {
            cluster::chapters(result, job, settings, model)
        }
        (Some(Model::Compare(model)), _) => compare::chapters(result, job, model),
        (Some(Model::Card(model)), Method::Card(settings)) => {
            Ok(card::chapters(result, job, settings, model))
        }
        (Some(Model::Forest(_) | Model::Regression(_) | Model::Cluster(_) | Model::Card(_)), _)
        | (None, _) => Ok(nothing(result)),
    }
}

/// The title of a run's page.
pub(crate) fn title(job: &Job) -> String {
    match (&job.method, &job.study) {
        (Method::Card(_), Some(study)) => study.title.clone(),
        (
            Method::Unpsl(_)
            | Method::Forest(_)
            | Method::Regression(_)
            | Method::Neighbours(_)
            | Method::Cluster(_)
            | Method::Compare(_)
            | Method::Card(_),
            _,
        ) => format!("{}: patient similarity", job.name),
    }
}

/// The files of a run beside `result.json` and the page.
pub(crate) fn files(result: &RunResult, job: &Job) -> Vec<File> {
    match &result.model {
        Some(Model::Unpsl(model)) => unpsl::files(model),
        Some(Model::Forest(model)) => forest::files(result, job, model),
        Some(Model::Regression(model)) => regression::files(model),
        Some(Model::Neighbours(model)) => neighbours::files(result, job, model),
        Some(Model::Cluster(model)) => cluster::files(result, job, model),
        Some(Model::Compare(model)) => compare::files(job, model),
        Some(Model::Card(model)) => card::files(result, job, model),
        None => Vec::new(),
    }
}

/// What the method adds to `result.json`.
pub(crate) fn learnt(result: &RunResult) -> Learnt<'_> {
    match &result.model {
        Some(Model::Unpsl(model)) => unpsl::learnt(model),
        Some(Model::Forest(model)) => forest::learnt(model),
        Some(Model::Regression(model)) => regression::learnt(model),
        Some(Model::Neighbours(_) | Model::Cluster(_) | Model::Compare(_) | Model::Card(_))
        | None => Learnt::default(),
    }
}

/// What a run says of synthetic patients beside the truth, where the method can say it.
pub(crate) fn truth(result: &RunResult) -> Option<String> {
    match &result.model {
        Some(Model::Unpsl(model)) => unpsl::truth(model),
        Some(
            Model::Forest(_)
            | Model::Regression(_)
            | Model::Neighbours(_)
            | Model::Cluster(_)
            | Model::Compare(_)
            | Model::Card(_),
        )
        | None => None,
    }
}

/// Who is alike to these patients, where the run asked that.
pub(crate) fn alike(result: &RunResult, job: &Job, of: AskedAbout<'_>) -> Option<AlikeElsewhere> {
    match &result.model {
        Some(Model::Neighbours(model)) => Some(neighbours::answer(result, job, model, of)),
        Some(
            Model::Unpsl(_)
            | Model::Forest(_)
            | Model::Regression(_)
            | Model::Cluster(_)
            | Model::Compare(_)
            | Model::Card(_),
        )
        | None => None,
    }
}

/// Which groups patients fall into, in words, where the run looked for some.
pub(crate) fn groups(result: &RunResult, job: &Job) -> Option<String> {
    match &result.model {
        Some(Model::Cluster(model)) => cluster::words(result, job, model),
        Some(
            Model::Unpsl(_)
            | Model::Forest(_)
            | Model::Regression(_)
            | Model::Neighbours(_)
            | Model::Compare(_)
            | Model::Card(_),
        )
        | None => None,
    }
}

/// A run that ended before its method began.
fn nothing(result: &RunResult) -> Chapters {
    Chapters {
        answer: html! { p.lead { "Nothing was learned: the run ended before its method began." } },
        glance: Markup::default(),
        features: Markup::default(),
        sites: tables::sites(result),
        quality: Markup::default(),
        course: Markup::default(),
    }
}
