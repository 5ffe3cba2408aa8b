//! What people do in the pages, as the audit log has it. Nothing in it is of patients.

use super::Desk;
use crate::cli;
use crate::config::SiteConfig;
use crate::exit::Ended;
use crate::run::driver::now;
use serde::{Deserialize, Serialize};
use service::audit::{self, Entry, Listed, Verified};
use service::chain::ChainError;
use service::pages::Visitor;
use std::fmt;

/// The log of a site's pages.
pub(super) type Audit = audit::Audit<By, Act>;

/// The user who acted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct By {
    user: String,
}

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

/// What an act was done to.
pub(super) enum To<'n> {
    Run(&'n str),
    Study(&'n str),
}

impl Desk {
    /// Notes an act. A page says that it is done only once it is noted.
    pub(super) fn did(&self, visitor: &Visitor, did: Act, to: To<'_>) -> Result<(), ChainError> {
        let user = visitor.name().to_owned();
        let (run, study) = match to {
            To::Run(run) => (Some(run), None),
            To::Study(study) => (None, Some(study)),
        };
        tracing::info!(user, run, study, "{did}");
        let entry = Entry::new(now(), By { user }, did);
        self.audit.note(&match to {
            To::Run(run) => entry.on_run(run),
            To::Study(study) => entry.on_study(study),
        })
    }
}

/// Prints the log, also while pages are served.
///
/// # Errors
/// [`Ended`] says by which code the program ends.
pub fn list(arguments: &cli::AuditList) -> Result<Listed<By, Act>, Ended> {
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
    Ok(audit::verify::<By, Act>(&folder, kept.as_ref())?)
}

impl audit::Who for By {
    const HEADING: &'static str = "USER";
    const BEGUN_BY: &'static str = "`kindred-site-agent pages`";

    fn name(&self) -> &str {
        &self.user
    }
}

impl audit::Act for Act {}

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
