//! What people do in the pages, as the audit log has it. Nothing in it is of patients.

use super::Desk;
use crate::cli;
use crate::config::SiteConfig;
use crate::exit::Ended;
use crate::run::driver::now;
use report::moment;
use serde::{Deserialize, Serialize};
use service::audit::{self, Listed, Record, Verified};
use service::chain::ChainError;
use service::pages::Visitor;
use std::fmt;

/// The log of a site's pages.
pub(super) type Audit = service::audit::Audit<Entry>;

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Looked for patients like one.
    Searched,
    /// Fetched similar patients as a table.
    Fetched,
    /// Asked the other hospitals.
    AskedOthers,
    /// Verified what left in a run.
    Verified,
    /// Approved a study.
    Approved,
}

/// One act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When, RFC 3339 by the site's clock.
    time: String,
    user: String,
    did: Act,
    run: Option<String>,
    study: Option<String>,
}

/// What an act was done to.
pub(super) enum To<'n> {
    Run(&'n str),
    Study(&'n str),
}

impl Desk {
    /// Notes an act. A page says that it is done only once it is noted.
    pub(super) fn did(&self, visitor: &Visitor, did: Act, to: To<'_>) -> Result<(), ChainError> {
        let (run, study) = match to {
            To::Run(run) => (Some(run.to_owned()), None),
            To::Study(study) => (None, Some(study.to_owned())),
        };
        let user = visitor.name().to_owned();
        tracing::info!(user, run, study, "{did}");
        self.audit.note(&Entry {
            time: moment(now()).unwrap_or_default(),
            user,
            did,
            run,
            study,
        })
    }
}

/// Prints the log, also while pages are served.
///
/// # Errors
/// [`Ended`] says by which code the program ends.
pub fn list(arguments: &cli::AuditList) -> Result<Listed<Entry>, Ended> {
    let folder = SiteConfig::open(&arguments.config)?.folder;
    Ok(audit::list(&folder, arguments.run.as_deref())?)
}

/// Checks the log.
///
/// # Errors
/// As [`list`].
pub fn verify(arguments: &cli::AuditVerify) -> Result<Verified, Ended> {
    let kept = arguments.kept()?;
    let folder = SiteConfig::open(&arguments.config)?.folder;
    Ok(audit::verify::<Entry>(&folder, kept.as_ref())?)
}

impl Record for Entry {
    const HEADING: [&'static str; 5] = ["TIME", "USER", "DID", "RUN", "STUDY"];

    fn cells(&self) -> [Option<String>; 5] {
        [
            Some(self.time.clone()),
            Some(self.user.clone()),
            Some(self.did.to_string()),
            self.run.clone(),
            self.study.clone(),
        ]
    }

    fn run(&self) -> Option<&str> {
        self.run.as_deref()
    }
}

impl fmt::Display for Act {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Searched => "looked for similar patients",
            Self::Fetched => "fetched similar patients as a table",
            Self::AskedOthers => "asked the other hospitals",
            Self::Verified => "verified what left",
            Self::Approved => "approved",
        })
    }
}
