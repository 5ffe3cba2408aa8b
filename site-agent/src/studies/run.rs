//! What a run reads: the patients that its study has frozen, or a refusal.

use super::{Approved, CONFIGURATION, SNAPSHOT, all, commitment};
use crate::books::chain::{ChainError, file_error};
use crate::config::{SiteConfig, SourceConfig};
use crate::source::{self, CohortProblems, FrozenTable, ReadProgress, SiteCohort, snapshot};
use privacy::Policy;
use protocol::failure::Refusal;
use protocol::job::Job;
use protocol::study::{CertificateFingerprint, Study};
use protocol::time::Timestamp;
use std::path::Path;

const RULE: &str = "study";

/// The frozen patients of a study, and how their columns read.
pub struct Frozen {
    table: FrozenTable,
    source: SourceConfig,
    cell_min: u64,
}

/// What a run of `job` reads at this site: the frozen patients of the job's study, or, where neither the job nor the site
/// knows a study, none of them. `operator` is the certificate that signed the job.
///
/// # Errors
/// A [`Refusal`] by the rule `study`; a [`ChainError`] where an approval or its patients are not what the site approved.
pub fn for_run(
    config: &SiteConfig,
    job: &Job,
    operator: Option<&CertificateFingerprint>,
    now: Timestamp,
) -> Result<Result<Option<Frozen>, Refusal>, ChainError> {
    let approved = all(&config.folder, &config.site)?;
    let Some(study) = &job.study else {
        return Ok(match approved.first() {
            None => Ok(None),
            // Another roster over the same patients would tell one hospital's sums by subtraction.
            Some(_) => Err(refused(
                "the site has approved a study of its patients, and answers jobs of studies alone"
                    .to_owned(),
            )),
        });
    };
    let known = approved
        .iter()
        .find(|one| one.study.name == study.name && !one.left);
    if let Err(refusal) = admit(study, known, operator, now) {
        return Ok(Err(refusal));
    }
    match known {
        Some(known) => known.read().map(|frozen| Ok(Some(frozen))),
        None => Ok(Ok(None)),
    }
}

fn admit(
    study: &Study,
    known: Option<&Approved>,
    operator: Option<&CertificateFingerprint>,
    now: Timestamp,
) -> Result<(), Refusal> {
    let name = &study.name;
    let Some(known) = known else {
        return Err(refused(format!(
            "the site has not approved the study {:?}",
            name.as_str()
        )));
    };
    if known.record.digest != study.digest() {
        let (own, found) = (&known.record.digest, study.digest());
        return Err(refused(format!(
            "found the study {:?} with the digest {found}, wanted the one that the site approved, {own}",
            name.as_str()
        )));
    }
    if study.is_over(now) {
        let text = format!("the study {:?} ended on {}", name.as_str(), study.until);
        return Err(refused(text));
    }
    let is_pinned = operator.is_some_and(|found| {
        let mut operators = study.operators.iter();
        operators.any(|operator| operator.certificate == *found)
    });
    if !is_pinned {
        let text = "found a job by another certificate, wanted one of the study's operators";
        return Err(refused(text.to_owned()));
    }
    Ok(())
}

impl Approved {
    /// The frozen patients, as the site committed to them.
    fn read(&self) -> Result<Frozen, ChainError> {
        let read = |name: &str| {
            let path = self.folder.join(name);
            std::fs::read(&path).map_err(|error| file_error(&path, "read", error))
        };
        let configuration = read(CONFIGURATION)?;
        let table = snapshot::from_bytes(read(SNAPSHOT)?);
        let table = table.ok_or_else(|| self.broken())?;
        let found = commitment(&self.random, &configuration, self.cell_min, &table);
        if found != self.record.commitment {
            return Err(self.broken());
        }
        let text = String::from_utf8(configuration).map_err(|_| self.broken())?;
        let config = SiteConfig::parse(&text, Path::new("")).map_err(|_| self.broken())?;
        Ok(Frozen {
            table,
            source: config.source,
            cell_min: self.cell_min,
        })
    }

    fn broken(&self) -> ChainError {
        ChainError::Study {
            path: self.folder.join(SNAPSHOT).display().to_string(),
            found: "other patients, or another configuration",
            wanted: "those that the site committed to when it approved the study",
        }
    }
}

fn refused(text: String) -> Refusal {
    Refusal {
        rule: RULE.to_owned(),
        text,
    }
}

/// The cohort of a job: of the frozen patients, or of the source where the job is of no study.
///
/// # Errors
/// [`CohortProblems`], of which the coordinator may hear the misfits.
pub fn cohort(
    frozen: Option<&Frozen>,
    config: &SiteConfig,
    job: &Job,
) -> Result<SiteCohort, CohortProblems> {
    if let Some(frozen) = frozen {
        return frozen.table.cohort(&frozen.source, job, frozen.cell_min);
    }
    let cell_min = config.policy.rules().cell_min;
    let mut progress = |progress: ReadProgress| {
        tracing::info!(rows = progress.rows, "reading the cohort");
    };
    source::read_for_release(&config.source, job, cell_min, &mut progress)
}

/// The site's rules, with the limits of the job's study where those are lower.
#[must_use]
pub fn within(policy: &Policy, job: &Job) -> Policy {
    match &job.study {
        None => policy.clone(),
        Some(study) => {
            let limits = study.limits;
            policy.limited(limits.runs, limits.rounds, limits.queries)
        }
    }
}
