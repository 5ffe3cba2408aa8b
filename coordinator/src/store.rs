//! The coordinator's memory: one SQLite file, written before anything is sent.
//!
//! What is read back is judged again: a row that cannot be read is said to be so, and never ends the program.

mod journals;
mod kept;
mod reach;
mod schema;
mod studies;

use kept::readable;
pub use kept::{UNREADABLE, copy_store, ended_progress, failed_result, unreadable};
pub use reach::Reach;
pub use studies::KeptStudy;

use protocol::job::Job;
use protocol::limits::{RESULT_BYTES_PER_OPERATOR_MAX, RESULTS_PER_OPERATOR_MAX};
use protocol::message::Warrant;
use protocol::name::{NameError, OperatorName, RunId};
use protocol::progress::{Ending, Progress};
use protocol::result::RunResult;
use protocol::run::Record;
use protocol::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use service::chain::ChainError;
use std::io;
use std::path::{Path, PathBuf};
use wire::WireError;

/// The store of one coordinator.
pub struct Store {
    connection: Connection,
}

/// A submitted run.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    /// Its identity.
    pub run: RunId,
    /// Who submitted it.
    pub operator: String,
    /// The job, with its text.
    pub job: Job,
    /// Its seed.
    pub seed: u64,
    /// The operator's word for it.
    pub warrant: Warrant,
    /// When it was submitted.
    pub submitted: Timestamp,
    /// When its sites were first waited for; none while it is queued.
    pub began: Option<Timestamp>,
}

/// A run that has not ended, as it lies in the store.
#[derive(Debug)]
pub struct Unfinished {
    /// Its identity.
    pub run: RunId,
    /// The job's text.
    pub job: String,
    /// Its seed.
    pub seed: u64,
    /// The run, where its job can be read.
    pub submission: Result<Submission, String>,
}

/// A run as a list shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// Its identity; none where the store holds no name there.
    pub run: Option<RunId>,
    /// What a run that has ended left in short; none where it has not, or where that cannot be read.
    pub summary: Option<Progress>,
    /// Whether it has ended.
    pub ended: bool,
    /// Who submitted it; none where the store holds no name there.
    pub operator: Option<OperatorName>,
}

/// What an earlier submission with the same token was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// There was none.
    New,
    /// The same.
    Same,
    /// One with another job or seed.
    Other,
}

/// The store failed, or holds what this version cannot read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite failed.
    #[error("the coordinator's store failed")]
    Database(#[from] rusqlite::Error),
    /// Its file could not be made or closed to others.
    #[error("{} could not be used", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The audit log.
    #[error(transparent)]
    Audit(#[from] ChainError),
    /// A stored answer or result cannot be decoded.
    #[error("the coordinator's store holds what this version cannot read")]
    Decode(#[from] WireError),
    /// A stored name is none.
    #[error("the coordinator's store holds what this version cannot read")]
    Name(#[from] NameError),
}

impl Store {
    /// Opens or makes the store at `path`. What is deleted in it is overwritten.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        kept::close(path)?;
        let mut connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "secure_delete", "ON")?;
        schema::bring_up_to_date(&mut connection)?;
        Ok(Self { connection })
    }

    /// The latest moment that the store knows of.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn latest(&self) -> Result<Timestamp, StoreError> {
        let sql = "SELECT max(
            (SELECT coalesce(max(max(submitted, coalesce(began, 0))), 0) FROM runs),
            (SELECT coalesce(max(closed), 0) FROM records))";
        let latest: i64 = self.connection.query_row(sql, [], |row| row.get(0))?;
        Ok(Timestamp(latest.cast_unsigned()))
    }

    /// Keeps a submission.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn submit(&self, submission: &Submission) -> Result<(), StoreError> {
        self.connection.execute(
            "INSERT INTO runs (id, operator, job, seed, warrant, submitted)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                submission.run.as_str(),
                submission.operator,
                submission.job.text,
                submission.seed.cast_signed(),
                wire::encode_warrant(&submission.warrant),
                submission.submitted.0.cast_signed(),
            ],
        )?;
        Ok(())
    }

    /// What is known of `run`, if anything, beside this job and seed.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn known(&self, run: &RunId, job: &str, seed: u64) -> Result<Known, StoreError> {
        let same: Option<bool> = self
            .connection
            .query_row(
                "SELECT job = ?2 AND seed = ?3 FROM runs WHERE id = ?1",
                params![run.as_str(), job, seed.cast_signed()],
                |row| row.get(0),
            )
            .optional()?;
        Ok(match same {
            None => Known::New,
            Some(true) => Known::Same,
            Some(false) => Known::Other,
        })
    }

    /// Whether the run has ended, or is not known any more.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn has_ended(&self, run: &RunId) -> Result<bool, StoreError> {
        let sql = "SELECT count(*) FROM runs WHERE id = ?1 AND id NOT IN (SELECT run FROM ended)";
        let going: i64 = self
            .connection
            .query_row(sql, [run.as_str()], |row| row.get(0))?;
        Ok(going == 0)
    }

    /// Notes that a run began.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn begin(&self, run: &RunId, at: Timestamp) -> Result<(), StoreError> {
        let sql = "UPDATE runs SET began = ?2 WHERE id = ?1";
        self.connection
            .execute(sql, params![run.as_str(), at.0.cast_signed()])?;
        Ok(())
    }

    /// Every run that has not ended, the oldest first. A row without a run's name is noted in the log.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn unfinished(&self) -> Result<Vec<Unfinished>, StoreError> {
        let mut statement = self.connection.prepare(
            "SELECT id, operator, job, seed, submitted, began, warrant FROM runs
             WHERE result IS NULL AND id NOT IN (SELECT run FROM ended) ORDER BY submitted, rowid",
        )?;
        let mut rows = statement.query([])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            match unfinished(row) {
                Ok(run) => found.push(run),
                Err(error) => {
                    tracing::error!(%error, "a run in the store cannot be read; left there")
                }
            }
        }
        Ok(found)
    }

    /// The runs of one operator or of all, the newest first. Neither jobs nor results are read.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn list(&self, whose: &Reach) -> Result<Vec<Listed>, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT runs.id, ended.run IS NOT NULL, ended.summary, runs.operator
             FROM runs LEFT JOIN ended ON ended.run = runs.id
             WHERE ?1 IS NULL OR runs.operator = ?1 ORDER BY runs.submitted DESC, runs.rowid DESC",
        )?;
        let mut rows = statement.query([whose.only()])?;
        let mut listed = Vec::new();
        while let Some(row) = rows.next()? {
            let name = row.get::<_, String>(0).ok();
            let summary = row.get::<_, Option<Vec<u8>>>(2).ok().flatten();
            let operator = row.get::<_, String>(3).ok();
            listed.push(Listed {
                run: name.and_then(|name| RunId::new(&name).ok()),
                summary: summary.and_then(|bytes| wire::decode_progress(&bytes).ok()),
                ended: row.get(1)?,
                operator: operator.and_then(|name| OperatorName::new(&name).ok()),
            });
        }
        Ok(listed)
    }

    /// What an operator's run that has ended left in short; none where there is no such run.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn summary(&self, run: &RunId, whose: &Reach) -> Result<Option<Progress>, StoreError> {
        let sql = "SELECT ended.summary, runs.operator FROM ended JOIN runs ON runs.id = ended.run
             WHERE runs.id = ?1 AND (?2 IS NULL OR runs.operator = ?2)";
        let found: Option<(Option<Vec<u8>>, String)> = self
            .connection
            .query_row(sql, params![run.as_str(), whose.only()], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        let Some((bytes, operator)) = found else {
            return Ok(None);
        };
        let summary = bytes
            .map(|bytes| wire::decode_progress(&bytes))
            .transpose()?;
        Ok(Some(Progress {
            operator: OperatorName::new(&operator).ok(),
            ..summary.unwrap_or_else(|| unreadable(run.clone()))
        }))
    }

    /// Keeps a closed exchange; when this returns, it is on the disk.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn keep(&mut self, run: &RunId, record: &Record) -> Result<(), StoreError> {
        let transaction = self.connection.transaction()?;
        transaction.execute(
            "INSERT INTO records (run, exchange, closed) VALUES (?1, ?2, ?3)",
            params![run.as_str(), record.exchange, record.at.0.cast_signed()],
        )?;
        let places = record.answers.iter().zip(&record.signatures);
        for (site, (answer, signature)) in places.enumerate() {
            transaction.execute(
                "INSERT INTO answers (run, exchange, site, answer, signature)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    run.as_str(),
                    record.exchange,
                    i64::try_from(site).unwrap_or(i64::MAX),
                    answer.as_ref().map(wire::encode_answer),
                    signature,
                ],
            )?;
        }
        transaction.commit()?;
        Ok(())
    }

    /// The closed exchanges of a run, in order.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn records(&self, run: &RunId) -> Result<Vec<Record>, StoreError> {
        let mut statement = self
            .connection
            .prepare("SELECT exchange FROM records WHERE run = ?1 ORDER BY exchange")?;
        let exchanges = statement.query_map([run.as_str()], |row| row.get(0))?;
        let exchanges: Vec<u32> = exchanges.collect::<Result<_, _>>()?;
        let record = |exchange: u32| self.record(run, exchange).transpose();
        exchanges.into_iter().filter_map(record).collect()
    }

    /// What closed in one exchange; none where it has not, or is no longer kept.
    ///
    /// # Errors
    /// As [`Store::records`].
    pub fn record(&self, run: &RunId, exchange: u32) -> Result<Option<Record>, StoreError> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT closed FROM records WHERE run = ?1 AND exchange = ?2")?;
        let closed = statement.query_row(params![run.as_str(), exchange], |row| row.get(0));
        let closed: Option<i64> = closed.optional()?;
        let Some(closed) = closed else {
            return Ok(None);
        };
        let mut record = Record {
            exchange,
            at: Timestamp(closed.cast_unsigned()),
            answers: Vec::new(),
            signatures: Vec::new(),
        };
        self.read_answers(run, &mut record)?;
        Ok(Some(record))
    }

    fn read_answers(&self, run: &RunId, record: &mut Record) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT answer, signature FROM answers
             WHERE run = ?1 AND exchange = ?2 ORDER BY site",
        )?;
        let mut rows = statement.query(params![run.as_str(), record.exchange])?;
        while let Some(row) = rows.next()? {
            let bytes: Option<Vec<u8>> = row.get(0)?;
            let answer = bytes.map(|bytes| wire::decode_answer(&bytes)).transpose()?;
            record.answers.push(answer);
            let signature: Option<Vec<u8>> = row.get(1)?;
            record.signatures.push(signature.unwrap_or_default());
        }
        Ok(())
    }

    /// Keeps what a run leaves, lets go of its exchanges, and of the oldest results of an operator who has
    /// more than are kept. What could not be read back is kept as a failure. Who submitted the run, and when, is added; it
    /// ended at `at` where it does not say when. Gives the ending as it is kept.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn end(&mut self, mut result: RunResult, at: Timestamp) -> Result<Ending, StoreError> {
        let transaction = self.connection.transaction()?;
        kept::complete(&transaction, &mut result, at)?;
        let (result, bytes) = readable(result);
        let run = result.run.as_str();
        transaction.execute(
            "UPDATE runs SET result = ?2 WHERE id = ?1",
            params![run, bytes],
        )?;
        let summary = wire::encode_progress(&ended_progress(&result));
        transaction.execute(
            "INSERT OR REPLACE INTO ended (run, bytes, summary) VALUES (?1, ?2, ?3)",
            params![run, i64::try_from(bytes.len()).unwrap_or(i64::MAX), summary],
        )?;
        transaction.execute("DELETE FROM answers WHERE run = ?1", [run])?;
        transaction.execute("DELETE FROM records WHERE run = ?1", [run])?;
        drop_oldest(&transaction, run)?;
        transaction.commit()?;
        self.write_back()?;
        Ok(result.ending)
    }

    /// Takes away what an operator's run that has ended left. False where it opened a study; none where there is no such run, or it
    /// has not ended.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn remove(&mut self, run: &RunId, whose: &Reach) -> Result<Option<bool>, StoreError> {
        let sql = "SELECT runs.id NOT IN (SELECT run FROM studies)
             FROM ended JOIN runs ON runs.id = ended.run
             WHERE runs.id = ?1 AND (?2 IS NULL OR runs.operator = ?2)";
        let transaction = self.connection.transaction()?;
        let found =
            transaction.query_row(sql, params![run.as_str(), whose.only()], |row| row.get(0));
        let found: Option<bool> = found.optional()?;
        if found == Some(true) {
            forget(&transaction, run.as_str())?;
        }
        transaction.commit()?;
        self.write_back()?;
        Ok(found)
    }

    /// What was deleted leaves the write-ahead log as well.
    fn write_back(&self) -> Result<(), StoreError> {
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        Ok(self.connection.query_row(sql, [], |_| Ok(()))?)
    }

    /// What an operator's run left, once it has ended; none where there is no such run, or it has not ended.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn result(&self, run: &RunId, whose: &Reach) -> Result<Option<RunResult>, StoreError> {
        let bytes: Option<Option<Vec<u8>>> = self
            .connection
            .query_row(
                "SELECT result FROM runs WHERE id = ?1 AND (?2 IS NULL OR operator = ?2)",
                params![run.as_str(), whose.only()],
                |row| row.get(0),
            )
            .optional()?;
        Ok(bytes
            .flatten()
            .map(|bytes| wire::decode_result(&bytes))
            .transpose()?)
    }
}

fn unfinished(row: &Row<'_>) -> Result<Unfinished, StoreError> {
    let run = RunId::new(&row.get::<_, String>(0)?)?;
    let job: String = row.get(2)?;
    let seed = row.get::<_, i64>(3)?.cast_unsigned();
    let operator = row.get(1)?;
    let submitted = Timestamp(row.get::<_, i64>(4)?.cast_unsigned());
    let began = row.get::<_, Option<i64>>(5)?;
    let warrant: Option<Vec<u8>> = row.get(6)?;
    let warrant = wire::decode_warrant(&warrant.unwrap_or_default());
    let submission = Job::parse(&job).map_err(|problems| problems.to_string());
    let submission = submission.and_then(|job| {
        Ok(Submission {
            run: run.clone(),
            operator,
            job,
            seed,
            warrant: warrant.map_err(|error| error.to_string())?,
            submitted,
            began: began.map(|at| Timestamp(at.cast_unsigned())),
        })
    });
    Ok(Unfinished {
        submission,
        run,
        job,
        seed,
    })
}

/// Drops the oldest results of the operator of `run` beyond those that are kept.
fn drop_oldest(transaction: &Transaction<'_>, run: &str) -> Result<(), StoreError> {
    let mut statement = transaction.prepare_cached(
        "SELECT ended.run, ended.bytes FROM ended JOIN runs ON runs.id = ended.run
         WHERE runs.operator = (SELECT operator FROM runs WHERE id = ?1)
         AND runs.id NOT IN (SELECT run FROM studies)
         ORDER BY runs.submitted DESC, runs.rowid DESC",
    )?;
    let mut rows = statement.query([run])?;
    let (mut kept, mut bytes, mut dropped) = (0, 0_u64, Vec::new());
    while let Some(row) = rows.next()? {
        let (name, size): (String, i64) = (row.get(0)?, row.get(1)?);
        kept += 1;
        bytes = bytes.saturating_add(size.cast_unsigned());
        let is_many = kept > RESULTS_PER_OPERATOR_MAX || bytes > RESULT_BYTES_PER_OPERATOR_MAX;
        if is_many && name != run {
            dropped.push(name);
        }
    }
    for name in dropped {
        tracing::info!(run = %name, "the result of an old run is dropped");
        forget(transaction, &name)?;
    }
    Ok(())
}

/// Lets go of a run that has ended.
fn forget(transaction: &Transaction<'_>, run: &str) -> Result<(), StoreError> {
    transaction.execute("DELETE FROM ended WHERE run = ?1", [run])?;
    transaction.execute("DELETE FROM runs WHERE id = ?1", [run])?;
    Ok(())
}

#[cfg(test)]
mod tests;
