//! The command line of `study`.

use super::SiteOnly;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `study`.
#[derive(Debug, Subcommand)]
pub enum Study {
    /// Print what a study can ask of this site, the most that can leave first
    Review(StudyFile),
    /// Approve a study: copy its patients into this site's folder, and sign what they are
    Approve(StudyApprove),
    /// Print the studies that this site has approved, and those that wait for its approval
    List(SiteOnly),
    /// Print what runs of the approved studies have used of their limits at this site
    Budget(StudyBudget),
    /// Sign that this site's numbers may be worked out from a study together with others that share its patients
    Consent(StudyConsent),
    /// Work out again all that this site has answered in the runs of a study, and hold it against what it has signed
    Audit(StudyAudit),
    /// Leave a study: delete its copy of the patients; no run of it is answered any more
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
    /// Files of hospitals that agree to be read, as their `study consent` has written them
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub consent: Vec<PathBuf>,
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
    /// The study's name; all that the site has approved where absent
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
