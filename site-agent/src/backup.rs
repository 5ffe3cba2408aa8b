//! `backup` and `restore` of a site's folder: its books, keys, studies and results. Certificate and configuration lie elsewhere.

use crate::books::chain::{Chain, Link};
use crate::books::{journal, ledger};
use crate::cli;
use crate::config::SiteConfig;
use crate::exit::Ended;
use crate::run::driver::VERSION;
use serde_json::Value;
use service::audit;
use service::backup::{Backup, Copied, Whole};
use std::path::Path;

/// Where a run is worked out again for an audit.
const SCRATCH: &str = "audit";

/// Copies the folder, also while an agent writes it.
///
/// # Errors
/// [`Ended`] says by which code the program ends.
pub fn backup(config: &SiteConfig, out: &Path) -> Result<Copied, Ended> {
    let folder = &config.folder;
    let mut backup = Backup::begin(out)?;
    // An entry of the journal says where the ledger ended: what is copied later has it.
    for book in [journal::FILE_NAME, ledger::FILE_NAME] {
        backup.copy_book(&folder.join(book), book)?;
    }
    let log = folder.join(audit::FILE_NAME);
    if log.exists() {
        backup.copy_book(&log, audit::FILE_NAME)?;
    }
    let is_left_out = |name: &str| {
        let apart = [
            journal::FILE_NAME,
            ledger::FILE_NAME,
            audit::FILE_NAME,
            SCRATCH,
        ];
        apart.contains(&name) || name.starts_with(&format!("{SCRATCH}/"))
    };
    backup.copy_folder(folder, &is_left_out)?;
    Ok(backup.finish(VERSION, config.site.as_str(), journal::FILE_NAME)?)
}

/// Puts a copy in the folder's place, where no agent runs and nothing that was written since is forgotten.
///
/// # Errors
/// [`Ended`] says by which code the program ends; then the books are as they were.
pub fn restore(arguments: &cli::Restore) -> Result<Copied, Ended> {
    let config = SiteConfig::open(&arguments.config)?;
    let folder = &config.folder;
    let whole = Whole::open(&arguments.backup, config.site.as_str())?;
    let known = arguments.known()?;
    // An agent that runs, and pages, have theirs open.
    let held = [journal::FILE_NAME, audit::FILE_NAME].map(|book| folder.join(book));
    let held = held.iter().filter(|path| path.exists());
    let held = held.map(|path| Chain::open(path, None, |_: Link<Value>| {}));
    let held = held.collect::<Result<Vec<_>, _>>()?;
    let path = folder.join(journal::FILE_NAME);
    whole.goes_on(journal::FILE_NAME, &path, &known)?;
    for book in [ledger::FILE_NAME, audit::FILE_NAME] {
        let path = folder.join(book);
        if path.exists() {
            whole.goes_on(book, &path, &known)?;
        }
    }
    // A ledger may be ahead of its journal, and never behind it.
    let last = [ledger::FILE_NAME, journal::FILE_NAME];
    let copied = whole.restore(folder, &last, journal::FILE_NAME)?;
    drop(held);
    Ok(copied)
}
