//! What ended runs have left at a site goes after a time that its owner sets. Books, keys and approvals stay.

use super::driver::now;
use super::listed::RUNS;
use crate::books::chain::{ChainError, file_error};
use crate::books::transcript;
use crate::config::SiteConfig;
use crate::studies;
use protocol::job::Job;
use protocol::name::RunId;
use protocol::time::Timestamp;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tokio::sync::watch;

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(3_600);

/// Looks again and again, and at once where the configuration has changed. It does not end.
pub async fn keep(mut config: watch::Receiver<SiteConfig>) {
    loop {
        let present = config.borrow_and_update().clone();
        let swept = tokio::task::spawn_blocking(move || sweep(&present, now(), SystemTime::now()));
        match swept.await {
            Ok(Ok(0)) | Err(_) => {}
            Ok(Ok(runs)) => tracing::info!(
                runs,
                "what runs left was older than retain_days and was taken away"
            ),
            Ok(Err(error)) => tracing::error!(%error, "what old runs left cannot be taken away"),
        }
        tokio::select! {
            changed = config.changed() => if changed.is_err() {
                return std::future::pending().await;
            },
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// Takes away results and copies of runs that are older than `retain_days`, unless their study still has runs: these build on
/// earlier ones, and an audit recomputes all. Gives the number of runs.
///
/// # Errors
/// [`ChainError`] where studies or folders cannot be read, or a file cannot be taken away.
pub fn sweep(config: &SiteConfig, now: Timestamp, wall: SystemTime) -> Result<usize, ChainError> {
    let Some(retain) = config.retain else {
        return Ok(0);
    };
    let approved = studies::all(&config.folder, &config.site)?;
    let active = approved.iter().filter(|one| one.has_runs(now));
    let active: BTreeSet<&str> = active
        .map(|one| one.signed.approval.digest.as_str())
        .collect();
    let is_old =
        |path: &Path| newest(path).map(|at| wall.duration_since(at).is_ok_and(|age| age > retain));
    let mut gone = 0;
    for run in runs(&config.folder)? {
        let left = [
            config.folder.join(RUNS).join(run.as_str()),
            transcript::path(&config.folder, &run),
        ];
        let there: Vec<PathBuf> = left.into_iter().filter(|path| path.exists()).collect();
        let mut ages = there
            .iter()
            .map(|path| is_old(path).map_err(|error| file_error(path, "read", error)));
        if !ages.try_fold(true, |all, one| one.map(|one| all && one))?
            || is_needed(&config.folder, &run, &active)
        {
            continue;
        }
        for path in &there {
            remove(path).map_err(|error| file_error(path, "taken away", error))?;
        }
        gone += 1;
    }
    Ok(gone)
}

/// Whether a run is of a study that still has runs, or may be.
fn is_needed(folder: &Path, run: &RunId, active: &BTreeSet<&str>) -> bool {
    let copy = transcript::read(folder, run).ok();
    let job = copy.and_then(|copy| Job::parse(&copy.begin.job).ok());
    match job.and_then(|job| job.study) {
        Some(study) => active.contains(study.digest().as_str()),
        None => !active.is_empty(),
    }
}

/// All runs that have left something.
fn runs(folder: &Path) -> Result<BTreeSet<RunId>, ChainError> {
    let failed = |error| file_error(folder, "read", error);
    let mut found: BTreeSet<RunId> = transcript::runs(folder)
        .map_err(failed)?
        .into_iter()
        .collect();
    found.extend(super::listed::results(&folder.join(RUNS))?);
    Ok(found)
}

/// When anything in it was last written.
fn newest(path: &Path) -> io::Result<SystemTime> {
    let found = fs::metadata(path)?;
    if !found.is_dir() {
        return found.modified();
    }
    let mut latest = SystemTime::UNIX_EPOCH;
    for entry in fs::read_dir(path)? {
        latest = latest.max(newest(&entry?.path())?);
    }
    Ok(latest)
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = match path.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    };
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
