//! The coordinator's memory, written before anything is sent: an SQLite file, or a PostgreSQL that several coordinators share.
//!
//! What is read back is judged again: a row that cannot be read is said to be so, and never ends the program.

mod database;
mod journals;
mod kept;
mod reach;
mod schema;
mod studies;

use database::{Database, Row, Sqlite};
pub use database::{DatabaseError, Lease, Session, Taken};
pub use kept::{UNREADABLE, copy_store, ended_progress, failed_result, unreadable};
use kept::{drop_oldest, forget, readable};
pub use reach::Reach;
pub use schema::VERSION as SCHEMA_VERSION;
pub use studies::KeptStudy;

use protocol::job::Job;
use protocol::message::Warrant;
use protocol::name::{NameError, OperatorName, RunId};
use protocol::progress::{Ending, Progress};
use protocol::result::RunResult;
use protocol::run::Record;
use protocol::time::Timestamp;
use service::chain::ChainError;
use std::io;
use std::path::{Path, PathBuf};
use wire::WireError;

/// The store of one coordinator.
pub struct Store {
    database: Box<dyn Database>,
}

/// A submitted run.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    /// Its identity.
    pub run: RunId,
    /// Who submitted it.
    pub operator: OperatorName,
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
    /// The database failed.
    #[error("the coordinator's store failed")]
    Database(#[from] DatabaseError),
    /// A later version has made the tables.
    #[error(
        "found tables of version {found} in the coordinator's store, wanted {} at most: a later Kindred has written them",
        schema::VERSION
    )]
    Later {
        /// Their version.
        found: i64,
    },
    /// A coordinator leads on it.
    #[error("found a coordinator that leads on the database, wanted none that runs")]
    Led,
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
        Self::of(Box::new(Sqlite::open(path)?))
    }

    /// Opens or makes the store in PostgreSQL, for whoever leads.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn lead(lease: Lease) -> Result<Self, StoreError> {
        lease.prepare()?;
        Self::of(Box::new(lease))
    }

    fn of(database: Box<dyn Database>) -> Result<Self, StoreError> {
        schema::bring_up_to_date(&*database)?;
        Ok(Self { database })
    }

    /// The latest moment that the store knows of.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn latest(&self) -> Result<Timestamp, StoreError> {
        let sql = "SELECT max(moment) FROM (SELECT submitted AS moment FROM runs
             UNION ALL SELECT began FROM runs UNION ALL SELECT closed FROM records) AS moments";
        let latest = self.database.row(sql, &[])?;
        let latest = latest.map(|mut row| row.take(0)).transpose()?;
        Ok(Timestamp(latest.flatten().unwrap_or_default()))
    }

    /// Keeps a submission.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn submit(&self, submission: &Submission) -> Result<(), StoreError> {
        let sql = "INSERT INTO runs (id, operator, job, seed, warrant, submitted)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let warrant = wire::encode_warrant(&submission.warrant);
        let values = [
            submission.run.as_str().into(),
            submission.operator.as_str().into(),
            submission.job.text.as_str().into(),
            submission.seed.into(),
            warrant.as_slice().into(),
            submission.submitted.0.into(),
        ];
        Ok(self.database.execute(sql, &values)?)
    }

    /// What is known of `run`, if anything, beside this job and seed.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn known(&self, run: &RunId, job: &str, seed: u64) -> Result<Known, StoreError> {
        let sql = "SELECT job = ?2 AND seed = ?3 FROM runs WHERE id = ?1";
        let values = [run.as_str().into(), job.into(), seed.into()];
        let same = self.database.row(sql, &values)?;
        Ok(match same.map(|mut row| row.take(0)).transpose()? {
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
        let sql = "SELECT 1 FROM runs WHERE id = ?1 AND id NOT IN (SELECT run FROM ended)";
        Ok(self.database.row(sql, &[run.as_str().into()])?.is_none())
    }

    /// Notes that a run began.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn begin(&self, run: &RunId, at: Timestamp) -> Result<(), StoreError> {
        let sql = "UPDATE runs SET began = ?2 WHERE id = ?1";
        let values = [run.as_str().into(), at.0.into()];
        Ok(self.database.execute(sql, &values)?)
    }

    /// Every run that has not ended, the oldest first. A row without a run's name is noted in the log.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn unfinished(&self) -> Result<Vec<Unfinished>, StoreError> {
        let sql = "SELECT id, operator, job, seed, submitted, began, warrant FROM runs
             WHERE result IS NULL AND id NOT IN (SELECT run FROM ended) ORDER BY submitted, rowid";
        let mut found = Vec::new();
        for row in self.database.rows(sql, &[])? {
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
        // Of one operator alone an index finds them.
        let rows = match whose.only() {
            Some(operator) => self.database.rows(
                "SELECT runs.id, ended.run IS NOT NULL, ended.summary, runs.operator
                 FROM runs LEFT JOIN ended ON ended.run = runs.id WHERE runs.operator = ?1
                 ORDER BY runs.submitted DESC, runs.rowid DESC",
                &[operator.into()],
            ),
            None => self.database.rows(
                "SELECT runs.id, ended.run IS NOT NULL, ended.summary, runs.operator
                 FROM runs LEFT JOIN ended ON ended.run = runs.id
                 ORDER BY runs.submitted DESC, runs.rowid DESC",
                &[],
            ),
        };
        let mut listed = Vec::new();
        for mut row in rows? {
            let name = row.take::<String>(0).ok();
            let summary = row.take::<Option<Vec<u8>>>(2).ok().flatten();
            let operator = row.take::<String>(3).ok();
            listed.push(Listed {
                run: name.and_then(|name| RunId::new(&name).ok()),
                summary: summary.and_then(|bytes| wire::decode_progress(&bytes).ok()),
                ended: row.take(1)?,
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
             WHERE runs.id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR runs.operator = ?2)";
        let values = [run.as_str().into(), whose.only().into()];
        let Some(mut row) = self.database.row(sql, &values)? else {
            return Ok(None);
        };
        let (bytes, operator): (Option<Vec<u8>>, String) = (row.take(0)?, row.take(1)?);
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
        let transaction = self.database.begin()?;
        let (name, exchange) = (run.as_str(), record.exchange);
        transaction.execute(
            "INSERT INTO records (run, exchange, closed) VALUES (?1, ?2, ?3)",
            &[name.into(), exchange.into(), record.at.0.into()],
        )?;
        let places = record.answers.iter().zip(&record.signatures);
        for (site, (answer, signature)) in (0_u32..).zip(places) {
            let answer = answer.as_ref().map(wire::encode_answer);
            transaction.execute(
                "INSERT INTO answers (run, exchange, site, answer, signature)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
                &[
                    name.into(),
                    exchange.into(),
                    site.into(),
                    answer.as_deref().into(),
                    signature.as_slice().into(),
                ],
            )?;
        }
        Ok(transaction.commit()?)
    }

    /// The closed exchanges of a run, in order.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn records(&self, run: &RunId) -> Result<Vec<Record>, StoreError> {
        let sql = "SELECT exchange FROM records WHERE run = ?1 ORDER BY exchange";
        let exchanges = self.database.rows(sql, &[run.as_str().into()])?;
        let exchanges = exchanges.into_iter().map(|mut row| row.take(0));
        let exchanges: Vec<u32> = exchanges.collect::<Result<_, _>>()?;
        let record = |exchange: u32| self.record(run, exchange).transpose();
        exchanges.into_iter().filter_map(record).collect()
    }

    /// What closed in one exchange; none where it has not, or is no longer kept.
    ///
    /// # Errors
    /// As [`Store::records`].
    pub fn record(&self, run: &RunId, exchange: u32) -> Result<Option<Record>, StoreError> {
        let sql = "SELECT closed FROM records WHERE run = ?1 AND exchange = ?2";
        let values = [run.as_str().into(), exchange.into()];
        let Some(mut row) = self.database.row(sql, &values)? else {
            return Ok(None);
        };
        let mut record = Record {
            exchange,
            at: Timestamp(row.take(0)?),
            answers: Vec::new(),
            signatures: Vec::new(),
        };
        self.read_answers(run, &mut record)?;
        Ok(Some(record))
    }

    /// One answer after the other: each may be large.
    fn read_answers(&self, run: &RunId, record: &mut Record) -> Result<(), StoreError> {
        let sql = "SELECT site FROM answers WHERE run = ?1 AND exchange = ?2 ORDER BY site";
        let (run, exchange) = (run.as_str(), record.exchange);
        for mut place in self.database.rows(sql, &[run.into(), exchange.into()])? {
            let sql = "SELECT answer, signature FROM answers
                 WHERE run = ?1 AND exchange = ?2 AND site = ?3";
            let values = [run.into(), exchange.into(), place.take::<i64>(0)?.into()];
            let Some(mut row) = self.database.row(sql, &values)? else {
                continue;
            };
            let bytes: Option<Vec<u8>> = row.take(0)?;
            let answer = bytes.map(|bytes| wire::decode_answer(&bytes)).transpose()?;
            record.answers.push(answer);
            let signature: Option<Vec<u8>> = row.take(1)?;
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
        let transaction = self.database.begin()?;
        kept::complete(&*transaction, &mut result, at)?;
        let (result, bytes) = readable(result);
        let run = result.run.as_str();
        let sql = "UPDATE runs SET result = ?2 WHERE id = ?1";
        transaction.execute(sql, &[run.into(), bytes.as_slice().into()])?;
        let summary = wire::encode_progress(&ended_progress(&result));
        let values = [
            run.into(),
            (bytes.len() as u64).into(),
            summary.as_slice().into(),
        ];
        let sql = "INSERT INTO ended (run, bytes, summary) VALUES (?1, ?2, ?3)
             ON CONFLICT (run) DO UPDATE SET bytes = ?2, summary = ?3";
        transaction.execute(sql, &values)?;
        transaction.execute("DELETE FROM answers WHERE run = ?1", &[run.into()])?;
        transaction.execute("DELETE FROM records WHERE run = ?1", &[run.into()])?;
        drop_oldest(&*transaction, run)?;
        transaction.commit()?;
        self.database.write_back()?;
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
             WHERE runs.id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR runs.operator = ?2)";
        let transaction = self.database.begin()?;
        let found = transaction.row(sql, &[run.as_str().into(), whose.only().into()])?;
        let found = found.map(|mut row| row.take(0)).transpose()?;
        if found == Some(true) {
            forget(&*transaction, run.as_str())?;
        }
        transaction.commit()?;
        self.database.write_back()?;
        Ok(found)
    }

    /// What an operator's run left, once it has ended; none where there is no such run, or it has not ended.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn result(&self, run: &RunId, whose: &Reach) -> Result<Option<RunResult>, StoreError> {
        let sql = "SELECT result FROM runs
             WHERE id = ?1 AND (CAST(?2 AS TEXT) IS NULL OR operator = ?2)";
        let values = [run.as_str().into(), whose.only().into()];
        let Some(mut row) = self.database.row(sql, &values)? else {
            return Ok(None);
        };
        let bytes: Option<Vec<u8>> = row.take(0)?;
        Ok(bytes.map(|bytes| wire::decode_result(&bytes)).transpose()?)
    }
}

fn unfinished(mut row: Row) -> Result<Unfinished, StoreError> {
    let run = RunId::new(&row.take::<String>(0)?)?;
    let operator: String = row.take(1)?;
    let job: String = row.take(2)?;
    let seed = row.take(3)?;
    let submitted = Timestamp(row.take(4)?);
    let began = row.take::<Option<u64>>(5)?.map(Timestamp);
    let warrant: Option<Vec<u8>> = row.take(6)?;
    let warrant = wire::decode_warrant(&warrant.unwrap_or_default());
    let submission = Job::parse(&job).map_err(|problems| problems.to_string());
    let submission = submission.and_then(|job| {
        Ok(Submission {
            run: run.clone(),
            operator: OperatorName::new(&operator).map_err(|error| error.to_string())?,
            job,
            seed,
            warrant: warrant.map_err(|error| error.to_string())?,
            submitted,
            began,
        })
    });
    Ok(Unfinished {
        submission,
        run,
        job,
        seed,
    })
}

#[cfg(test)]
mod postgres_tests;
#[cfg(test)]
mod tests;
