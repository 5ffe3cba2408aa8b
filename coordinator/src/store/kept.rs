//! What is kept of a run that has ended.

use super::database::{Database, DatabaseError};
use super::{Store, StoreError};
use protocol::failure::{Code, Failure};
use protocol::job::Job;
use protocol::limits::{RESULT_BYTES_PER_OPERATOR_MAX, RESULTS_PER_OPERATOR_MAX};
use protocol::method::Model;
use protocol::name::{OperatorName, RunId};
use protocol::progress::{Ending, Progress, Times};
use protocol::result::{PooledFigures, RunResult};
use protocol::time::Timestamp;
use rusqlite::{Connection, OpenFlags};
use std::fs::OpenOptions;
use std::path::Path;
use std::time::Duration;
use wire::private;

/// The phase of a run that the store holds and that cannot be read.
pub const UNREADABLE: &str = "unreadable";

/// A run that failed before it could leave anything.
#[must_use]
pub fn failed_result(run: RunId, job: String, seed: u64, failure: Failure) -> RunResult {
    RunResult {
        run,
        job,
        seed,
        version: crate::driver::VERSION.to_owned(),
        operator: None,
        ending: Ending::Failed(failure),
        times: Times::default(),
        seconds: 0.0,
        sites: Vec::new(),
        pooled: PooledFigures::default(),
        model: None,
        notes: Vec::new(),
    }
}

/// A run whose end cannot be read.
#[must_use]
pub fn unreadable(run: RunId) -> Progress {
    let text = "the coordinator's store holds of this run what this version cannot read";
    let failure = Failure::new(Code::Store, text);
    let result = failed_result(run, String::new(), 0, failure);
    Progress {
        phase: UNREADABLE.to_owned(),
        ..ended_progress(&result)
    }
}

/// Where a run that has ended stands.
#[must_use]
pub fn ended_progress(result: &RunResult) -> Progress {
    let job = Job::parse(&result.job).ok();
    let sites = job
        .as_ref()
        .map_or(result.sites.len(), |job| job.sites.len());
    let method = job.as_ref().map(|job| job.method.name().to_owned());
    Progress {
        run: result.run.clone(),
        method: method.unwrap_or_default(),
        job: job.map(|job| job.name).unwrap_or_default(),
        operator: None,
        times: result.times,
        ahead: None,
        phase: "ended".to_owned(),
        course: result.model.as_ref().map(Model::course).unwrap_or_default(),
        sites_connected: 0,
        sites: u32::try_from(sites).unwrap_or(u32::MAX),
        waiting_for: Vec::new(),
        away: Vec::new(),
        waiting_since: None,
        notes: u32::try_from(result.notes.len()).unwrap_or(u32::MAX),
        ending: Some(result.ending.clone()),
    }
}

impl Store {
    /// Takes away what runs left that ended longer ago than `retain`, but for the cards of studies; gives their number. One whose end
    /// cannot be read stays.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn drop_ended(&mut self, now: Timestamp, retain: Duration) -> Result<usize, StoreError> {
        let transaction = self.database.begin()?;
        let sql = "SELECT run, summary FROM ended WHERE run NOT IN (SELECT run FROM studies)";
        let mut old = Vec::new();
        for mut row in transaction.rows(sql, &[])? {
            let (run, summary): (String, Option<Vec<u8>>) = (row.take(0)?, row.take(1)?);
            let summary = summary.and_then(|bytes| wire::decode_progress(&bytes).ok());
            let ended = summary.and_then(|summary| summary.times.ended);
            if ended.is_some_and(|ended| now.since(ended) > retain) {
                old.push(run);
            }
        }
        old.iter().try_for_each(|run| forget(&*transaction, run))?;
        transaction.commit()?;
        if !old.is_empty() {
            self.database.write_back()?;
        }
        Ok(old.len())
    }
}

/// Makes a store's file, or closes it to others. SQLite's own files next to it get its mode.
pub(super) fn close(path: &Path) -> Result<(), StoreError> {
    let file = private::open(path, OpenOptions::new().append(true).create(true));
    file.map(drop).map_err(|source| StoreError::File {
        path: path.to_owned(),
        source,
    })
}

/// Copies the store at `from`, also while a coordinator writes it, to a file that is not there yet.
///
/// # Errors
/// [`StoreError`].
pub fn copy_store(from: &Path, to: &Path) -> Result<(), StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(from, flags).map_err(DatabaseError::Sqlite)?;
    close(to)?;
    let copied = connection.execute("VACUUM INTO ?1", [to.display().to_string()]);
    copied.map_err(DatabaseError::Sqlite)?;
    Ok(())
}

/// Adds to a result who submitted the run, and its times.
pub(super) fn complete(
    database: &dyn Database,
    result: &mut RunResult,
    at: Timestamp,
) -> Result<(), StoreError> {
    let sql = "SELECT operator, submitted, began FROM runs WHERE id = ?1";
    if let Some(mut row) = database.row(sql, &[result.run.as_str().into()])? {
        result.operator = OperatorName::new(&row.take::<String>(0)?).ok();
        result.times.submitted = Some(Timestamp(row.take(1)?));
        result.times.began = row.take::<Option<u64>>(2)?.map(Timestamp);
    }
    result.times.ended.get_or_insert(at);
    Ok(())
}

/// The result with its record, read back once; a failure in its place where that cannot be done.
pub(super) fn readable(result: RunResult) -> (RunResult, Vec<u8>) {
    let bytes = wire::encode_result(&result);
    let Err(error) = wire::decode_result(&bytes) else {
        return (result, bytes);
    };
    tracing::error!(run = %result.run, %error, "a result cannot be stored");
    let text = format!("the result cannot be stored: {error}");
    let failure = Failure::new(Code::Result, text);
    let failed = RunResult {
        operator: result.operator,
        times: result.times,
        ..failed_result(result.run, result.job, result.seed, failure)
    };
    let bytes = wire::encode_result(&failed);
    (failed, bytes)
}

/// Drops the oldest results of the operator of `run` beyond those that are kept.
pub(super) fn drop_oldest(database: &dyn Database, run: &str) -> Result<(), StoreError> {
    let sql = "SELECT ended.run, ended.bytes FROM ended JOIN runs ON runs.id = ended.run
         WHERE runs.operator = (SELECT operator FROM runs WHERE id = ?1)
         AND runs.id NOT IN (SELECT run FROM studies)
         ORDER BY runs.submitted DESC, runs.rowid DESC";
    let (mut kept, mut bytes, mut dropped) = (0, 0_u64, Vec::new());
    for mut row in database.rows(sql, &[run.into()])? {
        let (name, size): (String, u64) = (row.take(0)?, row.take(1)?);
        kept += 1;
        bytes = bytes.saturating_add(size);
        let is_many = kept > RESULTS_PER_OPERATOR_MAX || bytes > RESULT_BYTES_PER_OPERATOR_MAX;
        if is_many && name != run {
            dropped.push(name);
        }
    }
    for name in dropped {
        tracing::info!(run = %name, "the result of an old run is dropped");
        forget(database, &name)?;
    }
    Ok(())
}

/// Lets go of a run that has ended.
pub(super) fn forget(database: &dyn Database, run: &str) -> Result<(), StoreError> {
    database.execute("DELETE FROM ended WHERE run = ?1", &[run.into()])?;
    Ok(database.execute("DELETE FROM runs WHERE id = ?1", &[run.into()])?)
}
