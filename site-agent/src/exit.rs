//! Exit codes, as deploy/codes.md documents them.

use crate::books::chain::{ChainError, HeadError};
use crate::cases::CasesError;
use crate::config::ConfigError;
use crate::draft::StudyDraftError;
use crate::enrolment::EnrolmentError;
use crate::init::InitError;
use crate::pages::PagesError;
use crate::run::audit::AuditError;
use crate::run::driver::AgentError;
use crate::run::local::LocalError;
use crate::source::DraftError;
use crate::studies::StudyError;
use crate::synthesise::SynthesiseError;
use protocol::name::NameError;
use service::backup::BackupError;
use service::certificate::CertifiedError;
use service::proxy::DialError;
use service::status::StatusError;
use similarity::uses::clusters::ClusterError;
use similarity::uses::prediction::PredictionError;
use std::io;
use wire::TlsError;
use wire::enrolment::EnrolError;
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

report::exits! {
    CertifiedError => Usage,
    ConfigError => Usage,
    DialError => Usage,
    HeadError => Usage,
    NameError => Usage,
    OpenKey => Usage,
    StatusError => Connection,
    StudyFileError => Usage,
    TlsError => Usage,
    UsageError => Usage,
    io::Error => Failed,
    serde_json::Error => Failed,
}

impl Exits for ChainError {
    fn exit(&self) -> Exit {
        match self {
            Self::InUse { .. } => Exit::Usage,
            // Once there is room again all goes on, so a supervisor may start the agent again.
            Self::File { source, .. } if is_room_wanted(source) => Exit::Failed,
            Self::File { .. } | Self::Broken { .. } | Self::Study { .. } => Exit::Books,
        }
    }
}

fn is_room_wanted(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), FileTooLarge | QuotaExceeded | StorageFull)
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

impl Exits for AuditError {
    fn exit(&self) -> Exit {
        match self {
            Self::Unknown { .. } => Exit::Usage,
            Self::Copy { .. } | Self::Job { .. } | Self::Other { .. } => Exit::Books,
        }
    }
}

impl Exits for AgentError {
    fn exit(&self) -> Exit {
        match self {
            Self::Refused { .. } => Exit::Connection,
            Self::Worker => Exit::Failed,
            Self::Books(error) => error.exit(),
        }
    }
}

impl Exits for EnrolmentError {
    fn exit(&self) -> Exit {
        match self {
            Self::Enrol(EnrolError::Connection { .. } | EnrolError::Answer { .. }) => {
                Exit::Connection
            }
            Self::Enrol(EnrolError::File { .. }) | Self::Write { .. } => Exit::Failed,
            Self::Enrol(
                EnrolError::Certificate(_) | EnrolError::Tls(_) | EnrolError::OpenKey(_),
            )
            | Self::Token(_)
            | Self::Usage(_)
            | Self::Proxy(_)
            | Self::Config(_)
            | Self::Dial(_) => Exit::Usage,
        }
    }
}

impl Exits for PagesError {
    fn exit(&self) -> Exit {
        use service::pages::PagesError as Served;
        match self {
            Self::Config(_) | Self::Pages(Served::Secret(_) | Served::Short { .. }) => Exit::Usage,
            Self::Pages(Served::Listen { .. }) => Exit::Connection,
            Self::Pages(Served::System(_)) | Self::Folder(_) => Exit::Failed,
            Self::Audit(error) => error.exit(),
        }
    }
}

impl Exits for InitError {
    fn exit(&self) -> Exit {
        match self {
            Self::Table(_) => Exit::Data,
            Self::Study(_) | Self::Written { .. } => Exit::Usage,
            Self::File { .. } => Exit::Failed,
        }
    }
}

impl Exits for StudyDraftError {
    fn exit(&self) -> Exit {
        match self {
            Self::Draft(DraftError::Table(_)) => Exit::Data,
            Self::Draft(DraftError::Asked(_)) | Self::Config(_) | Self::Exists(_) => Exit::Usage,
            Self::Write { .. } => Exit::Failed,
        }
    }
}

impl Exits for LocalError {
    fn exit(&self) -> Exit {
        match self {
            Self::Data(_) | Self::Unfit { .. } => Exit::Data,
            Self::Folder(error) if error.is_usage() => Exit::Usage,
            Self::Folder(_) | Self::Report(_) => Exit::Failed,
            Self::Unreadable { .. }
            | Self::Job { .. }
            | Self::Study(_)
            | Self::Config(_)
            | Self::Name(_) => Exit::Usage,
        }
    }
}

impl Exits for StudyError {
    fn exit(&self) -> Exit {
        match self {
            Self::Books(error) => error.exit(),
            Self::Data(_) | Self::Differs(_) => Exit::Data,
            Self::Refused { .. } => Exit::Refused,
            Self::Write { .. } | Self::Rows(_) | Self::Snapshot(_) => Exit::Failed,
            Self::File(_)
            | Self::Config(_)
            | Self::Tls(_)
            | Self::Signature(_)
            | Self::Consent { .. }
            | Self::Known { .. } => Exit::Usage,
        }
    }
}

impl Exits for CasesError {
    fn exit(&self) -> Exit {
        match self {
            Self::Data(_)
            | Self::BelowZero(_)
            | Self::Personal(_)
            | Self::Standardise(_)
            | Self::Cluster(
                ClusterError::Alike | ClusterError::NoEvent | ClusterError::OneOutcome,
            )
            | Self::FewPatients { .. }
            | Self::Predict(
                PredictionError::Fit(_)
                | PredictionError::Folds(_)
                | PredictionError::AllAlike
                | PredictionError::NegativeTime,
            ) => Exit::Data,
            Self::Write { .. } | Self::Figure(_) => Exit::Failed,
            Self::Config(_)
            | Self::NoRun { .. }
            | Self::Record { .. }
            | Self::Moments(_)
            | Self::Compare(_)
            | Self::Regression(_)
            | Self::NoMetric(_)
            | Self::NoPersonal
            | Self::NoPatient { .. }
            | Self::TooMany { .. }
            | Self::TooLarge { .. }
            | Self::Identifiers { .. }
            | Self::Cluster(_)
            | Self::Predict(_)
            | Self::Learner { .. }
            | Self::NoChance { .. }
            | Self::NoTime(_)
            | Self::NoForest(_) => Exit::Usage,
        }
    }
}

impl Exits for SynthesiseError {
    fn exit(&self) -> Exit {
        match self {
            Self::Sites { .. } | Self::Settings(_) | Self::Exists { .. } => Exit::Usage,
            Self::Write { .. } => Exit::Failed,
        }
    }
}
