//! What a run has left here, for whoever asks from elsewhere who is alike: the site compares by its own copy, and by nothing of
//! the asker's.

use super::left::read_record;
use super::record::RECORD;
use super::setting::learned;
use crate::books::chain;
use protocol::job::Job;
use protocol::method::Method;
use protocol::method::forest::settings::ForestScope;
use protocol::method::neighbours::settings::By;
use protocol::name::RunId;
use similarity::compare::Comparison;
use std::path::Path;

/// What a run has left to compare by.
pub(crate) struct Kept {
    pub(crate) comparison: Comparison,
    /// Of the whole record: another one under the same name is another.
    pub(crate) digest: String,
}

/// What `run` has left below `runs`, compared `by` it; else why there is nothing for the job, as the coordinator may hear it.
pub(crate) fn kept(runs: &Path, (run, by): (&RunId, By), job: &Job) -> Result<Kept, String> {
    let nothing = || format!("run {run} has left nothing at this site to compare by");
    let folder = runs.join(run.as_str());
    let record = read_record(&folder, RECORD).map_err(|error| {
        tracing::warn!("{error}");
        nothing()
    })?;
    let known = Job::parse_for_one(&record.job).map_err(|_| nothing())?;
    if known.cohort != job.cohort {
        let text = "is of another outcome or of other features than the job";
        return Err(format!("run {run} {text}"));
    }
    if let Method::Forest(settings) = &known.method
        && settings.scope == ForestScope::Local
    {
        let text = "has a forest of each site alone, and these place a patient differently; wanted a common one";
        return Err(format!("run {run} {text}"));
    }
    let columns = known.cohort.standardised_columns();
    let names: Vec<String> = columns.into_iter().map(|column| column.name).collect();
    let comparison = learned(&record, &folder, &names).map_err(|error| {
        tracing::warn!("{error}");
        nothing()
    })?;
    let mut bytes = record.to_bytes().map_err(|_| nothing())?;
    let comparison = match (by, comparison) {
        (By::Run, comparison) => comparison,
        (By::Anchored | By::Risk, Comparison::Weighted(weighted)) => {
            // Other groups than by the run itself: the books count them as another grouping.
            let way: &[u8] = if by == By::Risk { b"risk" } else { b"anchored" };
            bytes.extend(way);
            Comparison::Weighted(weighted.anchored())
        }
        (
            By::Anchored | By::Risk,
            Comparison::Metric(_) | Comparison::Gower(_) | Comparison::Proximity(_),
        ) => {
            let text = "is no regression, and only a regression has a risk to compare patients by";
            return Err(format!("run {run} {text}"));
        }
    };
    Ok(Kept {
        comparison,
        digest: chain::digest(&bytes),
    })
}
