//! Exit codes, as deploy/codes.md documents them.

use crate::books::chain::ChainError;
use crate::cases::CasesError;
use crate::run::audit::AuditError;
use crate::run::driver::AgentError;
use crate::run::local::LocalError;
use crate::studies::StudyError;
use report::SayError;
use similarity::uses::clusters::ClusterError;
use similarity::uses::prediction::PredictionError;
use std::error::Error;
use std::process::ExitCode;

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
        } else if let Some(LocalError::Data(_) | LocalError::Unfit { .. }) = error.downcast_ref() {
            Self::Data
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
        } else if let Some(LocalError::Folder(error)) = error.downcast_ref() {
            match error.is_usage() {
                true => Self::Usage,
                false => Self::Failed,
            }
        } else if let Some(LocalError::Report(_)) = error.downcast_ref() {
            Self::Failed
        } else if matches!(error.downcast_ref(), Some(AgentError::Worker)) {
            Self::Failed
        } else if error.is::<AgentError>() {
            Self::Connection
        } else if error.is::<std::io::Error>() {
            Self::Failed
        } else {
            Self::Usage
        }
    }
}

impl Exit {
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
