//! All that a run leaves.

use crate::assessment::Assessment;
use crate::cohort::MissingShare;
use crate::method::Model;
use crate::name::{OperatorName, RunId};
use crate::progress::{Ending, Times};

/// All that a run leaves to its operator.
#[derive(Debug, Clone, PartialEq)]
pub struct RunResult {
    /// The run.
    pub run: RunId,
    /// The job as it was written.
    pub job: String,
    /// Its seed.
    pub seed: u64,
    /// Version of the coordinator.
    pub version: String,
    /// Who submitted the job; none where nobody did.
    pub operator: Option<OperatorName>,
    /// How it ended.
    pub ending: Ending,
    /// When it was submitted, began and ended.
    pub times: Times,
    /// Seconds from begin to end.
    pub seconds: f64,
    /// One a site of the job.
    pub sites: Vec<SiteResult>,
    /// What is known of all patients together; nothing is known of those of one site.
    pub pooled: PooledFigures,
    /// What was learnt; none where the run ended before its method began.
    pub model: Option<Model>,
    /// Sentences that the report must say: stragglers, safeguards, lowered rules.
    pub notes: Vec<String>,
}

/// What is known of the patients of all sites together, and not of those of one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PooledFigures {
    /// Patients; 0 where the sites never said.
    pub patients: u64,
    /// Patients of each class in the job's order, of a survival time those with an event; empty where the outcome has no classes, or few
    /// patients have one.
    pub classes: Vec<u64>,
    /// Features with missing values; at most [`MISSING_SHARES_MAX`](crate::limits::MISSING_SHARES_MAX), those that miss most.
    pub missing: Vec<MissingShare>,
    /// A digest of all that the sites said, 64 digits: the same at all who took part, and empty where nobody counted it.
    pub heard: String,
    /// Exchanges of which the sites heard the sum alone, proved by their tags; of all others every answer.
    pub totals: u32,
    /// How well the model serves the patients; wrong ones are counted in tens. None where it was not judged.
    pub assessment: Option<Assessment>,
}

/// One site in the result.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteResult {
    /// Its name.
    pub name: String,
    /// Bytes that the site sent, as encoded frames.
    pub bytes_sent: u64,
    /// Bytes that the site received, as encoded frames.
    pub bytes_received: u64,
    /// What the coordinator received of it, by kind of message in alphabetical order.
    pub messages: Vec<MessageTotal>,
}

/// Messages of one kind from one site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageTotal {
    /// The kind, as the site's journal names it.
    pub kind: String,
    /// Messages.
    pub count: u64,
    /// Their bytes, as the site's journal counts them.
    pub bytes: u64,
}

impl RunResult {
    /// Patients of all sites.
    #[must_use]
    pub fn patients(&self) -> u64 {
        self.pooled.patients
    }

    /// Sites that said who their patients are: all or none.
    #[must_use]
    pub fn sites_that_took_part(&self) -> usize {
        match self.pooled.patients {
            0 => 0,
            _ => self.sites.len(),
        }
    }

    /// Whether the run leaves anything that was learnt.
    #[must_use]
    pub fn has_model(&self) -> bool {
        let assessed = self.pooled.assessment.is_some();
        self.model
            .as_ref()
            .is_some_and(|model| model.is_learnt(assessed))
    }
}
