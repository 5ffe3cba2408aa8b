//! SQLite, in a file of the coordinator's folder.

use super::row::{Cell, Row, Value};
use super::{Database, DatabaseError, Sql};
use rusqlite::Connection;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use std::path::Path;

/// A store's file.
pub(in crate::store) struct Sqlite(Connection);

impl Sqlite {
    /// Opens or makes the file. What is deleted in it is overwritten.
    pub(in crate::store) fn open(path: &Path) -> Result<Self, DatabaseError> {
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "secure_delete", "ON")?;
        Ok(Self(connection))
    }
}

impl Database for Sqlite {
    fn rows(&self, sql: Sql, values: &[Value<'_>]) -> Result<Vec<Row>, DatabaseError> {
        let mut statement = self.0.prepare_cached(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query(rusqlite::params_from_iter(values))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let cells = (0..columns).map(|column| Ok(cell(row.get_ref(column)?)));
            found.push(Row::new(cells.collect::<Result<_, DatabaseError>>()?));
        }
        Ok(found)
    }

    fn batch(&self, sql: &str) -> Result<(), DatabaseError> {
        Ok(self.0.execute_batch(sql)?)
    }

    fn version(&self) -> Result<i64, DatabaseError> {
        let version = self
            .0
            .query_row("PRAGMA user_version", [], |row| row.get(0));
        Ok(version?)
    }

    fn set_version(&self, version: i64) -> Result<(), DatabaseError> {
        Ok(self.0.pragma_update(None, "user_version", version)?)
    }

    /// It does so by itself.
    fn number_runs(&self) -> Result<(), DatabaseError> {
        Ok(())
    }

    fn write_back(&self) -> Result<(), DatabaseError> {
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        Ok(self.0.query_row(sql, [], |_| Ok(()))?)
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Text(text) => text.to_sql(),
            Self::Integer(number) => number.to_sql(),
            Self::Bytes(bytes) => bytes.to_sql(),
        }
    }
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Real(_) => Cell::Other,
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => Cell::Text(text.to_owned()),
            Err(_) => Cell::Other,
        },
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
    }
}
