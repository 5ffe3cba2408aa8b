//! The tables of the store, and how those of an earlier version become them.

use super::{StoreError, ended_progress};
use rusqlite::{Connection, Transaction, params};

/// The tables as the first version made them.
pub(super) const FIRST: &str = "
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY,
    operator TEXT NOT NULL,
    job TEXT NOT NULL,
    seed INTEGER NOT NULL,
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

/// What a list shows lies apart from jobs and results; operators sign; a site may be suspended.
const SECOND: &str = "
CREATE TABLE ended (
    run TEXT PRIMARY KEY,
    bytes INTEGER NOT NULL,
    summary BLOB
) STRICT;
ALTER TABLE runs ADD COLUMN warrant BLOB;
CREATE INDEX runs_of_operator ON runs (operator, submitted, id);
ALTER TABLE answers ADD COLUMN fault_code TEXT;
ALTER TABLE answers ADD COLUMN fault TEXT;";

/// Where each site's journal ended when a run did.
const THIRD: &str = "
CREATE TABLE journals (
    site TEXT PRIMARY KEY,
    entries INTEGER NOT NULL,
    hash TEXT NOT NULL
) STRICT;";

/// The word of each site for its answer.
const FOURTH: &str = "ALTER TABLE answers ADD COLUMN signature BLOB;";

/// An exchange closes with all sites or not at all: who is asked next, and who no more, is no news.
const FIFTH: &str = "
ALTER TABLE answers DROP COLUMN member;
ALTER TABLE answers DROP COLUMN fault_code;
ALTER TABLE answers DROP COLUMN fault;";

/// Studies, and what hospitals have approved.
const SIXTH: &str = "
CREATE TABLE studies (
    name TEXT PRIMARY KEY,
    text TEXT NOT NULL,
    run TEXT NOT NULL,
    proposed INTEGER NOT NULL,
    closed INTEGER NOT NULL,
    opening BLOB
) STRICT;
CREATE TABLE approvals (
    study TEXT NOT NULL,
    site TEXT NOT NULL,
    approved BLOB NOT NULL,
    PRIMARY KEY (study, site)
) STRICT;";

/// The version whose tables this program uses.
const VERSION: i64 = 6;

/// Makes the tables, or brings those of an earlier version up to date.
pub(super) fn bring_up_to_date(connection: &mut Connection) -> Result<(), StoreError> {
    let transaction = connection.transaction()?;
    let version: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version < 2 {
        transaction.execute_batch(FIRST)?;
        transaction.execute_batch(SECOND)?;
        summarise(&transaction)?;
    }
    if version < 3 {
        transaction.execute_batch(THIRD)?;
    }
    if version < 4 {
        transaction.execute_batch(FOURTH)?;
    }
    if version < 5 {
        transaction.execute_batch(FIFTH)?;
    }
    if version < VERSION {
        transaction.execute_batch(SIXTH)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.commit()?;
    Ok(())
}

/// What a list shows of the runs that have ended; nothing of one that cannot be read.
fn summarise(transaction: &Transaction<'_>) -> Result<(), StoreError> {
    let mut statement =
        transaction.prepare("SELECT id, result FROM runs WHERE result IS NOT NULL")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (Ok(run), Ok(bytes)) = (row.get::<_, String>(0), row.get::<_, Vec<u8>>(1)) else {
            continue;
        };
        let summary = match wire::decode_result(&bytes) {
            Ok(result) => Some(wire::encode_progress(&ended_progress(&result))),
            Err(error) => {
                tracing::error!(%run, %error, "a stored result cannot be read");
                None
            }
        };
        transaction.execute(
            "INSERT INTO ended (run, bytes, summary) VALUES (?1, ?2, ?3)",
            params![run, i64::try_from(bytes.len()).unwrap_or(i64::MAX), summary],
        )?;
    }
    Ok(())
}
