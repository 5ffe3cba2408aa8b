//! What operators did, as the audit log has it.

use protocol::name::{OperatorName, RunId};
use protocol::study::StudyName;
use protocol::time::Timestamp;
use report::moment;
use serde::{Deserialize, Serialize};
use service::audit::Record;
use std::fmt;

/// The coordinator's log.
pub type Audit = service::audit::Audit<Entry>;

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Act {
    /// A study was proposed, by the run that opens it.
    Proposed,
    /// A job was submitted.
    Submitted,
    /// A run was cancelled.
    Cancelled,
    /// The results of a run were fetched.
    Fetched,
    /// The results of a run were taken away.
    Removed,
    /// A study was closed.
    Closed,
}

/// One act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When, RFC 3339 by the coordinator's clock.
    time: String,
    operator: String,
    did: Act,
    run: Option<String>,
    study: Option<String>,
}

impl Entry {
    /// An act of an operator.
    #[must_use]
    pub fn new(at: Timestamp, operator: &OperatorName, did: Act) -> Self {
        Self {
            time: moment(at).unwrap_or_default(),
            operator: operator.to_string(),
            did,
            run: None,
            study: None,
        }
    }

    /// The same, on a run.
    #[must_use]
    pub fn on_run(self, run: &RunId) -> Self {
        let run = Some(run.to_string());
        Self { run, ..self }
    }

    /// The same, on a study.
    #[must_use]
    pub fn on_study(self, study: &StudyName) -> Self {
        let study = Some(study.to_string());
        Self { study, ..self }
    }
}

impl Record for Entry {
    const HEADING: [&'static str; 5] = ["TIME", "OPERATOR", "DID", "RUN", "STUDY"];

    fn cells(&self) -> [Option<String>; 5] {
        [
            Some(self.time.clone()),
            Some(self.operator.clone()),
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
            Self::Proposed => "proposed",
            Self::Submitted => "submitted",
            Self::Cancelled => "cancelled",
            Self::Fetched => "fetched",
            Self::Removed => "removed",
            Self::Closed => "closed",
        })
    }
}
