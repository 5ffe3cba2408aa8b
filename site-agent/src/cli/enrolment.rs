//! `enrol` and `site init`.

use super::ConfigFile;
use clap::{Args, Subcommand};
use service::proxy::ProxyArguments;
use std::path::PathBuf;

/// `enrol`.
#[derive(Debug, Args)]
pub struct Enrol {
    /// The token, as whoever keeps the authority sent it
    pub token: String,
    /// The study's text, to which the file of patients is to fit
    #[arg(requires = "data")]
    pub study: Option<PathBuf>,
    /// Folder of the key, the certificate and site.toml
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Folder of results, journal and ledger [default: agent, next to site.toml]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// The way out.
    #[command(flatten)]
    pub proxy: ProxyArguments,
    /// CSV or Parquet file of patients: propose source and columns at once, as `site init` does
    #[arg(long, value_name = "FILE", requires = "study")]
    pub data: Option<PathBuf>,
    /// Confirm that numbers are in the study's units where no column says so
    #[arg(long, requires = "data")]
    pub confirm_units: bool,
    /// Then join the coordinator, as `serve` does, unless questions are left open
    #[arg(long)]
    pub serve: bool,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

impl Enrol {
    /// The table that is to be looked at, where one is named.
    #[must_use]
    pub fn table(&self) -> Option<Table> {
        Some(Table {
            data: self.data.clone()?,
            study: self.study.clone()?,
            confirm_units: self.confirm_units,
        })
    }
}

/// `site`.
#[derive(Debug, Subcommand)]
pub enum Site {
    /// Look at a CSV or Parquet file of patients, and propose its source and columns with the reason of each mapping
    #[command(
        after_help = "Example:\n  kindred-site-agent site init heart.toml --data patients.csv --config site.toml"
    )]
    Init(SiteInit),
}

/// `site init`.
#[derive(Debug, Args)]
pub struct SiteInit {
    /// The site's configuration.
    #[command(flatten)]
    pub config: ConfigFile,
    /// The table.
    #[command(flatten)]
    pub table: Table,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// A table of patients, and the study to which it is to fit.
#[derive(Debug, Args)]
pub struct Table {
    /// CSV (also .gz) or Parquet file of patients
    #[arg(long, value_name = "FILE")]
    pub data: PathBuf,
    /// The study's text, with its parties' fingerprints or without
    pub study: PathBuf,
    /// Confirm that numbers are in the study's units where no column says so
    #[arg(long)]
    pub confirm_units: bool,
}
