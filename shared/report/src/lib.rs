//! What people see of a run: a moving line while it goes, then machine-readable files and one page
//! that a clinician can read.

mod alike;
mod cohort;
mod csvw;
mod did;
mod estimates;
mod exits;
mod figures;
mod files;
mod folder;
mod groups;
mod lead;
mod listing;
mod love;
mod method;
mod npy;
mod outcome;
mod page;
mod plots;
mod quality;
mod rounds;
mod saying;
mod scatter;
mod studies;
mod survival;
mod tables;
mod verdict;
mod watching;
mod words;

pub use alike::AskedAbout;
pub use csvw::{About, Column, CsvRows, CsvTable, File};
pub use did::Did;
pub use figures::FigureError;
pub use folder::{FolderError, PendingFolder, Replace};
pub use groups::{
    GroupFeature, GroupScore, GroupValues, group_features, group_marks, group_scores, heat_map,
};
pub use lead::RunSaid;
pub use listing::{
    aligned, lasted, run_json, run_status, run_text, run_waiting, runs_json, runs_table,
};
pub use love::{LovePoint, love};
pub use method::{Answer, Said, group_name, shared_curves};
pub use npy::{npy, write_npy};
pub use outcome::sentence as outcome_sentence;
pub use page::{Part, RunPage, STYLE, Shares, Table, answer, part, sheet};
pub use plots::against;
pub use rounds::rounds_so_far;
pub use saying::{SayError, complain, remark, say, speak, with_causes};
pub use scatter::{OnMap, scatter_by_group, scatter_by_value};
/// A table that cannot be written as JSON.
pub use serde_json::Error as JsonError;
pub use studies::{studies_json, studies_table, study_json, study_text, waiting_text};
pub use survival::{Known, SurvivalCurve, SurvivalPoint, survival};
pub use watching::Watching;
pub use words::{as_sentence, grouped, minute, moment, root_error};

use maud::{Markup, html};
use protocol::job::Job;
use protocol::method::Model;
use protocol::result::RunResult;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file of the results could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{} could not be written", path.display())]
pub struct ReportError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// A figure of patients, which only their own site may show.
#[derive(Debug, Clone)]
pub struct LocalFigure {
    /// Its heading.
    pub title: &'static str,
    /// The drawing.
    pub svg: String,
    /// What it shows.
    pub caption: &'static str,
}

/// What a run says to whoever waits for it, of these patients if it is about patients; none where its method has nothing to say, or its job
/// cannot be read.
#[must_use]
pub fn said(result: &RunResult, of: AskedAbout<'_>) -> Option<Said> {
    let job = Job::parse_for_one(&result.job).ok()?;
    method::said(result, &job, of)
}

/// What a run found, as the first chapters of its report; none where its job cannot be read.
///
/// # Errors
/// [`FigureError`].
pub fn found(result: &RunResult) -> Result<Option<Markup>, FigureError> {
    let Ok(job) = Job::parse_for_one(&result.job) else {
        return Ok(None);
    };
    let glance = method::chapters(result, &job)?.glance;
    Ok(Some(html! { (method::answer(result, &job)) (glance) }))
}

/// What a run found about these patients; none of a run that was not about patients.
///
/// # Errors
/// [`FigureError`].
pub fn alike(result: &RunResult, of: AskedAbout<'_>) -> Result<Option<Markup>, FigureError> {
    let (Some(Model::Neighbours(model)), Ok(job)) =
        (&result.model, Job::parse_for_one(&result.job))
    else {
        return Ok(None);
    };
    method::of_patients(result, &job, model, of).map(Some)
}

/// Writes `result.json`, `report.html` and the files of the run's method into `folder`, which must exist.
///
/// # Errors
/// [`ReportError`] names the file.
pub fn write(result: &RunResult, folder: &Path) -> Result<(), ReportError> {
    write_with(result, &[], folder)
}

/// Results of patients are their owner's alone, whatever the umask.
fn private_file(path: &Path) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// [`write()`], with figures of the patients in the page.
///
/// # Errors
/// [`ReportError`] names the file.
pub fn write_with(
    result: &RunResult,
    figures: &[LocalFigure],
    folder: &Path,
) -> Result<(), ReportError> {
    let put = |name: &str, bytes: io::Result<Vec<u8>>| {
        let path = folder.join(name);
        let written = bytes.and_then(|bytes| private_file(&path)?.write_all(&bytes));
        written.map_err(|source| ReportError { path, source })
    };
    let job = Job::parse_for_one(&result.job).map_err(|problems| ReportError {
        path: folder.join("result.json"),
        source: io::Error::other(problems),
    })?;
    let own = method::files(result, &job).into_iter();
    let own: Vec<_> = own.flat_map(File::parts).collect();
    let names: Vec<&str> = own.iter().map(|(name, _)| name.as_str()).collect();
    put("result.json", method::result_json(result, &job, &names))?;
    for (name, bytes) in own {
        put(&name, bytes)?;
    }
    let page = method::chapters(result, &job).map(|chapters| {
        RunPage::with(result, &job, &chapters, figures)
            .file()
            .into_bytes()
    });
    put("report.html", page.map_err(io::Error::other))
}

#[cfg(all(test, unix))]
mod tests {
    use super::private_file;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_of_results_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = private_file(&folder.path().join("result.json")).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}
