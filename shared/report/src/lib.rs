//! What people see of a run: a moving line while it goes, then machine-readable files and one page
//! that a clinician can read.

mod figures;
mod files;
mod folder;
mod forest;
mod page;
mod scatter;
mod watching;

pub use figures::FigureError;
pub use folder::{FolderError, PendingFolder};
pub use scatter::{scatter_by_group, scatter_by_value};
pub use watching::Watching;

use protocol::job::Job;
use protocol::progress::RunResult;
use std::io;
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

/// Writes `result.json`, `rounds.csv`, `metric.npy`, `features.csv` and `report.html` into `folder`,
/// which must exist. `metric.npy` and `features.csv` are left out where no round closed. A run of forests
/// leaves `importance.csv` and, where the sites have one in common, `forest.bin` instead of these.
///
/// # Errors
/// [`ReportError`] names the file.
pub fn write(result: &RunResult, folder: &Path) -> Result<(), ReportError> {
    write_with(result, &[], folder)
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
        let written = bytes.and_then(|bytes| std::fs::write(&path, bytes));
        written.map_err(|source| ReportError { path, source })
    };
    let job = Job::parse(&result.job).map_err(|problems| ReportError {
        path: folder.join("result.json"),
        source: io::Error::other(problems),
    })?;
    put("result.json", files::result_json(result, &job))?;
    if forest::settings(&job).is_some() {
        if result.sites.iter().any(|site| !site.importance.is_empty()) {
            put("importance.csv", forest::importance_csv(result, &job))?;
        }
        if let Some(common) = &result.forest {
            put(
                "forest.bin",
                common.to_bytes(&job).map_err(io::Error::other),
            )?;
        }
    } else {
        put("rounds.csv", files::rounds_csv(result))?;
    }
    if let Some(metric) = &result.metric {
        put("metric.npy", files::npy(metric))?;
        put("features.csv", files::features_csv(result))?;
    }
    put(
        "report.html",
        page::html(result, &job, figures)
            .map(String::into_bytes)
            .map_err(io::Error::other),
    )
}

/// ||w_k|| of every row of the metric; empty where there is none.
fn norms(result: &RunResult) -> Vec<f64> {
    let Some(metric) = &result.metric else {
        return Vec::new();
    };
    metric
        .rows()
        .into_iter()
        .map(|row| row.dot(&row).sqrt())
        .collect()
}
