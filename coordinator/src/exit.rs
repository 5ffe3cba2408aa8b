//! Exit codes, as deploy/codes.md documents them.

use crate::folder;
use crate::operator::{ClusterError, OperatorError, SimilarError, StudyError};
use crate::serve::ServeError;
use crate::simulate::{AgentsError, SimulateError};
use protocol::failure::Code;
use protocol::name::NameError;
use protocol::progress::Ending;
use report::SayError;
use std::error::Error;
use std::process::ExitCode;

/// A command line that clap lets pass and that still cannot be meant.
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
    /// The command line, a job or a configuration cannot be used.
    Usage = 2,
    /// A site's data, or a table of new patients, does not fit the job.
    Data = 3,
    /// A site's policy refuses the job.
    Refused = 4,
    /// The other side cannot be reached, or does not accept the certificate.
    Connection = 5,
    /// The run failed.
    Run = 6,
    /// The run has not ended: it is no longer watched, or its result was asked for too early.
    Going = 8,
    /// The run has ended already, otherwise than cancelled: it cannot be cancelled.
    Ended = 9,
    /// The run was cancelled.
    Cancelled = 130,
    /// Nobody reads the output any more.
    Unread = 141,
}

impl Exit {
    /// The code for a run's ending.
    #[must_use]
    pub fn of_ending(ending: &Ending) -> Self {
        match ending {
            Ending::Converged | Ending::Completed | Ending::RoundLimit => Self::Done,
            Ending::Cancelled => Self::Cancelled,
            Ending::Failed(failure) => match failure.code {
                Code::Cohort => Self::Data,
                Code::Policy => Self::Refused,
                _ => Self::Run,
            },
        }
    }

    /// The code for a call that the coordinator refused, or that never reached it.
    fn of_call(code: Code) -> Self {
        match code {
            Code::Job | Code::Run | Code::Study | Code::Token => Self::Usage,
            Code::Running => Self::Going,
            Code::Ended => Self::Ended,
            Code::Store | Code::Result | Code::Internal => Self::Failed,
            _ => Self::Connection,
        }
    }

    /// The code for a question about who is alike that was not asked.
    fn of_question(error: &SimilarError) -> Self {
        match error {
            SimilarError::Patients(_) => Self::Data,
            SimilarError::Run { .. } => Self::Usage,
            SimilarError::Write { .. } => Self::Failed,
        }
    }

    /// The code for an error that ended the program.
    #[must_use]
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        match error.downcast_ref() {
            Some(
                SimulateError::Job { .. }
                | SimulateError::Unreadable { .. }
                | SimulateError::Draft(_)
                | SimulateError::NoData { .. },
            ) => return Self::Usage,
            Some(SimulateError::Folder(error)) if error.is_usage() => return Self::Usage,
            // An agent has the same codes, and has said why.
            Some(SimulateError::Agents(AgentsError::Ended { status, .. })) => {
                return match status.code() {
                    Some(2) => Self::Usage,
                    Some(3) => Self::Data,
                    Some(4) => Self::Refused,
                    Some(5) => Self::Connection,
                    _ => Self::Failed,
                };
            }
            Some(SimulateError::NoFile { .. }) => return Self::Data,
            Some(SimulateError::Port(_)) => return Self::Connection,
            Some(_) => return Self::Failed,
            None => {}
        }
        match error.downcast_ref() {
            Some(OperatorError::Connection { source } | OperatorError::Gone { source, .. }) => {
                return Self::of_call(source.code());
            }
            Some(
                OperatorError::Tls(_)
                | OperatorError::File { .. }
                | OperatorError::StudyFile(_)
                | OperatorError::Study(
                    StudyError::Draft { .. }
                    | StudyError::Problems { .. }
                    | StudyError::Unknown { .. },
                )
                | OperatorError::Job { .. }
                | OperatorError::Config(_),
            ) => return Self::Usage,
            Some(OperatorError::Similar(error)) => return Self::of_question(error),
            Some(OperatorError::Cluster(ClusterError { .. })) => return Self::Usage,
            Some(OperatorError::Folder(error)) if error.is_usage() => return Self::Usage,
            Some(_) => return Self::Failed,
            None => {}
        }
        match error.downcast_ref() {
            Some(
                ServeError::Config(_)
                | ServeError::Tls(_)
                | ServeError::Folder(folder::FolderError::InUse { .. }),
            ) => Self::Usage,
            Some(ServeError::Listen(_)) => Self::Connection,
            Some(_) => Self::Failed,
            None if matches!(error.downcast_ref(), Some(SayError::Closed)) => Self::Unread,
            None if error.is::<wire::certificates::CertificateError>() => Self::Usage,
            None if error.is::<UsageError>() || error.is::<NameError>() => Self::Usage,
            None => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
