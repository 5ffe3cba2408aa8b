//! The tables of the store, and how those of an earlier version become them.

use super::database::Database;
use super::{StoreError, ended_progress};

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
pub const VERSION: i64 = 6;

/// Makes the tables, or brings those of an earlier version up to date.
pub(super) fn bring_up_to_date(database: &dyn Database) -> Result<(), StoreError> {
    let transaction = database.begin()?;
    let version = transaction.version()?;
    if version > VERSION {
        return Err(StoreError::Later { found: version });
    }
    if version < 2 {
        transaction.batch(FIRST)?;
        transaction.batch(SECOND)?;
        transaction.number_runs()?;
        summarise(&*transaction)?;
    }
    if version < 3 {
        transaction.batch(THIRD)?;
    }
    if version < 4 {
        transaction.batch(FOURTH)?;
    }
    if version < 5 {
        transaction.batch(FIFTH)?;
    }
    if version < VERSION {
        transaction.batch(SIXTH)?;
        transaction.set_version(VERSION)?;
    }
    Ok(transaction.commit()?)
}

/// What a list shows of the runs that have ended; nothing of one that cannot be read.
fn summarise(database: &dyn Database) -> Result<(), StoreError> {
    let ended = "SELECT id FROM runs WHERE result IS NOT NULL";
    for mut row in database.rows(ended, &[])? {
        let Ok(run) = row.take::<String>(0) else {
            continue;
        };
        let sql = "SELECT result FROM runs WHERE id = ?1";
        let found = database.row(sql, &[run.as_str().into()])?;
        let Some(Ok(bytes)) = found.map(|mut row| row.take::<Vec<u8>>(0)) else {
            continue;
        };
        let summary = match wire::decode_result(&bytes) {
            Ok(result) => Some(wire::encode_progress(&ended_progress(&result))),
            Err(error) => {
                tracing::error!(%run, %error, "a stored result cannot be read");
                None
            }
        };
        database.execute(
            "INSERT INTO ended (run, bytes, summary) VALUES (?1, ?2, ?3)",
            &[
                run.as_str().into(),
                (bytes.len() as u64).into(),
                summary.as_deref().into(),
            ],
        )?;
    }
    Ok(())
}
