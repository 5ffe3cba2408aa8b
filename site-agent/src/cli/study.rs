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
    Approve(StudyFile),
    /// Print the studies that this site has approved, and those that wait for its approval
    List(SiteOnly),
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
