//! The command line of `study`.

use super::SiteOnly;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `study`.
#[derive(Debug, Subcommand)]
pub enum Study {
    /// Print all that a study can ask of this site, the worst first
    Review(StudyFile),
    /// Approve a study: freeze a copy of its patients, and sign a commitment to it
    Approve(StudyApprove),
    /// List approved studies, and those that wait for approval
    List(SiteOnly),
    /// Print how much of each study's limits is used and left
    Budget(StudyBudget),
    /// Consent that this site's numbers may be derived from a study and others that share its patients
    Consent(StudyConsent),
    /// Recompute all of this site's answers in a study, and compare them with the signed ones
    Audit(StudyAudit),
    /// Leave a study: delete the frozen patients, and answer no run of it any more
    Leave(StudyLeave),
}

/// A site's configuration and a study.
#[derive(Debug, Args)]
pub struct StudyFile {
    /// The site's configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// The study: its file, or the name of one that was proposed
    #[arg(value_name = "STUDY")]
    pub study: PathBuf,
}

/// `study approve`.
#[derive(Debug, Args)]
pub struct StudyApprove {
    /// The site and the study.
    #[command(flatten)]
    pub of: StudyFile,
    /// Consent files of hospitals, from their `study consent`
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub consent: Vec<PathBuf>,
    /// Confirm that columns without a unit in site.toml are in the study's units
    #[arg(long)]
    pub confirm_units: bool,
}

/// `study consent`.
#[derive(Debug, Args)]
pub struct StudyConsent {
    /// The site's configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// File to write; it must not exist yet
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// The study: its file, or the name of one that was proposed
    #[arg(value_name = "STUDY")]
    pub study: PathBuf,
}

/// `study audit`.
#[derive(Debug, Args)]
pub struct StudyAudit {
    /// The site's configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// File for the signed result [default: NAME.audit.json]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The study's name
    #[arg(value_name = "NAME")]
    pub name: String,
}

/// `study budget`.
#[derive(Debug, Args)]
pub struct StudyBudget {
    /// The site's configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
    /// The study's name [default: all approved studies]
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}

/// `study leave`.
#[derive(Debug, Args)]
pub struct StudyLeave {
    /// The site's configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// The study's name
    #[arg(value_name = "NAME")]
    pub name: String,
}
