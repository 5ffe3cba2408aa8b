//! What a run reads: the patients that its study has frozen, or a refusal.

use super::renewed::Lots;
use super::{
    Approved, CONFIGURATION, Committed, PAIRS, RULE, SNAPSHOT, commitment, folders, name_of, open,
};
use crate::books::chain::{ChainError, file_error};
use crate::config::{SiteConfig, SourceConfig};
use crate::method::{self, Wants};
use crate::source::{CohortProblems, Judged, SiteCohort, Snapshot};
use privacy::Refusal;
use protocol::job::Job;
use protocol::study::CertificateFingerprint;
use protocol::time::Timestamp;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;

/// The frozen patients of a study, and how their columns read.
pub struct Frozen {
    snapshot: Arc<Snapshot>,
    source: SourceConfig,
    cell_min: u64,
    commitment: [u8; 32],
    /// Patients, rounded up to ten, as the site has approved them.
    patients_at_most: u64,
    /// Which of the earlier studies have them.
    lots: Lots,
    /// Who is in no sum of the study, by patterns of who has which outcome.
    left_out: Vec<u32>,
    /// The pairs that physicians had judged, where the study has such.
    judged: Option<Judged>,
}

/// Why a job of no study is refused: another roster over the same patients would tell one hospital's sums by subtraction.
pub(crate) const OF_NO_STUDY: &str = "found a job of no study, which chooses its hospitals and its patients by itself, wanted one of a \
     study that the site has approved";

/// The approval of the job's study.
///
/// # Errors
/// A [`Refusal`] by the rule `study`; a [`ChainError`] where an approval is not what the site signed.
pub fn approved(
    config: &SiteConfig,
    job: &Job,
    now: Timestamp,
) -> Result<Result<Approved, Refusal>, ChainError> {
    let folders = folders(&config.folder)?;
    let Some(study) = &job.study else {
        return Ok(refused(OF_NO_STUDY));
    };
    let name = study.name.as_str();
    // No file of another study keeps this one from going on.
    let own = folders.iter().find(|folder| name_of(folder) == name);
    let known = own.map(|folder| open(folder, &config.site)).transpose()?;
    let Some(known) = known.filter(|known| !known.left) else {
        return Ok(refused(&format!(
            "the site has not approved the study {name:?}"
        )));
    };
    let (own, found) = (&known.signed.approval.digest, study.digest());
    if *own != found {
        return Ok(refused(&format!(
            "found the study {name:?} with the digest {found}, wanted the one that the site approved, {own}"
        )));
    }
    if known.closed {
        return Ok(refused(&format!("the study {name:?} is closed")));
    }
    if study.is_over(now) {
        return Ok(refused(&format!(
            "the study {name:?} ended on {}",
            study.until
        )));
    }
    Ok(Ok(known))
}

/// What a run of `job` reads at this site: the frozen patients of the job's study. `operator` is the certificate that signed the job.
///
/// # Errors
/// As [`approved`]; also where the patients are not those that the site approved.
pub fn for_run(
    config: &SiteConfig,
    job: &Job,
    operator: Option<&CertificateFingerprint>,
    now: Timestamp,
) -> Result<Result<Frozen, Refusal>, ChainError> {
    let known = match approved(config, job, now)? {
        Ok(known) => known,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let is_pinned = |found: &CertificateFingerprint| {
        let mut operators = known.study.operators.iter();
        operators.any(|operator| operator.certificate == *found)
    };
    if !operator.is_some_and(is_pinned) {
        let text = "found a job by another certificate, wanted one of the study's operators";
        return Ok(refused(text));
    }
    match lots(config, &known)? {
        Ok(lots) => known.read(lots).map(Ok),
        Err(refusal) => Ok(Err(refusal)),
    }
}

/// Whether the frozen patients of a study are those that the site approved.
///
/// # Errors
/// A [`ChainError`] where they are not; one of the study where it renews another that the site has not approved.
pub fn whole(config: &SiteConfig, known: &Approved) -> Result<(), ChainError> {
    let lots = lots(config, known)?.map_err(|_| ChainError::Study {
        path: known.folder.display().to_string(),
        found: "no approval of a study that this one renews",
        wanted: "that of every one",
    })?;
    known.read(lots).map(drop)
}

/// Who is in which of the studies that this one renews.
fn lots(config: &SiteConfig, known: &Approved) -> Result<Result<Lots, Refusal>, ChainError> {
    let folders = folders(&config.folder)?;
    let mut earlier = Vec::new();
    for name in &known.study.renews {
        let name = name.as_str();
        let Some(folder) = folders.iter().find(|folder| name_of(folder) == name) else {
            return Ok(refused(&format!(
                "found no approval of the study {name:?}, which this one renews"
            )));
        };
        earlier.push(open(folder, &config.site)?);
    }
    Lots::new(known, &earlier).map(Ok)
}

impl Frozen {
    /// The cohort of a job.
    ///
    /// # Errors
    /// [`CohortProblems`], of which the coordinator may hear the misfits.
    pub fn cohort(&self, job: &Job) -> Result<SiteCohort, CohortProblems> {
        let (source, cell_min) = (&self.source, self.cell_min);
        let study = job.study.as_deref();
        let of_patterns =
            study.map(|study| (self.snapshot).of_patterns(source, study, cell_min, &self.left_out));
        let left_out = of_patterns.transpose()?.unwrap_or_default();
        let cohort = self.snapshot.cohort(source, job, cell_min, &left_out)?;
        match (method::wants(job), &self.judged, study) {
            (Wants::Judged, Some(judged), _) => cohort.with_judged(judged),
            (Wants::Enrolled, _, Some(study)) => {
                let mut enrolled = self.snapshot.enrolled(source, study, cell_min)?;
                enrolled.lots = Some(self.lots.clone());
                Ok(cohort.with_enrolled(enrolled))
            }
            (Wants::Cohort | Wants::Judged | Wants::Enrolled, _, _) => Ok(cohort),
        }
    }

    /// A digest of what the site committed to, whatever a job takes of it.
    #[must_use]
    pub fn commitment(&self) -> [u8; 32] {
        self.commitment
    }

    /// The same without those of these patterns, as the study's opening has them.
    #[must_use]
    pub fn without(self, left_out: &[u32]) -> Self {
        let left_out = left_out.to_vec();
        Self { left_out, ..self }
    }

    /// The number of patients, rounded up to ten, as the site has approved it.
    #[must_use]
    pub fn patients_at_most(&self) -> u64 {
        self.patients_at_most
    }
}

impl Approved {
    /// The frozen patients, as the site committed to them.
    fn read(&self, lots: Lots) -> Result<Frozen, ChainError> {
        let read = |name: &str| {
            let path = self.folder.join(name);
            std::fs::read(&path).map_err(|error| file_error(&path, "read", error))
        };
        let path = self.folder.join(SNAPSHOT);
        let snapshot = Snapshot::open(&path);
        let snapshot = snapshot.map_err(|error| file_error(&path, "read", error))?;
        let snapshot = snapshot.ok_or_else(|| self.broken())?;
        let configuration = read(CONFIGURATION)?;
        let rows = match self.committed {
            Committed::Rows => Some(snapshot.table().ok_or_else(|| self.broken())?),
            Committed::Snapshot => None,
        };
        let pairs = match self.study.judgements {
            Some(_) => Some(read(PAIRS)?),
            None => None,
        };
        let parts = (configuration.as_slice(), pairs.as_deref());
        let found = commitment(&self.random, parts, self.cell_min, |write| match &rows {
            Some(table) => table.canonical(write),
            None => write(&snapshot.digest()),
        });
        drop(rows);
        if found != self.signed.approval.commitment {
            return Err(self.broken());
        }
        // What the card tells follows from the patients of other studies too.
        let mut digest = Sha256::new_with_prefix(found);
        lots.digest(&mut digest);
        let judged = pairs.map(|bytes| Judged::read(&bytes, PAIRS)).transpose();
        let judged = judged.map_err(|_| self.broken())?;
        let text = String::from_utf8(configuration).map_err(|_| self.broken())?;
        let config = SiteConfig::parse(&text, Path::new("")).map_err(|_| self.broken())?;
        Ok(Frozen {
            snapshot: Arc::new(snapshot),
            source: config.source,
            cell_min: self.cell_min,
            commitment: digest.finalize().into(),
            patients_at_most: self.signed.approval.patients_at_most,
            lots,
            left_out: Vec::new(),
            judged,
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

fn refused<T>(text: &str) -> Result<T, Refusal> {
    Err(Refusal {
        rule: RULE.to_owned(),
        text: text.to_owned(),
    })
}
