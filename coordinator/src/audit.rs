//! The audit log: what operators did, in a chain that shows where it was touched. Nothing in it is of patients.

use protocol::name::{OperatorName, RunId};
use protocol::study::StudyName;
use protocol::time::Timestamp;
use report::{aligned, moment};
use serde::{Deserialize, Serialize};
use service::chain::{self, Chain, ChainError, Head, Link};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The log's name in the coordinator's folder.
pub const FILE_NAME: &str = "audit.jsonl";

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

/// The log, open for writing; a simulation has none.
#[derive(Debug, Clone)]
pub struct Audit(Option<Arc<Mutex<Chain>>>);

impl Audit {
    /// Opens or creates the log in `folder`, and checks all of it.
    ///
    /// # Errors
    /// [`ChainError`] where it cannot be used, or an entry was touched.
    pub fn open(folder: &Path) -> Result<Self, ChainError> {
        let (chain, torn) = Chain::open(&folder.join(FILE_NAME), None, |_: Link<Entry>| {})?;
        if let Some(torn) = torn {
            let bytes = torn.bytes;
            tracing::warn!(
                bytes,
                "the audit log ended in an incomplete line, which was taken off"
            );
        }
        Ok(Self(Some(Arc::new(Mutex::new(chain)))))
    }

    /// None: of a federation on one machine, whose operator is whoever started it.
    #[must_use]
    pub fn none() -> Self {
        Self(None)
    }

    /// Notes an act; when this returns, it is on the disk.
    ///
    /// # Errors
    /// [`ChainError::File`]: whoever acted must not hear that it is done.
    pub fn note(&self, entry: &Entry) -> Result<(), ChainError> {
        match &self.0 {
            Some(chain) => {
                let mut chain = chain.lock().unwrap_or_else(PoisonError::into_inner);
                chain.append(entry).map(drop)
            }
            None => Ok(()),
        }
    }
}

/// The entries of a log that was checked.
#[derive(Debug, Serialize)]
pub struct Listed {
    entries: Vec<Numbered>,
}

#[derive(Debug, Serialize)]
struct Numbered {
    number: u64,
    #[serde(flatten)]
    entry: Entry,
}

/// Checks the log in `folder`, also while a coordinator writes it; gives all entries, or those of one run.
///
/// # Errors
/// [`ChainError`] names the first entry that is not what was written.
pub fn list(folder: &Path, run: Option<&str>) -> Result<Listed, ChainError> {
    let mut entries = Vec::new();
    chain::read(&folder.join(FILE_NAME), None, |link: Link<Entry>| {
        let Link { number, entry, .. } = link;
        if run.is_none() || run == entry.run.as_deref() {
            entries.push(Numbered { number, entry });
        }
    })?;
    Ok(Listed { entries })
}

/// A log that was checked.
#[derive(Debug, Serialize)]
pub struct Verified {
    entries: u64,
    head: String,
}

/// Checks the log in `folder`, against a head that was kept elsewhere where there is one.
///
/// # Errors
/// As [`list`].
pub fn verify(folder: &Path, kept: Option<&Head>) -> Result<Verified, ChainError> {
    let head = chain::read(&folder.join(FILE_NAME), kept, |_: Link<Entry>| {})?;
    Ok(Verified {
        entries: head.entries,
        head: head.to_string(),
    })
}

impl fmt::Display for Verified {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entries, head } = self;
        write!(
            formatter,
            "{entries} entries, all as they were written; the head is {head}"
        )
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

impl fmt::Display for Listed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heading = ["ENTRY", "TIME", "OPERATOR", "DID", "RUN", "STUDY"];
        let mut rows = vec![heading.map(str::to_owned)];
        let or_none = |text: &Option<String>| text.clone().unwrap_or("-".to_owned());
        rows.extend(self.entries.iter().map(|Numbered { number, entry }| {
            [
                number.to_string(),
                entry.time.clone(),
                entry.operator.clone(),
                entry.did.to_string(),
                or_none(&entry.run),
                or_none(&entry.study),
            ]
        }));
        formatter.write_str(&aligned(&rows))
    }
}
