//! What both programs are started with.

use crate::log::LogFormat;
use clap::Args;
use std::path::PathBuf;

/// `serve`.
#[derive(Debug, Args)]
pub struct Serve {
    /// The program's configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// How a line of the log is written
    #[arg(long, value_enum, default_value_t)]
    pub log_format: LogFormat,
    /// Stop when standard input closes, so that it does not outlive the program that started it
    #[arg(long)]
    pub until_stdin_closes: bool,
}

/// `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// The program's configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}
