//! The coordinator's memory: one SQLite file, written before anything is sent.

use protocol::coordinator::Record;
use protocol::message::Warrant;
use protocol::name::{NameError, RunId};
use protocol::progress::RunResult;
use protocol::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use wire::{WireError, private};

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY,
    operator TEXT NOT NULL,
    job TEXT NOT NULL,
    seed INTEGER NOT NULL,
    warrant BLOB NOT NULL,
    submitted INTEGER NOT NULL,
    began INTEGER,
    result BLOB
) STRICT;
CREATE TABLE IF NOT EXISTS records (
    run TEXT NOT NULL REFERENCES runs (id),
    exchange INTEGER NOT NULL,
    closed INTEGER NOT NULL,
    PRIMARY KEY (run, exchange)
) STRICT;
CREATE TABLE IF NOT EXISTS answers (
    run TEXT NOT NULL,
    exchange INTEGER NOT NULL,
    site INTEGER NOT NULL,
    member INTEGER NOT NULL,
    answer BLOB,
    PRIMARY KEY (run, exchange, site)
) STRICT;";

/// The store of one coordinator.
pub struct Store {
    connection: Connection,
}

/// A submitted run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// Its identity.
    pub run: RunId,
    /// Who submitted it.
    pub operator: String,
    /// The job's text.
    pub job: String,
    /// Its seed.
    pub seed: u64,
    /// The operator's word for it.
    pub warrant: Warrant,
    /// When it was submitted.
    pub submitted: Timestamp,
    /// When its sites were first waited for; none while it is queued.
    pub began: Option<Timestamp>,
    /// Whether it has ended.
    pub ended: bool,
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
    /// A stored answer or result cannot be decoded.
    #[error("the coordinator's store holds what this version cannot read")]
    Decode(#[from] WireError),
    /// A stored name is none.
    #[error("the coordinator's store holds what this version cannot read")]
    Name(#[from] NameError),
}

impl Store {
    /// Opens or makes the store at `path`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        // SQLite's own files beside it get the mode of this one.
        private::open(path, OpenOptions::new().append(true).create(true)).map_err(|source| {
            StoreError::File {
                path: path.to_owned(),
                source,
            }
        })?;
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(SCHEMA)?;
        Ok(Self { connection })
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
                submission.job,
                submission.seed.cast_signed(),
                wire::encode_warrant(&submission.warrant),
                submission.submitted.0.cast_signed(),
            ],
        )?;
        Ok(())
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

    /// Every run, the oldest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn submissions(&self) -> Result<Vec<Submission>, StoreError> {
        let mut statement = self.connection.prepare(
            "SELECT id, operator, job, seed, submitted, began, result IS NOT NULL, warrant FROM runs
             ORDER BY submitted, rowid",
        )?;
        let mut rows = statement.query([])?;
        let mut submissions = Vec::new();
        while let Some(row) = rows.next()? {
            submissions.push(Submission {
                run: RunId::new(&row.get::<_, String>(0)?)?,
                operator: row.get(1)?,
                job: row.get(2)?,
                seed: row.get::<_, i64>(3)?.cast_unsigned(),
                submitted: Timestamp(row.get::<_, i64>(4)?.cast_unsigned()),
                began: row
                    .get::<_, Option<i64>>(5)?
                    .map(|at| Timestamp(at.cast_unsigned())),
                ended: row.get(6)?,
                warrant: wire::decode_warrant(&row.get::<_, Vec<u8>>(7)?)?,
            });
        }
        Ok(submissions)
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
        for (site, (answer, member)) in record.answers.iter().zip(&record.members).enumerate() {
            transaction.execute(
                "INSERT INTO answers (run, exchange, site, member, answer)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    run.as_str(),
                    record.exchange,
                    i64::try_from(site).unwrap_or(i64::MAX),
                    member,
                    answer.as_ref().map(wire::encode_answer),
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
        let mut records = Vec::new();
        let mut statement = self
            .connection
            .prepare("SELECT exchange, closed FROM records WHERE run = ?1 ORDER BY exchange")?;
        let mut rows = statement.query([run.as_str()])?;
        while let Some(row) = rows.next()? {
            let exchange: u32 = row.get(0)?;
            let at = Timestamp(row.get::<_, i64>(1)?.cast_unsigned());
            let (answers, members) = self.answers(run, exchange)?;
            records.push(Record {
                at,
                exchange,
                answers,
                members,
            });
        }
        Ok(records)
    }

    fn answers(&self, run: &RunId, exchange: u32) -> Result<Answers, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT member, answer FROM answers WHERE run = ?1 AND exchange = ?2 ORDER BY site",
        )?;
        let mut rows = statement.query(params![run.as_str(), exchange])?;
        let (mut answers, mut members) = (Vec::new(), Vec::new());
        while let Some(row) = rows.next()? {
            members.push(row.get(0)?);
            let bytes: Option<Vec<u8>> = row.get(1)?;
            answers.push(bytes.map(|bytes| wire::decode_answer(&bytes)).transpose()?);
        }
        Ok((answers, members))
    }

    /// Keeps what a run leaves, and lets go of its exchanges.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn end(&mut self, run: &RunId, result: &RunResult) -> Result<(), StoreError> {
        let transaction = self.connection.transaction()?;
        transaction.execute(
            "UPDATE runs SET result = ?2 WHERE id = ?1",
            params![run.as_str(), wire::encode_result(result)],
        )?;
        transaction.execute("DELETE FROM answers WHERE run = ?1", [run.as_str()])?;
        transaction.execute("DELETE FROM records WHERE run = ?1", [run.as_str()])?;
        transaction.commit()?;
        Ok(())
    }

    /// What a run left, once it has ended.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn result(&self, run: &RunId) -> Result<Option<RunResult>, StoreError> {
        let bytes: Option<Option<Vec<u8>>> = self
            .connection
            .query_row(
                "SELECT result FROM runs WHERE id = ?1",
                [run.as_str()],
                |row| row.get(0),
            )
            .optional()?;
        Ok(bytes
            .flatten()
            .map(|bytes| wire::decode_result(&bytes))
            .transpose()?)
    }
}

type Answers = (Vec<Option<protocol::message::Answer>>, Vec<bool>);
