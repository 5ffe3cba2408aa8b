//! `backup` and `restore` of a coordinator's folder: its runs, studies and audit log. Certificates and configuration lie elsewhere.

use crate::cli;
use crate::clock::Clock;
use crate::config::{CoordinatorConfig, StoreConfig};
use crate::driver::VERSION;
use crate::exit::{Ended, UsageError};
use crate::folder::{Folder, STORE};
use crate::lease;
use crate::store::{Store, StoreError, copy_store, failed_result};
use protocol::failure::{Code, Failure};
use service::audit;
use service::backup::{Backup, Copied, Whole};
use std::fs;
use std::path::Path;

/// Whose folder it is.
const PARTY: &str = "a coordinator";

/// Copies the folder, also while a coordinator writes it. Runs in a database are not in the copy.
///
/// # Errors
/// [`Ended`] says by which code the program ends.
pub fn backup(config: &CoordinatorConfig, out: &Path) -> Result<Copied, Ended> {
    let mut backup = Backup::begin(out)?;
    match &config.store {
        StoreConfig::Sqlite => {
            copy_store(&config.folder.join(STORE), &backup.place(STORE))?;
            backup.add(STORE)?;
        }
        StoreConfig::Postgres(server) => report::remark(format_args!(
            "note: the runs are in the {server}, and not in this copy: pg_dump backs them up"
        )),
    }
    // An act is noted before it is stored: what is copied later has it.
    let log = config.folder.join(audit::FILE_NAME);
    backup.copy_book(&log, audit::FILE_NAME)?;
    Ok(backup.finish(VERSION, PARTY, audit::FILE_NAME)?)
}

/// Puts a copy in the folder's place, where no coordinator runs and nothing that was done since is forgotten. A database is as its
/// owner has restored it.
///
/// # Errors
/// [`Ended`] says by which code the program ends; then the folder is as it was.
pub fn restore(arguments: &cli::Restore) -> Result<Copied, Ended> {
    let config = CoordinatorConfig::open(&arguments.config)?;
    let whole = Whole::open(&arguments.backup, PARTY)?;
    let known = arguments.known()?;
    let held = Folder::open(&config.folder)?;
    let log = config.folder.join(audit::FILE_NAME);
    whole.goes_on(audit::FILE_NAME, &log, &known)?;
    let restored = || whole.restore(&config.folder, &[audit::FILE_NAME], audit::FILE_NAME);
    let (copied, mut store) = match (&config.store, whole.has(STORE)) {
        (StoreConfig::Sqlite, true) => {
            // What SQLite has beside the store that goes is not of the one that comes.
            for ending in ["-wal", "-shm"] {
                let _ = fs::remove_file(config.folder.join(format!("{STORE}{ending}")));
            }
            (restored()?, Store::open(&held.store())?)
        }
        (StoreConfig::Postgres(server), false) => {
            let store = Store::lead(lease::take(server)?)?;
            (restored()?, store)
        }
        (StoreConfig::Sqlite, false) => return Err(other("in a database", "sqlite")),
        (StoreConfig::Postgres(_), true) => return Err(other("in an SQLite file", "postgres")),
    };
    end_runs(&mut store)?;
    Ok(copied)
}

fn other(found: &str, wanted: &str) -> Ended {
    let text = format!(
        "found a backup of a coordinator whose runs are {found}, wanted one as [store] names it, kind = {wanted:?}"
    );
    UsageError(text).into()
}

/// Ends the runs that the copy holds as under way: their hospitals may have answered more than it knows, and answer nothing twice.
/// A study that waits for its hospitals goes on waiting.
fn end_runs(store: &mut Store) -> Result<(), StoreError> {
    const TEXT: &str = "the coordinator was restored from a backup that was made while the run went on; submit it again";
    let now = Clock::start(store.latest()?).now();
    for unfinished in store.unfinished()? {
        let job = unfinished.submission.map(|submission| submission.job);
        let has_begun = !store.records(&unfinished.run)?.is_empty();
        if job.is_ok_and(|job| job.opens_study()) && !has_begun {
            continue;
        }
        report::remark(format_args!("run {}: {TEXT}", unfinished.run));
        let failure = Failure::new(Code::Stopped, TEXT);
        let failed = failed_result(unfinished.run, unfinished.job, unfinished.seed, failure);
        store.end(failed, now)?;
    }
    Ok(())
}
