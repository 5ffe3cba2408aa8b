//! What operators did, as the audit log has it.

use protocol::name::OperatorName;
use serde::{Deserialize, Serialize};
use service::audit;
use std::fmt;

/// The coordinator's log.
pub type Audit = audit::Audit<By, Act>;
/// One act of an operator.
pub type Entry = audit::Entry<By, Act>;

/// The operator who acted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct By {
    operator: String,
}

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

impl From<&OperatorName> for By {
    fn from(operator: &OperatorName) -> Self {
        let operator = operator.to_string();
        Self { operator }
    }
}

impl audit::Who for By {
    const HEADING: &'static str = "OPERATOR";
    const BEGUN_BY: &'static str = "`kindred-coordinator serve`";

    fn name(&self) -> &str {
        &self.operator
    }
}

impl audit::Act for Act {}

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
