//! The command lines of data, policy, journal and runs.

use super::{ConfigFile, SiteOnly};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `data`.
#[derive(Debug, Subcommand)]
pub enum Data {
    /// Check the site's data against a job, and print a table of its columns
    #[command(
        after_help = "Examples:\n  kindred-site-agent data check job.toml\n  kindred-site-agent data check job.toml --write-dictionary"
    )]
    Check(DataCheck),
    /// Print what a job assumes about its columns, as a dictionary for site.toml
    #[command(after_help = "Example:\n  kindred-site-agent data dictionary job.toml")]
    Dictionary(DataDictionary),
}

/// `data check`.
#[derive(Debug, Args)]
pub struct DataCheck {
    /// The site's configuration.
    #[command(flatten)]
    pub config: ConfigFile,
    /// The job
    pub job: PathBuf,
    /// Write a dictionary of the site's columns to review [default: next to the configuration]
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub write_dictionary: Option<Option<PathBuf>>,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// `data dictionary`.
#[derive(Debug, Args)]
pub struct DataDictionary {
    /// The job
    pub job: PathBuf,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// `policy`.
#[derive(Debug, Subcommand)]
pub enum Policy {
    /// Print every kind of message that a job would send from this site
    #[command(
        after_help = "Example:\n  kindred-site-agent policy explain job.toml --operator researcher"
    )]
    Explain(PolicyExplain),
    /// Print every rule that protects less than its default
    #[command(after_help = "Example:\n  kindred-site-agent policy lowered --json")]
    Lowered(SiteOnly),
}

/// `policy explain`.
#[derive(Debug, Args)]
pub struct PolicyExplain {
    /// The site's configuration.
    #[command(flatten)]
    pub config: ConfigFile,
    /// The job
    pub job: PathBuf,
    /// The operator who would submit it [default: any that the policy allows]
    #[arg(long, value_name = "NAME")]
    pub operator: Option<String>,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// `journal`.
#[derive(Debug, Subcommand)]
pub enum Journal {
    /// Print every released message, with totals by kind
    #[command(
        after_help = "Examples:\n  kindred-site-agent journal list\n  kindred-site-agent journal list RUN --json"
    )]
    List(JournalList),
    /// Check that no entry was changed, removed or moved; with RUN, recompute every question of it
    #[command(
        after_help = "Examples:\n  kindred-site-agent journal verify --head 120:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n  kindred-site-agent journal verify RUN"
    )]
    Verify(JournalVerify),
}

/// `journal list`.
#[derive(Debug, Args)]
pub struct JournalList {
    /// The site's configuration.
    #[command(flatten)]
    pub config: ConfigFile,
    /// Only the messages of this run
    pub run: Option<String>,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// `journal verify`.
#[derive(Debug, Args)]
pub struct JournalVerify {
    /// The site's configuration.
    #[command(flatten)]
    pub config: ConfigFile,
    /// An earlier head, ENTRIES:HASH, to detect a cut-off end as well
    #[arg(long, value_name = "HEAD")]
    pub head: Option<String>,
    /// Recompute this run too, from the site's own copy of all answers
    pub run: Option<String>,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// `runs`.
#[derive(Debug, Subcommand)]
pub enum Runs {
    /// List the runs that this site took part in: what each has left here, and how much has left in it
    #[command(
        after_help = "Examples:\n  kindred-site-agent runs list\n  kindred-site-agent runs list --json"
    )]
    List(SiteOnly),
}
