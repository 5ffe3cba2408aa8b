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
    /// Whom each row is of, from 0: rows of one person share a number.
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
        let path = folder.join(self.file);
        let fault = |source: csv::Error| ExperimentError::Data {
            path: path.clone(),
            source,
        };
        let file = File::open(&path).map_err(|source| fault(source.into()))?;
        let stream: Box<dyn Read> = match self.file.ends_with(".gz") {
            true => Box::new(GzDecoder::new(file)),
            false => Box::new(file),
        };
        let mut reader = csv::Reader::from_reader(stream);
        let header = reader.headers().map_err(fault)?.clone();
        let place = |column: &str| {
            let found = header.iter().position(|name| name == column);
            found.ok_or_else(|| ExperimentError::Column {
                path: path.clone(),
                column: column.to_owned(),
            })
        };
        let (identifier, class) = (place(self.identifier)?, place(self.class)?);
        let features: Vec<usize> = (0..header.len())
            .filter(|column| *column != identifier && *column != class)
            .collect();
        let (mut values, mut classes, mut persons) = (Vec::new(), Vec::new(), Vec::new());
        for (index, record) in reader.records().enumerate() {
            let record = record.map_err(fault)?;
            let cell = Cell {
                path: &path,
                header: &header,
                row: index + 1,
            };
            let label = &record[class];
            classes.push(match label {
                _ if label == self.positive => 1,
                _ if label == self.negative => 0,
                _ => return Err(cell.fault(class, "one of the two classes")),
            });
            persons.push(person(&record[identifier]).to_owned());
            for &column in &features {
                values.push(cell.number(column, &record[column])?);
            }
        }
        let found = classes.len();
        if found < 2 {
            let wanted = 2;
            return Err(ExperimentError::Rows {
                path,
                found,
                wanted,
            });
        }
        let values = Array2::from_shape_vec((found, features.len()), values)
            .expect("every record has the header's length");
        Ok(Patients {
            values,
            classes: Array1::from(classes),
            subjects: numbered(&persons),
        })
    }
}

struct Cell<'a> {
    path: &'a PathBuf,
    header: &'a csv::StringRecord,
    row: usize,
}

impl Cell<'_> {
    fn number(&self, column: usize, text: &str) -> Result<f64, ExperimentError> {
        let number = text.parse::<f64>().ok().filter(|value| value.is_finite());
        number.ok_or_else(|| self.fault(column, "a finite number"))
    }

    fn fault(&self, column: usize, wanted: &'static str) -> ExperimentError {
        ExperimentError::Value {
            path: self.path.clone(),
            row: self.row,
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
