//! The command line of `study`.

use super::{ConfigFile, SiteOnly};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `study`.
#[derive(Debug, Subcommand)]
pub enum Study {
    /// Propose a study's text from a table, or from what site.toml declares; no value of a patient is in it
    #[command(
        after_help = "Examples:\n  kindred-site-agent study draft --from patients.csv --outcome disease --out heart.toml\n  kindred-site-agent study draft --from site.toml"
    )]
    Draft(StudyDraft),
    /// Print all that a study can ask of this site, the worst first
    #[command(after_help = "Example:\n  kindred-site-agent study review heart")]
    Review(StudyFile),
    /// Approve a study: freeze a copy of its patients, and sign a commitment to it
    #[command(
        after_help = "Examples:\n  kindred-site-agent study approve heart\n  kindred-site-agent study approve heart.study.toml --confirm-units"
    )]
    Approve(StudyApprove),
    /// List approved studies, and those that wait for approval
    #[command(after_help = "Example:\n  kindred-site-agent study list --json")]
    List(SiteOnly),
    /// Print how much of each study's limits is used and left
    #[command(
        after_help = "Examples:\n  kindred-site-agent study budget\n  kindred-site-agent study budget heart --json"
    )]
    Budget(StudyBudget),
    /// Consent that this site's numbers may be derived from a study and others that share its patients
    #[command(after_help = "Example:\n  kindred-site-agent study consent other --out consent.json")]
    Consent(StudyConsent),
    /// Recompute all of this site's answers in a study, and compare them with the signed ones
    #[command(
        after_help = "Example:\n  kindred-site-agent study audit heart --out heart.audit.json"
    )]
    Audit(StudyAudit),
    /// Leave a study: delete the frozen patients, and answer no run of it any more
    #[command(after_help = "Example:\n  kindred-site-agent study leave heart")]
    Leave(StudyOf),
}

/// `study draft`.
#[derive(Debug, Args)]
pub struct StudyDraft {
    /// The table, CSV (also .gz) or Parquet, of which the first 20,000 rows are read; or site.toml, for what it declares
    #[arg(long, value_name = "FILE")]
    pub from: PathBuf,
    /// A column that is an outcome; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub outcome: Vec<String>,
    /// A column whose numbers are codes of a category; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub categorical: Vec<String>,
    /// File for the study's text [default: print it]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(long, requires = "out")]
    pub force: bool,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// A site's configuration and a study.
#[derive(Debug, Args)]
pub struct StudyFile {
    /// The site's configuration.
    #[command(flatten)]
    pub config: ConfigFile,
    /// The study: its file, or the name of one that was proposed
    pub study: PathBuf,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
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
    /// The site's configuration.
    #[command(flatten)]
    pub config: ConfigFile,
    /// File to write; it must not exist yet
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// The study: its file, or the name of one that was proposed
    pub study: PathBuf,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// `study audit`.
#[derive(Debug, Args)]
pub struct StudyAudit {
    /// The site's configuration.
    #[command(flatten)]
    pub config: ConfigFile,
    /// File for the signed result [default: NAME.audit.json]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The study's name
    pub study: String,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// `study budget`.
#[derive(Debug, Args)]
pub struct StudyBudget {
    /// The site's configuration.
    #[command(flatten)]
    pub config: ConfigFile,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
    /// The study's name [default: all approved studies]
    pub study: Option<String>,
}

/// A site's configuration and a study that it has approved.
#[derive(Debug, Args)]
pub struct StudyOf {
    /// The site's configuration.
    #[command(flatten)]
    pub config: ConfigFile,
    /// The study's name
    pub study: String,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}
