//! `enrol`.

use clap::Args;
use std::path::PathBuf;

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
