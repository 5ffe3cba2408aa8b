//! Exit codes, as deploy/codes.md documents them.

use crate::config::ConfigError;
use crate::enrolment::EnrolmentError;
use crate::folder::FolderError as RunsFolderError;
use crate::operator::{AskError, OperatorError, StudyError};
use crate::serve::ServeError;
use crate::simulate::{AgentsError, KeptError, SimulateError};
use crate::store::{DatabaseError, StoreError};
use protocol::failure::Code;
use protocol::name::NameError;
use protocol::progress::Ending;
use report::{FolderError, JsonError};
use service::backup::BackupError;
use service::certificate::CertifiedError;
use service::chain::{ChainError, HeadError};
use service::pages::PagesError as Pages;
use service::postgres::ConnectError;
use std::io;
use wire::TlsError;
use wire::certificates::CertificateError;
use wire::enrolment::EnrolError;

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
    /// The audit log is not what was written.
    Books = 7,
    /// The run has not ended: it is no longer watched, or its result was asked for too early.
    Going = 8,
    /// The run has ended already, otherwise than cancelled: it cannot be cancelled.
    Ended = 9,
    /// The database failed, and with it the lease is lost: start again.
    Lost = 10,
    /// The folder was copied; the runs lie in a database, and are not in the copy.
    Elsewhere = 11,
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
            Ending::Failed(failure) => Self::of_run(failure.code),
        }
    }

    /// The code for a call that the coordinator refused, or that never reached it.
    fn of_call(code: Code) -> Self {
        Self::of_call_and_run(code).0
    }

    /// The code for a run that failed.
    fn of_run(code: Code) -> Self {
        Self::of_call_and_run(code).1
    }

    fn of_call_and_run(code: Code) -> (Self, Self) {
        match code {
            Code::Cohort => (Self::Connection, Self::Data),
            Code::Policy => (Self::Connection, Self::Refused),
            Code::Job | Code::Run | Code::Study | Code::Token => (Self::Usage, Self::Run),
            Code::Running => (Self::Going, Self::Run),
            Code::Ended => (Self::Ended, Self::Run),
            Code::Store | Code::Result | Code::Internal => (Self::Failed, Self::Run),
            Code::Sites
            | Code::Outcome
            | Code::Pairs
            | Code::Standardise
            | Code::Settings
            | Code::Folds
            | Code::Selection
            | Code::Unpsl
            | Code::Contribution
            | Code::Forest
            | Code::Numbers
            | Code::State
            | Code::Results
            | Code::Local
            | Code::Sum
            | Code::Protocol
            | Code::Signature
            | Code::Busy
            | Code::Role
            | Code::Enrolment
            | Code::Version
            | Code::Unreachable
            | Code::Proxy
            | Code::Tls
            | Code::Authority
            | Code::Host
            | Code::Expired
            | Code::Revoked
            | Code::Replaced
            | Code::Slow
            | Code::Disconnected
            | Code::Stopping
            | Code::Stopped => (Self::Connection, Self::Run),
        }
    }
}

report::exits! {
    CertificateError => Usage,
    CertifiedError => Usage,
    ConfigError => Usage,
    HeadError => Usage,
    JsonError => Failed,
    NameError => Usage,
    TlsError => Usage,
    UsageError => Usage,
    io::Error => Failed,
}

impl Exits for ChainError {
    fn exit(&self) -> Exit {
        match self {
            Self::InUse { .. } => Exit::Usage,
            Self::File { .. } => Exit::Failed,
            Self::Broken { .. } | Self::Study { .. } => Exit::Books,
        }
    }
}

impl Exits for StoreError {
    fn exit(&self) -> Exit {
        match self {
            Self::Database(error) => error.exit(),
            Self::Later { .. } | Self::Led => Exit::Usage,
            Self::Audit(error) => error.exit(),
            Self::File { .. } | Self::Decode(_) | Self::Name(_) => Exit::Failed,
        }
    }
}

impl Exits for DatabaseError {
    fn exit(&self) -> Exit {
        match self {
            Self::Failed(_) | Self::Lost(_) => Exit::Lost,
            Self::Connect(ConnectError::Away(_) | ConnectError::Refused(_)) => Exit::Connection,
            Self::Connect(ConnectError::Password(_) | ConnectError::Authority(_))
            | Self::NoRight(_)
            | Self::Encoding(_) => Exit::Usage,
            Self::Sqlite(_) | Self::Thread(_) | Self::Column(_) => Exit::Failed,
        }
    }
}

impl Exits for BackupError {
    fn exit(&self) -> Exit {
        match self {
            Self::File { .. } => Exit::Failed,
            Self::There { .. } | Self::Other { .. } | Self::Unknown { .. } => Exit::Usage,
            Self::Changed { .. } | Self::Behind { .. } => Exit::Books,
            Self::Book(error) => error.exit(),
        }
    }
}

impl Exits for RunsFolderError {
    fn exit(&self) -> Exit {
        match self {
            Self::InUse { .. } => Exit::Usage,
            Self::System { .. } => Exit::Failed,
        }
    }
}

impl Exits for FolderError {
    fn exit(&self) -> Exit {
        match self.is_usage() {
            true => Exit::Usage,
            false => Exit::Failed,
        }
    }
}

impl Exits for EnrolmentError {
    fn exit(&self) -> Exit {
        match self {
            Self::Enrol(EnrolError::Connection { source }) => Exit::of_call(source.code()),
            Self::Enrol(EnrolError::Answer { .. }) => Exit::Connection,
            Self::Enrol(EnrolError::File { .. }) | Self::Write { .. } => Exit::Failed,
            Self::Enrol(
                EnrolError::Certificate(_) | EnrolError::Tls(_) | EnrolError::OpenKey(_),
            )
            | Self::Config(_)
            | Self::Absent { .. }
            | Self::Certificate(_)
            | Self::Address(_)
            | Self::Token(_)
            | Self::Usage(_)
            | Self::Dial(_) => Exit::Usage,
        }
    }
}

impl Exits for SimulateError {
    fn exit(&self) -> Exit {
        match self {
            Self::Job { .. } | Self::Unreadable { .. } | Self::Draft(_) | Self::NoData { .. } => {
                Exit::Usage
            }
            Self::NoFile { .. } => Exit::Data,
            Self::Port(_) => Exit::Connection,
            Self::Folder(error) => error.exit(),
            Self::Agents(error) => error.exit(),
            Self::Kept(error) => error.exit(),
            Self::File { .. }
            | Self::System(_)
            | Self::Report(_)
            | Self::Certificates(_)
            | Self::Tls(_)
            | Self::Signature(_)
            | Self::Store(_)
            | Self::Name(_)
            | Self::Coordinator(_) => Exit::Failed,
        }
    }
}

impl Exits for KeptError {
    fn exit(&self) -> Exit {
        match self {
            Self::There { .. } | Self::Absent { .. } => Exit::Usage,
            Self::Mute { .. } | Self::Blank { .. } => Exit::Connection,
            Self::File { .. } | Self::Alive { .. } | Self::Tls(_) => Exit::Failed,
        }
    }
}

impl Exits for AgentsError {
    /// An agent has the same codes, and has said why.
    fn exit(&self) -> Exit {
        let Self::Ended { status, .. } = self else {
            return Exit::Failed;
        };
        let same = [Exit::Usage, Exit::Data, Exit::Refused, Exit::Connection];
        let same = same
            .into_iter()
            .find(|exit| status.code() == Some(*exit as i32));
        same.unwrap_or(Exit::Failed)
    }
}

impl Exits for OperatorError {
    fn exit(&self) -> Exit {
        match self {
            Self::Connection { source } | Self::Gone { source, .. } => Exit::of_call(source.code()),
            Self::Dial(_)
            | Self::File { .. }
            | Self::StudyFile(_)
            | Self::Job { .. }
            | Self::Config(_) => Exit::Usage,
            Self::Study(error) => error.exit(),
            Self::Ask(error) => error.exit(),
            Self::Folder(error) => error.exit(),
            Self::Run(_) | Self::Report(_) | Self::Signals(_) => Exit::Failed,
        }
    }
}

impl Exits for StudyError {
    fn exit(&self) -> Exit {
        match self {
            Self::Draft { .. } | Self::Problems { .. } | Self::Unknown { .. } => Exit::Usage,
            Self::Write { .. } => Exit::Failed,
        }
    }
}

impl Exits for AskError {
    fn exit(&self) -> Exit {
        match self {
            Self::Patients(_) => Exit::Data,
            Self::Table(_) | Self::Run { .. } => Exit::Usage,
            Self::Write { .. } => Exit::Failed,
        }
    }
}

impl Exits for ServeError {
    fn exit(&self) -> Exit {
        match self {
            Self::Config(_) | Self::Tls(_) => Exit::Usage,
            Self::Folder(error) => error.exit(),
            Self::Certificate(_) | Self::NoEnrolment { .. } => Exit::Usage,
            Self::Audit(error) => error.exit(),
            Self::Listen(_) | Self::Status(_) => Exit::Connection,
            Self::Pages(Pages::Secret(_) | Pages::Short { .. }) => Exit::Usage,
            Self::Pages(Pages::Listen { .. }) => Exit::Connection,
            Self::Pages(Pages::System(_)) | Self::Address { .. } => Exit::Failed,
            Self::Store(error) => error.exit(),
            Self::Port(_) | Self::Signals(_) => Exit::Failed,
        }
    }
}
