//! What a simulation is to do, from its command line.

use super::{SimulateError, agents};
use crate::cli::Simulate;
use protocol::job::Job;
use protocol::name::SiteName;
use protocol::study::{
    CertificateFingerprint, Party, Study, is_file, named, nobody, of_job, pinned,
};
use std::path::{Path, PathBuf};

/// The job that runs on synthetic patients.
const DEMO_JOB: &str = include_str!("../../../deploy/jobs/demo.toml");

/// Its name.
pub(super) const DEMO_NAME: &str = "demo";
/// Methods that ask by what a run learned, once it has.
const ASKED_LATER: [&str; 2] = ["neighbours", "cluster"];

/// Everything that a simulation needs, checked before anything is started.
pub(super) struct Plan {
    /// The job without its study.
    pub(super) own: String,
    /// The study, whose parties have no certificates yet.
    draft: String,
    /// The job, by certificates that nobody has.
    pub(super) job: Job,
    pub(super) seed: u64,
    pub(super) policy: Option<String>,
    pub(super) site_agent: PathBuf,
    pub(super) data: Option<PathBuf>,
    /// The column of the patients' identifiers, where it is named.
    patient: Option<String>,
    pub(super) out: PathBuf,
    /// Whether the federation goes on after the run.
    pub(super) is_kept: bool,
}

impl Plan {
    /// The study with the certificates of its parties.
    pub(super) fn study(
        &self,
        certificate: impl Fn(Party<'_>) -> Option<CertificateFingerprint>,
    ) -> Result<Study, SimulateError> {
        study(&self.draft, certificate)
    }

    /// The column of the patients' identifiers: judged pairs need one, and whoever asks for one of the synthetic patients later.
    pub(super) fn patient(&self) -> Option<String> {
        let has_column = self.job.judgements.is_some() || (self.is_kept && self.data.is_none());
        let usual = has_column.then(|| "patient".to_owned());
        self.patient.clone().or(usual)
    }
}

/// The study of a draft.
fn study(
    draft: &str,
    certificate: impl Fn(Party<'_>) -> Option<CertificateFingerprint>,
) -> Result<Study, SimulateError> {
    let text = pinned(draft, certificate)?;
    Study::parse(&text).map_err(|problems| SimulateError::Job {
        name: "the study".to_owned(),
        problems,
    })
}

pub(super) fn plan(arguments: &Simulate) -> Result<Plan, SimulateError> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|source| SimulateError::Unreadable {
            path: path.to_owned(),
            source,
        })
    };
    let (name, text) = match &arguments.job {
        Some(path) => (path.display().to_string(), read(path)?),
        None => ("the embedded job".to_owned(), DEMO_JOB.to_owned()),
    };
    let problems = |problems| SimulateError::Job {
        name: name.clone(),
        problems,
    };
    let file = named(&text).filter(|word| is_file(word));
    let (own, draft) = match (file, &arguments.job) {
        (Some(file), Some(path)) => {
            let path = path.parent().unwrap_or(Path::new("")).join(file);
            (text, read(&path)?)
        }
        (Some(_), None) | (None, _) => {
            let job = Job::parse(&text).map_err(problems)?;
            let asked_later = match arguments.keep {
                true => &ASKED_LATER[..],
                false => &[],
            };
            of_job(&job, agents::OPERATOR, asked_later)?
        }
    };
    let joined = study(&draft, |party| Some(nobody(party)))?.join(&own);
    let job = Job::parse(&joined).map_err(problems)?;
    if arguments.job.is_some() && arguments.data.is_none() {
        let files: Vec<String> = job.sites.iter().map(|site| format!("{site}.csv")).collect();
        return Err(SimulateError::NoData {
            wanted: files.join(", "),
        });
    }
    Ok(Plan {
        patient: arguments.id.clone(),
        seed: arguments.seed.unwrap_or(job.seed),
        policy: arguments.policy.as_deref().map(read).transpose()?,
        site_agent: agents::program(arguments.site_agent.as_deref())?,
        data: arguments.data.clone(),
        out: out(arguments, &job.name),
        own,
        draft,
        job,
        is_kept: arguments.keep,
    })
}

/// The folder of the results of a job.
pub(super) fn out(arguments: &Simulate, job: &str) -> PathBuf {
    let usual = || PathBuf::from(format!("kindred-{job}"));
    arguments.out.clone().unwrap_or_else(usual)
}

/// The file of every site, all absent ones at once.
pub(super) fn site_files(
    job: &Job,
    data: &Path,
) -> Result<Vec<(SiteName, PathBuf)>, SimulateError> {
    let mut files = Vec::with_capacity(job.sites.len());
    let mut absent = Vec::new();
    for site in &job.sites {
        let candidates =
            ["csv", "csv.gz", "parquet"].map(|kind| data.join(format!("{site}.{kind}")));
        match candidates.into_iter().find(|path| path.is_file()) {
            Some(path) => {
                let path = std::path::absolute(&path).map_err(|source| SimulateError::File {
                    path: path.clone(),
                    source,
                })?;
                files.push((site.clone(), path));
            }
            None => absent.push(site.to_string()),
        }
    }
    if absent.is_empty() {
        Ok(files)
    } else {
        Err(SimulateError::NoFile {
            sites: absent,
            folder: data.display().to_string(),
        })
    }
}
