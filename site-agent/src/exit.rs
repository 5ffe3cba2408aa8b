//! Exit codes, as deploy/codes.md documents them.

use crate::books::chain::{ChainError, HeadError};
use crate::cases::CasesError;
use crate::config::{ConfigError, DialError};
use crate::run::audit::AuditError;
use crate::run::driver::AgentError;
use crate::run::local::LocalError;
use crate::studies::StudyError;
use crate::synthesise::SynthesiseError;
use protocol::name::NameError;
use report::SayError;
use similarity::uses::clusters::ClusterError;
use similarity::uses::prediction::PredictionError;
use std::error::Error;
use std::process::ExitCode;
use wire::TlsError;
use wire::jobs::StudyFileError;
use wire::private::OpenKey;

/// A command line, or a file that it names, that cannot be meant.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All was done.
    Done = 0,
    /// Something failed that has no code of its own.
    Failed = 1,
    /// The command line or a configuration cannot be used.
    Usage = 2,
    /// The data does not fit the job.
    Data = 3,
    /// The site's policy refuses.
    Refused = 4,
    /// The other side cannot be reached or does not accept the certificate.
    Connection = 5,
    /// A local run failed.
    Run = 6,
    /// The journal or the ledger is not what was written.
    Books = 7,
    /// Nobody reads the output any more.
    Unread = 141,
}

impl Exit {
    /// The code for an error that ended the program.
    #[must_use]
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        if let Some(error) = error.downcast_ref::<SayError>() {
            match error {
                SayError::Closed => Self::Unread,
                SayError::Failed(_) => Self::Failed,
            }
        } else if let Some(AgentError::Books(error)) = error.downcast_ref() {
            Self::of(error)
        } else if let Some(error) = error.downcast_ref::<StudyError>() {
            Self::of_study(error)
        } else if let Some(ChainError::InUse { .. }) = error.downcast_ref() {
            Self::Usage
        } else if let Some(AuditError::Unknown { .. }) = error.downcast_ref() {
            Self::Usage
        } else if error.is::<ChainError>() || error.is::<AuditError>() {
            Self::Books
        } else if let Some(error) = error.downcast_ref::<LocalError>() {
            Self::of_local(error)
        } else if let Some(error) = error.downcast_ref::<CasesError>() {
            match error {
                CasesError::Data(_)
                | CasesError::BelowZero(_)
                | CasesError::Personal(_)
                | CasesError::Standardise(_)
                | CasesError::Cluster(
                    ClusterError::Alike | ClusterError::NoEvent | ClusterError::OneOutcome,
                )
                | CasesError::FewPatients { .. }
                | CasesError::Predict(
                    PredictionError::Fit(_)
                    | PredictionError::Folds(_)
                    | PredictionError::AllAlike
                    | PredictionError::NegativeTime,
                ) => Self::Data,
                CasesError::Write { .. } | CasesError::Figure(_) => Self::Failed,
                CasesError::Config(_)
                | CasesError::NoRun { .. }
                | CasesError::Record { .. }
                | CasesError::Moments(_)
                | CasesError::Compare(_)
                | CasesError::Regression(_)
                | CasesError::NoMetric(_)
                | CasesError::NoPersonal
                | CasesError::NoPatient { .. }
                | CasesError::TooMany { .. }
                | CasesError::TooLarge { .. }
                | CasesError::Identifiers { .. }
                | CasesError::Cluster(_)
                | CasesError::Predict(_)
                | CasesError::Learner { .. }
                | CasesError::NoForest(_)
                | CasesError::NoFigure => Self::Usage,
            }
        } else if let Some(error) = error.downcast_ref::<SynthesiseError>() {
            match error {
                SynthesiseError::Sites { .. }
                | SynthesiseError::Settings(_)
                | SynthesiseError::Exists { .. } => Self::Usage,
                SynthesiseError::Write { .. } => Self::Failed,
            }
        } else if matches!(error.downcast_ref(), Some(AgentError::Worker)) {
            Self::Failed
        } else if error.is::<AgentError>() {
            Self::Connection
        } else if is_usage(error) {
            Self::Usage
        } else {
            Self::Failed
        }
    }
}

/// Whether the command line or a configuration cannot be used: an error that is not named here is a failure.
fn is_usage(error: &(dyn Error + 'static)) -> bool {
    error.is::<UsageError>()
        || error.is::<ConfigError>()
        || error.is::<DialError>()
        || error.is::<StudyFileError>()
        || error.is::<NameError>()
        || error.is::<HeadError>()
        || error.is::<TlsError>()
        || error.is::<OpenKey>()
}

impl Exit {
    fn of_local(error: &LocalError) -> Self {
        match error {
            LocalError::Data(_) | LocalError::Unfit { .. } => Self::Data,
            LocalError::Folder(error) if error.is_usage() => Self::Usage,
            LocalError::Folder(_) | LocalError::Report(_) => Self::Failed,
            LocalError::Unreadable { .. }
            | LocalError::Job { .. }
            | LocalError::Study(_)
            | LocalError::Config(_)
            | LocalError::Name(_) => Self::Usage,
        }
    }

    fn of_study(error: &StudyError) -> Self {
        match error {
            StudyError::Books(error) => Self::of(error),
            StudyError::Data(_) => Self::Data,
            StudyError::Refused { .. } => Self::Refused,
            StudyError::Write { .. } | StudyError::Snapshot(_) => Self::Failed,
            StudyError::File(_)
            | StudyError::Config(_)
            | StudyError::Tls(_)
            | StudyError::Signature(_)
            | StudyError::Consent { .. }
            | StudyError::Known { .. } => Self::Usage,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_no_list_names_is_a_failure_and_never_the_command_line() {
        assert_eq!(Exit::of(&std::fmt::Error), Exit::Failed);
        let usage = UsageError("no such file".to_owned());
        assert_eq!(Exit::of(&usage), Exit::Usage);
    }
}
