//! What the command lines of both programs have in common.

mod books;
mod config;
mod generated;

pub use books::{AuditList, AuditVerify, BackUp, Restore};
pub use config::{ConfigFile, Configured, NoConfig, find};
pub use generated::{Completions, ManPages};

use crate::log::{self, LogFormat};
use clap::{ArgAction, Args};
use tracing::level_filters::LevelFilter;

/// How much a program says on standard error, and how.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Log")]
pub struct Speech {
    /// Log more: -v level debug, -vv level trace, of Kindred's own code
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "quiet")]
    pub verbose: u8,
    /// Log and remark nothing but errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// How lines on standard error are written
    #[arg(long, global = true, value_enum, default_value_t)]
    pub log_format: LogFormat,
}

impl Speech {
    /// Begins the log, at this level where nobody has asked for another.
    pub fn begin(&self, usual: LevelFilter) {
        let level = match (self.quiet, self.verbose) {
            (true, _) => Some(LevelFilter::ERROR),
            (false, 0) => None,
            (false, 1) => Some(LevelFilter::DEBUG),
            (false, _) => Some(LevelFilter::TRACE),
        };
        log::begin(self.log_format, level, usual);
    }
}

/// `serve`.
#[derive(Debug, Args)]
pub struct Serve<K: Configured> {
    /// The program's configuration.
    #[command(flatten)]
    pub config: ConfigFile<K>,
    /// Stop when standard input closes, so that it does not outlive the program that started it
    #[arg(long)]
    pub until_stdin_closes: bool,
}

/// `doctor`.
#[derive(Debug, Args)]
pub struct Doctor<K: Configured> {
    /// The program's configuration.
    #[command(flatten)]
    pub config: ConfigFile<K>,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}
