//! The paper's three data sets, read from public CSV files.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use ndarray::{Array1, Array2};

use crate::ExperimentError;

/// Patients as published: one row each, with their class; 1 is the positive one.
pub(crate) struct Patients {
    /// Values on the source's scale, n x d.
    pub(crate) values: Array2<f64>,
    /// 1 where positive.
    pub(crate) classes: Array1<u32>,
    /// The person of each row, from 0: rows of one person share a number.
    pub(crate) subjects: Vec<usize>,
}

/// Parkinson's voice recordings (Little et al. 2007): positive is Parkinson's; 195 x 22, 32 subjects.
pub(crate) fn parkinsons(folder: &Path) -> Result<Patients, ExperimentError> {
    Layout {
        file: "parkinsons.csv",
        identifier: "name",
        class: "status",
        positive: "1",
        negative: "0",
    }
    .read(folder)
}

/// Colon tissue (Alon et al. 1999): positive is tumour; 62 x 2,000. Every row counts as a subject,
/// because the file does not say which tissues are of one person.
pub(crate) fn colon(folder: &Path) -> Result<Patients, ExperimentError> {
    Layout {
        file: "colon.csv",
        identifier: "sample",
        class: "tissue",
        positive: "tumour",
        negative: "normal",
    }
    .read(folder)
}

/// Leukaemia (Golub et al. 1999), training and test patients: positive is ALL, as in the paper's counts;
/// 38 and 34 x 7,129.
pub(crate) fn leukaemia(folder: &Path) -> Result<[Patients; 2], ExperimentError> {
    let read = |file| {
        Layout {
            file,
            identifier: "patient",
            class: "label",
            positive: "ALL",
            negative: "AML",
        }
        .read(folder)
    };
    Ok([
        read("leukemia_train.csv.gz")?,
        read("leukemia_test.csv.gz")?,
    ])
}

/// Which columns of a file are not features.
struct Layout {
    file: &'static str,
    identifier: &'static str,
    class: &'static str,
    positive: &'static str,
    negative: &'static str,
}

impl Layout {
    fn read(&self, folder: &Path) -> Result<Patients, ExperimentError> {
        let table = Table::read(folder, self.file)?;
        let (identifier, class) = (table.place(self.identifier)?, table.place(self.class)?);
        let features: Vec<usize> = (0..table.header.len())
            .filter(|column| *column != identifier && *column != class)
            .collect();
        let mut values = Vec::with_capacity(table.rows.len() * features.len());
        for row in 0..table.rows.len() {
            for &column in &features {
                values.push(table.number(row, column)?);
            }
        }
        let found = table.rows.len();
        if found < 2 {
            let (path, wanted) = (table.path, 2);
            return Err(ExperimentError::Rows {
                path,
                found,
                wanted,
            });
        }
        let persons = table
            .rows
            .iter()
            .map(|row| person(&row[identifier]).to_owned());
        let persons: Vec<String> = persons.collect();
        let values = Array2::from_shape_vec((table.rows.len(), features.len()), values)
            .expect("every record has the header's length");
        Ok(Patients {
            values,
            classes: table.codes(self.class, &[self.negative, self.positive])?,
            subjects: numbered(&persons),
        })
    }
}

/// A CSV file, compressed or not.
pub(crate) struct Table {
    path: PathBuf,
    header: csv::StringRecord,
    rows: Vec<csv::StringRecord>,
}

impl Table {
    pub(crate) fn read(folder: &Path, file: &str) -> Result<Self, ExperimentError> {
        let path = folder.join(file);
        let fault = |source: csv::Error| ExperimentError::Data {
            path: path.clone(),
            source,
        };
        let opened = File::open(&path).map_err(|source| fault(source.into()))?;
        let stream: Box<dyn Read> = match file.ends_with(".gz") {
            true => Box::new(GzDecoder::new(opened)),
            false => Box::new(opened),
        };
        let mut reader = csv::Reader::from_reader(stream);
        let header = reader.headers().map_err(fault)?.clone();
        let rows: Result<Vec<_>, csv::Error> = reader.records().collect();
        let rows = rows.map_err(fault)?;
        Ok(Self { path, header, rows })
    }

    pub(crate) fn place(&self, column: &str) -> Result<usize, ExperimentError> {
        let found = self.header.iter().position(|name| name == column);
        found.ok_or_else(|| ExperimentError::Column {
            path: self.path.clone(),
            column: column.to_owned(),
        })
    }

    /// Of the row, from 0.
    fn number(&self, row: usize, column: usize) -> Result<f64, ExperimentError> {
        let number = self.rows[row][column].parse::<f64>().ok();
        let number = number.filter(|value| value.is_finite());
        number.ok_or_else(|| self.fault(row, column, "a finite number"))
    }

    /// A column of numbers; an empty cell is missing (NaN).
    pub(crate) fn numbers(&self, column: &str) -> Result<Array1<f64>, ExperimentError> {
        let place = self.place(column)?;
        let of_row = |row: usize| match self.rows[row][place].is_empty() {
            true => Ok(f64::NAN),
            false => self.number(row, place),
        };
        (0..self.rows.len()).map(of_row).collect()
    }

    /// A column of codes into `levels`.
    pub(crate) fn codes(
        &self,
        column: &str,
        levels: &[&str],
    ) -> Result<Array1<u32>, ExperimentError> {
        let place = self.place(column)?;
        let of_row = |row: usize| {
            let found = levels
                .iter()
                .position(|level| *level == &self.rows[row][place]);
            let code = found.and_then(|code| u32::try_from(code).ok());
            code.ok_or_else(|| self.fault(row, place, "one of its levels"))
        };
        (0..self.rows.len()).map(of_row).collect()
    }

    /// A value that cannot be used.
    pub(crate) fn fault(&self, row: usize, column: usize, wanted: &'static str) -> ExperimentError {
        ExperimentError::Value {
            path: self.path.clone(),
            row: row + 1,
            column: self.header[column].to_owned(),
            wanted,
        }
    }
}

/// `phon_R01_S<subject>_<recording>` without the recording; any other identifier is a person's own.
fn person(identifier: &str) -> &str {
    match identifier.rsplit_once('_') {
        Some((person, _)) if identifier.starts_with("phon_") => person,
        _ => identifier,
    }
}

fn numbered(persons: &[String]) -> Vec<usize> {
    let mut known: Vec<&String> = Vec::new();
    let mut number = |person| {
        known
            .iter()
            .position(|one| *one == person)
            .unwrap_or_else(|| {
                known.push(person);
                known.len() - 1
            })
    };
    persons.iter().map(&mut number).collect()
}
