//! What the store needs of a database. Each statement is written once, in what SQLite and PostgreSQL both understand; the
//! places of its values are `?1`, `?2` and so on.

mod postgres;
mod row;
mod sqlite;

pub use postgres::{Lease, Session, Taken};
pub(super) use row::{FromCell, Row, Value};
use service::postgres::ConnectError;
pub(super) use sqlite::Sqlite;
use std::ops::Deref;

/// Statements of the store: they are prepared once.
pub(super) type Sql = &'static str;

/// The database failed.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// SQLite failed.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// There is no connection to PostgreSQL.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// PostgreSQL failed: the connection is given up, and with it the lease.
    #[error("PostgreSQL failed, and with it the lease is lost: {0}")]
    Failed(String),
    /// The connection is gone.
    #[error("the connection to PostgreSQL, and with it the lease, was lost: {0}")]
    Lost(String),
    /// The account may not do what is needed.
    #[error(
        "found an account that may not make or use tables in the schema \"kindred\", wanted the owner of the database: {0}"
    )]
    NoRight(String),
    /// The database cannot hold every text.
    #[error("found a database with the encoding {0}, wanted UTF8")]
    Encoding(String),
    /// No thread, or no runtime on it.
    #[error("no thread for the database")]
    Thread(#[source] std::io::Error),
    /// A column holds what is not meant there.
    #[error("column {0} holds a value of another type than was stored there")]
    Column(usize),
}

/// A connection by which the store reads and writes.
pub(super) trait Database: Send {
    /// The rows that a statement gives, all at once.
    fn rows(&self, sql: Sql, values: &[Value<'_>]) -> Result<Vec<Row>, DatabaseError>;

    /// Carries out statements without values. Tables are in the words of SQLite.
    fn batch(&self, sql: &str) -> Result<(), DatabaseError>;

    /// The version of the tables; 0 where there are none.
    fn version(&self) -> Result<i64, DatabaseError>;

    /// Notes the version of the tables.
    fn set_version(&self, version: i64) -> Result<(), DatabaseError>;

    /// Has the table of runs number its rows in `rowid`, in the order in which they came.
    fn number_runs(&self) -> Result<(), DatabaseError>;

    /// What was deleted leaves every file of the database that this program can reach.
    fn write_back(&self) -> Result<(), DatabaseError>;
}

impl dyn Database + '_ {
    /// Carries out a statement that gives no rows.
    pub(super) fn execute(&self, sql: Sql, values: &[Value<'_>]) -> Result<(), DatabaseError> {
        self.rows(sql, values).map(drop)
    }

    /// The first row that a statement gives, where it gives one.
    pub(super) fn row(&self, sql: Sql, values: &[Value<'_>]) -> Result<Option<Row>, DatabaseError> {
        Ok(self.rows(sql, values)?.into_iter().next())
    }

    /// Begins a transaction.
    pub(super) fn begin(&self) -> Result<Transaction<'_>, DatabaseError> {
        self.batch("BEGIN")?;
        Ok(Transaction {
            database: self,
            is_open: true,
        })
    }
}

/// Statements that are all done or none of them: without [`Transaction::commit`] they are rolled back.
pub(super) struct Transaction<'d> {
    database: &'d (dyn Database + 'd),
    is_open: bool,
}

impl Transaction<'_> {
    /// Keeps what was done; when this returns, it is on the disk.
    pub(super) fn commit(mut self) -> Result<(), DatabaseError> {
        self.database.batch("COMMIT")?;
        self.is_open = false;
        Ok(())
    }
}

impl<'d> Deref for Transaction<'d> {
    type Target = dyn Database + 'd;

    fn deref(&self) -> &Self::Target {
        self.database
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.is_open {
            return;
        }
        match self.database.batch("ROLLBACK") {
            // The server has rolled it back.
            Ok(()) | Err(DatabaseError::Lost(_)) => {}
            Err(error) => tracing::error!(%error, "a transaction cannot be rolled back"),
        }
    }
}
