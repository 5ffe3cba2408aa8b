//! `runs list`: the runs that this site took part in, by its own books.

use crate::books::chain::{ChainError, file_error};
use crate::books::{journal, transcript};
use crate::config::SiteConfig;
use protocol::job::Job;
use protocol::name::RunId;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// The folder of what runs have left at a site.
pub const RUNS: &str = "runs";

/// Runs, the earliest first.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct RunsListed(Vec<OneRun>);

#[derive(Debug, Default, Serialize)]
struct OneRun {
    run: String,
    /// Of the copy, as the method; none where there is no copy any more.
    job: Option<String>,
    method: Option<String>,
    study: Option<String>,
    /// When its first message left, RFC 3339; none where nothing has left.
    first: Option<String>,
    last: Option<String>,
    /// Messages that have left, and their bytes.
    messages: u64,
    bytes: u64,
    /// Whether results about this site's patients lie here.
    results: bool,
    /// Whether there is a copy from which the run can be worked out again.
    copy: bool,
}

/// Reads the journal, the copies and the results of a site.
///
/// # Errors
/// [`ChainError`] where the journal is not what was written, or a folder cannot be read.
pub fn list(config: &SiteConfig) -> Result<RunsListed, ChainError> {
    let folder = &config.folder;
    let mut found: BTreeMap<String, OneRun> = BTreeMap::new();
    if !journal::is_unwritten(folder) {
        journal::each(folder, |_, entry| {
            if entry.run.is_empty() {
                return;
            }
            let known = found.entry(entry.run).or_default();
            known.first.get_or_insert_with(|| entry.time.clone());
            known.last = Some(entry.time);
            known.messages += 1;
            known.bytes += entry.bytes;
        })?;
    }
    let copies = transcript::runs(folder);
    for run in copies.map_err(|error| file_error(folder, "read", error))? {
        let known = found.entry(run.to_string()).or_default();
        known.copy = true;
        let job = transcript::read(folder, &run).ok();
        if let Some(job) = job.and_then(|copy| Job::parse(&copy.begin.job).ok()) {
            known.job = Some(job.name.clone());
            known.method = Some(job.method.name().to_owned());
            known.study = job.study.as_ref().map(|study| study.name.to_string());
        }
    }
    for run in results(&folder.join(RUNS))? {
        found.entry(run.to_string()).or_default().results = true;
    }
    let named = found
        .into_iter()
        .map(|(run, known)| OneRun { run, ..known });
    let mut listed: Vec<OneRun> = named.collect();
    listed.sort_by(|one, other| one.first.cmp(&other.first));
    Ok(RunsListed(listed))
}

/// The names of the runs that have left results.
pub(super) fn results(folder: &Path) -> Result<Vec<RunId>, ChainError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(file_error(folder, "read", error)),
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter_map(|name| RunId::new(&name).ok()).collect())
}

impl fmt::Display for RunsListed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heading = [
            "RUN",
            "JOB",
            "METHOD",
            "STUDY",
            "LAST (UTC)",
            "MESSAGES",
            "BYTES",
            "KEPT",
        ];
        let mut rows = vec![heading.map(str::to_owned)];
        rows.extend(self.0.iter().map(OneRun::row));
        out.write_str(&report::aligned(&rows))
    }
}

impl OneRun {
    fn row(&self) -> [String; 8] {
        let or_none = |text: &Option<String>| text.clone().unwrap_or("-".to_owned());
        let minute = |time: &String| time.chars().take(16).collect::<String>().replace('T', " ");
        let kept = match (self.results, self.copy) {
            (true, true) => "results, copy",
            (true, false) => "results",
            (false, true) => "copy",
            (false, false) => "-",
        };
        [
            self.run.clone(),
            or_none(&self.job),
            or_none(&self.method),
            or_none(&self.study),
            or_none(&self.last.as_ref().map(minute)),
            self.messages.to_string(),
            self.bytes.to_string(),
            kept.to_owned(),
        ]
    }
}
