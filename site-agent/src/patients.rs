//! What stays at the site: patient-level results, written beside and then renamed.

use crate::source::Patients;
use protocol::cohort::{OutcomeSpecification, with_unit};
use report::{About, Column, CsvTable, File};
use similarity::cohort::Outcome;
use similarity::uses::nearest::Nearest;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use wire::private;

/// A local file could not be written. The cause is in the sentence, for it goes on as text.
#[derive(Debug, thiserror::Error)]
#[error("local results could not be written to {}: {cause}", path.display())]
pub struct ResultsError {
    /// The file or folder.
    pub path: PathBuf,
    /// Why.
    pub cause: io::Error,
}

/// A file that stays at the site.
pub(crate) enum Left<'l> {
    /// In memory.
    Whole(File),
    /// Of this name, and written piece by piece: whole it would be as large as all patients.
    InPieces(String, Pieces<'l>),
}

/// Writes one piece of a file after the other.
pub(crate) type Pieces<'l> = Box<dyn FnOnce(&mut (dyn Write + Send)) -> io::Result<()> + 'l>;

impl From<File> for Left<'_> {
    fn from(file: File) -> Self {
        Self::Whole(file)
    }
}

impl<'l> Left<'l> {
    pub(crate) fn in_pieces(
        name: impl Into<String>,
        write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()> + 'l,
    ) -> Self {
        Self::InPieces(name.into(), Box::new(write))
    }

    fn parts(self) -> Vec<(String, Pieces<'l>)> {
        match self {
            Self::Whole(file) => {
                let parts = file.parts().into_iter();
                let written = parts.map(|(name, bytes)| {
                    let write: Pieces<'l> = Box::new(move |target| target.write_all(&bytes?));
                    (name, write)
                });
                written.collect()
            }
            Self::InPieces(name, write) => vec![(name, write)],
        }
    }
}

/// Writes files into `folder`, which is replaced whole. Each is made when it is its turn, so that one alone is in memory.
pub(crate) fn replace<'l>(
    folder: &Path,
    files: impl IntoIterator<Item = impl Into<Left<'l>>>,
) -> Result<(), ResultsError> {
    let partial = folder.with_extension("partial");
    let fault = |path: &Path| {
        let path = path.to_owned();
        move |cause| ResultsError { path, cause }
    };
    if partial.exists() {
        fs::remove_dir_all(&partial).map_err(fault(&partial))?;
    }
    private::folder(&partial).map_err(fault(&partial))?;
    for (name, write) in files.into_iter().flat_map(|file| file.into().parts()) {
        let path = partial.join(name);
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true);
        private::open(&path, options)
            .and_then(|mut file| write(&mut file))
            .map_err(fault(&path))?;
    }
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(fault(folder))?;
    }
    fs::rename(&partial, folder).map_err(fault(folder))
}

/// One outcome per patient, beside the patient's name.
pub(crate) fn outcome_csv(
    patients: &Patients,
    outcome: &Outcome,
    specification: &OutcomeSpecification,
) -> io::Result<CsvTable> {
    let unit = specification.unit_in_words();
    let mut columns = vec![Column::patient()];
    columns.extend(match outcome {
        Outcome::Classes { levels, .. } => vec![
            Column::whole("code", "class").levels((0..).zip(levels.iter().map(String::as_str))),
            Column::text("level", "label of the class"),
        ],
        Outcome::Numeric(_) => {
            vec![Column::number(with_unit("value", unit), specification.label.clone()).unit(unit)]
        }
        Outcome::Survival { .. } => vec![
            Column::number(with_unit("time", unit), specification.label.clone()).unit(unit),
            event_column("event", specification),
        ],
    });
    let title = "Outcomes: a row per patient";
    let mut table = CsvTable::new(title, About::Outcome(specification), &columns)?;
    match outcome {
        Outcome::Classes { codes, levels } => {
            for (row, code) in codes.iter().enumerate() {
                let level = levels[*code as usize].clone();
                table.row([patients.name(row), code.to_string(), level])?;
            }
        }
        Outcome::Numeric(values) => {
            for (row, value) in values.iter().enumerate() {
                table.row([patients.name(row), value.to_string()])?;
            }
        }
        Outcome::Survival { time, event } => {
            for (row, (time, event)) in time.iter().zip(event).enumerate() {
                let event = u8::from(*event).to_string();
                table.row([patients.name(row), time.to_string(), event])?;
            }
        }
    }
    Ok(table)
}

/// Whether a patient had the event: 1, or 0 who was censored.
pub(crate) fn event_column(name: &str, specification: &OutcomeSpecification) -> Column {
    let labels = ["censored", "event"].map(|group| specification.group_label(group));
    Column::whole(name, "whether the patient had the event").levels((0..).zip(labels))
}

/// The chance of a class.
pub(crate) fn chance_column(class: &str) -> Column {
    Column::number(format!("chance: {class}"), "probability of the class")
}

/// Each patient's nearest, nearest first, with the number by which they are.
pub(crate) fn neighbours_csv(
    patients: &Patients,
    nearest: &[Nearest],
    measure: Column,
) -> io::Result<CsvTable> {
    let mut table = neighbours_table(measure)?;
    for (patient, found) in nearest.iter().enumerate() {
        for (rank, neighbour) in (1..).zip(&found.neighbours) {
            table.row([
                patients.name(patient),
                i32::to_string(&rank),
                patients.name(neighbour.patient as usize),
                neighbour.proximity.to_string(),
            ])?;
        }
    }
    Ok(table)
}

/// A table of each patient's nearest, without a row.
pub(crate) fn neighbours_table(measure: Column) -> io::Result<CsvTable> {
    let columns = [
        Column::patient(),
        Column::whole("rank", "1 is the nearest"),
        Column::text("neighbour", "another patient"),
        measure,
    ];
    let title = "Nearest patients: a row per patient and neighbour";
    CsvTable::new(title, About::Course, &columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_whole_or_not_at_all() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("table.csv");
        private::replace(&file, b"a\n1\n").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"a\n1\n");
        // The name is too long once it has its ending.
        let long = home.path().join("n".repeat(250));
        private::replace(&long, b"b").unwrap_err();
        let left: Vec<_> = fs::read_dir(home.path()).unwrap().collect();
        assert_eq!(left.len(), 1);
        assert!(private::replace(Path::new("/dev/full"), b"b").is_err());
    }
}
