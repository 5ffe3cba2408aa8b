//! Writes synthetic patients as one CSV file per site.

use crate::cli::{OutcomeChoice, Synthesise};
use protocol::name::SiteName;
use similarity::cohort::{Cohort, MISSING_LEVEL, Outcome, Values};
use similarity::numeric::seed::Seed;
use similarity::synthetic::{self, CohortSettings, SyntheticOutcome};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Patients that cannot be made or written.
#[derive(Debug, thiserror::Error)]
pub enum SynthesiseError {
    /// A site that is no `SITE=PATIENTS`.
    #[error("--sites: found {found:?}, wanted SITE=PATIENTS, as in north=240, each site once")]
    Sites {
        /// What was given.
        found: String,
    },
    /// Settings that make no cohort.
    #[error(transparent)]
    Settings(#[from] synthetic::CohortSettingsError),
    /// Files are there already.
    #[error("found {}, wanted no such file: --force writes over it", listed(.paths))]
    Exists {
        /// All of them.
        paths: Vec<PathBuf>,
    },
    /// A file could not be written.
    #[error("{} could not be written", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Writes `OUT/<site>.csv` for every site, each beside and then renamed.
///
/// # Errors
/// [`SynthesiseError`].
pub fn synthesise(arguments: &Synthesise) -> Result<Vec<PathBuf>, SynthesiseError> {
    let sites = sites(&arguments.sites)?;
    let settings = CohortSettings {
        patients: sites.iter().map(|(_, patients)| *patients).collect(),
        outcome: match arguments.outcome {
            OutcomeChoice::Class => SyntheticOutcome::Classes,
            OutcomeChoice::Number => SyntheticOutcome::Number,
            OutcomeChoice::Survival => SyntheticOutcome::Survival,
        },
        ..CohortSettings::default()
    };
    let path = |site: &SiteName| arguments.out.join(format!("{site}.csv"));
    let there = sites.iter().map(|(site, _)| path(site));
    let paths: Vec<PathBuf> = there.filter(|path| path.exists()).collect();
    if !paths.is_empty() && !arguments.force {
        return Err(SynthesiseError::Exists { paths });
    }
    let cohorts = synthetic::cohorts(&settings, Seed(arguments.seed))?;
    let fault = |path: &Path| {
        let path = path.to_owned();
        move |source| SynthesiseError::Write { path, source }
    };
    fs::create_dir_all(&arguments.out).map_err(fault(&arguments.out))?;
    let mut written = Vec::with_capacity(sites.len());
    for ((site, _), cohort) in sites.iter().zip(&cohorts) {
        let path = path(site);
        let partial = path.with_extension("csv.partial");
        table(site, cohort)
            .and_then(|bytes| fs::write(&partial, bytes))
            .and_then(|()| fs::rename(&partial, &path))
            .map_err(fault(&path))?;
        written.push(path);
    }
    Ok(written)
}

fn listed(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    names.join(", ")
}

fn sites(arguments: &[String]) -> Result<Vec<(SiteName, usize)>, SynthesiseError> {
    let mut sites: Vec<(SiteName, usize)> = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let refused = || SynthesiseError::Sites {
            found: argument.clone(),
        };
        let (name, patients) = argument.split_once('=').ok_or_else(refused)?;
        let name = SiteName::new(name).map_err(|_| refused())?;
        if sites.iter().any(|(known, _)| *known == name) {
            return Err(refused());
        }
        sites.push((name, patients.parse().map_err(|_| refused())?));
    }
    Ok(sites)
}

fn table(site: &SiteName, cohort: &Cohort) -> io::Result<Vec<u8>> {
    let mut table = csv::Writer::from_writer(Vec::new());
    let names = cohort.columns().iter().map(|column| column.name.as_str());
    table.write_record(
        ["patient"]
            .into_iter()
            .chain(names)
            .chain(outcome_names(cohort.outcome()).iter().copied()),
    )?;
    for row in 0..cohort.patients() {
        let mut record = vec![format!("{site}-{:04}", row + 1)];
        record.extend(
            cohort
                .columns()
                .iter()
                .map(|column| field(&column.values, row)),
        );
        record.extend(outcome(cohort.outcome(), row));
        table.write_record(&record)?;
    }
    table.into_inner().map_err(io::Error::other)
}

fn field(values: &Values, row: usize) -> String {
    match values {
        Values::Numeric(values) if values[row].is_nan() => String::new(),
        Values::Numeric(values) => format!("{:.4}", values[row]),
        Values::Categorical { codes, .. } if codes[row] == MISSING_LEVEL => String::new(),
        Values::Categorical { codes, levels } => levels[codes[row] as usize].clone(),
    }
}

fn outcome_names(outcome: &Outcome) -> &'static [&'static str] {
    match outcome {
        Outcome::Classes { .. } => &["class"],
        Outcome::Numeric(_) => &["score"],
        Outcome::Survival { .. } => &["days", "event"],
    }
}

fn outcome(outcome: &Outcome, row: usize) -> Vec<String> {
    match outcome {
        Outcome::Classes { codes, levels } => vec![levels[codes[row] as usize].clone()],
        Outcome::Numeric(values) => vec![format!("{:.4}", values[row])],
        Outcome::Survival { time, event } => vec![
            format!("{:.4}", time[row]),
            u8::from(event[row]).to_string(),
        ],
    }
}
