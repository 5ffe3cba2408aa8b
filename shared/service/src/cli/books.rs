//! Commands about a program's folder: its audit log, a copy of it, and the way back.

use super::{ConfigFile, Configured};
use crate::backup::Known;
use crate::chain::{Head, HeadError};
use clap::Args;
use std::path::PathBuf;

/// `audit list`.
#[derive(Debug, Args)]
pub struct AuditList<K: Configured> {
    /// Only what was done to this run
    pub run: Option<String>,
    /// The program's configuration.
    #[command(flatten)]
    pub config: ConfigFile<K>,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// `audit verify`.
#[derive(Debug, Args)]
pub struct AuditVerify<K: Configured> {
    /// An earlier head, ENTRIES:HASH, to detect a cut-off end as well
    #[arg(long, value_name = "HEAD")]
    pub head: Option<String>,
    /// The program's configuration.
    #[command(flatten)]
    pub config: ConfigFile<K>,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

impl<K: Configured> AuditVerify<K> {
    /// The head that was kept elsewhere.
    ///
    /// # Errors
    /// [`HeadError`].
    pub fn kept(&self) -> Result<Option<Head>, HeadError> {
        self.head.as_ref().map(|head| head.parse()).transpose()
    }
}

/// `backup`.
#[derive(Debug, Args)]
pub struct BackUp<K: Configured> {
    /// New folder for the copy; it holds keys and results, readable by its owner alone
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// The program's configuration.
    #[command(flatten)]
    pub config: ConfigFile<K>,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// `restore`.
#[derive(Debug, Args)]
pub struct Restore<K: Configured> {
    /// The folder that `backup` wrote
    pub backup: PathBuf,
    /// The last head, ENTRIES:HASH, where the folder is lost
    #[arg(long, value_name = "HEAD", conflicts_with = "latest")]
    pub head: Option<String>,
    /// Confirm that nothing was written since the backup, where the folder is lost
    #[arg(long)]
    pub latest: bool,
    /// The program's configuration.
    #[command(flatten)]
    pub config: ConfigFile<K>,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

impl<K: Configured> Restore<K> {
    /// What is known of a folder that is lost.
    ///
    /// # Errors
    /// [`HeadError`].
    pub fn known(&self) -> Result<Known, HeadError> {
        Ok(match (&self.head, self.latest) {
            (Some(head), _) => Known::Head(head.parse()?),
            (None, true) => Known::Latest,
            (None, false) => Known::Nothing,
        })
    }
}
