//! `serve`, `doctor`, `enrol` and `renew`.

use ::service::log::LogFormat;
use clap::Args;
use std::path::PathBuf;

/// `serve`.
#[derive(Debug, Args)]
pub struct Serve {
    /// The site's configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// How a line of the log is written
    #[arg(long, value_enum, default_value_t)]
    pub log_format: LogFormat,
    /// Stop when standard input closes, so that no agent outlives the program that started it
    #[arg(long)]
    pub until_stdin_closes: bool,
}

/// `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// The site's configuration
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Print JSON, for machines
    #[arg(long)]
    pub json: bool,
}

/// `enrol`.
#[derive(Debug, Args)]
pub struct Enrol {
    /// The token, as whoever keeps the authority sent it
    pub token: String,
    /// Folder of the key, the certificate and site.toml
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// The HTTP proxy, where the hospital has no direct way out
    #[arg(long, value_name = "HOST:PORT")]
    pub proxy: Option<String>,
    /// User of the proxy
    #[arg(long, value_name = "NAME", requires_all = ["proxy", "proxy_password_file"])]
    pub proxy_user: Option<String>,
    /// File with the password of the proxy
    #[arg(long, value_name = "FILE", requires = "proxy_user")]
    pub proxy_password_file: Option<PathBuf>,
}
