//! The command line of `study`.

use super::{List, OperatorConfig};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// What an operator can do with studies.
#[derive(Debug, Subcommand)]
pub enum Study {
    /// Add every party's fingerprint, and print the study as hospitals will approve it
    #[command(
        after_help = "Example:\n  kindred-coordinator study draft heart.toml --certificates kindred/pki --out heart.study.toml"
    )]
    Draft(StudyDraft),
    /// Propose a study to its hospitals; prints the run that will open it
    #[command(
        after_help = "Examples:\n  kindred-coordinator study propose heart.study.toml\n  kindred-coordinator study propose heart.toml --certificates kindred/pki --wait"
    )]
    Propose(StudyPropose),
    /// List the studies that name you
    #[command(
        after_help = "Examples:\n  kindred-coordinator study list\n  kindred-coordinator study list --json"
    )]
    List(List),
    /// Print the state of a study: who has approved it, and who is awaited
    #[command(after_help = "Example:\n  kindred-coordinator study show heart")]
    Show(StudyOf),
    /// Fetch the card of an open study: Table 1 over all hospitals
    #[command(after_help = "Example:\n  kindred-coordinator study card heart --out card")]
    Card(StudyCard),
    /// Close a study for good: its runs are cancelled, and no new job is accepted
    #[command(after_help = "Example:\n  kindred-coordinator study close heart")]
    Close(StudyOf),
}

/// `study draft`.
#[derive(Debug, Args)]
pub struct StudyDraft {
    /// The study, with operators = ["NAME"] and hospitals = ["NAME", "NAME"]
    pub study: PathBuf,
    /// Folder of certificates: site-NAME/certificate.pem and operator-NAME/certificate.pem
    #[arg(long, value_name = "DIR")]
    pub certificates: PathBuf,
    /// File for the drafted study [default: print it]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// `study propose`.
#[derive(Debug, Args)]
pub struct StudyPropose {
    /// The study
    pub study: PathBuf,
    /// The operator's configuration.
    #[command(flatten)]
    pub config: OperatorConfig,
    /// Folder of certificates: adds every party's fingerprint first, and writes NAME.study.toml next to the study
    #[arg(long, value_name = "DIR")]
    pub certificates: Option<PathBuf>,
    /// Wait until all hospitals have approved it, then fetch its card
    #[arg(long)]
    pub wait: bool,
    /// Folder for the card [default: kindred-RUN]
    #[arg(long, value_name = "DIR", requires = "wait")]
    pub out: Option<PathBuf>,
    /// Replace the results of another run in that folder; other files there are never touched
    #[arg(long, requires = "wait")]
    pub force: bool,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// A study by its name.
#[derive(Debug, Args)]
pub struct StudyOf {
    /// The study's name
    pub study: String,
    /// The operator's configuration.
    #[command(flatten)]
    pub config: OperatorConfig,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// `study card`.
#[derive(Debug, Args)]
pub struct StudyCard {
    /// The study
    #[command(flatten)]
    pub of: StudyOf,
    /// Folder for the card [default: kindred-RUN]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace the results of another run in that folder; other files there are never touched
    #[arg(long)]
    pub force: bool,
}
