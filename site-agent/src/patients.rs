//! What stays at the site: patient-level results, written beside and then renamed.

use similarity::cohort::Outcome;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use wire::private;

/// A local file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("local results could not be written to {}", path.display())]
pub struct ResultsError {
    /// The file or folder.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// A file's name, and what it holds.
pub(crate) type File = (&'static str, io::Result<Vec<u8>>);

/// Writes files into `folder`, which is replaced whole.
pub(crate) fn replace(folder: &Path, files: Vec<File>) -> Result<(), ResultsError> {
    let partial = folder.with_extension("partial");
    let fault = |path: &Path| {
        let path = path.to_owned();
        move |source| ResultsError { path, source }
    };
    if partial.exists() {
        fs::remove_dir_all(&partial).map_err(fault(&partial))?;
    }
    private::folder(&partial).map_err(fault(&partial))?;
    for (name, bytes) in files {
        let path = partial.join(name);
        bytes
            .and_then(|bytes| private::write(&path, &bytes))
            .map_err(fault(&path))?;
    }
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(fault(folder))?;
    }
    fs::rename(&partial, folder).map_err(fault(folder))
}

/// One outcome per patient.
pub(crate) fn outcome_csv(outcome: &Outcome) -> io::Result<Vec<u8>> {
    let mut table = csv::Writer::from_writer(Vec::new());
    match outcome {
        Outcome::Classes { codes, levels } => {
            table.write_record(["code", "level"])?;
            for code in codes {
                table.write_record([code.to_string(), levels[*code as usize].clone()])?;
            }
        }
        Outcome::Numeric(values) => {
            table.write_record(["value"])?;
            for value in values {
                table.write_record([value.to_string()])?;
            }
        }
        Outcome::Survival { time, event } => {
            table.write_record(["time", "event"])?;
            for (time, event) in time.iter().zip(event) {
                table.write_record([time.to_string(), u8::from(*event).to_string()])?;
            }
        }
    }
    table.into_inner().map_err(io::Error::other)
}
