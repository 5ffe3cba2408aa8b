//! Studies, as their operators draft, propose, watch and close them.

use super::{OperatorError, Watched, calling, dial, folder, fresh_token, result, watch};
use crate::cli;
use protocol::document::{DocumentErrors, nearest_hint};
use protocol::job::Job;
use protocol::name::RunId;
use protocol::study::{
    CertificateFingerprint, DraftError, Party, Study, StudyName, StudyState, pinned,
};
use serde::Serialize;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A study that cannot be drafted, or is not known.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// Its parties cannot be filled in.
    #[error("{}: {source}{hint}", path.display())]
    Draft {
        /// The study's file.
        path: PathBuf,
        /// The nearest parties that could be.
        hint: String,
        /// Why.
        #[source]
        source: DraftError,
    },
    /// What came out is no study.
    #[error("{}, with its parties filled in:\n{problems}", path.display())]
    Problems {
        /// The study's file.
        path: PathBuf,
        /// All of them, by the lines of what was drafted.
        problems: DocumentErrors,
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
    /// No study of this name names the operator.
    #[error("found no study {name:?} that names you{hint}; `study list` shows them")]
    Unknown {
        /// The name.
        name: String,
        /// The nearest one.
        hint: String,
    },
}

/// A study with the certificates of its parties.
#[derive(Debug, Serialize)]
pub struct Drafted {
    study: String,
    /// Where it was written; none where the text alone is given.
    file: Option<String>,
    text: String,
}

impl fmt::Display for Drafted {
    /// The text, where it is in no file.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.file {
            Some(_) => Ok(()),
            None => formatter.write_str(&self.text),
        }
    }
}

/// A study with the certificates of its parties, written where a file is named.
///
/// # Errors
/// [`OperatorError`].
pub fn draft(arguments: &cli::StudyDraft) -> Result<Drafted, OperatorError> {
    let (study, text) = with_parties(&arguments.study, &arguments.certificates)?;
    if let Some(out) = &arguments.out {
        write(out, &text)?;
    }
    let file = arguments.out.as_deref();
    Ok(Drafted {
        study: study.name.to_string(),
        file: file.map(|file| file.display().to_string()),
        text,
    })
}

/// The text of a study with the certificates of its parties.
fn with_parties(path: &Path, certificates: &Path) -> Result<(Study, String), OperatorError> {
    let path = path.to_owned();
    let text = std::fs::read_to_string(&path).map_err(|source| OperatorError::File {
        path: path.clone(),
        source,
    })?;
    let certificate = |party: Party<'_>| certificate(certificates, party);
    let drafted = pinned(&text, certificate).map_err(|source| StudyError::Draft {
        path: path.clone(),
        hint: hint(&source, certificates),
        source,
    })?;
    match Study::parse(&drafted) {
        Ok(study) => Ok((study, drafted)),
        Err(problems) => Err(StudyError::Problems { path, problems }.into()),
    }
}

/// The nearest parties of those that have certificates to those that have none.
fn hint(error: &DraftError, certificates: &Path) -> String {
    let DraftError::Certificates(absent) = error else {
        return String::new();
    };
    let entries = std::fs::read_dir(certificates).into_iter().flatten();
    let folders: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    let names = folders.iter().filter_map(|folder| {
        let name = folder.strip_prefix("site-");
        name.or(folder.strip_prefix("operator-"))
    });
    let known: Vec<&str> = names.collect();
    let hints = absent.iter().map(|name| nearest_hint(name, &known));
    hints.collect()
}

fn write(out: &Path, text: &str) -> Result<(), StudyError> {
    wire::private::replace(out, text.as_bytes()).map_err(|source| StudyError::Write {
        path: out.to_owned(),
        source,
    })
}

/// The fingerprint of a party's certificate, as `certificates issue` names its folder.
pub(crate) fn certificate(folder: &Path, party: Party<'_>) -> Option<CertificateFingerprint> {
    let name = match party {
        Party::Operator(name) => format!("operator-{name}"),
        Party::Hospital(name) => format!("site-{name}"),
    };
    wire::fingerprint_of(&folder.join(name).join("certificate.pem")).ok()
}

/// Proposes a study; gives the run that opens it.
///
/// # Errors
/// [`OperatorError`].
pub async fn propose(
    arguments: &cli::StudyPropose,
) -> Result<(RunId, Option<Watched>), OperatorError> {
    let path = match &arguments.certificates {
        None => arguments.study.clone(),
        Some(certificates) => {
            let out = arguments.study.with_extension("study.toml");
            write(&out, &with_parties(&arguments.study, certificates)?.1)?;
            out
        }
    };
    let text = wire::jobs::study(&path)?.card();
    let job = Job::parse(&text).map_err(|problems| OperatorError::Job { path, problems })?;
    let token = fresh_token(&text);
    let dial = dial(&arguments.config)?;
    let submit = calling(&dial, async |client| {
        client.submit(&text, job.seed, &token).await
    });
    let run = submit.await?;
    if !arguments.wait {
        return Ok((run, None));
    }
    let pending = folder(arguments.out.as_deref(), &run, arguments.force)?;
    let watched = watch(&arguments.config, &run, pending).await?;
    Ok((run, Some(watched)))
}

/// The studies that name the operator, the newest first.
///
/// # Errors
/// [`OperatorError`].
pub async fn studies(config: &Path) -> Result<Vec<StudyState>, OperatorError> {
    calling(&dial(config)?, async |client| client.studies().await).await
}

/// One study.
///
/// # Errors
/// [`OperatorError`].
pub async fn study(of: &cli::StudyOf) -> Result<StudyState, OperatorError> {
    let all = studies(&of.config).await?;
    let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
    let hint = nearest_hint(&of.study, &names);
    let found = all.into_iter().find(|one| one.name.as_str() == of.study);
    let name = of.study.clone();
    found.ok_or_else(|| StudyError::Unknown { name, hint }.into())
}

/// Fetches the card of a study.
///
/// # Errors
/// [`OperatorError`].
pub async fn card(arguments: &cli::StudyCard) -> Result<(RunId, Watched), OperatorError> {
    let run = study(&arguments.of).await?.run;
    let pending = folder(arguments.out.as_deref(), &run, arguments.force)?;
    let watched = result(&arguments.of.config, &run, pending).await?;
    Ok((run, watched))
}

/// Closes a study.
///
/// # Errors
/// [`OperatorError`].
pub async fn close(of: &cli::StudyOf) -> Result<(), OperatorError> {
    let name = StudyName::new(&of.study)?;
    let dial = dial(&of.config)?;
    calling(&dial, async |client| client.close_study(&name).await).await
}
