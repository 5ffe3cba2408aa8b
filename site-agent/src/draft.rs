//! `study draft`: a study's text, proposed from a hospital's table or from what its site.toml declares.

use crate::cli::StudyDraft;
use crate::config::{ConfigError, SiteConfig};
use crate::source::{Asked, Draft, DraftError, of_declared, of_table};
use privacy::Rules;
use protocol::study::StudyName;
use protocol::time::Timestamp;
use serde::Serialize;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};
use time::OffsetDateTime;
use wire::private;

/// A study that could not be drafted.
#[derive(Debug, thiserror::Error)]
pub enum StudyDraftError {
    /// The table cannot be used, or what was asked of it.
    #[error(transparent)]
    Draft(#[from] DraftError),
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The file is there already.
    #[error("{}: found a file, wanted a new one, or --force to write over it", .0.display())]
    Exists(PathBuf),
    /// The text could not be written.
    #[error("{} could not be written", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// A study's text, for people to complete.
#[derive(Debug, Serialize)]
pub struct DraftedStudy {
    /// Where it was written; none where the text alone is given.
    file: Option<String>,
    text: String,
    #[serde(flatten)]
    draft: Draft,
}

impl DraftedStudy {
    /// What its people are to do with it.
    #[must_use]
    pub fn remark(&self) -> String {
        let Draft {
            features, excluded, ..
        } = &self.draft;
        format!(
            "{} features, {} columns excluded: read all of it before you send it",
            features.len(),
            excluded.len()
        )
    }
}

impl fmt::Display for DraftedStudy {
    /// The text, or the file that has it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.file.as_ref().unwrap_or(&self.text))
    }
}

/// Drafts a study's text, and writes it where a file is named.
///
/// # Errors
/// [`StudyDraftError`]; then nothing is written.
pub fn draft(arguments: &StudyDraft, now: Timestamp) -> Result<DraftedStudy, StudyDraftError> {
    let out = arguments.out.as_deref();
    if let Some(there) = out.filter(|out| out.exists() && !arguments.force) {
        return Err(StudyDraftError::Exists(there.to_owned()));
    }
    let rules = Rules::default();
    let asked = Asked {
        outcomes: &arguments.outcome,
        categorical: &arguments.categorical,
        patients_min: rules.cell_min.max(rules.patients_min),
    };
    let from = &arguments.from;
    let is_configuration = from.extension().is_some_and(|ending| ending == "toml");
    let (draft, origin) = match is_configuration {
        true => (
            declared(from, asked)?,
            "what one hospital declares; no table was read",
        ),
        false => (
            of_table(from, asked)?,
            "one hospital's table: no number of it is here, and no level that few patients have",
        ),
    };
    let text = format!("{}{draft}", head(out, origin, now));
    if let Some(path) = out {
        private::replace(path, text.as_bytes()).map_err(|source| StudyDraftError::Write {
            path: path.to_owned(),
            source,
        })?;
    }
    Ok(DraftedStudy {
        file: out.map(|path| path.display().to_string()),
        text,
        draft,
    })
}

fn declared(path: &Path, asked: Asked<'_>) -> Result<Draft, StudyDraftError> {
    let config = SiteConfig::open(path)?;
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
        path: path.display().to_string(),
        source,
    })?;
    Ok(of_declared(&config.source, &text, asked)?)
}

/// The study's own keys, named after its file, to the end of the next year.
fn head(out: Option<&Path>, origin: &str, now: Timestamp) -> String {
    let stem = out.and_then(Path::file_stem).and_then(|stem| stem.to_str());
    let stem = stem.map(|stem| stem.strip_suffix(".study").unwrap_or(stem));
    let name = stem.filter(|stem| StudyName::new(stem).is_ok());
    let name = name.unwrap_or("study");
    let year = OffsetDateTime::from(UNIX_EPOCH + Duration::from_millis(now.0)).year() + 1;
    format!(
        "# Drafted from {origin}.\n\
         # Complete it, and read all of it before you send it.\n\
         name = \"{name}\"\n\
         title = \"Title of {name}\"\n\
         purpose = \"Its purpose\"\n\
         until = \"{year}-12-31\"\n\
         operators = [\"researcher\"]\n\
         hospitals = [\"north\", \"south\", \"east\"]\n\
         methods = [\"unpsl\", \"regression\"]\n\
         limits = {{ runs = 100, rounds = 5000, queries = 1000 }}\n"
    )
}
