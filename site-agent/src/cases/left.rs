//! What a run left at this site, and the site's patients of today as the run's job reads them.

use super::CasesError;
use super::record::{Learned, PERSONAL, RECORD, Record};
use crate::cli;
use crate::config::{SiteConfig, SourceConfig};
use crate::source::{self, Patients, digest};
use protocol::job::Job;
use protocol::name::RunId;
use similarity::cohort::{Cohort, Column};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A run's record and the site's present cohort.
pub(super) struct Left {
    /// Where the run's results are.
    pub(super) folder: PathBuf,
    pub(super) record: Record,
    pub(super) job: Job,
    /// As the source has it, for people to read.
    pub(super) columns: Vec<Column>,
    /// As the job compares it.
    pub(super) cohort: Cohort,
    pub(super) patients: Patients,
    /// How a new patient's file is read.
    pub(super) source: SourceConfig,
    /// Of the present cohort.
    pub(super) digest: String,
    /// Whether the cohort is that of the run.
    pub(super) is_same: bool,
    /// What is to be known of the cohort.
    pub(super) remarks: Vec<String>,
}

impl Left {
    /// Reads the run's record and the site's cohort.
    pub(super) fn open(asked: &cli::Patients) -> Result<Self, CasesError> {
        let config = asked.cohort.site()?;
        let folder = folder(&asked.run, config.as_ref())?;
        let record = read_record(&folder, RECORD)?;
        let job = Job::parse_for_one(&record.job).map_err(|problems| CasesError::Record {
            path: folder.join(RECORD),
            why: problems.to_string(),
        })?;
        let (source, read) = match (&config, &asked.cohort.data) {
            (Some(config), _) if folder.starts_with(runs(config)) => {
                let cell_min = config.policy.rules().cell_min;
                let source = config.source.clone();
                let read = source::read_for_release(&source, &job, cell_min);
                (source, read)
            }
            (Some(config), _) => {
                let source = config.source.clone();
                let read = source::read_cohort(&source, &job);
                (source, read)
            }
            (None, data) => {
                let file = data.clone().unwrap_or_default();
                let source = SourceConfig::of_file(&file, asked.cohort.id.clone());
                let read = source::read_cohort(&source, &job);
                (source, read)
            }
        };
        let read = read.map_err(CasesError::Data)?;
        let columns = read.cohort.columns().to_vec();
        let mut cohort = read.cohort;
        cohort.take_logarithms(&job.cohort.logarithms())?;
        let mut remarks: Vec<String> = read.remarks.iter().map(ToString::to_string).collect();
        let digest = digest(&cohort, &read.patients);
        let is_same = digest == record.cohort;
        if !is_same {
            let (then, now) = (record.patients, cohort.patients());
            let differs = match then == now {
                true => format!("of its {now} patients a value or an identifier is another"),
                false => format!("the run read {then} patients, the source now has {now}"),
            };
            remarks.push(format!(
                "the cohort is not that of the run: {differs}; the run's rules are applied to the present patients"
            ));
        }
        Ok(Self {
            folder,
            record,
            job,
            columns,
            cohort,
            patients: read.patients,
            source,
            digest,
            is_same,
            remarks,
        })
    }
}

fn runs(config: &SiteConfig) -> PathBuf {
    config.folder.join("runs")
}

/// The folder of a run: of the site's own by its name, or of `local` by its path.
fn folder(run: &str, config: Option<&SiteConfig>) -> Result<PathBuf, CasesError> {
    let own = config.map(|config| runs(config).join(run));
    let given = PathBuf::from(run);
    let looked = own.into_iter().chain([given.join("patients"), given]);
    let looked = looked.collect::<Vec<_>>();
    for folder in &looked {
        let path = folder.join(RECORD);
        match fs::metadata(&path) {
            Ok(found) if found.is_file() => return Ok(folder.clone()),
            Ok(_) => {}
            Err(error) if is_absent(&error) => {}
            Err(error) => {
                let why = error.to_string();
                return Err(CasesError::Record { path, why });
            }
        }
    }
    let known = config.and_then(|config| fs::read_dir(runs(config)).ok());
    let mut known: Vec<String> = known
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    known.sort();
    Err(CasesError::NoRun {
        run: run.to_owned(),
        looked,
        known,
    })
}

/// Whether there is no such file, and not that nobody may look for it.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// A record of the run's folder.
pub(super) fn read_record(folder: &Path, file: &str) -> Result<Record, CasesError> {
    let path = folder.join(file);
    let fault = |why: String| CasesError::Record {
        path: path.clone(),
        why,
    };
    let bytes = fs::read(&path).map_err(|error| fault(error.to_string()))?;
    serde_json::from_slice(&bytes).map_err(|error| fault(error.to_string()))
}

/// A run of the site that has left something to compare by.
pub(crate) struct LeftRun {
    /// Its name.
    pub(crate) run: RunId,
    pub(crate) job: Job,
    /// When it left it.
    pub(crate) left: SystemTime,
    /// Whether the site has adapted its metric.
    pub(crate) has_personal: bool,
    /// Whether it is a regression.
    pub(crate) is_regression: bool,
}

/// All runs of the site that have left something to compare by, the newest first. What cannot be read is passed over: `similar` says why.
pub(crate) fn all(config: &SiteConfig) -> Vec<LeftRun> {
    let entries = fs::read_dir(runs(config)).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut all: Vec<LeftRun> = names.filter_map(|name| one(config, &name)).collect();
    all.sort_by(|one, other| {
        other
            .left
            .cmp(&one.left)
            .then_with(|| one.run.as_str().cmp(other.run.as_str()))
    });
    all
}

/// One of them.
pub(crate) fn one(config: &SiteConfig, name: &str) -> Option<LeftRun> {
    let run = RunId::new(name).ok()?;
    let folder = runs(config).join(run.as_str());
    let left = fs::metadata(folder.join(RECORD)).ok()?.modified().ok()?;
    let record = read_record(&folder, RECORD).ok()?;
    Some(LeftRun {
        job: Job::parse_for_one(&record.job).ok()?,
        has_personal: folder.join(PERSONAL).is_file(),
        is_regression: match record.learned {
            Learned::Regression(_) => true,
            Learned::Metric(_) | Learned::Forest(_) => false,
        },
        left,
        run,
    })
}
